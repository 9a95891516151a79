//! What engines ask of the machine that they run on, read from texts of its kernel.

use crate::units::Bytes;

/// Where Linux says what memory there is.
pub const MEMINFO: &str = "/proc/meminfo";

/// Memory that programs can have without swapping, of the text of [`MEMINFO`]; `None` if it does not say.
pub fn available_memory(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(Bytes(kib.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_is_not_what_is_free() {
        let text = "MemTotal:       24689764 kB\nMemFree:        18035416 kB\nMemAvailable:   23519028 kB\n";
        assert_eq!(available_memory(text), Some(Bytes(23_519_028 * 1024)));
        assert_eq!(available_memory("MemFree: 1 kB\n"), None, "kernels before 3.14");
        assert_eq!(available_memory("MemAvailable: much"), None);
    }
}
