//! Memory of a server: what the kernel holds for it, and what its processes hold.
//!
//! Devices, maps and tables are in slab, vmalloc and per-CPU memory, which the kernel only counts for the whole machine: so
//! a server's share is what these grew by while it was set up. Caches of file systems are left out; they grow whenever
//! anything reads a file.

use std::fs;
use std::io;

use serde::Serialize;

/// Caches that belong to files rather than to anything a network is made of.
const FILE_CACHES: [&str; 6] = ["dentry", "buffer_head", "radix_tree_node", "filp", "ext4_", "xfs_"];

/// What the kernel of this machine holds now, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelMemory {
    /// Slab without file systems' caches.
    pub slab_bytes: u64,
    /// Per-CPU memory.
    pub percpu_bytes: u64,
    /// Memory of vmalloc: large tables and eBPF maps.
    pub vmalloc_bytes: u64,
}

impl KernelMemory {
    /// Reads it.
    ///
    /// # Errors
    /// Where `/proc/meminfo` cannot be read. Without the right to read `/proc/slabinfo` file systems' caches are included.
    pub fn read() -> io::Result<Self> {
        let meminfo = fs::read_to_string("/proc/meminfo")?;
        let caches = fs::read_to_string("/proc/slabinfo").map_or(0, |text| file_caches_bytes(&text));
        Ok(of_meminfo(&meminfo, caches))
    }

    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        self.slab_bytes + self.percpu_bytes + self.vmalloc_bytes
    }

    /// What it grew by since an earlier reading, bytes; negative if it shrank.
    pub fn grown_since(&self, earlier: &Self) -> i64 {
        self.total_bytes() as i64 - earlier.total_bytes() as i64
    }
}

/// Proportional set size of a process: its own pages, and its share of those that it shares; bytes.
///
/// # Errors
/// Where there is no such process, or it may not be looked at.
pub fn pss_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(kib_of(&text, "Pss:") * 1024)
}

fn of_meminfo(meminfo: &str, file_caches: u64) -> KernelMemory {
    let bytes = |key| kib_of(meminfo, key) * 1024;
    KernelMemory {
        slab_bytes: bytes("Slab:").saturating_sub(file_caches),
        percpu_bytes: bytes("Percpu:"),
        vmalloc_bytes: bytes("VmallocUsed:"),
    }
}

fn kib_of(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Of `/proc/slabinfo`: `name active total size ...`; what is allocated is the total, used or not.
fn file_caches_bytes(slabinfo: &str) -> u64 {
    let caches = slabinfo.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = fields.first()?;
        let is_file_cache = FILE_CACHES.iter().any(|cache| name.starts_with(cache)) || name.contains("inode");
        let (total, size_bytes) = (fields.get(2)?.parse::<u64>().ok()?, fields.get(3)?.parse::<u64>().ok()?);
        is_file_cache.then_some(total * size_bytes)
    });
    caches.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_do_not_count() {
        let slabinfo = "slabinfo - version: 2.1\n# name <active_objs> ...\n\
            dentry 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n\
            ext4_inode_cache 10 30 1096 29 8 : tunables 0 0 0 : slabdata 3 3 0\n\
            kmalloc-256 9 16 256 16 1 : tunables 0 0 0 : slabdata 5 5 0\ndentry\n\n";
        assert_eq!(file_caches_bytes(slabinfo), 42 * 192 + 30 * 1096);
        let meminfo = "MemTotal: 9 kB\nSlab:   100 kB\nVmallocUsed: 7 kB\nPercpu:    3 kB\n";
        let read = of_meminfo(meminfo, 60 << 10);
        assert_eq!((read.slab_bytes, read.percpu_bytes, read.vmalloc_bytes), (40 << 10, 3 << 10, 7 << 10));
        assert_eq!(read.grown_since(&KernelMemory::default()), 50 << 10);
        assert_eq!(KernelMemory::default().grown_since(&read), -(50 << 10));
        assert_eq!(of_meminfo("", 5), KernelMemory::default());
    }

    #[test]
    fn this_machine_and_this_process_have_memory() {
        assert!(KernelMemory::read().unwrap().total_bytes() > 1 << 20);
        let before = pss_bytes(std::process::id()).unwrap();
        let pages = vec![1u8; 32 << 20];
        let after = pss_bytes(std::process::id()).unwrap();
        std::hint::black_box(&pages);
        assert!(after > before + (24 << 20), "{before} {after}");
        assert!(pss_bytes(u32::MAX).is_err());
    }
}
