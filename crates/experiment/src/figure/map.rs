//! Where something holds: a grid over two axes.

use super::{WIDTH, coordinate, escape, put};

/// Whether it holds, and what the cell says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// `None`: what was measured does not decide it.
    pub holds: Option<bool>,
    /// The value behind it.
    pub text: String,
}

/// A grid of cells.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// What it shows, for readers who do not see it.
    pub title: String,
    /// Name of the axis of the columns.
    pub x_label: String,
    /// Name of the axis of the rows.
    pub y_label: String,
    /// Places of the columns, from left to right.
    pub columns: Vec<String>,
    /// Places of the rows, from top to bottom, each with its cells; a missing cell was not measured.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
}

const LEFT: f64 = 220.0;
const TOP: f64 = 24.0;
const ROW: f64 = 34.0;
const BOTTOM: f64 = 40.0;

impl Map {
    /// The drawing.
    pub fn render(&self) -> String {
        let bottom = TOP + ROW * self.rows.len() as f64;
        let width = (WIDTH - LEFT) / self.columns.len().max(1) as f64;
        let middle = |column: usize| coordinate(LEFT + width * (column as f64 + 0.5));
        let mut out = String::new();
        let (height, title) = (bottom + BOTTOM, escape(&self.title));
        put(&mut out, format_args!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">"));
        let label = escape(&self.y_label);
        put(&mut out, format_args!("<text class=\"end\" x=\"{}\" y=\"{}\">{label}</text>", LEFT - 8.0, TOP - 8.0));
        for (row, (place, cells)) in self.rows.iter().enumerate() {
            let top = TOP + ROW * row as f64;
            let (base, place) = (coordinate(top + ROW / 2.0), escape(place));
            put(
                &mut out,
                format_args!("<text class=\"end\" x=\"{}\" y=\"{base}\" dy=\"4\">{place}</text>", LEFT - 8.0),
            );
            for (column, cell) in cells.iter().enumerate() {
                let Some(Cell { holds, text }) = cell else { continue };
                let (class, word) = match holds {
                    Some(true) => ("yes", "holds"),
                    Some(false) => ("no", "does not"),
                    None => ("open", "undecided"),
                };
                let (left, top) = (coordinate(LEFT + width * column as f64 + 1.0), coordinate(top + 1.0));
                let (wide, high) = (coordinate(width - 2.0), coordinate(ROW - 2.0));
                put(
                    &mut out,
                    format_args!(
                        "<rect class=\"cell {class}\" x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\"/>"
                    ),
                );
                let (at, text) = (middle(column), escape(text));
                put(
                    &mut out,
                    format_args!("<text class=\"mid\" x=\"{at}\" y=\"{base}\" dy=\"4\">{word}: {text}</text>"),
                );
            }
        }
        for (column, place) in self.columns.iter().enumerate() {
            let (at, place) = (middle(column), escape(place));
            put(&mut out, format_args!("<text class=\"mid\" x=\"{at}\" y=\"{}\">{place}</text>", bottom + 15.0));
        }
        let (at, label) = (coordinate((LEFT + WIDTH) / 2.0), escape(&self.x_label));
        put(&mut out, format_args!("<text class=\"mid\" x=\"{at}\" y=\"{}\">{label}</text>", height - 6.0));
        out.push_str("</svg>\n");
        out
    }
}
