//! Load on a directory system: look-ups and updates at rates, what is lost on the way and what is killed (VL2 5.5), and
//! an AA that moves to another ToR while it receives.

use serde::{Deserialize, Serialize};

use super::{WorkloadError, check_duration, check_server};
use crate::units::{Nanos, Percent, named};

/// Most mappings that a directory is filled with before the load begins.
pub const MAPPINGS_MAX: u32 = 4_000_000;
/// The highest rate that a step may ask for; more cannot be sent from one machine.
const RATE_MAX: u32 = 50_000_000;
/// Questions in one datagram at most.
const QUESTIONS_MAX: u32 = weft_wire::directory::ENTRIES_MAX as u32;
/// Look-ups in one burst at most.
const BURST_MAX: u32 = 64;
/// The same where bursts are random and this is their mean.
const RANDOM_BURST_MAX: u32 = 32;
/// Sessions that carry the updates of all clients, at most.
const SESSIONS_MAX: u32 = 16;
/// The baseline of a bare socket sends no more datagrams per second.
pub const ECHO_RATE_MAX: u32 = 50_000;

/// Look-ups, updates or both, at one rate after another.
///
/// Clients ask the first `servers` of the fabric's directory servers; the others run and are not asked. Step i offers the
/// i-th rate of both lists; a list of one rate offers it in every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectorySpec {
    /// AAs that have a mapping before the load begins; look-ups and updates are about these, all equally often.
    pub mappings: u32,
    /// How many directory servers are asked.
    pub servers: u32,
    /// How long each step offers its load; what is still open then has `timeout` to be answered.
    pub duration: Nanos,
    /// A request without an answer after this time has failed (the paper: 2 s).
    #[serde(default = "two_seconds")]
    pub timeout: Nanos,
    /// Look-ups over UDP.
    #[serde(default)]
    pub lookups: Option<LookupLoad>,
    /// Updates over the servers' update port, each acknowledged by itself.
    #[serde(default)]
    pub updates: Option<UpdateLoad>,
    /// Share of the datagrams to and from the servers that is lost, each direction by itself.
    #[serde(default, deserialize_with = "named::number::<Percent, _, _>")]
    #[schemars(with = "named::Number<Percent>")]
    pub loss_percent: u32,
    #[serde(default)]
    pub kill: Option<DirectoryKill>,
}

/// Look-ups that arrive whether or not earlier ones were answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupLoad {
    /// Look-ups per second of each step. A look-up is one question, to however many servers it goes.
    pub per_s: Vec<u32>,
    /// How many servers, chosen at random, each look-up asks; the first valid answer wins. With fewer servers all of them.
    #[serde(default = "two")]
    pub ask: u32,
    /// Look-ups that one datagram carries.
    #[serde(default = "one")]
    pub questions_per_datagram: u32,
    /// Datagrams that leave together; at random arrivals the mean.
    #[serde(default = "one")]
    pub burst: u32,
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How long a client waits before it asks again, servers chosen anew; `None`: it does not ask again.
    #[serde(default)]
    pub retry_after: Option<Nanos>,
    /// For so long before and after each step as many datagrams, at most [`ECHO_RATE_MAX`] per second, go to a bare socket that sends
    /// them back: what the machine makes of those at this time is no doing of the directory.
    #[serde(default)]
    pub echo: Option<Nanos>,
}

/// Updates that arrive whether or not earlier ones were acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateLoad {
    /// Updates per second of each step, each one mapping.
    pub per_s: Vec<u32>,
    /// Clients, spread over the servers; each waits for its update before it sends the next.
    pub clients: u32,
    /// Updates of one session that are due together, at random arrivals the mean. At most 16 sessions share the clients, and a client has
    /// one update open.
    #[serde(default = "one")]
    pub burst: u32,
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Also measure from the moment an update is issued until a look-up answers with it, at every server that is asked,
    /// and until a subscriber has it. For low rates, and without a kill.
    #[serde(default)]
    pub until_visible: bool,
}

/// How bursts of requests follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Evenly spaced and all of one size.
    #[default]
    Even,
    /// At random times (a Poisson process) and of random sizes from 1 to twice the mean less 1: the paper's "bursty random process".
    Random,
}

/// What is killed in every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryKill {
    pub what: DirectoryVictim,
    /// When, from the start of the step.
    pub at: Nanos,
    /// When it is started again, from the start of the step; `None`: when the step is over.
    #[serde(default)]
    pub back_at: Option<Nanos>,
}

/// What can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectoryVictim {
    /// The last of the servers that are asked.
    Server,
    /// The store's leader.
    StoreLeader,
    /// The last of the store's nodes that does not lead.
    StoreFollower,
    /// All nodes of the store.
    Store,
}

impl Arrivals {
    fn burst_max(self) -> u32 {
        match self {
            Self::Even => BURST_MAX,
            Self::Random => RANDOM_BURST_MAX,
        }
    }
}

impl UpdateLoad {
    /// Sessions that carry the updates of all clients.
    pub fn sessions(&self) -> u32 {
        self.clients.min(SESSIONS_MAX)
    }

