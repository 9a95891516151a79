//! Which eBPF and which hooks a lab or an experiment uses: exactly those must be there.

use std::collections::BTreeSet;

use weft_scenario::engine::{Hook, Overlay, Scenario, Trial};
use weft_scenario::topology::Fabric;
use weft_scenario::workload::{SegmentStore, Workload};

use super::capability::{self, Capability};
use super::uses::Use;

/// The eBPF and the hooks that a network and a trial on it use.
pub(super) fn of(scenario: &Scenario, trial: Option<&Trial>) -> BTreeSet<Capability> {
    let ports = most_ports(&scenario.fabric);
    scenario.overlays().into_iter().flat_map(|overlay| of_both(overlay, ports, trial)).collect()
}

/// Ports of the switch that has the most.
fn most_ports(fabric: &Fabric) -> usize {
    fabric.switches().map(|switch| fabric.links_of(switch).len()).max().unwrap_or(0)
}

fn of_both(overlay: Overlay, ports: usize, trial: Option<&Trial>) -> BTreeSet<Capability> {
    let lab = Use::of(overlay).into_iter().flat_map(capability::tried_for).chain(of_hook(overlay, ports));
    let workload = trial.map(|trial| &trial.workload);
    let mut needed: BTreeSet<Capability> = lab.chain(workload.into_iter().flat_map(of_workload)).collect();
    let faults = trial.into_iter().flat_map(|trial| &trial.faults);
    if faults.into_iter().any(|fault| fault.kind.is_silent()) {
        needed.extend(capability::tried_for(Use::Losses));
    }
    needed
}

/// What the hook of an overlay needs beside what its labs need at any hook. A switch of two ports copies nothing.
fn of_hook(overlay: Overlay, ports: usize) -> Vec<Capability> {
    match overlay {
        Overlay::Vtep { hook: Hook::Xdp, .. } => vec![Capability::XdpNative, Capability::VxlanXdp],
        Overlay::RBridge { hook: Hook::XdpGeneric, .. } if ports > 2 => {
            vec![Capability::XdpGeneric, Capability::OwnCopies]
        }
        Overlay::RBridge { hook: Hook::XdpGeneric, .. } => vec![Capability::XdpGeneric],
        _ => Vec::new(),
    }
}

fn of_workload(workload: &Workload) -> Vec<Capability> {
    match workload {
        Workload::Segments(spec) => {
            let ours = |store: &SegmentStore| matches!(store, SegmentStore::Map | SegmentStore::MapPorts);
            BED.iter().copied().chain(spec.stores.iter().any(ours).then_some(Capability::VxlanTc)).collect()
        }
        Workload::Frames(_) | Workload::Multicast(_) => BED.iter().copied().chain([Capability::Losses]).collect(),
        // Links in virtual time.
        Workload::Elephants(_) => vec![Capability::TestCentre],
        Workload::Directory(_) => capability::tried_for(Use::Losses).collect(),
        _ => Vec::new(),
    }
}

/// What every experiment of the test centre's needs.
const BED: &[Capability] = &[Capability::Tc, Capability::XdpNative, Capability::TestCentre, Capability::Beds];

#[cfg(test)]
mod tests {
    use weft_scenario::engine::TunnelEnd;
    use weft_scenario::fault::{Fault, FaultKind};
    use weft_scenario::units::{Bytes, Nanos};
    use weft_scenario::workload::{End, FramesSpec, Layer, Runs, SegmentsSpec};

    use super::*;

    const RUNS: Runs = Runs { count: 1, each: Nanos(1) };

    fn trial(workload: Workload, faults: Vec<Fault>) -> Trial {
        Trial {
            workload,
            faults,
            seed: 1,
            sample_interval: Nanos(1),
            tcp_interval: None,
            time_limit: Nanos(1),
            pin_and_measure_cost: false,
            replay: false,
            probes: None,
        }
    }

    fn of_segments(stores: &[SegmentStore]) -> BTreeSet<Capability> {
        let spec = SegmentsSpec { stores: stores.to_vec(), segments: vec![1], frame_bytes: 64, cost: RUNS };
        of_both(Overlay::Routed, 2, Some(&trial(Workload::Segments(spec), Vec::new())))
    }

