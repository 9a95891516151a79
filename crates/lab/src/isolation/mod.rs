//! The numbers of `weft bench isolation`: what a tenant, or somebody who is no peer, does to another tenant of the same two VTEPs.
//!
//! Two hosts with `weft node vtep` as they are by default, two segments, a tenant of each at both hosts. The first one's frames are
//! timed. Beside them go frames of the second one that everybody expects, then as many of an attack, in turns: what the attack costs
//! the first tenant more than work of the same rate does is what isolation is about.
//!
//! * `bed`: hosts, VTEPs and tenants
//! * `traffic`: the timed frames, and those beside them

mod bed;
mod traffic;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use weft_scenario::engine::Progress;
use weft_scenario::judge::Check;
use weft_testbed::bench::median;

use crate::error::LabError;
use bed::Bed;
use traffic::{Load, Seen};

/// Version of [`IsolationReport`]'s fields.
pub const SCHEMA_VERSION: u32 = 1;

/// Frames per second of an attack, and of what it is compared with.
const LOAD_PER_S: f64 = 20_000.0;
/// Highest median time of the other tenant's frames beside an attack, over that beside frames of the same rate.
const P50_RATIO_MAX: f64 = 1.2;
/// An attack that came to less than this part of its rate shows nothing.
const RATE_RATIO_MIN: f64 = 0.9;
const TOO_SLOW: &str = "the machine did not send the attack at its rate";

/// What is measured.
#[derive(Clone, Debug)]
pub struct IsolationOptions {
    /// The `weft` program that VTEPs are started from.
    pub weft_binary: PathBuf,
    /// Shorter rounds.
    pub quick: bool,
    /// Interleaved rounds.
    pub rounds: u32,
}

/// All numbers, medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct IsolationReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Frames per second that were asked for, of attacks and of what they are compared with.
    pub load_per_s: f64,
    pub attacks: Vec<AttackNumbers>,
    /// Every ceiling with our number.
    pub checks: Vec<Check>,
}

/// The other tenant beside an attack.
#[derive(Clone, Debug, Serialize)]
pub struct AttackNumbers {
    pub attack: &'static str,
    /// Frames per second of it that were sent, and of those that it is compared with.
    pub sent_per_s: f64,
    pub compared_per_s: f64,
    /// The other tenant's frames beside each of the two, and those of them that did not arrive.
    pub frames: u64,
    pub lost_beside_allowed: u64,
    pub lost: u64,
    /// Median time of one of them, and the 99th percentile.
    pub p50_us_beside_allowed: f64,
    pub p50_us: f64,
    pub p99_us_beside_allowed: f64,
    pub p99_us: f64,
    /// The median beside the attack over the other, of neighbouring rounds, the median.
    pub p50_ratio: f64,
}

/// Runs everything.
///
/// # Errors
/// What keeps the bed from coming up, or [`LabError::Interrupted`].
pub fn run(options: &IsolationOptions, progress: &dyn Progress) -> Result<IsolationReport, LabError> {
    progress.phase("isolation", "two VTEPs, two tenants, one of whom misbehaves");
    let bed = Bed::start(&options.weft_binary, progress)?;
    let length = Duration::from_millis(if options.quick { 500 } else { 2000 });
    let mut pairs: Vec<Pairs> =
        Load::ATTACKS.iter().map(|attack| Pairs { attack: *attack, seen: Vec::new() }).collect();
    for round in 0..options.rounds {
        for (number, of) in (0u32..).zip(&mut pairs) {
            let done = round * Load::ATTACKS.len() as u32 + number;
            let all = options.rounds * Load::ATTACKS.len() as u32;
            progress.advance(f64::from(done) / f64::from(all), of.attack.name());
            let beside = |load| {
                if progress.interrupted() {
                    Err(LabError::Interrupted)
                } else {
                    traffic::beside(&bed, load, LOAD_PER_S, length)
                }
            };
            of.seen.push([beside(Load::Allowed)?, beside(of.attack)?]);
        }
    }
    let attacks: Vec<AttackNumbers> = pairs.iter().map(Pairs::numbers).collect();
    let checks = attacks.iter().flat_map(checks).collect();
    Ok(IsolationReport { schema_version: SCHEMA_VERSION, load_per_s: LOAD_PER_S, attacks, checks })
}

/// Rounds beside allowed frames, each with the one beside the attack.
struct Pairs {
    attack: Load,
    seen: Vec<[Seen; 2]>,
}

impl Pairs {
    fn numbers(&self) -> AttackNumbers {
        let of = |side: usize, value: &dyn Fn(&Seen) -> f64| {
            median(&self.seen.iter().map(|pair| value(&pair[side])).collect::<Vec<_>>())
        };
        let sum = |side: usize, value: &dyn Fn(&Seen) -> u64| self.seen.iter().map(|pair| value(&pair[side])).sum();
        let ratios: Vec<f64> =
            self.seen.iter().map(|[allowed, attack]| attack.at_us(0.5) / allowed.at_us(0.5)).collect();
        AttackNumbers {
            attack: self.attack.name(),
            compared_per_s: of(0, &|seen| seen.load_per_s),
            sent_per_s: of(1, &|seen| seen.load_per_s),
            frames: sum(1, &|seen| seen.sent),
            lost_beside_allowed: sum(0, &Seen::lost),
            lost: sum(1, &Seen::lost),
            p50_us_beside_allowed: of(0, &|seen| seen.at_us(0.5)),
            p50_us: of(1, &|seen| seen.at_us(0.5)),
            p99_us_beside_allowed: of(0, &|seen| seen.at_us(0.99)),
            p99_us: of(1, &|seen| seen.at_us(0.99)),
            p50_ratio: median(&ratios),
        }
    }
}

fn checks(of: &AttackNumbers) -> Vec<Check> {
    let slow = (of.sent_per_s < RATE_RATIO_MIN * LOAD_PER_S).then_some(TOO_SLOW);
    let rate =
        Check::at_least(format!("frames sent: {}", of.attack), of.sent_per_s, RATE_RATIO_MIN * LOAD_PER_S, "1/s");
    vec![
        rate.unless(slow),
        Check::at_most(
            format!("other tenant's frames lost beside {}, no more than beside allowed frames", of.attack),
            of.lost as f64,
            of.lost_beside_allowed as f64,
            "frames",
        ),
        Check::at_most(
            format!("other tenant's p50 beside {}, over that beside allowed frames", of.attack),
            of.p50_ratio,
            P50_RATIO_MAX,
            "ratio",
        ),
    ]
}
