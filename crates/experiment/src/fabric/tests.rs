//! Words of the command line, and what a check finds.

use super::*;

fn at(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const PAIR: &str = "name: pair\ntopology:\n  defaults: {link: {rate: 10G}}\n  nodes:\n    l.1: {role: leaf}\n    l.2: {role: leaf}\n    \
    h1: {role: server}\n    h2: {role: server}\n  links:\n    - endpoints: [\"l.1:l2\", \"l.2:l1\"]\n    \
    - endpoints: [\"l.1:h1\", \"h1:eth0\"]\n    - endpoints: [\"l.2:h2\", \"h2:eth0\"]\n";

#[test]
fn a_word_is_a_shipped_fabric_a_file_or_a_generator() {
    let folder = tempfile::tempdir().unwrap();
    for (word, servers) in [
        ("vl2-4servers", 4),
        ("vl2-testbed", 75),
        ("vl2-testbed:servers_per_tor=1", 4),
        ("fat-tree:k=4", 16),
        ("tree:servers=30", 30),
        (&at(&folder, "pair.yaml", PAIR), 2),
        (&at(&folder, "mesh:leaves=3", PAIR), 2),
    ] {
        let fabric = read(word).unwrap_or_else(|error| panic!("{word}: {error}"));
        assert_eq!(fabric.servers().count(), servers, "{word}");
        assert_eq!(matches!(named(word), Ok(FabricSpec::File(_))), !word.contains(':') || word.contains('/'), "{word}");
    }
}

#[test]
fn what_is_no_fabric_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let broken = at(&folder, "broken.yaml", &PAIR.replace("role: server", "role: serve"));
    let kept = folder.path().join("folder.yaml");
    std::fs::create_dir(&kept).unwrap();
    for (word, messages) in [
        (
            "fat-tree",
            &["`fat-tree` is a generator, which is written `fat-tree:k=4`; it takes k, servers_per_tor, "][..],
        ),
        ("fat-tre", &["there is no such file; did you mean `fat-tree:k=4`? `weft fabric list` shows all"]),
        ("fat-tree:k=5", &["fabric `fat-tree:k=5`: k = 5 makes no fabric"]),
        ("ring:n=4", &["fabric `ring:n=4`: there is no generator `ring`; there are vl2-testbed, "]),
        (&broken, &["broken.yaml:7:16: unknown value `serve`", "(and 1 more: weft fabric check "]),
        (kept.to_str().unwrap(), &["cannot read ", "folder.yaml: Is a directory"]),
    ] {
        let error = read(word).expect_err(word);
        assert!(messages.iter().all(|message| error.contains(message)), "{word}: {error}");
    }
}

#[test]
fn a_check_says_all_mistakes_or_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let good = check(&at(&folder, "pair.yaml", PAIR)).unwrap();
    let facts = good.fabric.expect("it is a fabric");
    assert_eq!(good.mistakes, []);
    assert_eq!((facts.nodes, facts.switches, facts.servers, facts.links), (4, 2, 2, 3));
    assert_eq!((facts.server_rate, facts.oversubscription), (BitsPerSec(20_000_000_000), Some(1.0)));
    let bad = PAIR.replace("l.1:h1", "l.1:all").replace("h2:eth0", "h3:eth0");
    let bad = check(&at(&folder, "bad.yaml", &bad)).unwrap();
    let places: Vec<_> = bad.mistakes.iter().map(|one| one.place.rsplit('/').next().unwrap_or_default()).collect();
    assert_eq!((places, bad.fabric), (vec!["bad.yaml:11", "bad.yaml:12"], None));
    assert!(check(folder.path().join("none.yaml").to_str().unwrap()).unwrap_err().contains("there is no such file"));
}

#[test]
fn a_tree_is_as_oversubscribed_as_it_was_made() {
    for (word, ratio) in [
        ("fat-tree:k=4", Some(1.0)),
        ("fat-tree:k=4,servers_per_tor=6", Some(3.0)),
        ("tree:servers=80,oversubscription=5", Some(5.0)),
        ("output-queued:servers=4", None),
    ] {
        assert_eq!(check(word).unwrap().fabric.unwrap().oversubscription, ratio, "{word}");
    }
}
