//! One value a row: bars for shares, dots with intervals for estimates.

use super::axis::Axis;
use super::{WIDTH, coordinate, escape, put};

/// How a row's value is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// A bar from 0, with a tick at a second value such as the maximum.
    Bar {
        /// The second value.
        tick: Option<f64>,
    },
    /// A dot with its interval.
    Dot {
        /// Lower and upper end.
        interval: Option<(f64, f64)>,
    },
}

/// A chart of rows.
#[derive(Clone, Debug, Default)]
pub struct RowChart {
    /// What it shows, for readers who do not see it.
    pub title: String,
    /// Name and unit of the axis.
    pub x_label: String,
    /// The axis begins here.
    pub x_low: f64,
    /// Label, value and mark of each row, from top to bottom.
    pub rows: Vec<(String, f64, Mark)>,
    /// Values to compare with, with their names: dashed lines from top to bottom.
    pub levels: Vec<(f64, String)>,
}

const LEFT: f64 = 220.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 24.0;
const ROW: f64 = 26.0;
const BOTTOM: f64 = 40.0;

impl RowChart {
    /// The drawing.
    pub fn render(&self) -> String {
        let bottom = TOP + ROW * self.rows.len() as f64;
        let axis = self.axis();
        let mut out = String::new();
        let (height, title) = (bottom + BOTTOM, escape(&self.title));
        put(&mut out, format_args!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">"));
        for (value, label) in axis.ticks(6) {
            let at = coordinate(axis.place(value));
            put(&mut out, format_args!("<path class=\"grid\" d=\"M{at} {TOP}V{bottom}\"/>"));
            put(&mut out, format_args!("<text class=\"mid\" x=\"{at}\" y=\"{}\">{label}</text>", bottom + 15.0));
        }
        put(&mut out, format_args!("<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}\"/>"));
        for (number, row) in self.rows.iter().enumerate() {
            draw_row(&mut out, row, TOP + ROW * (number as f64 + 0.5), &axis);
        }
        for (value, label) in self.levels.iter().filter(|(value, _)| axis.shows(*value)) {
            let (at, label) = (coordinate(axis.place(*value)), escape(label));
            put(&mut out, format_args!("<path class=\"level\" d=\"M{at} {TOP}V{bottom}\"/>"));
            put(&mut out, format_args!("<text class=\"mid\" x=\"{at}\" y=\"{}\">{label}</text>", TOP - 6.0));
        }
        let (middle, label) = ((LEFT + WIDTH - RIGHT) / 2.0, escape(&self.x_label));
        put(&mut out, format_args!("<text class=\"mid\" x=\"{middle}\" y=\"{}\">{label}</text>", height - 6.0));
        out.push_str("</svg>\n");
        out
    }

    fn axis(&self) -> Axis {
        let ends = |(_, value, mark): &(String, f64, Mark)| match mark {
            Mark::Bar { tick } => value.max(tick.unwrap_or(*value)),
            Mark::Dot { interval } => interval.map_or(*value, |(_, high)| high.max(*value)),
        };
        let levels = self.levels.iter().map(|level| level.0);
        let high = self.rows.iter().map(ends).chain(levels).filter(|end| end.is_finite()).fold(self.x_low, f64::max);
        Axis::new(self.x_low, high + (high - self.x_low) * 0.05, LEFT, WIDTH - RIGHT)
    }
}

fn draw_row(out: &mut String, (label, value, mark): &(String, f64, Mark), at: f64, axis: &Axis) {
    let label = escape(label);
    put(out, format_args!("<text class=\"end\" x=\"{}\" y=\"{at}\" dy=\"4\">{label}</text>", LEFT - 8.0));
    if !value.is_finite() {
        return;
    }
    let place = axis.place(*value);
    let mut end = place;
    match mark {
        Mark::Bar { tick } => {
            let (top, width) = (coordinate(at - 7.0), coordinate(place - LEFT));
            put(out, format_args!("<rect class=\"bar\" x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"14\"/>"));
            if let Some(tick) = tick.filter(|tick| tick.is_finite()) {
                end = end.max(axis.place(tick));
                let (left, top) = (coordinate(axis.place(tick)), coordinate(at - 9.0));
                put(out, format_args!("<path class=\"axis\" d=\"M{left} {top}v18\"/>"));
            }
        }
        Mark::Dot { interval } => {
            if let Some((low, high)) = interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
                let (from, to) = (coordinate(axis.place(low)), coordinate(axis.place(high)));
                end = end.max(axis.place(high));
                let top = coordinate(at - 5.0);
                put(
                    out,
                    format_args!("<path class=\"line c0\" d=\"M{from} {at}H{to}M{from} {top}v10M{to} {top}v10\"/>"),
                );
            }
            put(out, format_args!("<circle class=\"dot\" cx=\"{}\" cy=\"{at}\" r=\"4\"/>", coordinate(place)));
        }
    }
    let (text, left) = (crate::table::plain(*value), coordinate(end + 6.0));
    put(out, format_args!("<text x=\"{left}\" y=\"{at}\" dy=\"4\">{text}</text>"));
}
