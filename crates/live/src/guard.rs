//! Who may ask: a page that came from here and knows the token.
//!
//! A browser sends requests for any page that it has open. Such a page does not know the token; its origin is another one; and a name of its
//! own that it had point here (DNS rebinding) is in `Host`.

use std::net::SocketAddr;

use axum::http::{HeaderMap, StatusCode, header};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::LiveError;

const TOKEN_BYTES: usize = 16;

/// What a client shows to be let in; in hexadecimal digits.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    pub(crate) fn random() -> Result<Self, LiveError> {
        let mut bytes = [0; TOKEN_BYTES];
        let failed = |errno: rustix::io::Errno| LiveError::System { what: "read random bytes", why: errno.into() };
        let count = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(failed)?;
        // The kernel interrupts no request this short.
        assert_eq!(count, TOKEN_BYTES, "a whole token");
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Its digits.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// In a time that does not tell where they differ.
    fn is(&self, other: &str) -> bool {
        let differences = self.0.bytes().zip(other.bytes()).fold(0, |sum, (one, two)| sum | (one ^ two));
        self.0.len() == other.len() && std::hint::black_box(differences) == 0
    }
}

/// The server's name and token.
pub(crate) struct Guard {
    hosts: Vec<String>,
    token: Token,
}

/// Why nobody is let in.
pub(crate) type Refused = (StatusCode, &'static str);

impl Guard {
    pub(crate) fn new(address: SocketAddr, token: Token) -> Self {
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.push(format!("localhost:{}", address.port()));
        }
        Self { hosts, token }
    }

    /// Whether the request was meant for this server, and no page from elsewhere made it.
    pub(crate) fn meant(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = text(headers, header::HOST).unwrap_or_default();
        if !self.hosts.iter().any(|own| own == host) {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "this server has another name; open the address that it printed",
            ));
        }
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(|from| from == host);
        match headers.get(header::ORIGIN) {
            Some(origin) if !origin.to_str().is_ok_and(is_own) => {
                Err((StatusCode::FORBIDDEN, "a page from elsewhere asks"))
            }
            _ => Ok(()),
        }
    }

    /// The same, and it has the token.
    pub(crate) fn allowed(&self, headers: &HeaderMap) -> Result<(), Refused> {
        self.meant(headers)?;
        let shown = text(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        match shown {
            Some(shown) if self.token.is(shown) => Ok(()),
            _ => Err((StatusCode::UNAUTHORIZED, "the token is missing or wrong: `Authorization: Bearer TOKEN`")),
        }
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    // Two of them mean two things.
    all.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn guard() -> Guard {
        Guard::new("127.0.0.1:8080".parse().unwrap(), Token("00ff".to_owned()))
    }

    fn with(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn who_shows_the_token_at_the_right_name_is_let_in() {
        let host = ("host", "127.0.0.1:8080");
        let token = ("authorization", "Bearer 00ff");
        let own = ("origin", "http://127.0.0.1:8080");
        let status = |pairs: &[_]| guard().allowed(&with(pairs)).map_err(|(status, _)| status.as_u16());
        assert_eq!(status(&[host, token]), Ok(()));
        assert_eq!(status(&[host, token, own]), Ok(()));
        assert_eq!(status(&[("host", "localhost:8080"), token]), Ok(()));
        for shown in ["Bearer 00fe", "Bearer 00f", "Bearer 00ff0", "Bearer ", "00ff", "bearer 00ff"] {
            assert_eq!(status(&[host, ("authorization", shown)]), Err(401), "{shown}");
        }
        assert_eq!(status(&[host]), Err(401));
        assert_eq!(status(&[token]), Err(421));
        assert_eq!(status(&[("host", "evil.example:8080"), token]), Err(421));
        assert_eq!(status(&[host, host, token]), Err(421), "two names");
        for origin in ["http://evil.example", "null", "https://127.0.0.1:8080", "http://127.0.0.1:8081"] {
            assert_eq!(status(&[host, token, ("origin", origin)]), Err(403), "{origin}");
        }
        // The page of the other name of this host is not this one.
        assert_eq!(status(&[host, token, ("origin", "http://localhost:8080")]), Err(403));
    }

    #[test]
    fn tokens_are_long_differ_and_are_not_shown_by_chance() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.text().len() == 32 && one.text() != two.text());
        assert!(one.is(one.text()) && !one.is(two.text()) && !format!("{one:?}").contains(one.text()));
    }
}
