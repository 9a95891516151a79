//! Experiments: a plan names a scenario, an engine, the repetitions and what a paper said; out come records, metrics
//! with intervals, verdicts and figures.
//!
//! * [`plan`]: plan files, embedded and on disk
//! * [`runner`]: plan to trials to a finished run folder
//! * [`cluster`]: parts of a run on other people's schedulers
//! * [`analysis`]: records to metrics ([`metric`]), with the statistics of [`stats`]
//! * [`verdict`]: metrics to verdicts; [`summary`] is what `-o json` prints, [`table`] what people read
//! * [`fabric`]: networks by the words of the command line, checked and drawn
//! * [`run_folder`]: manifest and tidy rows on disk; [`query`]: questions to them in SQL
//! * [`figure`], [`report`]: drawings and the offline page; [`comparison`]: runs beside each other; [`flow_report`] is that of `weft analyse`
//! * [`page`]: the fabric page, on which a trial is replayed
//! * [`measurement`]: what `weft measure` and `weft bench` leave; [`trend`]: runs and measurements over builds or kernels
//! * [`memory`]: whether the machine has what a run takes
//! * [`schemas`]: JSON schemas of files and output
//! * [`junit`]: claims as test systems read them
//! * [`sim_bench`]: how fast and how small the simulator is, beside floors, ns-3 and daytone
//!
//! Nothing here knows how packets move: engines come in through [`weft_scenario::engine`].

pub mod analysis;
pub mod cluster;
pub mod comparison;
pub mod fabric;
pub mod figure;
pub mod flow_report;
pub mod junit;
pub mod measurement;
pub mod memory;
pub mod metric;
pub mod page;
pub mod plan;
pub mod query;
pub mod report;
pub mod run_folder;
pub mod runner;
pub mod schemas;
pub mod sim_bench;
pub mod stats;
pub mod summary;
pub mod table;
pub mod trend;
pub mod verdict;
mod what_ran;
