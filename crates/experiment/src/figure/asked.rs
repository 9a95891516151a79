//! The figures that a plan asks for.

use super::plots::{Figure, figure};
use super::{Band, Cell, Level, LineChart, Map, Mark, RowChart, Scale, Series, Span};
use crate::analysis::Input;
use crate::analysis::asked::number;
use crate::plan::{FigureKind, FigureQuestion, LogAxes};
use crate::query::{Answer, Database, QueryError, Value};

/// All figures of a plan. A question without an answer makes none: the same tables have answered the metrics.
pub(super) fn figures(input: &Input<'_>) -> Vec<Figure> {
    let Some(database) = input.database else { return Vec::new() };
    input.spec.figures.iter().flat_map(|one| drawn(database, one).unwrap_or_default()).collect()
}

fn drawn(database: &Database, question: &FigureQuestion) -> Result<Vec<Figure>, QueryError> {
    let ask = |sql: &Option<String>| sql.as_deref().map_or_else(|| Ok(None), |sql| database.ask(sql).map(Some));
    let (answer, levels, spans) = (database.ask(&question.sql)?, ask(&question.levels)?, ask(&question.spans)?);
    let levels: Vec<Level> = levels.iter().flat_map(Rows::all).filter_map(level).collect();
    let draw = |name: Option<String>| {
        let rows: Vec<Rows<'_>> =
            Rows::all(&answer).filter(|row| name.is_none() || row.text("figure") == name).collect();
        let of_all = |row: &Rows<'_>| [None, name.clone()].contains(&row.text("figure"));
        let spans: Vec<Span> = spans.iter().flat_map(Rows::all).filter(of_all).filter_map(span).collect();
        let title = name.as_ref().map_or_else(|| question.title.clone(), |name| format!("{}: {name}", question.title));
        let svg = match question.kind {
            FigureKind::Lines => lines(question, &title, &rows, levels.clone(), spans),
            FigureKind::Bars => bars(question, &title, &rows, &levels),
            FigureKind::Dots => dots(question, &title, &rows, &levels),
            FigureKind::Map => map(question, &title, &rows),
        };
        figure(&title, &question.caption, svg)
    };
    let names = Rows::all(&answer).filter_map(|row| row.text("figure"));
    Ok(match in_order(names) {
        names if names.is_empty() => vec![draw(None)],
        names => names.into_iter().map(|name| draw(Some(name))).collect(),
    })
}

/// A row of an answer.
#[derive(Clone, Copy)]
struct Rows<'a> {
    columns: &'a [String],
    cells: &'a [Value],
}

impl<'a> Rows<'a> {
    fn all(answer: &'a Answer) -> impl Iterator<Item = Rows<'a>> {
        answer.rows.iter().map(|cells| Rows { columns: &answer.columns, cells })
    }

    fn cell(&self, column: &str) -> Option<&'a Value> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.cells.get(place)
    }

    fn text(&self, column: &str) -> Option<String> {
        self.cell(column).map(ToString::to_string)
    }

    fn number(&self, column: &str) -> Option<f64> {
        Some(number(self.cell(column)?)?.0)
    }
}

fn level(row: Rows<'_>) -> Option<Level> {
    Some(Level { value: row.number("value")?, label: row.text("label")? })
}

fn span(row: Rows<'_>) -> Option<Span> {
    Some(Span { from: row.number("low")?, to: row.number("high")?, label: row.text("label")? })
}

fn lines(question: &FigureQuestion, title: &str, rows: &[Rows<'_>], levels: Vec<Level>, spans: Vec<Span>) -> String {
    let labels = in_order(rows.iter().filter_map(|row| row.text("series")));
    let of = |label: &String| rows.iter().filter(|row| row.text("series").as_ref() == Some(label)).collect::<Vec<_>>();
    let series = labels.iter().map(|label| Series {
        label: label.clone(),
        points: of(label).iter().filter_map(|row| Some((row.number("x")?, row.number("y")?))).collect(),
    });
    let bands = labels.iter().map(|label| Band {
        points: of(label)
            .iter()
            .filter_map(|row| Some((row.number("x")?, row.number("low")?, row.number("high")?)))
            .collect(),
    });
    LineChart {
        title: title.to_owned(),
        x_label: question.x.clone(),
        y_label: question.y.clone(),
        x_scale: scale(question.log, LogAxes::X),
        y_scale: scale(question.log, LogAxes::Y),
        y_low: question.low,
        series: series.collect(),
        bands: bands.collect(),
        levels,
        spans,
    }
    .render()
}

fn bars(question: &FigureQuestion, title: &str, rows: &[Rows<'_>], levels: &[Level]) -> String {
    let bar = |row: &Rows<'_>| Some((row.text("label")?, row.number("value")?, Mark::Bar { tick: row.number("tick") }));
    row_chart(question, title, rows.iter().filter_map(bar).collect(), levels)
}

fn dots(question: &FigureQuestion, title: &str, rows: &[Rows<'_>], levels: &[Level]) -> String {
    let dot = |row: &Rows<'_>| {
        let (value, interval) = number(row.cell("value")?)?;
        let interval = interval.map(|ends| (ends.low, ends.high)).or(row.number("low").zip(row.number("high")));
        Some((row.text("label")?, value, Mark::Dot { interval }))
    };
    row_chart(question, title, rows.iter().filter_map(dot).collect(), levels)
}

fn row_chart(question: &FigureQuestion, title: &str, rows: Vec<(String, f64, Mark)>, levels: &[Level]) -> String {
    RowChart {
        title: title.to_owned(),
        x_label: question.x.clone(),
        x_low: question.low.unwrap_or(0.0),
        x_scale: scale(question.log, LogAxes::X),
        rows,
        levels: levels.iter().map(|level| (level.value, level.label.clone())).collect(),
    }
    .render()
}

fn map(question: &FigureQuestion, title: &str, rows: &[Rows<'_>]) -> String {
    let places = |axis: &str| in_order(rows.iter().filter_map(|row| row.text(axis)));
    let columns = places("x");
    let is_at = |row: &Rows<'_>, axis: &str, place: &String| row.text(axis).as_ref() == Some(place);
    let cell = |y: &String, x: &String| {
        let row = rows.iter().find(|row| is_at(row, "x", x) && is_at(row, "y", y))?;
        Some(Cell { holds: row.number("holds").map(|holds| holds != 0.0), text: row.text("text")? })
    };
    let row = |y: String| {
        let cells = columns.iter().map(|x| cell(&y, x)).collect();
        (y, cells)
    };
    Map {
        title: title.to_owned(),
        x_label: question.x.clone(),
        y_label: question.y.clone(),
        rows: places("y").into_iter().map(row).collect(),
        columns,
    }
    .render()
}

/// Whether the plan wants an axis logarithmic.
fn scale(wanted: Option<LogAxes>, axis: LogAxes) -> Scale {
    let is_log = wanted.is_some_and(|wanted| wanted == axis || wanted == LogAxes::Both);
    if is_log { Scale::Log } else { Scale::Linear }
}

/// Each name once, as it comes.
fn in_order(names: impl Iterator<Item = String>) -> Vec<String> {
    names.fold(Vec::new(), |mut seen, name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
        seen
    })
}
