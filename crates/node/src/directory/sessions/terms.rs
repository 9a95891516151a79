//! What sessions are held to. Settings of it may change while they go on.

use std::sync::Arc;
use std::time::Duration;

use crate::directory::config::{Quotas, SessionTimers};
use crate::directory::protocol::RulesRow;
use crate::tls::Trust;

/// The settings of sessions.
#[derive(Clone)]
pub(in crate::directory) struct Terms {
    /// How long an update may wait for the store.
    pub(in crate::directory) update_timeout: Duration,
    /// The rules for updates as clients are told them.
    pub(in crate::directory) rules: RulesRow,
    /// What each service may take.
    pub(in crate::directory) quotas: Quotas,
    /// Of sessions over TLS.
    pub(in crate::directory) timers: SessionTimers,
    /// Who gets a session over TLS, if anybody does.
    pub(in crate::directory) trust: Option<Arc<Trust>>,
}
