//! Drawings of every analysis are well-formed XML and hold what they should.

use weft_scenario::engine::Overlay;
use weft_scenario::record::TcpRow;
use weft_scenario::units::Nanos;

use super::*;
use crate::analysis::testing::{self, SECOND, even_shuffle, fabric, trial};

fn parse(svg: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"))
}

#[test]
fn a_shuffle_has_its_seven_figures() {
    let mut spec = testing::asking(&testing::shuffle_plan_text(""), "vl2/fig09-shuffle", "jain_flows");
    spec.sampling.tcp_interval = Some(Nanos(SECOND));
    let fabric = fabric(&spec);
    let mut records = even_shuffle(&fabric, 1_000_000, 12);
    for (time, from) in (1..=3).flat_map(|time| (0..4).map(move |from| (time, from))) {
        let to = (from + 1) % 4;
        let (cwnd_segments, srtt_ns) = (10 + from, 1_000_000);
        records.tcp.push(TcpRow {
            time_ns: time * SECOND + u64::from(from) * 1_000,
            from,
            to,
            cwnd_segments,
            srtt_ns,
            retransmits: 0,
        });
    }
    let trials = [trial(1, Overlay::Vl2, "all", records)];
    let figures = testing::figures(&spec, std::slice::from_ref(&fabric), &trials);
    let titles: Vec<_> = figures.iter().map(|figure| figure.title.as_str()).collect();
    let expected = [
        "Aggregate goodput over time",
        "Goodput of the flows",
        "Use of links",
        "CPU of this machine",
        "Waiting for the CPU of this machine",
        "Congestion window",
        "Smoothed round-trip time",
    ];
    assert_eq!(titles, expected);
    for figure in &figures {
        let document = parse(&figure.svg);
        assert!(document.root_element().attribute("aria-label").is_some());
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.svg);
    }
    // One point for each sampling, although every sender has its own nanosecond.
    let windows = parse(&figures[5].svg);
    let lines =
        windows.descendants().filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("line ")));
    let longest = lines.filter_map(|node| node.attribute("d")).map(|path| path.matches(['M', 'L']).count()).max();
    assert_eq!(longest, Some(3));
    assert!(figures[0].svg.contains("paper&#39;s 58.8 Gb/s, scaled"));
    assert!(figures[2].svg.contains("aggregation to intermediate"));
}

#[test]
fn a_line_runs_through_its_points() {
    let chart = LineChart {
        title: "t".into(),
        series: vec![Series { label: "a".into(), points: vec![(0.0, 0.0), (10.0, 1.0)] }],
        levels: vec![Level { value: 0.5, label: "half".into() }],
        ..LineChart::default()
    };
    let svg = chart.render();
    // Zero is in the lower left corner; the highest value leaves 5 % above it.
    assert!(svg.contains("class=\"line c0 d0\" d=\"M76 280L626 28.6\""), "{svg}");
    assert!(svg.contains("class=\"level\" d=\"M76 154.3H626\""), "{svg}");
}

#[test]
fn lines_that_lie_on_each_other_show_the_marks_of_all() {
    let line = |label: &str, points: u32| Series {
        label: label.into(),
        points: (0..points).map(|x| (f64::from(x), f64::from(x) / 2.0)).collect(),
    };
    for points in [5, 500] {
        let chart = LineChart { series: vec![line("a", points), line("b", points)], ..LineChart::default() };
        let svg = chart.render();
        parse(&svg);
        let places = |colour: &str| -> Vec<String> {
            let marks = svg.lines().filter(|line| line.contains(&format!("class=\"mark {colour}\"")));
            marks.map(|line| line.split("d=\"").nth(1).unwrap_or_default().to_owned()).collect()
        };
        let (first, second) = (places("c0"), places("c1"));
        // One mark of each is the legend's.
        assert!(first.len() > 5 && first.len() == second.len(), "{points}: {first:?} {second:?}");
        assert!(first.iter().all(|place| !second.contains(place)), "{points}: {first:?} {second:?}");
    }
}

#[test]
fn axes_begin_where_the_values_do() {
    let chart = |points: Vec<(f64, f64)>| LineChart {
        series: vec![Series { label: "a".into(), points }],
        ..LineChart::default()
    };
    let far = chart(vec![(950.0, 0.0), (1_000.0, 1.0)]).render();
    assert!(far.contains(">960</text>") && !far.contains(">200</text>"), "{far}");
    let near = chart(vec![(10.0, 0.0), (1_000.0, 1.0)]).render();
    assert!(near.contains(">200</text>"), "{near}");
    let ratios = chart(vec![(10.0, 0.95), (20.0, 0.97)]).render();
    assert!(ratios.contains(">0.950</text>") && !ratios.contains(">0.0</text>"), "{ratios}");
    let low = LineChart { y_low: Some(0.0), ..chart(vec![(10.0, 0.95), (20.0, 0.97)]) };
    assert!(low.render().contains(">0.2</text>"), "{}", low.render());
    let log = LineChart { x_scale: Scale::Log, ..chart(vec![(1.0, 0.0), (1e5, 1.0)]) };
    assert!([">1<", ">10<", ">100<", ">1 k<", ">10 k<", ">100 k<"].iter().all(|tick| log.render().contains(tick)));
}

