//! What schedulers are given, and what is made of a sweep's folder.

use super::*;
use crate::analysis::testing::{SHUFFLE_TABLES, SWEEP_PLAN, plan};
use crate::plan::{Mode, Plan};

fn sweep(on: On, out: &Path) -> Sweep {
    let plan = Plan::parse("it's mine.toml", SWEEP_PLAN).unwrap();
    let pods = Pods { claim: "results".into(), image: "registry.example/weft:1".into() };
    let options = SweepOptions {
        on,
        mode: Mode::Quick,
        seed: 7,
        shards: None,
        jobs: Some(2),
        tries: 3,
        out: Some(out.to_owned()),
        options: vec!["--account=net lab".into()],
        program: Some("/opt/weft".into()),
        pods: (on == On::Kubernetes).then_some(pods),
    };
    Sweep { work_dir: "/home/me".into(), ..Sweep::new(&plan, &options).unwrap() }
}

#[test]
fn each_scheduler_is_given_a_script() {
    for on in [On::Slurm, On::Kubernetes, On::Parallel] {
        let sweep = Sweep { shards: 3, ..sweep(on, Path::new("/data/my sweep")) };
        let text = on.scheduler().script(&sweep, &[1, 3], 2).unwrap();
        insta::assert_snapshot!(on.name(), text);
    }
}

#[test]
fn shards_are_as_many_as_the_scheduler_likes() {
    let out = Path::new("/data/sweep");
    let shards = |on| sweep(on, out).shards;
    let planned = sweep(On::Slurm, out).planned as u32;
    assert!(planned < 25, "{planned}");
    assert_eq!((shards(On::Slurm), shards(On::Parallel)), (1, planned.min(8)));
    let plan = |keys: &str| plan(keys, SHUFFLE_TABLES);
    let options = SweepOptions {
        on: On::Slurm,
        mode: Mode::Default,
        seed: 1,
        shards: Some(30),
        jobs: None,
        tries: 1,
        out: None,
        options: Vec::new(),
        program: None,
        pods: None,
    };
    let many = Plan::parse("p.toml", SWEEP_PLAN).unwrap();
    let error = Sweep::new(&many, &options).unwrap_err().to_string();
    assert_eq!(error, "plan `test/sweep` has 12 trials, so at most as many shards, not 30");
    let error = Sweep::new(&plan("overlays = [\"vl2\"]"), &options).unwrap_err().to_string();
    assert!(error.contains("in the lab runs on one machine"), "{error}");
    let error = Sweep::new(&many, &SweepOptions { on: On::Kubernetes, shards: None, ..options }).unwrap_err();
    assert!(matches!(error, ClusterError::NoPods), "{error}");
}

#[test]
fn a_folder_has_one_sweep_and_says_how_far_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("sweep");
    let mut first = Sweep { shards: 3, ..sweep(On::Parallel, &out) };
    assert!(matches!(Sweep::read(&out), Err(ClusterError::NoSweep(_))));
    first.go_on_from_before().unwrap();
    let planned: Vec<usize> = (1..=3).map(|shard| first.trials_of(shard)).collect();
    assert_eq!(planned.iter().sum::<usize>(), first.planned);
    for trial in 0..planned[1] {
        std::fs::create_dir_all(out.join(format!("shards/2/trials/{trial}"))).unwrap();
    }
    std::fs::create_dir_all(out.join("shards/1/trials/4.partial")).unwrap();
    let now = status(&Sweep::read(&out).unwrap()).unwrap();
    assert_eq!((now.trials, now.planned, now.at_work, now.missing()), (planned[1], first.planned, false, vec![1, 3]));
    assert_eq!(
        now.shards.iter().map(|shard| shard.state.as_str()).collect::<Vec<_>>(),
        ["missing", "whole", "missing"]
    );
    let mut other = Sweep { shards: 4, ..sweep(On::Parallel, &out) };
    let error = other.go_on_from_before().unwrap_err().to_string();
    assert!(error.contains("holds another sweep: its number of shards is 3, not 4"), "{error}");
    let mut other = Sweep { shards: 3, ..sweep(On::Slurm, &out) };
    let error = other.go_on_from_before().unwrap_err().to_string();
    assert!(error.contains("its scheduler is Parallel, not Slurm"), "{error}");
}
