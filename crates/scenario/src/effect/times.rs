//! What happens only after a run is over: faults, readings of counters, ends of workloads.

use super::{Case, Finding, Runner, broken, finding};
use crate::units::Nanos;
use crate::workload::Workload;

impl Case<'_> {
    pub(super) fn of_times(&self) -> Vec<Finding> {
        if self.runner == Runner::Calc {
            let faults = self.faults.iter().map(|fault| finding(name_of(fault), Some("nothing is sent".to_owned())));
            let rows = self.tcp_interval.map(|_| finding("sampling.tcp_interval", Some("nothing is sent".to_owned())));
            return faults.chain(rows).collect();
        }
        let mut findings = Vec::new();
        for fault in self.faults {
            let late =
                (fault.at >= self.end()).then(|| format!("the run is over at {}; choose an earlier `at`", self.end()));
            let is_late = late.is_some();
            findings.push(finding(name_of(fault), late));
            if fault.lasts.is_some() && !is_late {
                let lasts = (fault.ends() >= self.end())
                    .then(|| format!("the run is over at {}, before the repair; leave it out", self.end()));
                findings.push(finding(format!("{}.lasts", name_of(fault)), lasts));
            }
        }
        findings.extend(self.of_readings());
        findings.extend(self.cut_workload());
        findings
    }

    /// When the run is over at the latest.
    fn end(&self) -> Nanos {
        let (_, workload) = self.workload;
        workload.ends_at().map_or(self.time_limit, |end| end.min(self.time_limit))
    }

    fn of_readings(&self) -> Vec<Finding> {
        let late =
            |time: Nanos| (time > self.end()).then(|| format!("the run is over at {}, before the first", self.end()));
        let interval = self.interval.map(|time| finding("sampling.interval", late(time)));
        let tcp_interval = self.tcp_interval.map(|time| {
            let none =
                self.sends_no_segments().then(|| format!("nothing of workload `{}` goes by TCP", self.workload.0));
            finding("sampling.tcp_interval", none.or_else(|| late(time)))
        });
        interval.into_iter().chain(tcp_interval).collect()
    }

    /// What a workload would do after the time limit.
    fn cut_workload(&self) -> Option<Finding> {
        let (name, workload) = self.workload;
        let limit = self.time_limit;
        if let Workload::Flows { flows } = workload {
            let late = flows.iter().position(|flow| flow.start_ns >= limit.0)?;
            let start = Nanos(flows[late].start_ns);
            let why =
                format!("flow {} of the list starts at {start}, and `time_limit` cuts the run after {limit}", late + 1);
            return Some(broken(format!("workload.{name}.flows"), why));
        }
        let duration = workload.duration()?;
        let cut = (duration > limit).then(|| {
            format!("it is {duration}, and `time_limit` cuts the run after {limit}; make one of them the other")
        });
        Some(finding(format!("workload.{name}.duration"), cut))
    }
}

fn name_of(fault: &crate::fault::Fault) -> String {
    format!("fault at {} of {}", fault.at, fault.subject())
}
