//! One run: workers started together, sampled from outside, stopped, and everything they did turned into records.

use std::fs;
use std::sync::atomic::Ordering::{Relaxed, Release};

use rustix::process::{getpriority_process, setpriority_process};
use rustix::time::ClockId;
use weft_scenario::engine::{Progress, Trial};
use weft_scenario::record::{EventRow, ProgressRow, Records, Reel};
use weft_scenario::units::Nanos;

use super::children::Workers;
use super::cost::CostMeter;
use super::counters::{CoreTimes, TcpCounters};
use super::faults::FaultSchedule;
use super::others::Others;
use super::plan::Plan;
use super::probe::Prober;
use super::sampler::Sampler;
use super::table::{Table, now_ns};
use super::waits::Waits;
use super::{FaultActuator, TrafficError, TrafficSetup};
use crate::sys;
use crate::watch::usage::Usage;

/// From "all listen" to the first connection, so that every worker sees the start before it comes.
const LEAD_NS: u64 = 50_000_000;
/// The user's wish to stop and the end of all flows are looked at this often.
const ATTENTION_NS: u64 = 50_000_000;
/// The same while the window of a cost measurement is about to open.
const COST_ATTENTION_NS: u64 = 5_000_000;
/// Workers get this long to write their TCP state before it is read.
const TCP_LAG_NS: u64 = 100_000_000;
/// What a replay shows is read ten times a second for a minute, then less often.
const REPLAY_INTERVAL: Nanos = Nanos(100_000_000);
const REPLAY_TIMES_MOST: usize = 600;
/// The CPU of daemons at least this far apart.
const USAGE_NS: u64 = 1_000_000_000;
/// Who else uses the machine is looked at this often: of a process that ends, less than this is missed.
const COMPANY_NS: u64 = 2_000_000_000;
/// Clock ticks in /proc are hundredths of a second on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Runs the traffic of `trial` between the servers of `setup` and records it.
///
/// Must be called on a thread that stays alive until it returns: workers die with the thread that started them. After
/// an error, as after success, no worker is left and every fault is repaired.
pub fn run(
    setup: &TrafficSetup,
    trial: &Trial,
    faults: &mut dyn FaultActuator,
    progress: &dyn Progress,
) -> Result<Records, TrafficError> {
    let plan = Plan::new(trial, setup.hosts.len())?;
    let table = plan.table(setup, trial)?;
    // One pipe per worker and two descriptors per watched namespace may exceed the usual 1024.
    sys::raise_file_limit(512 + (3 * setup.hosts.len() + 2 * setup.watched.len() + setup.daemons.len()) as u64);
    let mut accounts = Accounts::open(setup)?;
    let mut workers = Workers::start(&table, &setup.worker_command)?;
    workers.wait_ready(&table, &|| progress.interrupted())?;
    let daemons = || setup.daemons.iter().map(|daemon| daemon.id.pid);
    let waits = Waits::open(&workers.pids(), daemons());
    if !waits.are_known() {
        progress.note("this kernel does not say how long programs wait for a core (no /proc/PID/schedstat): whether the CPU was the bottleneck is told by the idle time of cores");
    }
    let mut sampler = Sampler::new(&table, &setup.watched, waits)?;

    let _nice = Nice::raise();
    let mut cost = match table.config().cost_core {
        Some(core) => Some(CostMeter::new(core, &workers.pids()).map_err(TrafficError::system("measure CPU cost"))?),
        None => None,
    };
    // Before the start is told: on a busy machine it would be late for the first bytes.
    sampler.sample(0)?;
    let start_ns = now_ns() + LEAD_NS;
    table.header().start_ns.store(start_ns, Release);
    let probes = trial.probes.as_ref().map(|spec| Prober::start(setup, spec, trial.seed, start_ns)).transpose()?;
    workers.watch(start_ns)?;

    let mut faults = FaultSchedule::new(faults, &trial.faults);
    let clock = || now_ns().saturating_sub(start_ns);
    let last = ProgressRow { time_ns: 0, received_bytes: 0, flows_done: 0 };
    let replay = trial.replay.then(|| Replay::begin(&mut sampler, setup, trial.sample_interval)).transpose()?;
    let others = Company { others: Others::begin(daemons(), 0), next_ns: COMPANY_NS };
    let mut watch = Watch { plan: &plan, trial, table: &table, progress, start_ns, last, replay, others };
    let mut events = watch.until_the_end(&mut sampler, &mut workers, &mut faults, cost.as_mut(), &clock)?;

    let cost = cost.map(|meter| meter.close(sampler.totals(0).received_bytes)).transpose();
    if plan.duration_ns().is_some_and(|duration_ns| clock() >= duration_ns) {
        workers.wait_ended(&table)?;
    }
    let end = sampler.sample(clock())?;
    watch.report(&sampler, end);
    let others = watch.others.others.finish(end.time_ns);
    let replay_cpu_ns = watch.replay.take().map(|replay| replay.finish(&mut sampler, end.time_ns)).transpose()?;
    let probed = probes.map(Prober::finish).unwrap_or_default();
    workers.stop(&table)?;
    events.extend(faults.finish(&clock)?);
    if trial.tcp_interval.is_some() {
        sampler.sample_tcp(start_ns);
    }
    let mut records = sampler.finish(start_ns);
    plan.label(&mut records.flows);
    records.events = events;
    records.others = others;
    if let Some(probes) = &trial.probes {
        records.facts.push(("probes.flows".into(), f64::from(probes.flows)));
    }
    (records.gaps, records.trips) = (probed.gaps, probed.trips);
    records.cost = cost.map_err(TrafficError::system("measure CPU cost"))?.flatten().into_iter().collect();
    records.facts.extend(accounts.close(setup, end.time_ns, replay_cpu_ns)?);
    Ok(records)
}

