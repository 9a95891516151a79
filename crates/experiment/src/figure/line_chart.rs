//! Lines over time (or anything else), with marks, bands, shaded spans and level lines.

use std::fmt::Write;

use super::axis::{Axis, Scale};
use super::text::{self, Anchor};
use super::{COLOURS, WIDTH, coordinate, escape, put};

/// One line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its points, in order of x.
    pub points: Vec<(f64, f64)>,
}

/// An area between two lines, for instance the middle 80 % of many.
#[derive(Clone, Debug)]
pub struct Band {
    /// x, lower and upper end.
    pub points: Vec<(f64, f64, f64)>,
}

/// A value to compare with: a dashed line across the chart with its name on it.
#[derive(Clone, Debug)]
pub struct Level {
    pub value: f64,
    /// Its name, for instance `paper 0.98`.
    pub label: String,
}

/// A stretch of x that is shaded, for instance an outage.
#[derive(Clone, Debug)]
pub struct Span {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    pub label: String,
}

/// A chart of lines.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// What it shows, for readers who do not see it.
    pub title: String,
    /// Name and unit of the x axis.
    pub x_label: String,
    /// Name and unit of the y axis.
    pub y_label: String,
    pub x_scale: Scale,
    pub y_scale: Scale,
    /// The y axis begins here; without it where the values do (see [`fitted`]).
    pub y_low: Option<f64>,
    /// The lines.
    pub series: Vec<Series>,
    /// Areas behind the lines; the i-th has the colour of the i-th line.
    pub bands: Vec<Band>,
    /// Values to compare with.
    pub levels: Vec<Level>,
    /// Shaded stretches.
    pub spans: Vec<Span>,
}

const HEIGHT: f64 = 330.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 50.0;
const LEGEND_ROW: f64 = 22.0;
const LEGEND_COLUMNS: usize = 3;
/// A line's sample and the blank behind it.
const LEGEND_SAMPLE: f64 = 34.0;
/// More points than this on a line cannot be seen.
const POINTS_MAX: usize = 700;
/// A line of so many points has a mark at each; one of more has [`MARKS`].
const POINTS_MARKED: usize = 24;
/// Marks on a long line.
const MARKS: usize = 6;

impl LineChart {
    /// The drawing.
    pub fn render(&self) -> String {
        let legend = if self.series.len() > 1 { self.series.len().div_ceil(self.legend_columns()) } else { 0 };
        let height = HEIGHT + legend as f64 * LEGEND_ROW;
        let (x, y) = self.axes();
        let mut out =
            format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n", escape(&self.title));
        self.draw_spans(&mut out, &x);
        self.draw_axes(&mut out, &x, &y);
        for (index, band) in self.bands.iter().enumerate() {
            draw_band(&mut out, band, index, &x, &y);
        }
        for (index, series) in self.series.iter().enumerate() {
            self.draw_line(&mut out, series, index, &x, &y);
        }
        self.draw_levels(&mut out, &y);
        if legend > 0 {
            self.draw_legend(&mut out);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self) -> (Axis, Axis) {
        let lines = || self.series.iter().flat_map(|series| &series.points);
        let bands = || self.bands.iter().flat_map(|band| &band.points);
        let of_bands = bands().flat_map(|point| [point.1, point.2]);
        let ys = lines().map(|point| point.1).chain(of_bands).chain(self.levels.iter().map(|level| level.value));
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let x = match (self.x_scale, ends(lines().map(|point| point.0), self.x_scale)) {
            (Scale::Log, (low, high)) => Axis::log(low, high, left, right),
            (Scale::Linear, (low, high)) => Axis::new(fitted(low, high), high, left, right),
        };
        let y = match (self.y_scale, ends(ys, self.y_scale)) {
            (Scale::Log, (low, high)) => Axis::log(self.y_low.unwrap_or(low), high, HEIGHT - BOTTOM, TOP),
            (Scale::Linear, (low, high)) => {
                let low = self.y_low.unwrap_or_else(|| fitted(low, high));
                Axis::new(low, high + (high - low) * 0.05, HEIGHT - BOTTOM, TOP)
            }
        };
        (x, y)
    }

    fn draw_axes(&self, out: &mut String, x: &Axis, y: &Axis) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for (value, label) in y.ticks(6) {
            let at = coordinate(y.place(value));
            put(out, format_args!("<path class=\"grid\" d=\"M{LEFT} {at}H{right}\"/>"));
            put(out, format_args!("<text class=\"end\" x=\"{}\" y=\"{at}\" dy=\".35em\">{label}</text>", LEFT - 6.0));
        }
        for (value, label) in x.ticks(7) {
            let at = coordinate(x.place(value));
            put(out, format_args!("<path class=\"axis\" d=\"M{at} {bottom}v4\"/>"));
            put(out, format_args!("<text class=\"mid\" x=\"{at}\" y=\"{}\">{label}</text>", bottom + 19.0));
        }
        put(out, format_args!("<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>"));
        let (middle_x, middle_y) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        text::line(out, &self.x_label, (middle_x, HEIGHT - 9.0), Anchor::Middle);
        text::upright(out, &self.y_label, (18.0, middle_y), bottom - TOP);
    }

    fn draw_spans(&self, out: &mut String, x: &Axis) {
        for span in &self.spans {
            let (from, to) = (x.place(span.from), x.place(span.to));
            let (width, tall) = (coordinate(to - from), HEIGHT - BOTTOM - TOP);
            let left = coordinate(from);
            put(
                out,
                format_args!("<rect class=\"span\" x=\"{left}\" y=\"{TOP}\" width=\"{width}\" height=\"{tall}\"/>"),
            );
            text::beside(out, &span.label, (from, HEIGHT - BOTTOM - 6.0));
        }
    }

