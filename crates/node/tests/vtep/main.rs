//! `weft node vtep` on real paths: beside the kernel's VXLAN device, in a virtual switch and in a ToR, over restarts and
//! changes, with a real directory, and against input that cannot work.

mod bad_input;
mod bed;
mod cards;
#[path = "../common/mod.rs"]
mod common;
mod directory;
mod interop;
mod isolation;
mod life;
#[path = "../net/mod.rs"]
mod net;
mod tor;
mod trunk;
