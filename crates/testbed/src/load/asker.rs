//! The loop of a load of look-ups: send what is due, read all that came, repeat or give up what is late, sleep until the
//! next.

use std::time::{Duration, Instant};

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weft_control::agent::{Repeats, Servers};
use weft_node::NodeError;
use weft_node::datagrams::{BATCH, Inbox};
use weft_node::stop::Stop;

use super::arrivals::Schedule;
use super::flow::{Flow, STATUSES};
use super::report::{LookupReport, record};
use super::requests::{Asked, OUTSTANDING_MAX, Requests};
use super::{LookupLoad, Pace};
use crate::cpu;

/// Look-ups begun before answers are read again.
const BEGIN_MAX: usize = 1024;
/// Rounds over all sockets in which answers are read before look-ups are begun again. More than can come for what was begun
/// in the meantime, so that a load which is behind catches up.
const READ_ROUNDS_MAX: usize = 64;
/// Sleeps are not shorter: the kernel could not wake us in time.
const SLEEP_MIN_NS: u64 = 60_000;
/// Sleeps are not longer, so that a request to stop is seen.
const SLEEP_MAX_NS: u64 = 50_000_000;

pub(super) struct Asker<'a> {
    load: &'a LookupLoad,
    /// By server, then by flow.
    flows: Vec<Flow>,
    next_flow: usize,
    servers: Servers,
    repeats: Repeats,
    /// The servers of the question at hand.
    picked: Vec<usize>,
    requests: Requests,
    random: Pcg64,
    inbox: Inbox,
    report: LookupReport,
    statuses: [u64; STATUSES.len()],
    start: Instant,
    /// Of an open loop, from `start` on.
    schedule: Option<Schedule>,
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
        let schedule = match load.pace {
            Pace::Window(_) => None,
            Pace::Rate(rate) => Some(Schedule::new(load.arrivals, load.burst, rate, 0.0, load.seed)),
        };
        Ok(Self {
            load,
            flows,
            next_flow: 0,
            servers: Servers::new(load.servers.len(), first_wait_ns(load)),
            repeats: Repeats::default(),
            picked: Vec::new(),
            requests,
            random,
            inbox: Inbox::default(),
            report: LookupReport::new(),
            statuses: [0; STATUSES.len()],
            start: Instant::now(),
            schedule,
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
            let all_begun = self.send_due(now_ns, ended_ns);
            let (any, all_read) = self.receive()?;
            if let Some(ended_ns) = ended_ns.filter(|_| all_begun)
                && (self.requests.waiting() == 0 || now_ns > ended_ns + timeout_ns)
            {
                self.report.elapsed_ns = ended_ns.saturating_sub(warm_up_ns);
                return Ok(self.finish());
            }
            // What has been answered is not repeated: everything that came by `now_ns` is known.
            if all_read {
                self.sweep(now_ns);
            }
            if !any && all_begun {
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

    /// Begins look-ups while there is room for them (closed loop) or while some are due (open loop), those of the time up to
    /// the end also after it. Returns whether all that should be begun by now are.
    fn send_due(&mut self, now_ns: u64, ended_ns: Option<u64>) -> bool {
        let mut begun = 0;
        let all = loop {
            if begun >= BEGIN_MAX {
                break false;
            }
            let Some((burst, due_ns)) = self.next_burst(now_ns, ended_ns) else { break true };
            self.ask_burst(burst, due_ns, now_ns);
            begun += burst;
        };
        if begun > 0 {
            self.send();
        }
        all
    }

    /// The next burst to begin now: its size and when it was due.
    fn next_burst(&mut self, now_ns: u64, ended_ns: Option<u64>) -> Option<(usize, u64)> {
        let Some(schedule) = &mut self.schedule else {
            let burst = self.load.burst.min(self.requests.most());
            return (ended_ns.is_none() && self.requests.room() >= burst).then_some((burst, now_ns));
        };
        let due_ns = schedule.due_ns();
        let is_due = due_ns <= now_ns && ended_ns.is_none_or(|ended_ns| due_ns < ended_ns);
        is_due.then(|| (schedule.take_burst(), due_ns))
    }

    fn ask_burst(&mut self, burst: usize, due_ns: u64, now_ns: u64) {
        let warm_up_ns = ns(self.load.warm_up);
        let counts = due_ns >= warm_up_ns;
        if now_ns.saturating_sub(due_ns) > ns(self.load.timeout) {
            // Whoever asked has gone away by now.
            self.report.skipped += if counts { burst as u64 } else { 0 };
            return;
        }
        self.servers.pick(now_ns, self.load.fanout, &mut self.random, &mut self.picked);
        let (asked, flow) = (Asked::of(&self.picked), self.next_flow());
        for _ in 0..burst {
            let again_ns = now_ns.saturating_add(first_wait_ns(self.load));
            let Some(number) = self.requests.start(due_ns, again_ns, asked, counts) else {
                self.report.skipped += u64::from(counts);
                continue;
            };
            if counts {
                self.report.sent += 1;
                self.report.tick(due_ns - warm_up_ns).sent += 1;
            }
            self.ask_picked(flow, number, counts);
        }
    }

    fn next_flow(&mut self) -> usize {
        self.next_flow = (self.next_flow + 1) % self.load.flows;
        self.next_flow
    }

    /// Asks the servers that were picked.
    fn ask_picked(&mut self, flow: usize, number: u64, counts: bool) {
        for server in &self.picked {
            self.flows[server * self.load.flows + flow].ask(self.load, number, &mut self.random);
        }
        self.report.datagrams += if counts { self.picked.len() as u64 } else { 0 };
    }

    fn send(&mut self) {
        for flow in &mut self.flows {
            self.report.unsent += flow.send().failed as u64;
        }
    }

    /// Reads what is there. Returns whether there was anything, and whether all of it was read.
    fn receive(&mut self) -> Result<(bool, bool), NodeError> {
        let mut any = false;
        for _ in 0..READ_ROUNDS_MAX {
            let (some, all) = self.receive_round()?;
            any |= some;
            if all {
                return Ok((any, true));
            }
        }
        Ok((any, false))
    }

    /// Reads one batch from every socket. Returns the same of it.
    fn receive_round(&mut self) -> Result<(bool, bool), NodeError> {
        let Self { load, flows, inbox, servers, repeats, requests, report, statuses, start, .. } = self;
        let (warm_up_ns, timeout_ns) = (ns(load.warm_up), ns(load.timeout));
        let (mut any, mut all) = (false, true);
        for (place, flow) in flows.iter().enumerate() {
            let mut now_ns = None;
            let count = flow.receive(load, inbox, |answer| {
                let Some((number, found)) = answer else {
                    report.invalid += 1;
                    return;
                };
                servers.heard(place / load.flows);
                let Some(request) = requests.finish(number) else {
                    report.late += 1;
                    return;
                };
                let now_ns = *now_ns.get_or_insert_with(|| ns(start.elapsed()));
                repeats.answered(now_ns);
                if request.counts {
                    let latency_ns = now_ns.saturating_sub(request.due_ns);
                    let tick = report.tick(now_ns.saturating_sub(warm_up_ns));
                    if latency_ns > timeout_ns {
                        tick.failed += 1;
                        report.failed += 1;
                        report.late += 1;
                        return;
                    }
                    tick.answered += 1;
                    tick.worst_ns = tick.worst_ns.max(latency_ns);
                    report.answered += 1;
                    record(&mut report.latency_ns, latency_ns);
                    statuses.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
                }
            })?;
            any |= count > 0;
            all &= count < BATCH;
        }
        Ok((any, all))
    }

    /// Every now and then: gives up what waits too long, and asks other servers again as far as answers pay for it.
    fn sweep(&mut self, now_ns: u64) {
        if now_ns < self.next_sweep_ns {
            return;
        }
        let timeout_ns = ns(self.load.timeout);
        let step_ns = first_wait_ns(self.load);
        self.next_sweep_ns = now_ns + (step_ns / 16).clamp(100_000, 10_000_000);
        let Self { load, report, requests, repeats, .. } = self;
        let since_ns = now_ns.saturating_sub(ns(load.warm_up));
        let mut again = Vec::new();
        requests.sweep(now_ns, |number, request| {
            let end_ns = request.due_ns.saturating_add(timeout_ns);
            let alive = now_ns < end_ns;
            if !alive {
                report.failed += u64::from(request.counts);
                report.tick(since_ns).failed += u64::from(request.counts);
            } else if let Err(at_ns) = repeats.may(now_ns) {
                request.again_ns = at_ns.min(end_ns);
            } else {
                // Each wait is twice as long, as an agent's are: servers that are late are not asked more for it.
                request.retries += 1;
                request.again_ns = now_ns.saturating_add(step_ns << request.retries.min(16)).min(end_ns);
                report.retried += u64::from(request.counts);
                repeats.spend(load.fanout);
                again.push((number, request.asked, request.counts));
            }
            alive
        });
        for (number, asked, counts) in &again {
            let was_asked = |place: usize| asked.contains(place);
            self.servers.pick_others(now_ns, self.load.fanout, was_asked, &mut self.random, &mut self.picked);
            self.requests.set_asked(*number, Asked::of(&self.picked));
            let flow = self.next_flow();
            self.ask_picked(flow, *number, *counts);
        }
        if !again.is_empty() {
            self.send();
        }
    }

    /// Waits for an answer, but not past the next thing to do.
    fn sleep(&self, ended: bool) -> Result<(), NodeError> {
        let now_ns = self.now_ns();
        let due_ns = self.schedule.as_ref().filter(|_| !ended).map_or(u64::MAX, Schedule::due_ns);
        let wake_ns = self.next_sweep_ns.min(due_ns);
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
