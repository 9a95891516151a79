//! The loop of a load of look-ups: send what is due, read what came, give up what is late, sleep until the next.

use std::time::{Duration, Instant};

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::flow::{Flow, STATUSES};
use super::report::{LookupReport, record};
use super::requests::{OUTSTANDING_MAX, Requests};
use super::{LookupLoad, Pace, cpu};
use crate::error::NodeError;
use crate::stop::Stop;
use crate::sys::Inbox;

/// Datagrams put together before they are sent.
const SEND_MAX: usize = 1024;
/// Sleeps are not shorter: the kernel could not wake us in time.
const SLEEP_MIN_NS: u64 = 60_000;
/// Sleeps are not longer, so that a request to stop is seen.
const SLEEP_MAX_NS: u64 = 50_000_000;

pub(super) struct Asker<'a> {
    load: &'a LookupLoad,
    /// By server, then by flow.
    flows: Vec<Flow>,
    next_flow: usize,
    requests: Requests,
    random: Pcg64,
    inbox: Inbox,
    report: LookupReport,
    statuses: [u64; STATUSES.len()],
    start: Instant,
    /// When the next burst is due (open loop), nanoseconds since `start`.
    due_ns: f64,
    next_sweep_ns: u64,
}

impl<'a> Asker<'a> {
    pub(super) fn new(load: &'a LookupLoad) -> Result<Self, NodeError> {
        let mut flows = Vec::new();
        for server in &load.servers {
            for _ in 0..load.flows {
                flows.push(Flow::new(load, *server)?);
            }
        }
        let mut random = Pcg64::new(u128::from(load.seed), 0x6c6f_6164);
        let most = match load.pace {
            Pace::Window(window) => window,
            Pace::Rate(_) => OUTSTANDING_MAX,
        };
        let requests = Requests::new(most, random.next_u64());
        Ok(Self {
            load,
            flows,
            next_flow: 0,
            requests,
            random,
            inbox: Inbox::new(),
            report: LookupReport::new(),
            statuses: [0; STATUSES.len()],
            start: Instant::now(),
            due_ns: 0.0,
            next_sweep_ns: 0,
        })
    }

    pub(super) fn run(mut self, stop: &Stop) -> Result<LookupReport, NodeError> {
        self.start = Instant::now();
        let (warm_up_ns, timeout_ns) = (ns(self.load.warm_up), ns(self.load.timeout));
        let end_ns = warm_up_ns + ns(self.load.duration);
        let mut own_cpu_ns = None;
        let mut ended_ns = None;
        loop {
            let now_ns = self.now_ns();
            if now_ns >= warm_up_ns && own_cpu_ns.is_none() {
                own_cpu_ns = Some(cpu::this_thread_ns());
            }
            if ended_ns.is_none() && (now_ns >= end_ns || stop.requested()) {
                ended_ns = Some(now_ns.min(end_ns));
                self.report.own_cpu_ns = cpu::this_thread_ns() - own_cpu_ns.unwrap_or_default();
            }
            if let Some(ended_ns) = ended_ns {
                if self.requests.waiting() == 0 || now_ns > ended_ns + timeout_ns {
                    self.report.elapsed_ns = ended_ns.saturating_sub(warm_up_ns);
                    return Ok(self.finish());
                }
            } else {
                self.send_due(now_ns, now_ns >= warm_up_ns);
            }
            self.sweep(now_ns);
            if !self.receive()? {
                self.sleep(ended_ns.is_some())?;
            }
        }
    }

    fn finish(mut self) -> LookupReport {
        self.requests.sweep(u64::MAX, |_, request| {
            self.report.failed += u64::from(request.counts);
            false
        });
        self.report.statuses = STATUSES.into_iter().zip(self.statuses).filter(|(_, count)| *count > 0).collect();
        self.report
    }

    fn now_ns(&self) -> u64 {
        ns(self.start.elapsed())
    }

    /// Sends bursts while there is room for one (closed loop) or while one is due (open loop).
    fn send_due(&mut self, now_ns: u64, counts: bool) {
        let burst = match self.load.pace {
            Pace::Window(window) => self.load.burst.min(window),
            Pace::Rate(_) => self.load.burst,
        };
        let mut put = 0;
        while put < SEND_MAX {
            let due_ns = match self.load.pace {
                Pace::Window(_) if self.requests.room() < burst => break,
                Pace::Window(_) => now_ns,
                Pace::Rate(_) if self.due_ns > now_ns as f64 => break,
                Pace::Rate(rate) => {
                    let due_ns = self.due_ns as u64;
                    self.due_ns += burst as f64 * 1e9 / rate;
                    due_ns
                }
            };
            self.ask_burst(burst, due_ns, now_ns, counts);
            put += burst;
        }
        if put > 0 {
            self.send();
        }
    }

