//! A VXLAN tunnel end point (VTEP) without IO: what it is wanted to be, whether that can work, what to do to get there, and
//! where stations are when the directory knows (RFC 7348; the format is [`weft_wire::vxlan`]).
//!
//! * [`Settings`], with [`Settings::check`] against a [`Host`] and [`Settings::changed`] by one [`Change`]
//! * [`difference`]: the [`Operation`]s from one settings to others, so that a reload touches nothing else
//! * [`ageing`]: which learned entries go when
//! * [`Resolver`]: directory-driven segments, with [`mod@mac`] and [`mod@arp`]

pub mod ageing;
pub mod arp;
mod change;
mod check;
mod difference;
pub mod mac;
mod resolver;
mod settings;
mod vlan;
mod vni;

pub use change::{Change, taken, vlan_taken};
pub use check::{COPIES_MAX, Fault, Host};
pub use difference::{Operation, difference, removed};
pub use resolver::{Input, Output, Resolver, ResolverConfig};
pub use settings::{Entry, FLOODED_PER_S, Flood, Port, Segment, Settings, Tagged, To};
pub use vlan::{VlanRange, VlanVnis, VlanVnisError};
pub use vni::{Vni, VniError, VniRange};
