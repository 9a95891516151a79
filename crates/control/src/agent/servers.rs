//! Which directory servers a question goes to: some at random (VL2 4.3.2: "two in our prototype"), of those that answer.
//!
//! A server that was asked and stayed silent for three waits in a row is left out, longer each time: a dead server costs a
//! question now and then, which also finds out that it is back. Any answer ends that. A repeated question goes to servers
//! that were not asked, silent or not; with nobody else to ask, a first one goes to silent servers as well.

use rand::Rng;

use crate::{NS_PER_MS, NS_PER_S};

/// Waits without an answer after which a server is left out: at 10 % loss each way a living one is left out seldom, and
/// then not for long.
const MISSED_MAX: u32 = 3;
/// Longest time for which a server is left out.
const LEFT_OUT_MAX_NS: u64 = 10 * NS_PER_S;
/// Shortest wait that counts.
const WAIT_MIN_NS: u64 = NS_PER_MS;

/// What is known of the servers, by their place in the configured list.
#[derive(Clone, Debug)]
pub struct Servers {
    servers: Vec<Server>,
    wait_ns: u64,
    /// Places that may be taken next: empty between calls.
    pool: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Server {
    /// Since when an answer is awaited.
    asked_ns: Option<u64>,
    /// Waits in a row without one.
    missed: u32,
    left_out_until_ns: u64,
}

impl Servers {
    /// So many servers, of which an answer is expected within `wait_ns`.
    pub fn new(count: usize, wait_ns: u64) -> Self {
        Self { servers: vec![Server::default(); count], wait_ns: wait_ns.max(WAIT_MIN_NS), pool: Vec::new() }
    }

    /// Picks `count` servers for a question, fewer where only so many answer. `picked` becomes their places, ascending.
    pub fn pick(&mut self, now_ns: u64, count: usize, random: &mut impl Rng, picked: &mut Vec<usize>) {
        picked.clear();
        self.take(count, random, picked, |_, server| !server.is_left_out(now_ns));
        if picked.is_empty() {
            self.take(count, random, picked, |_, _| true);
        }
        self.note_asked(now_ns, picked);
    }

    /// The same for a question that is repeated: servers for which `was_asked` only when there are no others.
    pub fn pick_others(
        &mut self,
        now_ns: u64,
        count: usize,
        was_asked: impl Fn(usize) -> bool,
        random: &mut impl Rng,
        picked: &mut Vec<usize>,
    ) {
        picked.clear();
        for (asked, left_out) in [(false, false), (false, true), (true, false), (true, true)] {
            self.take(count, random, picked, |place, server| {
                was_asked(place) == asked && server.is_left_out(now_ns) == left_out
            });
        }
        self.note_asked(now_ns, picked);
    }

    /// A valid datagram of this server came.
    pub fn heard(&mut self, place: usize) {
        if let Some(server) = self.servers.get_mut(place) {
            *server = Server::default();
        }
    }

    /// Adds servers that fit until there are `count`.
    fn take(
        &mut self,
        count: usize,
        random: &mut impl Rng,
        picked: &mut Vec<usize>,
        fits: impl Fn(usize, &Server) -> bool,
    ) {
        if picked.len() >= count {
            return;
        }
        let fitting = self.servers.iter().enumerate().filter(|(place, server)| fits(*place, server));
        self.pool.extend(fitting.map(|(place, _)| place));
        while picked.len() < count && !self.pool.is_empty() {
            let index = random.next_u64() as usize % self.pool.len();
            picked.push(self.pool.swap_remove(index));
        }
        self.pool.clear();
    }

    fn note_asked(&mut self, now_ns: u64, picked: &mut [usize]) {
        picked.sort_unstable();
        for place in picked {
            self.servers[*place].note_asked(now_ns, self.wait_ns);
        }
    }
}

impl Server {
    fn is_left_out(&self, now_ns: u64) -> bool {
        now_ns < self.left_out_until_ns
    }

    /// Counts the wait that ended without an answer, if one did.
    fn note_asked(&mut self, now_ns: u64, wait_ns: u64) {
        match self.asked_ns {
            Some(asked_ns) if now_ns < asked_ns.saturating_add(wait_ns) => return,
            Some(_) => self.missed = self.missed.saturating_add(1),
            None => {}
        }
        self.asked_ns = Some(now_ns);
        if self.missed >= MISSED_MAX {
            let times = 1u64.checked_shl(self.missed).unwrap_or(u64::MAX);
            self.left_out_until_ns = now_ns.saturating_add(wait_ns.saturating_mul(times).min(LEFT_OUT_MAX_NS));
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64;

    use super::*;

    const WAIT_NS: u64 = 20 * NS_PER_MS;

    /// Asks once a millisecond; all servers but `dead` answer. Returns how often each was asked.
    fn ask(servers: &mut Servers, from_ms: u64, to_ms: u64, dead: impl Fn(usize) -> bool) -> [usize; 3] {
        let (mut random, mut picked, mut asked) = (Pcg64::new(1, 2), Vec::new(), [0; 3]);
        for ms in from_ms..to_ms {
            servers.pick(ms * NS_PER_MS, 2, &mut random, &mut picked);
            for place in &picked {
                asked[*place] += 1;
                if !dead(*place) {
                    servers.heard(*place);
                }
            }
        }
        asked
    }

    #[test]
    fn a_dead_server_is_asked_seldom_and_one_that_is_back_as_ever() {
        let mut servers = Servers::new(3, WAIT_NS);
        let before = ask(&mut servers, 0, 900, |_| false);
        assert!(before.iter().all(|count| (500..700).contains(count)), "{before:?}");
        let first = ask(&mut servers, 900, 1100, |place| place == 1);
        assert!((30..70).contains(&first[1]), "about three waits of 20 ms: {first:?}");
        let later = ask(&mut servers, 1100, 41_100, |place| place == 1);
        assert!((5..14).contains(&later[1]), "after 160, 320, .. 10 000 ms: {later:?}");
        assert!(later[0] > 39_000 && later[2] > 39_000, "{later:?}");
        let back = ask(&mut servers, 41_100, 81_100, |_| false);
        assert!(back[1] > 15_000, "{back:?}");
    }

    #[test]
    fn without_others_silent_servers_are_asked_and_a_repeat_takes_them_before_those_that_were_asked() {
        let mut servers = Servers::new(3, WAIT_NS);
        let asked = ask(&mut servers, 0, 5000, |_| true);
        let sum = asked.iter().sum::<usize>();
        assert!((9_990..=10_000).contains(&sum), "two of three, or the last that is not yet silent: {asked:?}");
        let (mut random, mut picked) = (Pcg64::new(1, 2), Vec::new());
        servers.heard(0);
        servers.pick(5000 * NS_PER_MS, 2, &mut random, &mut picked);
        assert_eq!(picked, [0], "one that answers is enough");
        servers.pick_others(5000 * NS_PER_MS, 2, |place| place == 0, &mut random, &mut picked);
        assert_eq!(picked, [1, 2]);
        servers.pick_others(5000 * NS_PER_MS, 2, |place| place == 2, &mut random, &mut picked);
        assert_eq!(picked, [0, 1]);
    }
}
