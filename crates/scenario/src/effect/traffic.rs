//! Settings of workloads that others make idle.

use super::{Case, Finding, broken, finding};
use crate::overlay::Overlay;
use crate::workload::{BackgroundSpec, Servers, Workload};

impl Case<'_> {
    pub(super) fn of_traffic(&self) -> Vec<Finding> {
        let (name, workload) = self.workload;
        match workload {
            Workload::Traffic(spec) => spec.background.iter().flat_map(|spec| self.of_background(spec)).collect(),
            Workload::Services(spec) => {
                let limited = spec.service.iter().filter(|(_, service)| service.datagram_limit.is_some());
                let of_service = |service: &str| {
                    let path = ["workload", name, "service", service, "datagram_limit"];
                    match self.overlay {
                        Overlay::Vl2 => finding(&path, None),
                        _ => broken(&path, "it is the agents' of VL2; write `overlay = \"vl2\"`".to_owned()),
                    }
                };
                limited.map(|(service, _)| of_service(service)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_background(&self, spec: &BackgroundSpec) -> Vec<Finding> {
        let of_key = |key: &str, why| finding(&["workload", self.workload.0, "background", key], why);
        let servers = Servers::of(self.fabric);
        let mut findings = Vec::new();
        if let Some(most) = spec.max_flow_bytes {
            let largest = spec.largest_uncut();
            let why = (most >= largest).then(|| format!("no flow is longer than {largest}"));
            findings.push(of_key("max_flow_bytes", why));
        }
        if spec.between_racks_only {
            // Racks are numbered in the order of their first servers.
            let is_alone = |server| spec.servers_per_rack.map_or(servers.rack(server) == server, |size| size == 1);
            let why = (0..servers.count()).all(is_alone).then(|| "every server is a rack of its own".to_owned());
            findings.push(of_key("between_racks_only", why));
        }
        if let Some(size) = spec.servers_per_rack {
            let same = (0..servers.count()).all(|server| server / size.max(1) == servers.rack(server));
            findings.push(of_key("servers_per_rack", same.then(|| "the fabric's racks are the same".to_owned())));
        }
        findings
    }
}
