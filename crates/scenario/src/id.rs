//! Identifiers: small integers that cannot be mixed up.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into the slice that holds these things.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A node of a fabric: its place in [`crate::topology::Fabric::nodes`].
    NodeId
);
id!(
    /// A link of a fabric: its place in [`crate::topology::Fabric::links`].
    LinkId
);
id!(
    /// A flow of a run: its place in [`crate::record::Records::flows`].
    FlowId
);