/// The loop of a run.
struct Watch<'a> {
    plan: &'a Plan,
    trial: &'a Trial,
    table: &'a Table,
    progress: &'a dyn Progress,
    start_ns: u64,
    /// What was last reported.
    last: ProgressRow,
    replay: Option<Replay>,
    others: Company,
}

/// Who else uses the machine, and when to look again.
struct Company {
    others: Others,
    next_ns: u64,
}

impl Watch<'_> {
    /// Samples, breaks and mends until all flows have ended or time is up.
    fn until_the_end(
        &mut self,
        sampler: &mut Sampler<'_>,
        workers: &mut Workers,
        faults: &mut FaultSchedule<'_>,
        mut cost: Option<&mut CostMeter>,
        clock: &dyn Fn() -> u64,
    ) -> Result<Vec<EventRow>, TrafficError> {
        let limit_ns = self.plan.duration_ns().unwrap_or(u64::MAX).min(self.trial.time_limit.0);
        let mut next_sample = Ticker::new(self.trial.sample_interval.0, 0);
        let mut next_tcp = self.trial.tcp_interval.map(|interval| Ticker::new(interval.0, TCP_LAG_NS));
        let mut events = Vec::new();
        loop {
            if self.progress.interrupted() {
                return Err(TrafficError::Interrupted);
            }
            events.extend(faults.advance(clock)?);
            let mut attention_ns = ATTENTION_NS;
            if let Some(meter) = cost.as_deref_mut().filter(|meter| !meter.is_open()) {
                self.open_cost(meter, sampler)?;
                attention_ns = COST_ATTENTION_NS;
            }
            let time_ns = clock();
            if next_tcp.as_mut().is_some_and(|ticker| ticker.due(time_ns)) {
                sampler.sample_tcp(self.start_ns);
            }
            if self.over(sampler.totals(time_ns), limit_ns) {
                return Ok(events);
            }
            if next_sample.due(time_ns) {
                let row = sampler.sample(time_ns)?;
                self.report(sampler, row);
            }
            if let Some(replay) = &mut self.replay {
                replay.sample_if_due(sampler, time_ns)?;
            }
            if time_ns >= self.others.next_ns {
                self.others.others.look();
                self.others.next_ns = time_ns + COMPANY_NS;
            }
            let replay_ns = self.replay.as_ref().map(|replay| replay.ticker.next_ns);
            let wake_ns = [Some(limit_ns), faults.next_ns(), next_tcp.as_ref().map(|ticker| ticker.next_ns), replay_ns];
            let wake_ns = wake_ns.into_iter().flatten().min().unwrap_or(u64::MAX).min(next_sample.next_ns);
            let sleep_ns = wake_ns.saturating_sub(clock()).min(attention_ns);
            workers.watch(now_ns() + sleep_ns)?;
        }
    }

    fn over(&self, now: ProgressRow, limit_ns: u64) -> bool {
        now.time_ns >= limit_ns || (self.plan.duration_ns().is_none() && Some(now.flows_done) >= self.plan.flows())
    }

    /// Opens the window of the cost measurement once every flow carries payload.
    fn open_cost(&self, meter: &mut CostMeter, sampler: &Sampler<'_>) -> Result<(), TrafficError> {
        let mut cells = self.table.flows()[..self.table.header().rows_used.load(Relaxed) as usize].iter();
        if cells.all(|cell| cell.received_bytes.load(Relaxed) > 0) {
            meter.open(sampler.totals(0).received_bytes).map_err(TrafficError::system("measure CPU cost"))?;
        }
        Ok(())
    }

    /// Tells the user how far it is and how fast it goes.
    fn report(&mut self, sampler: &Sampler<'_>, now: ProgressRow) {
        let before = std::mem::replace(&mut self.last, now);
        let seconds = now.time_ns.saturating_sub(before.time_ns).max(1) as f64 / 1e9;
        let bits_per_second = (now.received_bytes - before.received_bytes) as f64 * 8.0 / seconds;
        let flows =
            self.plan.flows().map_or_else(|| now.flows_done.to_string(), |all| format!("{}/{all}", now.flows_done));
        let idle_percent = 100.0 * sampler.idle_ratio;
        let text = format!("{}, {flows} flows, idle {idle_percent:.0} %", rate_text(bits_per_second));
        self.progress.advance(self.plan.done_ratio(now.received_bytes, now.time_ns), &text);
    }
}