    /// Each line with its name at its right end, or at its left where another's name is there.
    fn draw_levels(&self, out: &mut String, y: &Axis) {
        let right = WIDTH - RIGHT;
        let mut named: Vec<f64> = Vec::new();
        for level in self.levels.iter().filter(|level| y.shows(level.value)) {
            let at = y.place(level.value);
            put(out, format_args!("<path class=\"level\" d=\"M{LEFT} {}H{right}\"/>", coordinate(at)));
            let is_taken = named.iter().any(|other| (other - at).abs() < text::HEIGHT);
            let (x, anchor) = if is_taken { (LEFT + 4.0, Anchor::Start) } else { (right - 4.0, Anchor::End) };
            // A name has no room above a line at the very top.
            let base = if at < TOP + text::HEIGHT { at + text::HEIGHT } else { at - 4.0 };
            text::line(out, &level.label, (x, base), anchor);
            named.push(at);
        }
    }

    /// As many columns as the longest name leaves.
    fn legend_columns(&self) -> usize {
        let widest = self.series.iter().map(|series| text::width(&series.label)).fold(0.0, f64::max);
        let column = widest + LEGEND_SAMPLE + 10.0;
        (((WIDTH - LEFT - RIGHT) / column) as usize).clamp(1, LEGEND_COLUMNS)
    }

    fn draw_legend(&self, out: &mut String) {
        let columns = self.legend_columns();
        let column = (WIDTH - LEFT - RIGHT) / columns as f64;
        for (index, series) in self.series.iter().enumerate() {
            let left = LEFT + column * (index % columns) as f64;
            let at = HEIGHT + 8.0 + LEGEND_ROW * (index / columns) as f64;
            put(out, format_args!("<path class=\"line {}\" d=\"M{} {at}h26\"/>", class_of(index), coordinate(left)));
            draw_mark(out, index, (left + 13.0, at));
            put(
                out,
                format_args!(
                    "<text x=\"{}\" y=\"{at}\" dy=\".35em\">{}</text>",
                    coordinate(left + LEGEND_SAMPLE),
                    escape(&series.label)
                ),
            );
        }
    }

    fn draw_line(&self, out: &mut String, series: &Series, index: usize, x: &Axis, y: &Axis) {
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let visible: Vec<_> =
            series.points.iter().filter(finite).map(|point| (x.place(point.0), y.place(point.1))).collect();
        if visible.is_empty() {
            return;
        }
        let step = visible.len().div_ceil(POINTS_MAX);
        let mut path = String::new();
        let last = visible.len() - 1;
        for (number, point) in visible.iter().enumerate().filter(|(number, _)| number % step == 0 || *number == last) {
            let command = if number == 0 { 'M' } else { 'L' };
            write!(path, "{command}{} {}", coordinate(point.0), coordinate(point.1))
                .expect("writing to a string cannot fail");
        }
        put(out, format_args!("<path class=\"line {}\" d=\"{path}\"/>", class_of(index)));
        if self.series.len() > 1 || visible.len() <= POINTS_MARKED {
            marked(visible.len(), index, self.series.len()).for_each(|number| draw_mark(out, index, visible[number]));
        }
    }
}

/// Which of a line's points have a mark: all of few, some of many, and other ones on each line, so that lines that lie on each
/// other show the marks of all.
fn marked(points: usize, index: usize, lines: usize) -> Box<dyn Iterator<Item = usize>> {
    if points <= POINTS_MARKED {
        return Box::new(0..points);
    }
    let stretch = points as f64 / MARKS as f64;
    let first = stretch * (index as f64 + 0.5) / lines as f64;
    Box::new((0..MARKS).map(move |mark| ((first + stretch * mark as f64) as usize).min(points - 1)))
}

/// Lowest and highest of the values that an axis can show; the wrong way round if there is none.
fn ends(values: impl Iterator<Item = f64>, scale: Scale) -> (f64, f64) {
    let values = values.filter(|value| value.is_finite() && (scale == Scale::Linear || *value > 0.0));
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Where a linear axis begins: at 0, but for values that are all far from it beside what they differ by.
fn fitted(low: f64, high: f64) -> f64 {
    const NEAR: f64 = 0.6;
    if low > NEAR * high && low > 0.0 { (low - (high - low) * 0.1).max(0.0) } else { low.min(0.0) }
}

/// Colour and, beyond the first, dashes of the i-th line.
fn class_of(index: usize) -> String {
    format!("c{} d{}", index % COLOURS, index % 4)
}

/// The i-th line's mark: a shape that is told apart without its colour, and empty, so that what is below it shows.
fn draw_mark(out: &mut String, index: usize, (x, y): (f64, f64)) {
    let path = match index % COLOURS {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        1 => "m-4-4h8v8h-8z",
        2 => "m0-5l5 9h-10z",
        3 => "m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
        4 => "m-4-4l8 8m0-8l-8 8",
        _ => "m0-5v10m-5-5h10",
    };
    put(
        out,
        format_args!("<path class=\"mark c{}\" d=\"M{} {}{path}\"/>", index % COLOURS, coordinate(x), coordinate(y)),
    );
}

fn draw_band(out: &mut String, band: &Band, index: usize, x: &Axis, y: &Axis) {
    let upper = band.points.iter().map(|point| (point.0, point.2));
    let lower = band.points.iter().rev().map(|point| (point.0, point.1));
    let corners: Vec<_> = upper
        .chain(lower)
        .filter(|corner| corner.0.is_finite() && corner.1.is_finite())
        .map(|corner| format!("{},{}", coordinate(x.place(corner.0)), coordinate(y.place(corner.1))))
        .collect();
    put(out, format_args!("<polygon class=\"band c{}\" points=\"{}\"/>", index % COLOURS, corners.join(" ")));
}
