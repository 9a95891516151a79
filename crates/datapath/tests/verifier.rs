//! What the verifier makes of every program: it loads, and how many instructions it had to look at has a bound.

#![allow(clippy::print_stderr)]

use weft_datapath::capability::{self, Verified};

/// Instructions that the verifier may look at, with all branches alive. About twice what it takes today: a change that
/// doubles the work is one to look at. The kernel's own limit is a million.
const BUDGET: &[(&str, u32)] = &[
    ("vl2_host_egress", 5000),
    ("vl2_host_ingress", 2000),
    ("vl2_int_decap", 2000),
    ("vl2_tor_decap", 2600),
    ("vl2_tor_server", 3800),
    ("l2_forward", 130),
    ("directory_lookup", 11_000),
    ("vtep_access", 30_000),
    ("vtep_uplink", 24_000),
    ("vtep_access_xdp", 8000),
    ("vtep_uplink_xdp", 4000),
    ("impair_tc", 230),
    ("impair_xdp", 230),
    ("bench_empty", 10),
    ("bench_empty_tc", 10),
    ("bench_push_50", 50),
    ("bench_pop_50", 50),
    ("bench_pair_50", 50),
    ("bench_vxlan_encap", 50),
    ("bench_vxlan_decap", 150),
    ("bench_directory_nothing", 10),
    ("bench_directory_lookup", 200),
    ("number_copy", 60),
    ("copy_and_look", 100),
    ("lose_incoming", 200),
    ("lose_outgoing", 200),
    ("lose_everything", 20),
    ("lose_everything_xdp", 20),
    ("tester_generate", 14_000),
    ("tester_generate_mix", 10_000),
    ("tester_replay", 2500),
    ("tester_recognise", 700),
    ("tester_analyse", 7000),
    ("tester_link_xdp", 9000),
    ("tester_link_tc", 9000),
    ("tester_relay", 200),
    ("l2_forward_tc", 130),
    ("bed_fan_out", 100),
    ("bed_fan_in", 20),
    ("bed_trunk_to_tunnel", 100),
    ("bed_tunnel_to_trunk", 100),
    ("bed_poll", 20),
    ("bed_fan_in_egress", 50),
    ("trill_link", 32_000),
    ("trill_elided_link", 40_000),
    ("trill_spread_link", 40_000),
    ("trill_worker", 40_000),
    ("trill_native", 30_000),
    ("trill_shared", 60_000),
    ("trill_copier", 700),
    ("trill_copy", 10_000),
    ("trill_outer_tag", 500),
    ("bench_trill_nothing", 10),
    ("bench_trill_push", 50),
    ("bench_trill_pop", 50),
    ("bench_trill_pair", 50),
    ("bench_trill_transit", 60),
    ("bench_trill_ingress", 60),
    ("bench_trill_egress", 80),
];

/// Only who may not load anything is spared: a refusal by the verifier fails, on whatever kernel.
#[test]
fn every_object_loads_and_every_program_stays_within_its_budget() {
    if !weft_needs::root() {
        return;
    }
    let mut faults = Vec::new();
    let mut seen = 0;
    for file in weft_testbed::objects() {
        let name = file.name;
        match capability::load(file) {
            Err(error) => {
                eprintln!("{name}.bpf.o: refused: {error}");
                faults.push(error.to_string());
            }
            Ok(programs) => {
                eprintln!("{name}.bpf.o: loaded");
                seen += programs.len();
                faults.extend(programs.iter().filter_map(over_budget));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(seen, BUDGET.len(), "no budget without a program");
}

fn over_budget(verified: &Verified) -> Option<String> {
    let Verified { program, instructions } = verified;
    let Some((_, budget)) = BUDGET.iter().find(|(name, _)| name == program) else {
        return Some(format!("{program} has no budget"));
    };
    eprintln!("{program}: {instructions} of {budget}");
    (instructions > budget).then(|| format!("{program}: {instructions} of {budget} instructions"))
}
