//! Compiles the eBPF programs of the crate's `bpf/` with clang, and writes the Rust that embeds them. What programs share with user
//! space is said in their headers `*abi.h` alone, and written in Rust from there. `weft-testbed` is built by this file, too.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libbpf_cargo::SkeletonBuilder;

#[path = "build/abi.rs"]
mod abi;

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=../datapath/bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let sources = fs::read_dir("bpf").expect("the sources are there").flatten();
    let mut names: Vec<String> = sources.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let objects: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".bpf.c")).collect();
    for object in &objects {
        compile(object, &out);
        pack(&out.join(format!("{object}.bpf.o")), &out.join(format!("{object}.bpf.o.z")));
    }
    fs::write(out.join("objects.rs"), constants(&objects)).expect("cargo's folder can be written");
    for header in names.iter().filter_map(|name| name.strip_suffix(".h")).filter(|name| name.ends_with("abi")) {
        let text = fs::read_to_string(format!("bpf/{header}.h")).expect("the header is in the source");
        fs::write(out.join(format!("{header}.rs")), abi::rust_of(&text)).expect("cargo's folder can be written");
    }
}

fn compile(object: &str, out: &Path) {
    let compiled = SkeletonBuilder::new()
        .source(format!("bpf/{object}.bpf.c"))
        .obj(out.join(format!("{object}.bpf.o")))
        .clang(env::var("CLANG").unwrap_or_else(|_| "clang".to_owned()))
        .clang_args(clang_args())
        .build();
    if let Err(error) = compiled {
        panic!("bpf/{object}.bpf.c does not compile ({error:#}); `make deps` installs clang and the kernel's headers");
    }
}

/// Objects are embedded packed.
fn pack(object: &Path, packed: &Path) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(object).expect("it was compiled")).expect("memory takes it");
    fs::write(packed, encoder.finish().expect("memory takes it")).expect("cargo's folder can be written");
}

/// Each object as a constant, and all of them.
fn constants(objects: &[&str]) -> String {
    let constant = |name: &&str| {
        let upper = name.to_uppercase();
        format!(
            "/// `bpf/{name}.bpf.c`.\npub const {upper}: ObjectFile =\n    \
             ObjectFile::new(\"{name}\", include_bytes!(\"{name}.bpf.o.z\"));\n"
        )
    };
    let all = objects.join(", ").to_uppercase();
    let each: String = objects.iter().map(constant).collect();
    format!("{each}/// All of them.\npub const ALL: &[ObjectFile] = &[{all}];\n")
}

/// `-fno-strict-aliasing`: MACs and header words are copied as integers. The include path is where Debian keeps
/// `asm/types.h`, which `-target bpf` does not search.
fn clang_args() -> Vec<String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let mut args: Vec<String> = ["-mcpu=v3", "-fno-strict-aliasing", "-Wall", "-Werror"].map(String::from).into();
    args.push(format!("-I/usr/include/{arch}-linux-gnu"));
    args
}
