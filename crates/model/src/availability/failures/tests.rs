//! The drawn failures have the paper's statistics.

use weft_scenario::topology::{ClosParams, ConventionalParams, conventional, vl2_clos};

use super::*;

fn clos() -> Fabric {
    let params = ClosParams { intermediate_ports: 15, servers_per_tor: 1, ..ClosParams::with_ports(20) };
    vl2_clos(&params).unwrap()
}

/// Some ten thousand failures of 400 switches, enough for the largest to fit.
fn many() -> (Fabric, Vec<Failure>) {
    let params = ClosParams { servers_per_tor: 1, ..ClosParams::with_ports(36) };
    let fabric = vl2_clos(&params).unwrap();
    let model = FailureModel { per_switch_month: 100.0, ..FailureModel::default() };
    let failures = failures(&model, &fabric, 1).unwrap();
    (fabric, failures)
}

fn share(failures: &[Failure], of: impl Fn(&Failure) -> bool) -> f64 {
    failures.iter().filter(|failure| of(failure)).count() as f64 / failures.len() as f64
}

#[test]
fn durations_and_sizes_are_those_of_the_paper() {
    let (fabric, failures) = many();
    let n = failures.len() as f64;
    let expected = 100.0 * fabric.switches().count() as f64;
    assert!((n - expected).abs() < 4.0 * expected.sqrt(), "{n} of {expected}");
    let near = |got: f64, wanted: f64| {
        let error = (wanted * (1.0 - wanted) / n).sqrt();
        assert!((got - wanted).abs() < 4.0 * error, "{got} is not {wanted} +- {error}");
    };
    let shorter = |seconds: u64| share(&failures, |failure| failure.lasts.0 < seconds * 1_000_000_000);
    near(shorter(600), 0.95);
    near(shorter(3600), 0.98);
    near(shorter(86_400), 0.996);
    near(1.0 - shorter(864_000), 0.0009);
    assert_eq!(shorter(30), 0.0);
    near(share(&failures, |failure| failure.switches.len() < 4), 0.5);
    near(share(&failures, |failure| failure.switches.len() < 20), 0.95);
    let largest = failures.iter().map(|failure| failure.switches.len()).max().unwrap();
    assert!((200..=217).contains(&largest), "{largest}");
    near(share(&failures, |failure| failure.takes_group), 0.003);
}

#[test]
fn only_the_failures_of_groups_take_all_of_a_pair() {
    let fabric = conventional(&ConventionalParams::default()).unwrap();
    let groups = redundant_groups(&fabric);
    assert_eq!(groups.len(), 9 + 2 + 1);
    assert!(groups.iter().all(|group| group.len() == 2));
    let model = FailureModel { per_switch_month: 50.0, ..FailureModel::default() };
    let failures = failures(&model, &fabric, 3).unwrap();
    let whole =
        |failure: &Failure| groups.iter().any(|group| group.iter().all(|member| failure.switches.contains(member)));
    assert!(failures.iter().filter(|failure| failure.takes_group).count() > 5);
    assert!(failures.iter().all(|failure| whole(failure) == failure.takes_group));
}

#[test]
fn a_clos_network_keeps_all_but_two_of_a_group() {
    let fabric = clos();
    let groups = redundant_groups(&fabric);
    let mut sizes: Vec<usize> = groups.iter().map(BTreeSet::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [vec![2; 15], vec![10]].concat());
    let model = FailureModel { group_per_mille: 1000.0, ..FailureModel::default() };
    assert!(
        failures(&model, &fabric, 1).unwrap().iter().all(|failure| failure.takes_group && failure.switches.len() >= 2)
    );
}

#[test]
fn a_seed_gives_the_same_failures_and_another_seed_others() {
    let (fabric, model) = (clos(), FailureModel::default());
    assert_eq!(failures(&model, &fabric, 1), failures(&model, &fabric, 1));
    assert_ne!(failures(&model, &fabric, 1), failures(&model, &fabric, 2));
}
