//! Compiles the eBPF programs of `bpf/` with clang; the crate embeds the objects. What the programs share with user space is said in
//! their headers alone, and written in Rust from there.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

#[path = "build/abi.rs"]
mod abi;

const OBJECTS: &[&str] = &[
    "vl2_host",
    "vl2_switch",
    "xdp",
    "vxlan_tc",
    "vxlan_xdp",
    "bench",
    "loss",
    "tester_generate",
    "tester_analyse",
    "tester_link",
    "bed",
    "l2",
    "trill",
    "bench_trill",
    "copies",
];

/// Headers that user space reads, too.
const SHARED: &[&str] = &["abi", "vxlan_abi", "trill_abi", "tester_abi"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    for object in OBJECTS {
        let compiled = SkeletonBuilder::new()
            .source(format!("bpf/{object}.bpf.c"))
            .obj(out.join(format!("{object}.bpf.o")))
            .clang(&clang)
            .clang_args(clang_args())
            .build();
        if let Err(error) = compiled {
            panic!(
                "bpf/{object}.bpf.c does not compile ({error:#}); `make deps` installs clang and the kernel's headers"
            );
        }
    }
    for header in SHARED {
        let text = std::fs::read_to_string(format!("bpf/{header}.h")).expect("the header is in the source");
        std::fs::write(out.join(format!("{header}.rs")), abi::rust_of(&text)).expect("cargo's folder can be written");
    }
}

/// `-fno-strict-aliasing`: MACs and header words are copied as integers. The include path is where Debian keeps
/// `asm/types.h`, which `-target bpf` does not search.
fn clang_args() -> Vec<String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let mut args: Vec<String> = ["-mcpu=v3", "-fno-strict-aliasing", "-Wall", "-Werror"].map(String::from).into();
    args.push(format!("-I/usr/include/{arch}-linux-gnu"));
    args
}