    /// Clients of one session, and so updates in one burst at most.
    pub fn clients_per_session(&self) -> u32 {
        self.clients.div_ceil(self.sessions().max(1))
    }
}

impl DirectoryVictim {
    /// As a plan writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::StoreLeader => "store-leader",
            Self::StoreFollower => "store-follower",
            Self::Store => "store",
        }
    }
}

/// An AA moves to another rack while another server sends to it over TCP (VL2 4.3.2, "Updating caches reactively").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationSpec {
    /// Number of the sending server.
    pub from: u32,
    /// Number of the server that moves.
    pub moves: u32,
    /// It moves to the rack of the server with this number.
    pub to_rack_of: u32,
    /// When it moves, from the start of the run.
    pub at: Nanos,
    /// How long the sender sends; as much as it can.
    pub duration: Nanos,
}

/// One step of a [`DirectorySpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryStep {
    /// Look-ups per second, 0 for none.
    pub lookups_per_s: u32,
    /// Updates per second, 0 for none.
    pub updates_per_s: u32,
}

fn two_seconds() -> Nanos {
    Nanos(2_000_000_000)
}

fn two() -> u32 {
    2
}

fn one() -> u32 {
    1
}

impl DirectorySpec {
    /// The steps of a spec that was checked, in order.
    pub fn steps(&self) -> Vec<DirectoryStep> {
        let (lookups, updates) = (self.lookup_rates(), self.update_rates());
        let at = |rates: &[u32], step: usize| rates.get(step).or(rates.last()).copied().unwrap_or(0);
        let step = |step| DirectoryStep { lookups_per_s: at(lookups, step), updates_per_s: at(updates, step) };
        (0..lookups.len().max(updates.len())).map(step).collect()
    }

    /// Whether the load makes sense; says what does not.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        check_duration(self.duration)?;
        let range = |setting, value: u32, least, most| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(WorkloadError::DirectoryRange { setting, value, least, most }),
        };
        range("mappings", self.mappings, 1, MAPPINGS_MAX)?;
        range("servers", self.servers, 1, u32::from(u8::MAX))?;
        range("loss_percent", self.loss_percent, 0, 99)?;
        if self.timeout.0 == 0 {
            return Err(WorkloadError::ZeroTime { setting: "timeout" });
        }
        if let Some(lookups) = &self.lookups {
            range("lookups.ask", lookups.ask, 1, 8)?;
            range("lookups.questions_per_datagram", lookups.questions_per_datagram, 1, QUESTIONS_MAX)?;
            range("lookups.burst", lookups.burst, 1, lookups.arrivals.burst_max())?;
            lookups.per_s.iter().try_for_each(|rate| range("lookups.per_s", *rate, 1, RATE_MAX))?;
            if lookups.retry_after == Some(Nanos(0)) {
                return Err(WorkloadError::ZeroTime { setting: "lookups.retry_after" });
            }
            if lookups.echo == Some(Nanos(0)) {
                return Err(WorkloadError::ZeroTime { setting: "lookups.echo" });
            }
        }
        if let Some(updates) = &self.updates {
            range("updates.clients", updates.clients, 1, 4096.min(self.mappings))?;
            range("updates.burst", updates.burst, 1, updates.clients_per_session())?;
            if updates.until_visible && self.kill.is_some() {
                return Err(WorkloadError::WatchedKill);
            }
            updates.per_s.iter().try_for_each(|rate| range("updates.per_s", *rate, 1, RATE_MAX))?;
        }
        self.check_steps()?;
        match self.kill {
            Some(kill) if kill.at >= self.duration => Err(WorkloadError::KillAfterEnd { at: kill.at }),
            Some(DirectoryKill { at, back_at: Some(back_at), .. }) if back_at <= at => {
                Err(WorkloadError::BackBeforeKill { at, back_at })
            }
            Some(DirectoryKill { back_at: Some(back_at), .. }) if back_at >= self.duration => {
                Err(WorkloadError::KillAfterEnd { at: back_at })
            }
            _ => Ok(()),
        }
    }

    fn check_steps(&self) -> Result<(), WorkloadError> {
        let (lookups, updates) = (self.lookup_rates().len(), self.update_rates().len());
        let stated = |given: bool, rates: usize| !given || rates > 0;
        if lookups + updates == 0
            || !stated(self.lookups.is_some(), lookups)
            || !stated(self.updates.is_some(), updates)
        {
            return Err(WorkloadError::NoDirectoryLoad);
        }
        match lookups > 1 && updates > 1 && lookups != updates {
            true => Err(WorkloadError::DirectorySteps { lookups, updates }),
            false => Ok(()),
        }
    }

    fn lookup_rates(&self) -> &[u32] {
        self.lookups.as_ref().map_or(&[], |lookups| &lookups.per_s)
    }

    fn update_rates(&self) -> &[u32] {
        self.updates.as_ref().map_or(&[], |updates| &updates.per_s)
    }
}

