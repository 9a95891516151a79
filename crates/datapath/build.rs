//! Compiles the eBPF programs of the crate's `bpf/` with clang, and writes the Rust that embeds them. What programs share with user
//! space is said in their headers `*abi.h` alone, and written in Rust from there. `weft-testbed` is built by this file, too.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libbpf_rs::Linker;

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
    let (source, compiled) = (format!("bpf/{object}.bpf.c"), out.join(format!("{object}.bpf.compiled.o")));
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let done = Command::new(&clang).args(clang_args()).args(["-c", &source, "-o"]).arg(&compiled).output();
    let why = match done {
        Ok(output) if output.status.success() => {
            return link(&compiled, &out.join(format!("{object}.bpf.o")))
                .unwrap_or_else(|error| panic!("{source}: libbpf does not link what {clang} has made of it: {error}"));
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    panic!("{source} does not compile ({clang}: {why}); `make deps` installs clang and the kernel's headers");
}

/// Leaves out what only debuggers read: half of the file.
fn link(compiled: &Path, object: &Path) -> libbpf_rs::Result<()> {
    let mut linker = Linker::new(object)?;
    linker.add_file(compiled)?;
    linker.link()
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

/// `-g`: types for the loader (BTF) come with what debuggers read. `-fno-strict-aliasing`: MACs and header words are copied as integers.
/// The include paths are those of libbpf, and where Debian keeps `asm/types.h`, which `-target bpf` does not search.
fn clang_args() -> Vec<String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where libbpf's headers are");
    let arguments =
        ["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-fno-strict-aliasing", "-fno-stack-protector", "-Wall", "-Werror"];
    let mut arguments: Vec<String> = arguments.map(String::from).into();
    let as_libbpf_calls_it = match &*arch {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => other,
    };
    arguments.push(format!("-D__TARGET_ARCH_{as_libbpf_calls_it}"));
    arguments.extend([format!("-I/usr/include/{arch}-linux-gnu"), format!("-I{libbpf}")]);
    arguments
}
