//! Where something holds: a grid over two axes.

use super::text::{self, Anchor};
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

/// Most that names of rows take of the width.
const LEFT_MAX: f64 = 220.0;
const TOP: f64 = 26.0;
const ROW: f64 = 38.0;
const BOTTOM: f64 = 50.0;

impl Map {
    /// The drawing.
    pub fn render(&self) -> String {
        let bottom = TOP + ROW * self.rows.len() as f64;
        let names = self.rows.iter().map(|(place, _)| place).chain([&self.y_label]);
        let left = names.map(|name| text::width(name) + 16.0).fold(0.0, f64::max).min(LEFT_MAX);
        let width = (WIDTH - left) / self.columns.len().max(1) as f64;
        let middle = |column: usize| left + width * (column as f64 + 0.5);
        let mut out = String::new();
        let (height, title) = (bottom + BOTTOM, escape(&self.title));
        put(&mut out, format_args!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">"));
        text::line(&mut out, &self.y_label, (left - 8.0, TOP - 8.0), Anchor::End);
        for (row, (place, cells)) in self.rows.iter().enumerate() {
            let top = TOP + ROW * row as f64;
            let base = top + ROW / 2.0 + 5.0;
            text::line(&mut out, place, (left - 8.0, base), Anchor::End);
            for (column, cell) in cells.iter().enumerate() {
                let Some(Cell { holds, text }) = cell else { continue };
                let (class, word) = match holds {
                    Some(true) => ("yes", "holds"),
                    Some(false) => ("no", "does not"),
                    None => ("open", "undecided"),
                };
                let (from, top) = (coordinate(left + width * column as f64 + 1.0), coordinate(top + 1.0));
                let (wide, high) = (coordinate(width - 2.0), coordinate(ROW - 2.0));
                put(
                    &mut out,
                    format_args!(
                        "<rect class=\"cell {class}\" x=\"{from}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\"/>"
                    ),
                );
                text::line(&mut out, &format!("{word}: {text}"), (middle(column), base), Anchor::Middle);
            }
        }
        for (column, place) in self.columns.iter().enumerate() {
            text::line(&mut out, place, (middle(column), bottom + 18.0), Anchor::Middle);
        }
        text::line(&mut out, &self.x_label, ((left + WIDTH) / 2.0, height - 8.0), Anchor::Middle);
        out.push_str("</svg>\n");
        out
    }
}
