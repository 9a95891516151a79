//! Questions about run folders written on the spot: answers, refusals, and what a question may not do.

use std::path::PathBuf;

use weft_scenario::engine::Overlay;
use weft_scenario::record::{FlowRow, Records};

use super::*;
use crate::analysis::testing;
use crate::analysis::{TrialKey, TrialRecords};
use crate::plan::Mode;
use crate::run_folder::write_trial_rows;
use crate::runner::RunOptions;

const FABRIC: &str = include_str!("../../../../fabrics/vl2-4servers.yaml");

/// A run of two trials with three flows each.
fn run() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records");
    std::fs::create_dir(&records).unwrap();
    for trial in [1, 2] {
        let flow = |from: u32| FlowRow {
            from,
            bytes_received: 1_000_000 * u64::from(from + trial),
            end_ns: (from < 2).then_some(1_000_000_000),
            ..FlowRow::default()
        };
        let key = TrialKey {
            trial,
            repetition: trial,
            seed: u64::from(trial),
            overlay: Overlay::Vl2,
            workload: "all".into(),
            point: Vec::new(),
        };
        let rows = Records { flows: (0..3).map(flow).collect(), ..Records::default() };
        write_trial_rows(&records, &[], &TrialRecords { key, records: rows }).unwrap();
    }
    let plan = testing::plan("overlays = [\"vl2\"]", testing::SHUFFLE_TABLES);
    let options = RunOptions { seed: 7, ..RunOptions::default() };
    let mut manifest = Manifest::new(&plan, plan.for_mode(Mode::Default), &options);
    (manifest.machine.cores, manifest.fabrics) = (2, vec!["fabric.yaml".to_owned()]);
    std::fs::write(folder.path().join("manifest.json"), serde_json::to_string(&manifest).unwrap()).unwrap();
    std::fs::write(folder.path().join("fabric.yaml"), FABRIC).unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

fn ask(sql: &str) -> Result<Answer, QueryError> {
    let (_kept, path) = run();
    Database::of_run(&path)?.ask(sql)
}

