//! Engine 2: a fabric as network namespaces on this machine, with shaped links, OSPF by FRR, weft's own daemons and
//! eBPF programs, and real kernel TCP.
//!
//! A lab never forwards a packet itself: the kernel does, configured by text batches that can be repeated by hand.
//!
//! * [`up()`], [`down()`], [`down_all()`], [`list()`], [`ps()`], [`exec()`], [`shell()`],
//!   [`logs()`], [`capture()`]: labs that stay up
//! * [`LabEngine`]: labs for the length of a run
//! * [`directory`]: loads on a directory system, in a lab or on loopback
//! * [`doctor`], [`deps`]: what a machine needs
//! * [`bundle`]: everything about a machine and its daemons in one archive, for a bug report
//! * [`setup`]: how long it takes until a lab, a campus or a calculation stands
//! * [`isolation`]: what a tenant of two VTEPs does to another
//! * [`tester`]: the test centre, between any two ports
//! * [`trill`]: campuses of RBridges, and their spanning-tree twin; the TRILL papers' experiments
//! * [`validate`]: whether a lab does what its fabric promises
//! * [`plan`]: what would be done to each node, as text

mod adjacency;
mod apply;
mod batch;
pub mod bundle;
mod capture;
mod daemons;
pub mod deps;
mod dhcp;
pub mod directory;
pub mod doctor;
mod down;
mod elephants;
mod engine;
mod error;
mod faults;
mod folder;
pub mod frames;
mod frr;
mod group_streams;
pub mod home;
mod inside;
pub mod isolation;
mod limits;
mod logs;
mod migration;
mod multicast;
mod netlink;
mod netns;
mod node;
mod open;
mod options;
mod outside;
mod overlay;
mod owner;
mod ping;
pub mod plan;
mod process;
mod removal;
mod rights;
mod routes;
mod segments;
mod selftest;
pub mod setup;
mod shaping;
mod state;
mod sys;
mod sysctls;
pub mod tester;
pub mod traffic;
pub mod trill;
mod up;
pub mod validate;
mod verbs;
mod wait;
mod watch;

pub use apply::{Applied, apply};
pub use capture::{CaptureFilter, CaptureOptions, CapturePorts, CaptureSummary, capture, capture_to};
pub use down::{HeldLab, Removed, Survey, down, down_all, down_matching, survey, sweep_orphans};
pub use engine::LabEngine;
pub use error::LabError;
pub use faults::{Change, Impaired, Impairment, LabActuator, fail, impair, repair};
pub use frr::FrrConfig;
pub use logs::{Follower, LogFile, LogLine, logs};
pub use migration::{Move, move_server};
pub use multicast::broadcast_amiss;
pub use netns::in_namespace;
pub use node::{exec, shell};
pub use options::LabOptions;
pub use overlay::{admin_socket, control_socket, reporter_socket, status_socket, switch_status, vtep_socket};
pub use process::ProcessId;
pub use routes::{RouteTable, kernel_table};
pub use state::{LabState, MovedServer, NodeState, ProcessState, SCHEMA_VERSION};
pub use trill::rbridge_socket;
pub use up::{Lab, up};
pub use verbs::{LabRow, list, only_lab, ps};
pub use watch::{Disturbance, Onlooker, Sight};
