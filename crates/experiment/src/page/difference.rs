//! Two runs of one network, the second minus the first: which links it uses more or less, where repetitions do not explain that.

use weft_scenario::record::Records;
use weft_scenario::topology::Fabric;

use super::chunk::directions;
use super::layout::Layout;
use super::picture::Picture;
use crate::analysis::TrialRecords;
use crate::figure::{Figure, coordinate, escape, put};
use crate::stats::{Interval, mean, mean_interval};

/// Links that are named beneath the picture.
const NAMED_MOST: usize = 8;
/// Width of a half-link that is used alike, and what a difference of the whole rate adds.
const WIDTH_LEAST: f64 = 1.6;
const WIDTH_MORE: f64 = 9.0;
/// Room for text below nodes.
const BELOW: f64 = 16.0;

/// One direction in both runs: the share of its rate that was used on average, for each.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Change {
    before: f64,
    after: f64,
    /// Whether the intervals of the two have nothing in common.
    apart: bool,
}

/// The picture of two runs on this fabric, by their trials of one place; `None` where they say nothing of links, or the fabric is too large.
pub(crate) fn drawn(fabric: &Fabric, first: &[TrialRecords], second: &[TrialRecords]) -> Option<Figure> {
    let picture = Picture::of(fabric)?;
    let uses = |trials: &[TrialRecords]| -> Vec<Vec<f64>> {
        trials.iter().filter_map(|trial| uses_of(&picture, &trial.records)).collect()
    };
    let (before, after) = (uses(first), uses(second));
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let of = |uses: &[Vec<f64>], direction: usize| uses.iter().map(|one| one[direction]).collect::<Vec<_>>();
    let changes: Vec<Change> =
        (0..2 * picture.rates.len()).map(|way| change(&of(&before, way), &of(&after, way))).collect();
    let title = "Where the second run uses links more or less than the first".to_owned();
    Some(Figure {
        caption: caption(&picture, &changes, before.len().min(after.len())),
        svg: svg(&picture, &changes, &title),
        title,
    })
}

/// The mean use of each drawn direction in a trial; `None` without rows of links at two times.
fn uses_of(picture: &Picture<'_>, records: &Records) -> Option<Vec<f64>> {
    let known = directions(picture.real);
    let first_ns = records.links.iter().map(|row| row.time_ns).min()?;
    let last_ns = records.links.iter().map(|row| row.time_ns).max().filter(|last_ns| *last_ns > first_ns)?;
    let mut bytes = vec![[0u64; 2]; known.len()];
    for row in &records.links {
        if let Some(direction) = known.get(&(row.node.as_str(), row.interface.as_str())) {
            let [least, most] = &mut bytes[*direction];
            *least = if row.time_ns == first_ns { row.sent_bytes } else { *least };
            *most = row.sent_bytes.max(*most);
        }
    }
    let mut sums = vec![0.0; 2 * picture.rates.len()];
    for (direction, [least, most]) in bytes.into_iter().enumerate() {
        if let Some(drawn) = picture.direction(direction) {
            sums[drawn] += (most - least.min(most)) as f64;
        }
    }
    let seconds = (last_ns - first_ns) as f64 / 1e9;
    let share = |(direction, sum): (usize, f64)| 8.0 * sum / (picture.rates[direction / 2] as f64 * seconds);
    Some(sums.into_iter().enumerate().map(share).collect())
}

fn change(before: &[f64], after: &[f64]) -> Change {
    let apart = |one: Interval, other: Interval| one.high < other.low || other.high < one.low;
    let intervals = mean_interval(before).zip(mean_interval(after));
    Change {
        before: mean(before).unwrap_or_default(),
        after: mean(after).unwrap_or_default(),
        apart: intervals.is_some_and(|(one, other)| apart(one, other)),
    }
}

/// The names of a direction's sender and receiver.
fn ends<'a>(picture: &'a Picture<'_>, way: usize) -> [&'a str; 2] {
    let link = &picture.drawn.links()[way / 2];
    let [a, b] = [link.a.node, link.b.node].map(|node| picture.drawn.node(node).name.as_str());
    if way.is_multiple_of(2) { [a, b] } else { [b, a] }
}

/// A direction's change in words.
fn words(picture: &Picture<'_>, way: usize, Change { before, after, .. }: Change) -> String {
    let [from, to] = ends(picture, way);
    format!("{from} \u{2192} {to} {:.1} % \u{2192} {:.1} %", 100.0 * before, 100.0 * after)
}

fn caption(picture: &Picture<'_>, changes: &[Change], trials: usize) -> String {
    let mut apart: Vec<(usize, Change)> =
        changes.iter().copied().enumerate().filter(|(_, change)| change.apart).collect();
    apart.sort_by(|(_, one), (_, other)| (other.after - other.before).abs().total_cmp(&(one.after - one.before).abs()));
    let named: Vec<String> = apart.iter().take(NAMED_MOST).map(|(way, change)| words(picture, *way, *change)).collect();
    let more = apart.len().saturating_sub(NAMED_MOST);
    let found = match (apart.len(), trials) {
        (_, 1) => "one trial of a run says nothing about how far repetitions spread: nothing is apart".to_owned(),
        (0, _) => "no direction is apart".to_owned(),
        (count, _) => format!(
            "{count} of {} directions are apart: {}{}",
            changes.len(),
            named.join(", "),
            if more > 0 { format!(", and {more} more") } else { String::new() }
        ),
    };
    format!(
        "Mean use of each direction's rate, from links.csv: solid where the second run uses more, dashed where less, the wider the more; grey where the \
         intervals of the two have something in common. A half-link is what its nearer node sends. {found}."
    )
}

