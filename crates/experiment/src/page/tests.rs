//! The page as a file: what may be in it, whatever names say. How it behaves is tried in a browser by `scripts/pages/run.sh`.

use weft_scenario::engine::Overlay;
use weft_scenario::record::{LinkRow, Records};
use weft_scenario::topology::{FabricSpec, TestbedParams, vl2_testbed};

use super::*;
use crate::plan::{SingleSampling, SingleScenario};

const HOSTILE: &str = "</script><script>alert(\"1\")</script>\n'<!--<img src=x onerror=alert(2)>&amp;";

/// A document of two times, every text of which that people write is hostile.
fn hostile() -> Document {
    let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
    let link = &fabric.links()[0];
    let row = |time_ns| LinkRow {
        time_ns,
        node: fabric.node(link.a.node).name.clone(),
        interface: link.a.interface.clone(),
        ..LinkRow::default()
    };
    let events = vec![EventRow { time_ns: 1, kind: HOSTILE.to_owned(), subject: HOSTILE.to_owned() }];
    let records = Records { links: vec![row(0), row(5)], events, ..Records::default() };
    let key = TrialKey {
        trial: 3,
        repetition: 1,
        seed: 7,
        overlay: Overlay::Vl2,
        workload: HOSTILE.to_owned(),
        point: vec![HOSTILE.to_owned()],
    };
    let axes = [Axis { name: HOSTILE.to_owned(), labels: vec![HOSTILE.to_owned()], unit: HOSTILE.to_owned() }];
    let workload = weft_scenario::workload::Workload::Shuffle { bytes_per_flow: weft_scenario::units::Bytes(1) };
    let network = ("vl2-testbed", FabricSpec::File("vl2-testbed".to_owned()));
    let sampling = SingleSampling::default();
    let single = SingleScenario::on_fabric(network, Overlay::Vl2, ("all", workload), sampling, &[]).unwrap();
    let mut document = Document::of(&single.as_spec(HOSTILE), &axes, &fabric, &TrialRecords { key, records }).unwrap();
    document.nodes[0].name = HOSTILE.to_owned();
    document
}

#[test]
fn names_change_nothing_but_their_label() {
    let page = render(&hostile()).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the document and the program");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains("<!--"), "no markup of names");
    // What the browser reads of it is the names as they were.
    let (_, data) = page.split_once("id=\"document\">").unwrap();
    let read: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!((&read["nodes"][0]["name"], &read["title"]), (&HOSTILE.into(), &HOSTILE.into()));
    assert_eq!(read["chunk"]["events"][0]["subject"], HOSTILE);
}

#[test]
fn the_policy_allows_the_file_itself_and_nothing_else() {
    let page = render(&hostile()).unwrap();
    let between = |begin: &str, end: &str| page.split_once(begin).unwrap().1.split_once(end).unwrap().0.to_owned();
    let policy = between("Content-Security-Policy\" content=\"", "\"");
    for wanted in ["default-src 'none'", "base-uri 'none'", "form-action 'none'"] {
        assert!(policy.contains(wanted), "{policy}");
    }
    assert!(policy.contains(&format!("script-src '{}'", digest(&between("<script>", "</script>")))), "{policy}");
    assert!(policy.contains(&format!("style-src '{}'", digest(&between("<style>", "</style>")))), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let markup = TEMPLATE;
    assert!(
        !markup.contains(" style=")
            && !markup.contains(" onclick")
            && !markup.contains("http:")
            && !markup.contains("https:"),
        "nothing inline, nothing fetched"
    );
}

#[test]
fn the_page_without_its_document_is_small() {
    let page = render(&hostile()).unwrap();
    // Well below 400 kB compressed, which text is by three.
    assert!(page.len() < 300_000, "{} bytes", page.len());
}

#[test]
fn libraries_keep_their_licences_beside_them() {
    let vendor = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page/vendor");
    let names: Vec<String> =
        std::fs::read_dir(vendor).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let list = include_str!("../../../../scripts/page/vendor.txt");
    let lines: Vec<Vec<&str>> =
        list.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect()).collect();
    assert!(lines.len() > 5);
    for line in &lines {
        let [package, _version, digest, files] = line[..] else { panic!("{line:?}") };
        assert!(digest.starts_with("sha512-") && names.contains(&format!("{package}.LICENSE")), "{line:?}");
        for file in files.split(',').map(|file| file.rsplit('/').next().unwrap()) {
            assert!(names.contains(&file.to_owned()), "{file}");
        }
    }
    let files: usize = lines.iter().map(|line| line[3].split(',').count() + 1).sum();
    assert_eq!(files, names.len(), "nothing is there that the list does not name");
}