fn rate_text(bits_per_second: f64) -> String {
    if bits_per_second >= 1e9 {
        format!("{:.2} Gb/s", bits_per_second / 1e9)
    } else {
        format!("{:.1} Mb/s", bits_per_second / 1e6)
    }
}

/// What a replay shows, so far.
struct Replay {
    reel: Reel,
    ticker: Ticker,
    usage: Usage,
    /// When the daemons' CPU is read next.
    usage_ns: u64,
    /// What all of it has cost, on this thread.
    cpu_ns: u64,
}

impl Replay {
    /// With how it is before the first byte.
    fn begin(sampler: &mut Sampler<'_>, setup: &TrafficSetup, sample_interval: Nanos) -> Result<Self, TrafficError> {
        let mut reel = Reel::new(REPLAY_INTERVAL.min(sample_interval), REPLAY_TIMES_MOST);
        let interval = sampler.sample_replay(&mut reel, 0)?;
        let usage = Usage::of(&setup.daemons);
        Ok(Self { reel, ticker: Ticker::new(interval.0, 0), usage, usage_ns: USAGE_NS, cpu_ns: 0 })
    }

    fn sample_if_due(&mut self, sampler: &mut Sampler<'_>, time_ns: u64) -> Result<(), TrafficError> {
        if self.ticker.due(time_ns) {
            let before = sys::now_ns(ClockId::ThreadCPUTime);
            let interval = sampler.sample_replay(&mut self.reel, time_ns)?;
            self.ticker.slow_down(interval.0);
            if time_ns >= self.usage_ns {
                self.usage_ns = time_ns + USAGE_NS;
                sampler.sample_daemons(time_ns, self.usage.read());
            }
            self.cpu_ns += sys::now_ns(ClockId::ThreadCPUTime) - before;
        }
        Ok(())
    }

    /// Leaves the rows with the sampler; how long this thread worked for them since the first byte.
    fn finish(self, sampler: &mut Sampler<'_>, end_ns: u64) -> Result<u64, TrafficError> {
        let before = sys::now_ns(ClockId::ThreadCPUTime);
        sampler.finish_replay(self.reel, end_ns)?;
        Ok(self.cpu_ns + sys::now_ns(ClockId::ThreadCPUTime) - before)
    }
}

/// Comes due at multiples of an interval, plus a lag; late ones are skipped.
struct Ticker {
    interval_ns: u64,
    next_ns: u64,
}

impl Ticker {
    fn new(interval_ns: u64, lag_ns: u64) -> Self {
        let interval_ns = interval_ns.max(1_000_000);
        Self { interval_ns, next_ns: interval_ns.saturating_add(lag_ns) }
    }