#[test]
fn long_names_break_or_shrink_and_are_not_cut() {
    let chart = LineChart {
        y_label: "a very long name of an axis that has no room in one line".into(),
        ..LineChart::default()
    };
    assert_eq!(chart.render().matches("rotate(-90)").count(), 2);
    let rows = vec![("a name ".repeat(20), 1.0, Mark::Bar { tick: None })];
    assert!(RowChart { rows, ..RowChart::default() }.render().contains("textLength"));
}

#[test]
fn a_map_tells_its_cells_apart_by_word_and_class() {
    let cell = |holds| Some(Cell { holds, text: "1.2".into() });
    let map = Map {
        title: "t".into(),
        columns: vec!["44".into(), "2172".into()],
        rows: vec![
            ("2 MB".into(), vec![cell(Some(true)), cell(Some(false))]),
            ("20 MB".into(), vec![None, cell(None)]),
        ],
        ..Map::default()
    };
    let svg = map.render();
    parse(&svg);
    for (class, word) in [("yes", "holds: 1.2"), ("no", "does not: 1.2"), ("open", "undecided: 1.2")] {
        assert_eq!((svg.matches(&format!("cell {class}")).count(), svg.matches(word).count()), (1, 1), "{svg}");
    }
}

#[test]
fn names_cannot_break_out_of_the_drawing() {
    let evil = "<script>alert('1')</script>\"&\u{0}";
    let chart = LineChart {
        title: evil.into(),
        x_label: evil.into(),
        y_label: evil.into(),
        y_low: None,
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series: vec![Series { label: evil.into(), points: vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, 2.0)] }; 2],
        bands: vec![Band { points: vec![(0.0, f64::NAN, 1.0), (1.0, 0.0, 1.0)] }],
        levels: vec![Level { value: 1.0, label: evil.into() }],
        spans: vec![Span { from: 0.5, to: 99.0, label: evil.into() }],
    };
    let rows = vec![
        (evil.to_owned(), f64::NAN, Mark::Bar { tick: None }),
        (evil.to_owned(), 1.0, Mark::Dot { interval: Some((0.5, f64::INFINITY)) }),
    ];
    let levels = vec![(1.0, evil.to_owned())];
    let row_chart =
        RowChart { title: evil.into(), x_label: evil.into(), x_low: 0.0, x_scale: Scale::Log, rows, levels };
    for svg in [chart.render(), row_chart.render()] {
        let document = parse(&svg);
        assert!(document.descendants().all(|node| !node.has_tag_name("script")));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn long_series_are_thinned_and_keep_their_end() {
    let points: Vec<_> = (0..100_000).map(|x| (f64::from(x), 1.0)).collect();
    let chart = LineChart { series: vec![Series { label: "a".into(), points }], ..LineChart::default() };
    let svg = chart.render();
    assert!(svg.len() < 20_000, "{}", svg.len());
    assert!(svg.contains("L626 "));
}

#[test]
fn empty_charts_are_still_drawings() {
    parse(&LineChart::default().render());
    parse(&RowChart::default().render());
}

#[test]
fn a_sweep_has_a_line_for_each_fabric() {
    use crate::analysis::testing::{SWEEP_PLAN, flow, trials_of};
    let plan = crate::plan::Plan::parse("p.toml", SWEEP_PLAN).unwrap();
    let spec = plan.for_mode(crate::plan::Mode::Default);
    let yields = |key: &crate::analysis::TrialKey| {
        let took = if key.point[0] == "10g" { 1_500 } else { 1_000 };
        let flows = (0..200).map(|start| flow(1_000, start, Some(start + took))).collect();
        weft_scenario::record::Records { flows, ..Default::default() }
    };
    let (fabrics, trials) = (spec.build_fabrics().unwrap(), trials_of(spec, yields));
    let figures = testing::figures(spec, &fabrics, &trials);
    let titles: Vec<_> = figures.iter().map(|figure| figure.title.as_str()).collect();
    assert_eq!(titles, ["Mean FCT"]);
    for figure in &figures {
        let document = parse(&figure.svg);
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(["10g", "40g", "ideal switch", "load (%)"].iter().all(|text| texts.contains(text)), "{texts:?}");
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.svg);
    }
}