    fn ask_burst(&mut self, burst: usize, due_ns: u64, now_ns: u64, counts: bool) {
        let (first, flow) = self.choose();
        for _ in 0..burst {
            let again_ns = now_ns.saturating_add(first_wait_ns(self.load));
            let Some(number) = self.requests.start(due_ns, again_ns, first, counts) else {
                self.report.skipped += u64::from(counts);
                continue;
            };
            if counts {
                self.report.sent += 1;
                self.report.tick(due_ns.saturating_sub(ns(self.load.warm_up))).sent += 1;
            }
            self.ask(first, flow, number);
        }
    }

    /// A random server and the next flow.
    fn choose(&mut self) -> (usize, usize) {
        self.next_flow = (self.next_flow + 1) % self.load.flows;
        let server = match self.load.servers.len() {
            1 => 0,
            many => self.random.next_u32() as usize % many,
        };
        (server, self.next_flow)
    }

    /// Asks `fanout` servers, from `first` on.
    fn ask(&mut self, first: usize, flow: usize, number: u64) {
        for step in 0..self.load.fanout {
            let server = (first + step) % self.load.servers.len();
            self.flows[server * self.load.flows + flow].ask(self.load, number, &mut self.random);
        }
    }

    fn send(&mut self) {
        for flow in &mut self.flows {
            self.report.unsent += flow.send().failed as u64;
        }
    }

    /// Reads what is there. Returns whether there was anything.
    fn receive(&mut self) -> Result<bool, NodeError> {
        let Self { load, flows, inbox, requests, report, statuses, start, .. } = self;
        let warm_up_ns = ns(load.warm_up);
        let mut any = false;
        for flow in flows {
            let mut now_ns = None;
            any |= 0 < flow.receive(load, inbox, |answer| {
                let Some((number, found)) = answer else {
                    report.invalid += 1;
                    return;
                };
                let Some(request) = requests.finish(number) else {
                    report.late += 1;
                    return;
                };
                if request.counts {
                    let now_ns = *now_ns.get_or_insert_with(|| ns(start.elapsed()));
                    let latency_ns = now_ns.saturating_sub(request.due_ns);
                    report.answered += 1;
                    record(&mut report.latency_ns, latency_ns);
                    let tick = report.tick(now_ns.saturating_sub(warm_up_ns));
                    tick.answered += 1;
                    tick.worst_ns = tick.worst_ns.max(latency_ns);
                    statuses.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
                }
            })?;
        }
        Ok(any)
    }

    /// Every now and then: gives up what waits too long, and asks other servers again.
    fn sweep(&mut self, now_ns: u64) {
        if now_ns < self.next_sweep_ns {
            return;
        }
        let timeout_ns = ns(self.load.timeout);
        let step_ns = first_wait_ns(self.load);
        self.next_sweep_ns = now_ns + (step_ns / 16).clamp(100_000, 10_000_000);
        let mut again = Vec::new();
        let Self { load, report, requests, .. } = self;
        let since_ns = now_ns.saturating_sub(ns(load.warm_up));
        requests.sweep(now_ns, |number, request| {
            let end_ns = request.due_ns.saturating_add(timeout_ns);
            let alive = now_ns < end_ns;
            if alive {
                // Each wait is twice as long, as an agent's are: servers that are late are not asked more for it.
                request.retries += 1;
                request.server = (request.server + load.fanout) % load.servers.len();
                request.again_ns = now_ns.saturating_add(step_ns << request.retries.min(16)).min(end_ns);
                report.retried += u64::from(request.counts);
                again.push((request.server, number));
            } else if request.counts {
                report.failed += 1;
                report.tick(since_ns).failed += 1;
            }
            alive
        });
        for (server, number) in &again {
            let (_, flow) = self.choose();
            self.ask(*server, flow, *number);
        }
        if !again.is_empty() {
            self.send();
        }
    }

    /// Waits for an answer, but not past the next thing to do.
    fn sleep(&self, ended: bool) -> Result<(), NodeError> {
        let now_ns = self.now_ns();
        let wake_ns = match self.load.pace {
            Pace::Rate(_) if !ended => self.next_sweep_ns.min(self.due_ns as u64),
            _ => self.next_sweep_ns,
        };
        let sleep_ns = wake_ns.saturating_sub(now_ns).min(SLEEP_MAX_NS);
        if sleep_ns < SLEEP_MIN_NS {
            std::hint::spin_loop();
            return Ok(());
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(sleep_ns).unwrap_or(0) };
        let mut fds: Vec<PollFd<'_>> = self.flows.iter().map(|flow| PollFd::new(&flow.socket, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(NodeError::system("waiting for answers")(errno)),
        }
    }
}

/// From a question until it is asked again for the first time, or given up.
fn first_wait_ns(load: &LookupLoad) -> u64 {
    let timeout_ns = ns(load.timeout);
    load.retry.map_or(timeout_ns, ns).min(timeout_ns).max(1)
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
