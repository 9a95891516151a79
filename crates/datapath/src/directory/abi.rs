//! What the program and user space share: the Rust of `bpf/directory_abi.h`.
#![allow(unsafe_code)]

use crate::abi::header;

header!("directory_abi");
