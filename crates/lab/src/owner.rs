//! Whose a namespace is, written on it: the alias of its loopback interface (`ip link` shows it), so that weft knows its own
//! namespaces with nothing else left, and takes nobody else's for one of them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use crate::home::check_lab_name;
use crate::netlink::{HEADER, NLM_F_REQUEST, NLMSG_ERROR, Rtnetlink, attribute, message, u16_at};
use crate::process::ProcessId;

/// Numbers of `linux/netlink.h`, `linux/rtnetlink.h` and `linux/if_link.h`.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const NLM_F_ACK: u16 = 4;
const IFLA_IFALIAS: u16 = 20;
/// Sizes of `struct ifinfomsg` and `struct rtattr`.
const IFINFOMSG: usize = 16;
const RTATTR: usize = 4;
/// The longest text, and more, bytes.
const TEXT_MAX: u64 = 255;
/// Index of the loopback interface, in every namespace.
const LOOPBACK: u32 = 1;

/// For whom weft made something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Lab(String),
    /// For this process, as long as it lives.
    Process(ProcessId),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lab(name) => write!(f, "weft lab {name}"),
            Self::Process(id) => write!(f, "weft process {} {}", id.pid, id.start_ticks),
        }
    }
}

impl Owner {
    /// This process.
    pub(crate) fn this_process() -> Self {
        Self::Process(ProcessId::own())
    }

    /// Reads what [`fmt::Display`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["weft", "lab", name] => check_lab_name(name).is_ok().then(|| Self::Lab(name.to_owned())),
            ["weft", "process", pid, start] => {
                Some(Self::Process(ProcessId { pid: pid.parse().ok()?, start_ticks: start.parse().ok()? }))
            }
            _ => None,
        }
    }

    /// Reads it from a small file of root's; `None` if that is empty.
    pub(crate) fn of_file(file: &mut File) -> io::Result<Option<Self>> {
        let foreign = || io::Error::other("not written by weft");
        let data = file.metadata()?;
        if !data.is_file() || data.uid() != 0 || data.len() > TEXT_MAX {
            return Err(foreign());
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        match Self::parse(&text) {
            None if !text.is_empty() => Err(foreign()),
            owner => Ok(owner),
        }
    }

    /// Writes it on the calling thread's namespace.
    pub(crate) fn mark_namespace(&self) -> io::Result<()> {
        let alias = self.to_string();
        let mut body = loopback();
        body.extend(((RTATTR + alias.len()) as u16).to_ne_bytes());
        body.extend(IFLA_IFALIAS.to_ne_bytes());
        body.extend(alias.as_bytes());
        body.resize(body.len().next_multiple_of(RTATTR), 0);
        ask(&message(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &body)).map(drop)
    }

    /// Reads it from the calling thread's namespace; `None` if weft did not make that.
    pub(crate) fn of_namespace() -> io::Result<Option<Self>> {
        let answer = ask(&message(RTM_GETLINK, NLM_F_REQUEST, &loopback()))?;
        Ok(alias_in(&answer).and_then(|alias| Self::parse(&alias)))
    }
}

/// Sends a message in the calling thread's namespace and returns the answer, behind its header.
fn ask(message: &[u8]) -> io::Result<Vec<u8>> {
    let mut socket = Rtnetlink::open()?;
    socket.send(message)?;
    let answer = socket.receive()?;
    let unknown = || io::Error::other("the kernel's answer is not understood");
    let body = answer.get(HEADER..).ok_or_else(unknown)?;
    match u16_at(answer, 4) {
        NLMSG_ERROR => match body.first_chunk().map(|code| i32::from_ne_bytes(*code)).ok_or_else(unknown)? {
            0 => Ok(Vec::new()),
            code => Err(io::Error::from_raw_os_error(-code)),
        },
        RTM_NEWLINK => Ok(body.to_vec()),
        _ => Err(unknown()),
    }
}

/// `struct ifinfomsg` of the loopback interface.
fn loopback() -> Vec<u8> {
    let mut link = vec![0; 4];
    link.extend(LOOPBACK.to_ne_bytes());
    link.resize(IFINFOMSG, 0);
    link
}

/// The alias among the attributes behind a `struct ifinfomsg`.
fn alias_in(link: &[u8]) -> Option<String> {
    let value = attribute(link.get(IFINFOMSG..)?, IFLA_IFALIAS)?;
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8(value[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for owner in [Owner::Lab("vl2-x".into()), Owner::Process(ProcessId { pid: 7, start_ticks: 9 })] {
            assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
        }
        for text in ["", "weft", "weft lab", "weft lab ../x", "weft lab a b", "weft process 1", "uplink to r1"] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_damaged_answer_has_no_alias() {
        let attribute = |length: u16, kind: u16, value: &[u8]| {
            [vec![0; IFINFOMSG], length.to_ne_bytes().to_vec(), kind.to_ne_bytes().to_vec(), value.to_vec()].concat()
        };
        assert_eq!(alias_in(&attribute(7, IFLA_IFALIAS, b"ab\0")).as_deref(), Some("ab"));
        for (length, kind) in [(0, IFLA_IFALIAS), (3, IFLA_IFALIAS), (99, IFLA_IFALIAS), (7, 3)] {
            assert_eq!(alias_in(&attribute(length, kind, b"ab\0")), None, "{length} {kind}");
        }
        assert_eq!(alias_in(&[0; 3]), None);
    }
}