    fn of_frames(overlays: &[Overlay]) -> BTreeSet<Capability> {
        let spec = FramesSpec {
            frame_bytes: vec![64],
            stations: 1,
            from: End::Port,
            to: End::Socket,
            receivers: 1,
            search: None,
            per_s: Vec::new(),
            load_percent: Vec::new(),
            path_rate: None,
            load_of: Layer::default(),
            trial: None,
            crossing_percent: Vec::new(),
            cost: Some(RUNS),
            steady: None,
        };
        let trial = trial(Workload::Frames(spec), Vec::new());
        overlays.iter().flat_map(|overlay| of_both(*overlay, 2, Some(&trial))).collect()
    }

    #[test]
    fn a_workload_needs_what_it_measures_and_nothing_else() {
        let bed: BTreeSet<Capability> = BED.iter().copied().collect();
        assert_eq!(of_segments(&[SegmentStore::KernelDevices, SegmentStore::KernelMetadata]), bed);
        let more = |all: BTreeSet<Capability>| all.difference(&bed).copied().collect::<Vec<_>>();
        assert_eq!(more(of_frames(&[Overlay::L2, Overlay::BRIDGE])), [Capability::Losses]);
        assert_eq!(more(of_segments(&[SegmentStore::Map])), [Capability::VxlanTc]);
        assert_eq!(more(of_frames(&[Overlay::BRIDGE, Overlay::RBRIDGE])), [Capability::Trill, Capability::Losses]);
    }

    #[test]
    fn everything_together_is_what_the_doctor_says_of_such_plans() {
        let said = |wanted| capability::tried_for(wanted).collect::<BTreeSet<_>>();
        let of_encapsulations = of_frames(&[Overlay::RBRIDGE, Overlay::Vtep { hook: Hook::Xdp, at: TunnelEnd::Tor }]);
        assert_eq!(&of_segments(&SegmentStore::ALL) | &of_encapsulations, said(Use::VxlanPlans));
        let forward = Overlay::ALL.iter().map(|word| word.overlay).filter(|overlay| overlay.forwards_frames());
        assert_eq!(of_frames(&forward.collect::<Vec<_>>()), said(Use::TrillPlans));
    }

    #[test]
    fn a_lab_needs_what_is_in_it_and_what_is_done_to_it() {
        let shuffle = || Workload::Shuffle { bytes_per_flow: Bytes(1) };
        let silent = FaultKind::LinkSilent { a: "tor1".into(), b: "agg1".into() };
        let fault = Fault { at: Nanos(0), lasts: None, kind: silent };
        assert_eq!(of_both(Overlay::Routed, 2, None), BTreeSet::new());
        assert_eq!(of_both(Overlay::Routed, 2, Some(&trial(shuffle(), Vec::new()))), BTreeSet::new());
        let broken = of_both(Overlay::Routed, 2, Some(&trial(shuffle(), vec![fault])));
        assert_eq!(broken, [Capability::Tc, Capability::Losses].into());
        assert_eq!(
            of_both(Overlay::Vl2, 2, Some(&trial(shuffle(), Vec::new()))),
            [Capability::Tc, Capability::Vl2].into()
        );
        assert_eq!(of_both(Overlay::RBRIDGE, 2, None), [Capability::XdpNative, Capability::Trill].into());
        assert_eq!(of_both(Overlay::VTEP, 2, None), [Capability::Tc, Capability::VxlanTc].into());
        let generic = Overlay::RBridge { hook: Hook::XdpGeneric, elide: false };
        let in_stack: BTreeSet<_> = [Capability::XdpNative, Capability::XdpGeneric, Capability::Trill].into();
        assert_eq!(of_both(generic, 2, None), in_stack);
        let more = of_both(generic, 3, None);
        assert_eq!(
            more.difference(&in_stack).copied().collect::<Vec<_>>(),
            [Capability::OwnCopies],
            "the third port copies"
        );
        let at_xdp = of_both(Overlay::Vtep { hook: Hook::Xdp, at: TunnelEnd::Server }, 2, None);
        assert!(at_xdp.is_superset(&[Capability::VxlanTc, Capability::XdpNative, Capability::VxlanXdp].into()));
    }
}