fn number(sql: &str) -> f64 {
    match ask(sql).unwrap().rows[..] {
        [ref row] => match row[..] {
            [Value::Real(value)] => value,
            [Value::Integer(value)] => value as f64,
            ref other => panic!("{other:?}"),
        },
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_tables_with_the_columns_of_their_trial() {
    let answer = ask("select trial, overlay, \"from\", end_ns from flows where trial = 2 order by \"from\"").unwrap();
    assert_eq!(answer.columns, ["trial", "overlay", "from", "end_ns"]);
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(answer.rows[0], [Value::Integer(2), text("vl2"), Value::Integer(0), Value::Integer(1_000_000_000)]);
    assert_eq!(answer.rows[2][3], Value::Null, "it did not end");
    assert_eq!(number("select count(*) from trials"), 2.0);
    assert_eq!(number("select count(*) from queues"), 0.0, "a kind without rows has a table");
}

#[test]
fn statistics_are_those_of_the_analyses() {
    assert_eq!(number("select median(bytes_received) from flows where trial = 1"), 2e6);
    assert_eq!(number("select quantile(bytes_received, 0.25) from flows where trial = 1"), 1.5e6);
    assert_eq!(number("select stddev(bytes_received) from flows where trial = 1"), 1e6);
    assert!((number("select jain(bytes_received) from flows where trial = 1") - 36.0 / 42.0).abs() < 1e-12);
    assert_eq!(ask("select median(end_ns) from flows where 0").unwrap().rows, [[Value::Null]]);
    let error = ask("select quantile(bytes_received, 1.5) from flows").unwrap_err().to_string();
    assert!(error.contains("1.5 is not between 0 and 1"), "{error}");
}

#[test]
fn networks_and_the_manifest_are_tables() {
    assert_eq!(number("select count(*) from nodes where role = 'server'"), 4.0);
    assert!(number("select min(rate_bps) from fabric_links where class like '%server'") > 0.0);
    assert_eq!(number("select value from parameters where name = 'machine.cores'"), 2.0);
    assert_eq!(number("select value from parameters where name = 'seed'"), 7.0);
}

#[test]
fn what_the_plan_says_is_a_table_with_units_taken_off() {
    let setting = |name: &str| number(&format!("select value from settings where trial = 1 and name = '{name}'"));
    assert_eq!(setting("workload.all.bytes_per_flow"), 1e6);
    assert_eq!(setting("fabric.server_rate"), 10e6);
    assert_eq!(setting("sampling.time_limit"), 60e9);
    assert_eq!(number("select count(*) from settings where name like 'claims%'"), 0.0);
    assert_eq!(number("select fabric_number from trials where trial = 2"), 1.0);
}

#[test]
fn networks_say_what_their_servers_can_carry() {
    let rate = number("select max(rate_bps) from fabric_links where class = 'tor-server'");
    assert_eq!(number("select servers_bps from capacity"), 4.0 * rate);
    assert_eq!(number("select servers from capacity"), 4.0);
}

#[test]
fn estimates_of_aggregates_have_their_intervals() {
    let of = |aggregate: &str| {
        let numbers = "with recursive s(n) as (select 1 union all select n + 1 from s where n < 40)";
        number(&format!("{numbers} select {aggregate} from s"))
    };
    assert_eq!(of("paired_ratio(3 * n, n, n % 2) ->> 'low'"), 3.0);
    assert_eq!(of("batch_mean(5) ->> 'high'"), 5.0);
    assert_eq!(of("batch_mean(5) ->> 'n'"), 40.0);
}

#[test]
fn a_view_is_asked_once_and_named_where_it_is_none() {
    let spec = |views: &str| {
        let text = testing::plan_text("overlays = [\"vl2\"]", testing::SHUFFLE_TABLES);
        let text = format!("{text}{views}");
        let plan = crate::plan::Plan::parse("p.toml", &text).map_err(|error| error.to_string())?;
        Ok::<_, String>(plan.for_mode(Mode::Default).clone())
    };
    let (_kept, path) = run();
    let twice = spec(
        "[[views]]\nid = \"sums\"\nsql = \"select trial, sum(bytes_received) as bytes from flows group by trial\"\n\
         [[views]]\nid = \"most\"\nsql = \"select max(bytes) as bytes from sums\"\n",
    )
    .unwrap();
    let database = Database::with_spec(&path, &["fabric.yaml".to_owned()], &twice).unwrap();
    assert_eq!(database.ask("select bytes from most").unwrap().rows, [[Value::Integer(9_000_000)]]);
    assert!(database.ask("select * from missing").unwrap_err().to_string().contains("no such table: missing"));
    for (view, says) in [
        ("id = \"flows\"\nsql = \"select 1 as one\"", "view `flows`: there is a table of that name"),
        ("id = \"x\"\nsql = \"select * from y\"", "view `x`: no such table: y"),
        ("id = \"x\"\nsql = \"delete from flows\"", "view `x`: not authorized"),
        ("id = \"x\"\nsql = \"select * from x\"", "view `x`: no such table: x"),
    ] {
        let error = spec(&format!("[[views]]\n{view}\n")).unwrap_err();
        assert!(error.contains(says) && error.starts_with("p.toml:"), "{error}");
    }
}

#[test]
fn a_view_may_have_the_names_of_others_in_its_text() {
    // `bytes` has a column, a comment and a text that are called like the view that reads it.
    let views = "[[views]]\nid = \"bytes\"\nsql = \"select sum(bytes_received) as most, 'most' as word from flows -- most\"\n\
                 [[views]]\nid = \"most\"\nsql = \"select max(most) as value from bytes\"\n";
    let text = format!("{}{views}", testing::plan_text("overlays = [\"vl2\"]", testing::SHUFFLE_TABLES));
    let plan = crate::plan::Plan::parse("p.toml", &text).unwrap();
    let (_kept, path) = run();
    let questions = ["select most from bytes", "select value from most"];
    for order in [questions, [questions[1], questions[0]]] {
        let spec = plan.for_mode(Mode::Default);
        let database = Database::with_spec(&path, &["fabric.yaml".to_owned()], spec).unwrap();
        for question in order {
            assert_eq!(database.ask(question).unwrap().rows[0][0].number(), Some(15e6), "{question}");
        }
    }
    assert_eq!(number("select count(*) from trials join flows using (trial)"), 6.0);
    assert_eq!(ask("explain select * from flows").unwrap().columns[1], "opcode");
}

#[test]
fn a_question_only_reads() {
    let (kept, path) = run();
    let database = Database::of_run(&path).unwrap();
    let file = kept.path().join("stolen").display().to_string();
    for sql in [
        "delete from flows",
        "update flows set trial = 0",
        "create table x (y)",
        "drop table flows",
        &format!("attach '{file}' as x"),
        &format!("vacuum into '{file}'"),
        "pragma writable_schema = on",
        "select load_extension('x')",
        "begin",
    ] {
        let error = database.ask(sql).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
    }
    assert!(!kept.path().join("stolen").exists());
    assert_eq!(database.ask("select count(*) from flows").unwrap().rows, [[Value::Integer(6)]]);
}

#[test]
fn mistakes_are_told_in_one_line() {
    for (sql, says) in [
        ("select goodput from flows", "no such column: goodput"),
        ("select * from flow", "no such table: flow"),
        ("selec 1", "syntax error"),
        ("select 1; select 2", "Multiple statements"),
        ("", ""),
    ] {
        match ask(sql) {
            Ok(answer) => assert!(sql.is_empty() && answer.rows.is_empty(), "{answer:?}"),
            Err(error) => assert!(error.to_string().contains(says) && !error.to_string().contains('\n'), "{error}"),
        }
    }
    let error = Database::of_run(std::path::Path::new("/nonexistent")).unwrap_err().to_string();
    assert_eq!(error, "there is no folder /nonexistent");
}

#[test]
fn a_file_that_is_broken_is_named() {
    let (_kept, path) = run();
    std::fs::write(path.join("records/flows.csv"), "trial,bytes_received\n1\n").unwrap();
    let database = Database::of_run(&path).unwrap();
    assert_eq!(
        database.ask("select count(*) from trials").unwrap().rows,
        [[Value::Integer(2)]],
        "what is whole can be asked"
    );
    let error = database.ask("select count(*) from flows").unwrap_err().to_string();
    assert!(error.contains("flows.csv") && !error.contains('\n'), "{error}");
}

/// The page says what there is to ask, and nothing that there is not.
#[test]
fn the_page_on_questions_names_every_table() {
    let page = include_str!("../../../../docs/questions.md");
    let plan = testing::plan("overlays = [\"vl2\"]", testing::SHUFFLE_TABLES);
    let database = Database::empty(plan.for_mode(Mode::Default)).unwrap();
    let kinds: Vec<&str> = weft_scenario::record::RowKind::ALL.iter().map(|kind| kind.name).collect();
    for (table, columns) in database.tables().filter(|(table, _)| !kinds.contains(table)) {
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{table}`")));
        let row = row.unwrap_or_else(|| panic!("docs/questions.md does not name `{table}`"));
        let told = |column: &&String| {
            row.contains(&format!("`{column}`"))
                || row.contains("all of")
                || row.contains("..")
                || row.contains("the same")
        };
        let missing: Vec<&String> = columns.iter().skip(5).filter(|column| !told(column)).collect();
        assert!(missing.is_empty(), "docs/questions.md does not name {missing:?} of `{table}`");
    }
}
