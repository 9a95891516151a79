//! Every flag of `weft sim` changes the run, or is refused, or there is a reason.

use std::fs;
use std::path::Path;

use clap::{CommandFactory, Parser};

use super::load::load;
use super::watched::WatchedSim;
use crate::args::{Cli, Command};
use crate::progress::TerminalProgress;

/// Every flag with another value. One that the command has and this list does not fails the test.
const FLAGS: &[(&str, &[&str])] = &[
    ("--fabric", &["--fabric", "leaf-spine:spines=1,leaves=2,servers_per_leaf=3"]),
    ("--seed", &["--seed", "2"]),
    ("--set", &["--set", "transport.rto_min=7 ms"]),
    ("--out", &["--out", "there"]),
    ("--trace", &["--trace", "flow=0"]),
    ("--capture", &["--capture", "leaf1:spine1", "--write", "there.pcapng"]),
    ("--write", &["--write", "there.pcapng"]),
    ("--threads", &["--threads", "3"]),
    ("--output", &["--output", "json"]),
    ("--workload", &["--workload", "shuffle"]),
    ("--flows", &["--flows", "FLOWS"]),
    ("--overlay", &["--overlay", "kernel-vxlan"]),
    ("--time-limit", &["--time-limit", "90 s"]),
    ("--bytes", &["--bytes", "2 MB"]),
    ("--shift", &["--shift", "1"]),
    ("--load", &["--load", "20"]),
    ("--duration", &["--duration", "10 s"]),
    ("--fan-in", &["--fan-in", "2"]),
    ("--response", &["--response", "2 MB"]),
    ("--interval", &["--interval", "3 s"]),
];

/// Flags that are about what is printed and written, and no part of the run.
const AROUND: [&str; 2] = ["--output", "--out"];

#[test]
fn every_flag_changes_the_run_or_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("the folder is ours");
        path.to_str().expect("a temporary folder's name is text").to_owned()
    };
    let flows = file("flows.txt", "0 0 2 100 0\n1000 1 3 100 1\n");
    let scenario = "fabric = { file = \"leaf-spine-small\" }\n";
    let shuffle =
        file("shuffle.toml", &format!("{scenario}workload = {{ kind = \"shuffle\", bytes_per_flow = \"1 MB\" }}\n"));
    let mix = file(
        "mix.toml",
        &format!(
            "{scenario}workload = {{ kind = \"mix\", duration = \"1 s\", offered_rate_per_server = \"1 Mbit/s\", size_divisor = 1000 }}\n"
        ),
    );
    let mut bases =
        vec![vec![shuffle], vec![mix], ["leaf-spine-small", "--flows", flows.as_str()].map(str::to_owned).to_vec()];
    for workload in ["permutation", "web-search", "data-mining", "query"] {
        bases.push(["leaf-spine-small", "--workload", workload].map(str::to_owned).to_vec());
    }
    // What makes one thread do all.
    bases.extend(["--trace=flow=0", "--capture=leaf1:spine1 --write=there"].map(|more| {
        let words = ["leaf-spine-small", "--workload", "permutation"].into_iter().chain(more.split(' '));
        words.map(str::to_owned).collect()
    }));
    let mut wrong = Vec::new();
    for base in &bases {
        let usual = job(base).unwrap_or_else(|error| panic!("{base:?}: {error}"));
        for (flag, words) in FLAGS.iter().filter(|(flag, _)| !AROUND.contains(flag)) {
            let words = words.iter().map(|word| word.replace("FLOWS", &flows));
            let all: Vec<String> = base.iter().cloned().chain(words).collect();
            match job(&all) {
                Ok(changed) if changed == usual => {
                    wrong.push(format!("{flag} changes nothing in {}", named(base, folder.path())))
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_flag_is_tried() {
    let command = Cli::command();
    let sim = command.find_subcommand("sim").expect("there is one");
    let flags = sim.get_arguments().filter(|argument| !argument.is_global_set());
    let names: Vec<String> = flags.filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !["--help"].contains(&name.as_str()) && !FLAGS.iter().any(|(flag, _)| flag == *name))
        .collect();
    assert!(missing.is_empty(), "without another value: {missing:?}");
    for (flag, _) in FLAGS {
        assert!(names.iter().any(|name| name == flag), "there is no {flag}");
    }
}

/// The run that the words ask for, or why there is none.
fn job(words: &[String]) -> Result<String, String> {
    let words = ["weft", "sim"].into_iter().chain(words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let Command::Sim(args) = cli.command else { panic!("{:?}", cli.command) };
    let loaded = load(&args).map_err(|failure| format!("{failure:?}"))?;
    let progress = TerminalProgress::new(true).map_err(|failure| format!("{failure:?}"))?;
    let engine = WatchedSim::new(&args, &loaded, &progress, None);
    let job = engine.job(&loaded.scenario, &loaded.trial).map_err(|error| error.to_string())?;
    Ok(format!("{job:?}"))
}

fn named(words: &[String], folder: &Path) -> String {
    words.join(" ").replace(&format!("{}/", folder.display()), "")
}
