//! What happens only after a run is over: faults, readings of counters, ends of workloads.

use super::{Case, Finding, Runner, broken, finding};
use crate::fault::Fault;
use crate::units::Nanos;
use crate::workload::Workload;

impl Case<'_> {
    pub(super) fn of_times(&self) -> Vec<Finding> {
        if self.runner == Runner::Calc {
            let idle = || Some("nothing is sent".to_owned());
            let faults = self.faults.iter().enumerate().map(|fault| of_fault(fault, None, idle()));
            let rows = self.tcp_interval.map(|_| finding(&["sampling", "tcp_interval"], idle()));
            return faults.chain(rows).collect();
        }
        let mut findings = Vec::new();
        for (number, fault) in self.faults.iter().enumerate() {
            let late =
                (fault.at >= self.end()).then(|| format!("the run is over at {}; choose an earlier `at`", self.end()));
            let is_late = late.is_some();
            findings.push(of_fault((number, fault), None, late));
            if fault.lasts.is_some() && !is_late {
                let lasts = (fault.ends() >= self.end())
                    .then(|| format!("the run is over at {}, before the repair; leave it out", self.end()));
                findings.push(of_fault((number, fault), Some("lasts"), lasts));
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
        let interval = self.interval.map(|time| finding(&["sampling", "interval"], late(time)));
        let tcp_interval = self.tcp_interval.map(|time| {
            let none =
                self.sends_no_segments().then(|| format!("nothing of workload `{}` goes by TCP", self.workload.0));
            finding(&["sampling", "tcp_interval"], none.or_else(|| late(time)))
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
            return Some(broken(&["workload", name, "flows"], why));
        }
        let duration = workload.duration()?;
        let cut = (duration > limit).then(|| {
            format!("it is {duration}, and `time_limit` cuts the run after {limit}; make one of them the other")
        });
        Some(finding(&["workload", name, "duration"], cut))
    }
}

/// A finding about a fault, or about a key of it. A fault is named by what it is: its number differs where a plan has more of them.
fn of_fault((number, fault): (usize, &Fault), key: Option<&str>, why_not: Option<String>) -> Finding {
    let number = number.to_string();
    let path: Vec<&str> = ["fault", &number].into_iter().chain(key).collect();
    let key = key.map_or_else(String::new, |key| format!(".{key}"));
    Finding { setting: format!("fault at {} of {}{key}", fault.at, fault.subject()), ..finding(&path, why_not) }
}
