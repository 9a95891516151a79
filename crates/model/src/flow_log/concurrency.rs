//! How many flows each server has open at a time (VL2 Figure 3): exact, change by change, not in windows. A flow counts at
//! both of its ends, from its start up to its end; a server counts from the start of the log on, also before its first
//! flow.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_scenario::record::ConcurrencyRow;

/// No server: this end is outside.
const NOBODY: u32 = u32::MAX;

/// The counts of all servers and for how long each count stood.
#[derive(Clone, Debug, Default)]
pub struct Concurrency {
    servers: Vec<Open>,
    /// Server-nanoseconds by number of flows.
    stood_ns: Vec<u128>,
    /// Ends of open flows with their servers.
    ends: BinaryHeap<Reverse<(u64, [u32; 2])>>,
}

/// What one server has open since when.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    flows: u32,
    since_ns: u64,
}

impl Concurrency {
    /// A flow; flows come in the order of their starts.
    pub fn add(&mut self, start_ns: u64, end_ns: u64, servers: [Option<u32>; 2]) {
        self.close_until(start_ns);
        let [a, b] = servers.map(|server| server.unwrap_or(NOBODY));
        let ends = if a == b { [a, NOBODY] } else { [a, b] };
        for server in ends.into_iter().filter(|server| *server != NOBODY) {
            let known = self.servers.len().max(server as usize + 1);
            self.servers.resize(known, Open::default());
            if end_ns > start_ns {
                self.change(server, start_ns, |flows| flows + 1);
            }
        }
        if end_ns > start_ns {
            self.ends.push(Reverse((end_ns, ends)));
        }
    }

    /// How many servers there are.
    pub fn servers(&self) -> u32 {
        self.servers.len() as u32
    }

    /// The distribution up to a time, and by how much open flows outlast it, in nanoseconds of all their servers.
    pub fn finish(mut self, until_ns: u64) -> (Vec<ConcurrencyRow>, u128) {
        self.close_until(until_ns);
        for server in 0..self.servers() {
            self.change(server, until_ns, |flows| flows);
        }
        let outlasts = |Reverse((end_ns, ends)): &Reverse<(u64, [u32; 2])>| {
            let servers = ends.iter().filter(|server| **server != NOBODY).count() as u128;
            u128::from(end_ns - until_ns) * servers
        };
        let overhang_ns = self.ends.iter().map(outlasts).sum();
        let row = |(flows, stood_ns): (usize, &u128)| ConcurrencyRow {
            flows: flows as u32,
            server_s: *stood_ns as f64 / 1e9,
        };
        let rows = self.stood_ns.iter().enumerate().filter(|(_, stood_ns)| **stood_ns > 0).map(row).collect();
        (rows, overhang_ns)
    }

    fn close_until(&mut self, now_ns: u64) {
        while let Some(Reverse((end_ns, ends))) = self.ends.peek().copied().filter(|next| next.0.0 <= now_ns) {
            self.ends.pop();
            for server in ends.into_iter().filter(|server| *server != NOBODY) {
                self.change(server, end_ns, |flows| flows - 1);
            }
        }
    }

    fn change(&mut self, server: u32, now_ns: u64, to: impl Fn(u32) -> u32) {
        let open = &mut self.servers[server as usize];
        let flows = open.flows as usize;
        if self.stood_ns.len() <= flows {
            self.stood_ns.resize(flows + 1, 0);
        }
        self.stood_ns[flows] += u128::from(now_ns - open.since_ns);
        *open = Open { flows: to(open.flows), since_ns: now_ns };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(flows: &[(u64, u64, [Option<u32>; 2])], until_ns: u64) -> (Vec<(u32, u64)>, u128) {
        let mut concurrency = Concurrency::default();
        flows.iter().for_each(|(start, end, servers)| concurrency.add(*start, *end, *servers));
        let (rows, overhang) = concurrency.finish(until_ns);
        (rows.into_iter().map(|row| (row.flows, (row.server_s * 1e9).round() as u64)).collect(), overhang)
    }

    #[test]
    fn counts_stand_as_long_as_drawn_by_hand() {
        // Server 0: 0 until 10, 1 until 20, 2 until 30, 1 until 50, 0 until 100. Server 1: 1 from 10 to 30, else 0.
        let flows = [(10, 30, [Some(0), Some(1)]), (20, 50, [None, Some(0)])];
        assert_eq!(rows(&flows, 100), (vec![(0, 10 + 50 + 10 + 70), (1, 10 + 20 + 20), (2, 10)], 0));
    }

    #[test]
    fn a_flow_that_ends_as_another_starts_is_not_open_with_it() {
        let flows = [(0, 10, [Some(0), None]), (10, 20, [Some(0), None])];
        assert_eq!(rows(&flows, 20).0, [(1, 20)]);
    }

    #[test]
    fn what_outlasts_the_time_is_cut_and_told() {
        assert_eq!(rows(&[(0, 100, [Some(0), Some(1)])], 40), (vec![(1, 80)], 120));
    }

    #[test]
    fn flows_to_oneself_count_once_and_flows_without_length_not_at_all() {
        let flows = [(0, 10, [Some(0), Some(0)]), (5, 5, [Some(0), Some(0)])];
        assert_eq!(rows(&flows, 10).0, [(1, 10)]);
        assert_eq!(rows(&[], 10), (vec![], 0));
    }
}