    /// Comes due at multiples of a longer interval from now on.
    fn slow_down(&mut self, interval_ns: u64) {
        if interval_ns > self.interval_ns {
            self.interval_ns = interval_ns;
            self.next_ns = self.next_ns.next_multiple_of(interval_ns);
        }
    }

    fn due(&mut self, time_ns: u64) -> bool {
        let due = time_ns >= self.next_ns;
        if due {
            let missed = (time_ns - self.next_ns) / self.interval_ns;
            self.next_ns += (missed + 1) * self.interval_ns;
        }
        due
    }
}

/// Counters that are only read before and after a run.
struct Accounts {
    tcp: TcpCounters,
    machine: CoreTimes,
    own_user_ticks: u64,
    own_cpu_ns: u64,
}

impl Accounts {
    fn open(setup: &TrafficSetup) -> Result<Self, TrafficError> {
        Ok(Self {
            tcp: TcpCounters::read(&setup.hosts)?,
            machine: CoreTimes::read()?,
            own_user_ticks: own_user_ticks()?,
            own_cpu_ns: sys::now_ns(ClockId::ThreadCPUTime),
        })
    }

    /// Facts about the whole run, which took `wall_ns`, and its replay so much of this thread.
    fn close(
        &mut self,
        setup: &TrafficSetup,
        wall_ns: u64,
        replay_cpu_ns: Option<u64>,
    ) -> Result<Vec<(String, f64)>, TrafficError> {
        let sampler_cpu_ns = sys::now_ns(ClockId::ThreadCPUTime) - self.own_cpu_ns;
        let machine = CoreTimes::read()?;
        let ours = own_user_ticks()?.saturating_sub(self.own_user_ticks);
        let all = machine.user_ticks().saturating_sub(self.machine.user_ticks());
        let wall_s = wall_ns.max(1) as f64 / 1e9;
        let capacity_ticks = wall_s * TICKS_PER_SECOND * machine.cores.len().max(1) as f64;
        let foreign = all.saturating_sub(ours) as f64 / capacity_ticks;
        let mut facts = TcpCounters::read(&setup.hosts)?.facts_since(self.tcp).to_vec();
        facts.push(("foreign_cpu_ratio".to_owned(), foreign.min(1.0)));
        let of_a_core = |cpu_ns: u64| cpu_ns as f64 / 1e9 / wall_s;
        facts.push(("sampler_cpu_ratio".to_owned(), of_a_core(sampler_cpu_ns)));
        facts.extend(replay_cpu_ns.map(|cpu_ns| ("replay_cpu_ratio".to_owned(), of_a_core(cpu_ns))));
        Ok(facts)
    }
}

/// User time of this process and of its children that have ended, in clock ticks.
fn own_user_ticks() -> Result<u64, TrafficError> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(TrafficError::system("read /proc/self/stat"))?;
    // After the name in parentheses: state is field 3, utime 14, cutime 16 (proc(5)).
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    Ok(ticks(14) + ticks(16))
}

/// The calling thread's priority while it samples, so that samples are on time on busy cores.
struct Nice(Option<i32>);

impl Nice {
    fn raise() -> Self {
        let before = getpriority_process(None).ok();
        Self(before.filter(|_| setpriority_process(None, -15).is_ok()))
    }
}

impl Drop for Nice {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            let _ = setpriority_process(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_skips_what_it_missed_and_keeps_its_phase() {
        let mut ticker = Ticker::new(10_000_000, 1);
        assert!(!ticker.due(10_000_000));
        assert!(ticker.due(10_000_001));
        assert!(ticker.due(45_000_000));
        assert_eq!(ticker.next_ns, 50_000_001);
    }

    #[test]
    fn a_ticker_that_slows_down_comes_due_at_multiples_of_its_new_interval() {
        let mut ticker = Ticker::new(10_000_000, 0);
        assert!(ticker.due(30_000_001));
        ticker.slow_down(20_000_000);
        assert_eq!(ticker.next_ns, 40_000_000);
        assert!(ticker.due(40_000_000));
        assert_eq!(ticker.next_ns, 60_000_000);
    }

    #[test]
    fn rates_are_written_as_people_write_them() {
        assert_eq!(rate_text(1.357e9), "1.36 Gb/s");
        assert_eq!(rate_text(24_500_000.0), "24.5 Mb/s");
    }
}
