//! A bpffs of one test's own.

use std::path::PathBuf;

use super::available;
use weft_datapath::bpffs;

/// Unmounted, with everything in it, at the end.
pub struct PinFs(pub PathBuf);

impl PinFs {
    pub fn mount(test: &str) -> Option<Self> {
        let path = std::env::temp_dir().join(format!("weft-dp-{}-{test}", std::process::id()));
        available(bpffs::ensure_mounted(&path))?;
        Some(Self(path))
    }
}

impl Drop for PinFs {
    fn drop(&mut self) {
        let unmounted = bpffs::unmount(&self.0);
        assert!(matches!(unmounted, Ok(true)) && !self.0.exists(), "{unmounted:?}");
    }
}
