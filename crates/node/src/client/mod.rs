//! Asks a directory: sessions over its Unix socket or over mutual TLS, look-ups over UDP.

mod admin;
pub mod bulk;
mod lookup;
mod transport;

pub use admin::{AdminClient, Watch};
pub use lookup::LookupClient;
pub use transport::Target;