fn svg(picture: &Picture<'_>, changes: &[Change], title: &str) -> String {
    let layout = Layout::of(&picture.drawn);
    let mut out = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
        coordinate(layout.width),
        coordinate(layout.height + BELOW),
        escape(title)
    );
    let place = |node: weft_scenario::id::NodeId| (layout.places[node.index()].x, layout.places[node.index()].y);
    for (number, link) in picture.drawn.links().iter().enumerate() {
        let (a, b) = (place(link.a.node), place(link.b.node));
        let (along, across) = ((b.0 - a.0, b.1 - a.1), layout.bends[number]);
        let length = along.0.hypot(along.1).max(1.0);
        let middle = ((a.0 + b.0) / 2.0 + across * along.1 / length, (a.1 + b.1) / 2.0 - across * along.0 / length);
        half_link(&mut out, picture, 2 * number, changes[2 * number], (a, middle));
        half_link(&mut out, picture, 2 * number + 1, changes[2 * number + 1], (b, middle));
    }
    for (node, place) in picture.drawn.nodes().iter().zip(&layout.places) {
        let (x, y) = (coordinate(place.x), coordinate(place.y));
        put(
            &mut out,
            format_args!(
                "<circle class=\"node\" cx=\"{x}\" cy=\"{y}\" r=\"4\"><title>{}</title></circle>",
                escape(&node.name)
            ),
        );
        if node.role.is_switch() {
            put(
                &mut out,
                format_args!(
                    "<text class=\"soft mid\" x=\"{x}\" y=\"{}\">{}</text>",
                    coordinate(place.y - 8.0),
                    escape(&node.name)
                ),
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

fn half_link(
    out: &mut String,
    picture: &Picture<'_>,
    way: usize,
    change: Change,
    (from, to): ((f64, f64), (f64, f64)),
) {
    let by = change.after - change.before;
    let class = match change.apart {
        false => "link",
        true if by > 0.0 => "more",
        true => "less",
    };
    let width = if change.apart { WIDTH_LEAST + WIDTH_MORE * by.abs().min(1.0) } else { WIDTH_LEAST };
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(coordinate);
    put(
        out,
        format_args!(
            "<path class=\"{class}\" stroke-width=\"{width:.1}\" d=\"M{x1} {y1}L{x2} {y2}\"><title>{}</title></path>",
            escape(&words(picture, way, change))
        ),
    );
}

#[cfg(test)]
mod tests {
    use weft_scenario::engine::Overlay;
    use weft_scenario::record::LinkRow;
    use weft_scenario::topology::{LinkParams, overlay_pair};
    use weft_scenario::units::BitsPerSec;

    use super::*;
    use crate::analysis::TrialKey;

    fn fabric() -> Fabric {
        overlay_pair(&LinkParams::for_server_rate(BitsPerSec(8_000_000_000))).unwrap()
    }

    /// A trial in which the first end of the first link has used this share of its rate.
    fn trial(fabric: &Fabric, share: f64) -> TrialRecords {
        let link = &fabric.links()[0];
        let row = |time_ns, sent_bytes| LinkRow {
            time_ns,
            node: fabric.node(link.a.node).name.clone(),
            interface: link.a.interface.clone(),
            sent_bytes,
            ..LinkRow::default()
        };
        let sent = (share * link.spec.rate.0 as f64 / 8.0) as u64;
        let links = vec![row(0, 1000), row(1_000_000_000, sent + 1000)];
        let key = TrialKey {
            trial: 1,
            repetition: 1,
            seed: 1,
            overlay: Overlay::Routed,
            workload: String::new(),
            point: Vec::new(),
        };
        TrialRecords { key, records: Records { links, ..Records::default() } }
    }

    fn of(fabric: &Fabric, first: &[f64], second: &[f64]) -> Figure {
        let trials = |shares: &[f64]| shares.iter().map(|share| trial(fabric, *share)).collect::<Vec<_>>();
        drawn(fabric, &trials(first), &trials(second)).unwrap()
    }

    #[test]
    fn what_repetitions_do_not_explain_is_drawn_and_named() {
        let fabric = fabric();
        let more = of(&fabric, &[0.20, 0.21, 0.19], &[0.60, 0.61, 0.59]);
        roxmltree::Document::parse(&more.svg).unwrap_or_else(|error| panic!("{error}: {}", more.svg));
        assert_eq!((more.svg.matches("class=\"more\"").count(), more.svg.matches("class=\"less\"").count()), (1, 0));
        assert!(more.caption.contains("1 of ") && more.caption.contains(" directions are apart"), "{}", more.caption);
        assert!(more.caption.contains("20.0 % \u{2192} 60.0 %"), "{}", more.caption);
        let less = of(&fabric, &[0.60, 0.61, 0.59], &[0.20, 0.21, 0.19]);
        assert_eq!(less.svg.matches("class=\"less\"").count(), 1);
    }

    #[test]
    fn what_they_do_explain_is_grey() {
        let fabric = fabric();
        let same = of(&fabric, &[0.2, 0.4, 0.6], &[0.3, 0.5, 0.7]);
        assert!(
            !same.svg.contains("class=\"more\"") && same.caption.contains("no direction is apart"),
            "{}",
            same.caption
        );
        let one = of(&fabric, &[0.2], &[0.9]);
        assert!(
            !one.svg.contains("class=\"more\"") && one.caption.contains("one trial of a run says nothing"),
            "{}",
            one.caption
        );
        assert!(drawn(&fabric, &[], &[trial(&fabric, 0.5)]).is_none());
    }
}
