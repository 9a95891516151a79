//! All agents ask at one instant, as after a power cut (VL2 5.5: 100 K hosts with ten look-ups each).

use std::net::Ipv4Addr;
use std::time::Instant;

use hdrhistogram::Histogram;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use weft_control::agent::{DropReason, Event};
use weft_node::NodeError;
use weft_node::stop::Stop;

use super::Agents;
use super::host::Host;
use crate::cpu;
use crate::load::report::{histogram, record};

/// Agents that begin before answers are read again: about as long as one of them lets its questions wait for company.
const BEGIN_MAX: usize = 32;

/// How all agents got on.
#[derive(Clone, Debug)]
pub struct OutageReport {
    pub agents: u64,
    /// Agents that were told of every AA that they asked for.
    pub answered: u64,
    /// Packets that were dropped for want of a mapping.
    pub dropped: u64,
    /// Of these, those whose question nobody answered in time.
    pub given_up: u64,
    /// From the common instant until an agent had all its answers, nanoseconds.
    pub since_instant_ns: Histogram<u64>,
    /// The same from when that agent asked.
    pub since_asked_ns: Histogram<u64>,
    /// When the last agent asked first, after the common instant, nanoseconds: one thread speaks for all.
    pub last_asked_ns: u64,
    /// Datagrams with questions, repeated ones included; each question goes to two servers.
    pub datagrams: u64,
    /// Questions that were asked again.
    pub repeated: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// Answers that found the agents' one queue full.
    pub overflowed: u64,
    /// Until the last agent was done, nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of this thread, nanoseconds.
    pub own_cpu_ns: u64,
}

impl Agents {
    /// All ask, and go on by their own rules until each has an answer or has given up. What a hundred thousand servers do side by side
    /// before their questions leave is done before the instant; each agent's clock begins when its own question leaves.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn ask_at_once(&mut self, stop: &Stop) -> Result<OutageReport, NodeError> {
        self.begin()?;
        for (host, aas) in self.wanted() {
            self.hosts[host].prepare(&aas);
        }
        let mut outage = Outage { since_instant_ns: histogram(), since_asked_ns: histogram(), done: 0 };
        self.start = Instant::now();
        let (cpu_ns, overflowed) = (cpu::this_thread_ns(), self.socket.overflowed());
        let (mut next, mut all_read) = (0, true);
        while outage.done < self.hosts.len() && !stop.requested() {
            let begins = if all_read { BEGIN_MAX.min(self.hosts.len() - next) } else { 0 };
            for _ in 0..begins {
                let now_ns = self.now_ns();
                let host = &mut self.hosts[next];
                host.begin(now_ns, &self.socket);
                self.timers.set(next as u32, host);
                next += 1;
            }
            let wake_ns = if next < self.hosts.len() { 0 } else { u64::MAX };
            all_read = self.turn(wake_ns, |_, host, now_ns| outage.note(host, now_ns))?;
        }
        let (elapsed_ns, own_cpu_ns) = (self.now_ns(), cpu::this_thread_ns() - cpu_ns);
        let overflowed = self.socket.overflowed() - overflowed;
        Ok(OutageReport { overflowed, elapsed_ns, own_cpu_ns, ..self.report(outage) })
    }

    /// What each asks for: AAs of others, each once.
    fn wanted(&self) -> Vec<(usize, Vec<Ipv4Addr>)> {
        let mut random = Pcg64::new(u128::from(self.load.seed), u128::from(self.lives));
        let most = self.load.questions.min(self.load.aas as usize - 1);
        let of = |number: u32| {
            let own = self.load.own_aa(number);
            let mut aas = Vec::with_capacity(most);
            while aas.len() < most {
                let aa = self.load.aa(((u64::from(random.next_u32()) * u64::from(self.load.aas)) >> 32) as u32);
                if aa != own && !aas.contains(&aa) {
                    aas.push(aa);
                }
            }
            (number as usize, aas)
        };
        (0..self.load.agents).map(of).collect()
    }

    fn report(&self, outage: Outage) -> OutageReport {
        let sum = |of: &dyn Fn(&Host) -> u64| self.hosts.iter().map(of).sum();
        OutageReport {
            agents: self.hosts.len() as u64,
            answered: outage.since_asked_ns.len(),
            dropped: sum(&|host| host.dropped as u64),
            given_up: sum(&|host| host.counters().dropped.get(DropReason::NoAnswer)),
            last_asked_ns: self.hosts.iter().map(|host| host.asked_ns).max().unwrap_or(0),
            datagrams: sum(&|host| host.counters().events.get(Event::DatagramSent)),
            repeated: sum(&|host| host.counters().events.get(Event::Retry)),
            unsent: sum(&|host| host.unsent),
            since_instant_ns: outage.since_instant_ns,
            since_asked_ns: outage.since_asked_ns,
            overflowed: 0,
            elapsed_ns: 0,
            own_cpu_ns: 0,
        }
    }
}

struct Outage {
    since_instant_ns: Histogram<u64>,
    since_asked_ns: Histogram<u64>,
    done: usize,
}

impl Outage {
    /// An agent whose packets have all left or been dropped is done. It has told what it was told.
    fn note(&mut self, host: &mut Host, now_ns: u64) {
        let told = std::mem::take(&mut host.installed);
        if host.waiting > 0 || host.is_done {
            return;
        }
        host.is_done = true;
        self.done += 1;
        if host.dropped == 0 && !told.is_empty() {
            record(&mut self.since_instant_ns, now_ns);
            record(&mut self.since_asked_ns, now_ns.saturating_sub(host.asked_ns));
        }
    }
}
