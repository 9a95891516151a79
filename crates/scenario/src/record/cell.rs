//! Cells of rows as text.

use crate::workload::FlowClass;

/// A value of a column.
pub(super) trait Cell: Sized {
    /// What a reader may expect.
    const HOLDS: &'static str;
    /// As text.
    fn write(&self) -> String;
    /// What [`Self::write`] wrote.
    fn read(text: &str) -> Option<Self>;
}

macro_rules! cells {
    ($($kind:ty, $holds:literal;)+) => { $(
        impl Cell for $kind {
            const HOLDS: &'static str = $holds;

            fn write(&self) -> String {
                self.to_string()
            }

            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }

        impl Cell for Option<$kind> {
            const HOLDS: &'static str = concat!($holds, " or empty");

            fn write(&self) -> String {
                self.as_ref().map_or_else(String::new, ToString::to_string)
            }

            fn read(text: &str) -> Option<Self> {
                if text.is_empty() { Some(None) } else { Cell::read(text).map(Some) }
            }
        }
    )+ };
}

cells! {
    u32, "whole number";
    u64, "whole number";
    f64, "number";
    String, "text";
}

impl Cell for FlowClass {
    const HOLDS: &'static str = "`bulk`, `background` or `query`";

    fn write(&self) -> String {
        self.name().to_owned()
    }

    fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == text)
    }
}
