//! How a directory server keeps the log in an etcd cluster that several servers share (decision 0012), without the
//! cluster: what is asked of it, and what an answer means. Whoever carries a [`Call`] may carry it more than once, and the
//! copies may arrive whenever they like; all that is done here withstands that.
//!
//! * [`Layout`], [`Origin`], [`Pointer`]: keys and values
//! * [`Call`], [`Answer`]: what of etcd is used; [`Exchange`]: something that takes several calls
//! * [`Begin`]: where the log begins
//! * [`Append`]: a record is in the log once, however often it was sent
//! * [`ReadLog`], [`Load`]: the records after some revision, and the table of the latest snapshot
//! * [`Claim`], [`Write`], [`Compact`]: pages, a pointer to them, and what may go then
//! * [`Tail`], [`Vigil`], [`Mute`]: a watch, and whether it, or anybody, is alive

mod append;
mod begin;
mod call;
mod compact;
mod layout;
mod read;
mod tail;
mod write;

pub use append::Append;
pub use begin::Begin;
pub use call::{Answer, Call, Exchange, Fault, Found, Get, Op, Pair, Txn, When};
pub use compact::Compact;
pub use layout::{Layout, Origin, Pointer};
pub use read::{Load, ReadLog};
pub use tail::{Mute, Raw, Sign, Tail, Vigil};
pub use write::{Claim, Claimed, Turn, Write};
