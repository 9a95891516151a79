//! Text in drawings: how wide it is, about, and where it breaks so that nothing is cut off.

use super::{WIDTH, coordinate, escape, put};

/// Height of a line of text.
pub(crate) const HEIGHT: f64 = 16.0;
/// Width of a character, on average and rather too much: narrow screens have larger letters.
const CHARACTER: f64 = 7.2;

/// Which point of the text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    /// The class that the page's style sheet knows.
    fn class(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Middle => " class=\"mid\"",
            Self::End => " class=\"end\"",
        }
    }
}

/// About how wide a text is.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// One line of text; what has no room in the drawing is set in smaller letters.
pub(crate) fn line(out: &mut String, text: &str, (x, y): (f64, f64), anchor: Anchor) {
    let room = match anchor {
        Anchor::Start => WIDTH - x,
        Anchor::Middle => 2.0 * x.min(WIDTH - x),
        Anchor::End => x,
    };
    let (small, class, text_safe) = (fit(text, room), anchor.class(), escape(text));
    put(out, format_args!("<text{class} x=\"{}\" y=\"{}\"{small}>{text_safe}</text>", coordinate(x), coordinate(y)));
}

/// Text beside a place: to its right, or to its left where there is more room.
pub(crate) fn beside(out: &mut String, text: &str, (x, y): (f64, f64)) {
    if x + width(text) <= WIDTH || x < WIDTH / 2.0 {
        line(out, text, (x + 4.0, y), Anchor::Start);
    } else {
        line(out, text, (x - 4.0, y), Anchor::End);
    }
}

/// A remark in softer letters.
pub(crate) fn soft(out: &mut String, text: &str, (x, y): (f64, f64)) {
    put(
        out,
        format_args!("<text class=\"soft\" x=\"{}\" y=\"{}\">{}</text>", coordinate(x), coordinate(y), escape(text)),
    );
}

/// Text in the middle of a box.
pub(crate) fn within(out: &mut String, text: &str, (x, y): (f64, f64), room: f64) {
    let (small, safe) = (fit(text, room), escape(text));
    put(out, format_args!("<text class=\"mid\" x=\"{}\" y=\"{}\"{small}>{safe}</text>", coordinate(x), coordinate(y)));
}

/// Text that runs upwards, in two lines where `room` is too short for one.
pub(crate) fn upright(out: &mut String, text: &str, (x, y): (f64, f64), room: f64) {
    let lines = if width(text) > room { halves(text) } else { vec![text.to_owned()] };
    let first = x - HEIGHT / 2.0 * (lines.len() - 1) as f64;
    for (number, line) in lines.iter().enumerate() {
        let (at, small, safe) = (coordinate(first + HEIGHT * number as f64), fit(line, room), escape(line));
        put(
            out,
            format_args!(
                "<text class=\"mid\" transform=\"translate({at} {}) rotate(-90)\"{small}>{safe}</text>",
                coordinate(y)
            ),
        );
    }
}

/// A limit of the length, where the text may be longer than its room.
fn fit(text: &str, room: f64) -> String {
    if width(text) <= room {
        return String::new();
    }
    format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", coordinate(room.max(20.0) - 6.0))
}

/// A text in two lines, broken at the blank nearest to its middle.
fn halves(text: &str) -> Vec<String> {
    let middle = text.len() / 2;
    match text.match_indices(' ').map(|(place, _)| place).min_by_key(|place| place.abs_diff(middle)) {
        Some(place) => vec![text[..place].to_owned(), text[place + 1..].to_owned()],
        None => vec![text.to_owned()],
    }
}
