//! One value a row: bars for shares, dots with intervals for estimates. A row's name stands above its mark, so that it has the
//! width of the drawing.

use super::axis::{Axis, Scale};
use super::text::{self, Anchor};
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
    /// The axis begins here; a logarithmic one where the values do.
    pub x_low: f64,
    pub x_scale: Scale,
    /// Label, value and mark of each row, from top to bottom.
    pub rows: Vec<(String, f64, Mark)>,
    /// Values to compare with, with their names: dashed lines from top to bottom.
    pub levels: Vec<(f64, String)>,
}

const LEFT: f64 = 14.0;
/// Room for a row's number behind its mark.
const RIGHT: f64 = 84.0;
const TOP: f64 = 12.0;
const ROW: f64 = 42.0;
/// From a row's top to its mark.
const MARK: f64 = 30.0;
const BOTTOM: f64 = 50.0;

impl RowChart {
    /// The drawing.
    pub fn render(&self) -> String {
        let axis = self.axis();
        let shown: Vec<_> = self.levels.iter().filter(|(value, _)| axis.shows(*value)).collect();
        let top = TOP + text::HEIGHT * shown.len() as f64;
        let bottom = top + ROW * self.rows.len() as f64;
        let mut out = String::new();
        let (height, title) = (bottom + BOTTOM, escape(&self.title));
        put(&mut out, format_args!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">"));
        for (value, label) in axis.ticks(6) {
            let at = coordinate(axis.place(value));
            put(&mut out, format_args!("<path class=\"grid\" d=\"M{at} {top}V{bottom}\"/>"));
            put(&mut out, format_args!("<text class=\"mid\" x=\"{at}\" y=\"{}\">{label}</text>", bottom + 19.0));
        }
        put(&mut out, format_args!("<path class=\"axis\" d=\"M{LEFT} {top}V{bottom}\"/>"));
        for (number, row) in self.rows.iter().enumerate() {
            draw_row(&mut out, row, top + ROW * number as f64, &axis);
        }
        // Names of levels have a line each: they may stand close to each other.
        for (number, (value, label)) in shown.into_iter().enumerate() {
            let (at, base) = (axis.place(*value), TOP + text::HEIGHT * number as f64);
            put(&mut out, format_args!("<path class=\"level\" d=\"M{} {base}V{bottom}\"/>", coordinate(at)));
            text::beside(&mut out, label, (at, base + text::HEIGHT - 6.0));
        }
        text::line(&mut out, &self.x_label, ((LEFT + WIDTH) / 2.0, height - 8.0), Anchor::Middle);
        out.push_str("</svg>\n");
        out
    }

    fn axis(&self) -> Axis {
        let of_mark = |(_, value, mark): &(String, f64, Mark)| match *mark {
            Mark::Bar { tick } => [*value, tick.unwrap_or(*value)],
            Mark::Dot { interval } => interval.map_or([*value; 2], |(low, high)| [low.min(*value), high.max(*value)]),
        };
        let all = self.rows.iter().flat_map(of_mark).chain(self.levels.iter().map(|level| level.0));
        let all: Vec<f64> = all.filter(|end| end.is_finite()).collect();
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self.x_scale {
            Scale::Log => {
                let low = all.iter().copied().filter(|end| *end > 0.0).fold(f64::INFINITY, f64::min);
                Axis::log(low, high, LEFT, WIDTH - RIGHT)
            }
            Scale::Linear => {
                let high = high.max(self.x_low);
                Axis::new(self.x_low, high + (high - self.x_low) * 0.05, LEFT, WIDTH - RIGHT)
            }
        }
    }
}

fn draw_row(out: &mut String, (label, value, mark): &(String, f64, Mark), top: f64, axis: &Axis) {
    text::line(out, label, (LEFT + 4.0, top + 15.0), Anchor::Start);
    if !value.is_finite() {
        return;
    }
    let (place, at) = (axis.place(*value), top + MARK);
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
    let (text, left) = (crate::table::plain(*value), coordinate(end + 8.0));
    put(out, format_args!("<text x=\"{left}\" y=\"{at}\" dy=\".35em\">{text}</text>"));
}
