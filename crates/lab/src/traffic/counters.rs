//! TCP counters of the servers' kernels (SNMP and the extended ones), summed over their namespaces.

use std::fs;
use std::path::Path;

use super::{TrafficError, TrafficHost, namespace};

/// Sums since the namespaces were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpCounters {
    /// `RetransSegs`: segments sent again.
    pub(super) retransmits: u64,
    /// `TCPTimeouts`: retransmission timers that ran out.
    pub(super) timeouts: u64,
    /// `TCPSpuriousRTOs`: those that F-RTO found needless.
    pub(super) spurious_rtos: u64,
}

impl TcpCounters {
    /// Reads all servers.
    pub(super) fn read(hosts: &[TrafficHost]) -> Result<Self, TrafficError> {
        let texts = namespace::visit(hosts.iter().map(|host| host.namespace.as_path()), |_| {
            Ok(fs::read_to_string("/proc/thread-self/net/snmp")?
                + &fs::read_to_string("/proc/thread-self/net/netstat")?)
        })?;
        Ok(texts.iter().map(|text| Self::parse(text)).fold(Self::default(), |sum, one| Self {
            retransmits: sum.retransmits + one.retransmits,
            timeouts: sum.timeouts + one.timeouts,
            spurious_rtos: sum.spurious_rtos + one.spurious_rtos,
        }))
    }

    /// What happened since `before`, as facts of the run.
    pub(super) fn facts_since(self, before: Self) -> [(String, f64); 3] {
        let fact = |name: &str, now: u64, before: u64| (name.to_owned(), now.saturating_sub(before) as f64);
        [
            fact("tcp.retransmits", self.retransmits, before.retransmits),
            fact("tcp.timeouts", self.timeouts, before.timeouts),
            fact("tcp.spurious_rtos", self.spurious_rtos, before.spurious_rtos),
        ]
    }

    fn parse(text: &str) -> Self {
        let value = |group: &str, name: &str| find(text, group, name).unwrap_or(0);
        Self {
            retransmits: value("Tcp:", "RetransSegs"),
            timeouts: value("TcpExt:", "TCPTimeouts"),
            spurious_rtos: value("TcpExt:", "TCPSpuriousRTOs"),
        }
    }
}

/// Lines come in pairs of names and values that begin with the same word.
fn find(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.split(' ').next() == Some(group));
    let place = lines.next()?.split(' ').position(|word| word == name)?;
    lines.next()?.split(' ').nth(place)?.parse().ok()
}

/// User time of all processes of the machine, in seconds, and idle and soft-interrupt time per core.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CoreTimes {
    /// Per core: number, user (with nice), idle (with waiting for IO), soft interrupts, everything; in clock ticks.
    pub(super) cores: Vec<CoreTicks>,
}

/// One core's share of [`CoreTimes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoreTicks {
    pub(super) core: u32,
    pub(super) user: u64,
    pub(super) idle: u64,
    pub(super) softirq: u64,
    pub(super) total: u64,
}

impl CoreTimes {
    pub(super) fn read() -> Result<Self, TrafficError> {
        let path = Path::new("/proc/stat");
        Ok(Self::parse(&fs::read_to_string(path).map_err(TrafficError::system("read /proc/stat"))?))
    }

    /// Ticks in user space on all cores.
    pub(super) fn user_ticks(&self) -> u64 {
        self.cores.iter().map(|core| core.user).sum()
    }

    fn parse(text: &str) -> Self {
        Self { cores: text.lines().filter_map(parse_core).collect() }
    }
}

/// `cpuN user nice system idle iowait irq softirq steal`; guest times are part of user.
fn parse_core(line: &str) -> Option<CoreTicks> {
    let (name, numbers) = line.split_once(' ')?;
    let core = name.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = numbers.split_ascii_whitespace().take(8).filter_map(|number| number.parse().ok()).collect();
    let &[user, nice, _, idle, iowait, _, softirq, _] = ticks.as_slice() else { return None };
    Some(CoreTicks { core, user: user + nice, idle: idle + iowait, softirq, total: ticks.iter().sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name_within_their_group() {
        let text =
            "Ip: RetransSegs\nIp: 9\nTcp: A RetransSegs B\nTcp: 1 -1 3\nTcp: x\nTcpExt: TCPTimeouts\nTcpExt: 5\n";
        assert_eq!(find(text, "Tcp:", "B"), Some(3));
        assert_eq!(find(text, "Tcp:", "RetransSegs"), None);
        assert_eq!(TcpCounters::parse(text), TcpCounters { retransmits: 0, timeouts: 5, spurious_rtos: 0 });
    }

    #[test]
    fn this_kernel_has_every_counter() {
        let text = fs::read_to_string("/proc/net/snmp").unwrap() + &fs::read_to_string("/proc/net/netstat").unwrap();
        for (group, name) in [("Tcp:", "RetransSegs"), ("TcpExt:", "TCPTimeouts"), ("TcpExt:", "TCPSpuriousRTOs")] {
            assert!(find(&text, group, name).is_some(), "{name}");
        }
    }

    #[test]
    fn cores_are_read_without_the_sum_line() {
        let times = CoreTimes::parse("cpu  1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 5\n");
        assert_eq!(times.cores, [CoreTicks { core: 1, user: 3, idle: 9, softirq: 7, total: 36 }]);
    }
}
