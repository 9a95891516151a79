//! Figures as inline SVG, drawn to be read: axes with units, the paper's value as a line, lines told apart by dashes and marks
//! and not by colour alone. Colours are classes (`c0`..`c5`) that the page's style sheet fills, for light and dark.

mod asked;
mod axis;
pub mod fabric;
pub mod flow_log;
mod line_chart;
mod map;
mod plots;
mod row_chart;
mod text;

pub use axis::Scale;
pub use line_chart::{Band, Level, LineChart, Series, Span};
pub use map::{Cell, Map};
pub use plots::{Figure, figures};
pub use row_chart::{Mark, RowChart};

/// Width of every drawing in its own units; text is 13 units high, and 18 where the screen is narrow.
pub(crate) const WIDTH: f64 = 640.0;
/// Colours that are told apart; later series begin again with other dashes.
pub(crate) const COLOURS: usize = 6;

/// Text that is safe inside SVG and HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML has no control characters.
            other if other.is_control() => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}

/// A coordinate with a tenth of a unit, which is finer than a screen.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Adds a line to a drawing.
pub(crate) fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    use std::fmt::Write;
    writeln!(out, "{line}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests;
