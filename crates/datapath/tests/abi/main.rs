//! C and Rust say the same: sizes and offsets by the BTF of the compiled objects, names and numbers by the C headers.

mod layout;
mod tester;
mod trill;
mod vl2;
mod vxlan;
