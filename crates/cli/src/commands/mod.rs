//! One file per verb: call the room that does the work, print what it returns.

pub(crate) mod analyse;
pub(crate) mod bench;
#[cfg(feature = "lab")]
pub(crate) mod bundle;
pub(crate) mod calc;
pub(crate) mod cluster;
#[cfg(feature = "lab")]
pub(crate) mod daemon;
#[cfg(feature = "lab")]
pub(crate) mod directory;
pub(crate) mod doctor;
pub(crate) mod fabric;
pub(crate) mod help;
#[cfg(feature = "lab")]
pub(crate) mod init;
#[cfg(feature = "lab")]
pub(crate) mod lab;
pub(crate) mod list;
#[cfg(feature = "lab")]
pub(crate) mod measure;
pub(crate) mod merge;
pub(crate) mod query;
#[cfg(feature = "lab")]
mod rbridge;
#[cfg(feature = "lab")]
mod replay;
pub(crate) mod report;
pub(crate) mod run;
mod saving;
pub(crate) mod sim;
pub(crate) mod trend;
#[cfg(feature = "lab")]
pub(crate) mod vtep;