impl MigrationSpec {
    /// Whether the move makes sense for so many servers; says what does not.
    pub(super) fn check(&self, servers: u32) -> Result<(), WorkloadError> {
        check_duration(self.duration)?;
        [self.from, self.moves, self.to_rack_of].into_iter().try_for_each(|server| check_server(server, servers))?;
        if self.from == self.moves {
            return Err(WorkloadError::ToItself { server: self.from });
        }
        if self.moves == self.to_rack_of {
            return Err(WorkloadError::MovesNowhere { server: self.moves });
        }
        if self.at >= self.duration { Err(WorkloadError::KillAfterEnd { at: self.at }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    fn spec(changes: &str) -> Result<DirectorySpec, String> {
        let base = "kind = \"directory\"\nmappings = 100\nservers = 2\nduration = \"1 s\"\n";
        match toml::from_str(&format!("{base}{changes}")).map_err(|error| error.message().to_owned())? {
            Workload::Directory(spec) => Ok(spec),
            other => Err(format!("{other:?}")),
        }
    }

    fn refusal(changes: &str) -> String {
        spec(changes).and_then(|spec| spec.check().map_err(|error| error.to_string())).unwrap_err()
    }

    #[test]
    fn one_rate_holds_for_every_step_of_the_other_list() {
        let spec = spec("lookups = { per_s = [10, 20, 30] }\nupdates = { per_s = [4], clients = 1 }").unwrap();
        spec.check().unwrap();
        let steps: Vec<_> = spec.steps().iter().map(|step| (step.lookups_per_s, step.updates_per_s)).collect();
        assert_eq!(steps, [(10, 4), (20, 4), (30, 4)]);
        assert_eq!((spec.timeout, spec.lookups.unwrap().ask), (Nanos(2_000_000_000), 2));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let good = "lookups = { per_s = [10] }\n";
        for (text, message) in [
            ("", "neither `lookups` nor `updates`"),
            ("lookups = { per_s = [] }", "neither `lookups` nor `updates`"),
            ("lookups = { per_s = [0] }", "`lookups.per_s` is 0"),
            ("lookups = { per_s = [1], ask = 0 }", "`lookups.ask` is 0; it is 1 to 8"),
            ("lookups = { per_s = [1], questions_per_datagram = 41 }", "`lookups.questions_per_datagram` is 41"),
            ("lookups = { per_s = [1], burst = 65 }", "`lookups.burst` is 65"),
            ("lookups = { per_s = [1], burst = 33, arrivals = \"random\" }", "`lookups.burst` is 33; it is 1 to 32"),
            ("lookups = { per_s = [1], arrivals = \"odd\" }", "unknown variant `odd`"),
            ("lookups = { per_s = [1], retry_after = \"0 s\" }", "`lookups.retry_after` is 0"),
            ("lookups = { per_s = [1], echo = \"0 s\" }", "`lookups.echo` is 0"),
            ("updates = { per_s = [1], clients = 40, burst = 4 }", "`updates.burst` is 4; it is 1 to 3"),
            ("updates = { per_s = [1], clients = 0 }", "`updates.clients` is 0"),
            ("updates = { per_s = [1] }", "missing field `clients`"),
            (
                "lookups = { per_s = [1, 2] }\nupdates = { per_s = [1, 2, 3], clients = 1 }",
                "2 rates of look-ups and 3 of updates",
            ),
            (&format!("{good}loss_percent = 100"), "`loss_percent` is 100; it is 0 to 99"),
            (&format!("{good}kill = {{ what = \"server\", at = \"1 s\" }}"), "at 1 s, when the load is over"),
            (
                &format!("{good}kill = {{ what = \"store\", at = \"200 ms\", back_at = \"200 ms\" }}"),
                "back at 200 ms, not after it was killed at 200 ms",
            ),
            (
                &format!("{good}kill = {{ what = \"store-follower\", at = \"200 ms\", back_at = \"1 s\" }}"),
                "at 1 s, when the load is over",
            ),
            (&format!("{good}kill = {{ what = \"disk\", at = \"1 s\" }}"), "unknown variant `disk`"),
            (&format!("{good}colour = 1"), "unknown field `colour`"),
            ("updates = { per_s = [1], clients = 101 }", "`updates.clients` is 101; it is 1 to 100"),
            (
                "updates = { per_s = [1], clients = 1, until_visible = true }\nkill = { what = \"server\", at = \"0 s\" }",
                "`until_visible` cannot be measured while something is killed",
            ),
        ] {
            let error = refusal(text);
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn a_server_moves_to_another_rack_while_another_one_sends() {
        let spec =
            |from, moves, to_rack_of, at| MigrationSpec { from, moves, to_rack_of, at: Nanos(at), duration: Nanos(10) };
        assert_eq!(spec(0, 1, 2, 5).check(3), Ok(()));
        for (spec, message) in [
            (spec(0, 0, 2, 5), "cannot send to itself"),
            (spec(0, 1, 1, 5), "moves to its own rack"),
            (spec(0, 1, 3, 5), "no server number 3"),
            (spec(0, 1, 2, 10), "when the load is over"),
        ] {
            let error = spec.check(3).unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
}
