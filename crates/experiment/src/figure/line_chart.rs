//! Lines over time (or anything else), with bands, marked spans and level lines.

use std::fmt::Write;

use super::axis::Axis;
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
    /// The y axis begins here; without it at 0.
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

const HEIGHT: f64 = 320.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;
const LEGEND_ROW: f64 = 18.0;
const LEGEND_COLUMNS: usize = 3;
/// More points than this on a line cannot be seen.
const POINTS_MAX: usize = 700;

impl LineChart {
    /// The drawing.
    pub fn render(&self) -> String {
        let legend = if self.series.len() > 1 { self.series.len().div_ceil(LEGEND_COLUMNS) } else { 0 };
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
            draw_line(&mut out, series, index, &x, &y);
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
        let x_high = lines().map(|point| point.0).fold(0.0, f64::max);
        let ys = lines().map(|point| point.1).chain(bands().map(|point| point.2));
        let y_high = ys.chain(self.levels.iter().map(|level| level.value)).fold(0.0, f64::max);
        let y_low = self.y_low.unwrap_or(0.0);
        let headroom = y_high + (y_high - y_low) * 0.05;
        (Axis::new(0.0, x_high, LEFT, WIDTH - RIGHT), Axis::new(y_low, headroom, HEIGHT - BOTTOM, TOP))
    }

    fn draw_axes(&self, out: &mut String, x: &Axis, y: &Axis) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for (value, label) in y.ticks(6) {
            let at = coordinate(y.place(value));
            put(out, format_args!("<path class=\"grid\" d=\"M{LEFT} {at}H{right}\"/>"));
            put(out, format_args!("<text class=\"end\" x=\"{}\" y=\"{at}\" dy=\"4\">{label}</text>", LEFT - 6.0));
        }
        for (value, label) in x.ticks(8) {
            let at = coordinate(x.place(value));
            put(out, format_args!("<path class=\"axis\" d=\"M{at} {bottom}v4\"/>"));
            put(out, format_args!("<text class=\"mid\" x=\"{at}\" y=\"{}\">{label}</text>", bottom + 17.0));
        }
        put(out, format_args!("<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>"));
        let (middle_x, middle_y) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        let (x_label, y_label) = (escape(&self.x_label), escape(&self.y_label));
        put(out, format_args!("<text class=\"mid\" x=\"{middle_x}\" y=\"{}\">{x_label}</text>", HEIGHT - 8.0));
        put(
            out,
            format_args!("<text class=\"mid\" transform=\"translate(14 {middle_y}) rotate(-90)\">{y_label}</text>"),
        );
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
            let label = escape(&span.label);
            put(out, format_args!("<text x=\"{left}\" y=\"{}\" dx=\"4\">{label}</text>", HEIGHT - BOTTOM - 6.0));
        }
    }

    fn draw_levels(&self, out: &mut String, y: &Axis) {
        let right = WIDTH - RIGHT;
        for level in self.levels.iter().filter(|level| y.shows(level.value)) {
            let at = coordinate(y.place(level.value));
            let label = escape(&level.label);
            put(out, format_args!("<path class=\"level\" d=\"M{LEFT} {at}H{right}\"/>"));
            put(out, format_args!("<text class=\"end\" x=\"{right}\" y=\"{at}\" dx=\"-4\" dy=\"-4\">{label}</text>"));
        }
    }

    fn draw_legend(&self, out: &mut String) {
        let column = (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS as f64;
        for (index, series) in self.series.iter().enumerate() {
            let left = LEFT + column * (index % LEGEND_COLUMNS) as f64;
            let at = HEIGHT + 6.0 + LEGEND_ROW * (index / LEGEND_COLUMNS) as f64;
            let (class, label) = (class_of(index), escape(&series.label));
            let left_text = coordinate(left);
            put(out, format_args!("<path class=\"line {class}\" d=\"M{left_text} {at}h26\"/>"));
            put(out, format_args!("<text x=\"{}\" y=\"{at}\" dy=\"4\">{label}</text>", coordinate(left + 32.0)));
        }
    }
}

/// Colour and, beyond the first, dashes of the i-th line.
fn class_of(index: usize) -> String {
    format!("c{} d{}", index % COLOURS, index % 4)
}

fn draw_line(out: &mut String, series: &Series, index: usize, x: &Axis, y: &Axis) {
    let visible: Vec<_> = series.points.iter().filter(|point| point.0.is_finite() && point.1.is_finite()).collect();
    if visible.is_empty() {
        return;
    }
    let step = visible.len().div_ceil(POINTS_MAX);
    let mut path = String::new();
    let last = visible.len() - 1;
    for (number, point) in visible.iter().enumerate().filter(|(number, _)| number % step == 0 || *number == last) {
        let command = if number == 0 { 'M' } else { 'L' };
        let (left, top) = (coordinate(x.place(point.0)), coordinate(y.place(point.1)));
        write!(path, "{command}{left} {top}").expect("writing to a string cannot fail");
    }
    put(out, format_args!("<path class=\"line {}\" d=\"{path}\"/>", class_of(index)));
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
