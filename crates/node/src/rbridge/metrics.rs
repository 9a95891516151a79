//! An RBridge's metrics. Ports are named by their interfaces, of which there are 63 at most.

use weft_control::isis::AdjacencyState;
use weft_datapath::trill::abi::TRILL_OUTCOMES_DROPPED;

use super::Daemon;
use super::show::state;
use crate::error::NodeError;
use crate::watch::Metrics;

const STATES: [AdjacencyState; 4] =
    [AdjacencyState::Down, AdjacencyState::Detect, AdjacencyState::TwoWay, AdjacencyState::Report];

impl Daemon {
    pub(super) fn list_metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        let maps = self.datapath.maps();
        let rows = maps.counters()?.into_iter().map(|port| ([("port", self.port_name(port.port))], port.counts));
        to.outcomes(["frames", "dropped_frames"], &TRILL_OUTCOMES_DROPPED, &rows.collect::<Vec<_>>());
        let counters = self.control.counters();
        to.tally("control_events", "What IS-IS did", "event", counters.events.iter());
        to.tally("dropped_pdus", "PDUs of IS-IS that were dropped", "reason", counters.dropped.iter());
        to.tally("faults", "What the daemon itself could not do, or left undone", "fault", self.io.iter());
        if let Some(groups) = &self.groups {
            let snooped = groups.snooper.counters();
            to.tally("snooped", "What stations and routers said about IP multicast groups", "message", snooped.iter());
            to.gauge(
                "groups",
                "IP multicast groups that stations of our ports listen to",
                groups.snooper.all().groups.len(),
            );
        }
        let links = self.ports.all.iter().filter(|port| port.is_link());
        to.gauge("links", "Ports to other RBridges", links.count());
        let adjacencies = to.gauges("adjacencies", "Neighbours by how far both ends know of each other (RFC 7177)");
        for wanted in STATES {
            let there = self.control.adjacencies().filter(|(_, adjacency)| adjacency.state == wanted);
            adjacencies.add([("state", state(wanted).to_owned())], there.count());
        }
        to.gauge("lsps", "Fragments of LSPs that are known", self.control.lsdb().iter().count());
        let forwarding = self.control.forwarding();
        to.gauge("routes", "RBridges that there is a way to", forwarding.routes.len());
        to.gauge("trees", "Distribution trees", forwarding.trees.len());
        to.gauge("stations", "Stations whose place is known", maps.stations()?.len());
        to.gauge("nickname", "Our nickname; 0 while there is none", u32::from(self.control.nickname().unwrap_or(0)));
        to.gauge("restarting", "1 while a restart is not over", self.resumes);
        Ok(())
    }

    /// Frames of interfaces that are no port any more are counted, too.
    fn port_name(&self, number: u8) -> String {
        self.ports.by_number(number).map_or_else(|| "none".to_owned(), |port| port.settings.interface.clone())
    }
}
