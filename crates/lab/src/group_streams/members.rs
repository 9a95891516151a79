//! Receivers' sockets: whoever has joined a group on one of them is a member of it, and its kernel says so by IGMP.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use super::bed::{Bed, Station};
use crate::error::LabError;
use crate::tester::TesterError;

/// Groups that a socket may join (`net.ipv4.igmp_max_memberships`).
const GROUPS_OF_SOCKET: usize = 20;

/// Kernels say it once more within a second (RFC 3376 section 8.11); a stream is counted on quiet links.
const REPORTED: Duration = Duration::from_millis(1_200);

/// Sockets of the first so many stations. Who is dropped leaves its groups.
#[derive(Debug, Default)]
pub(super) struct Members(Vec<Vec<UdpSocket>>);

impl Members {
    /// Has the first so many stations join the groups; those that have joined them stay.
    pub(super) fn join(&mut self, bed: &Bed<'_>, count: u32, groups: &[Ipv4Addr]) -> Result<(), TesterError> {
        let before = self.0.len();
        for station in bed.receivers(count).iter().skip(self.0.len()) {
            let sockets = station.port.inside(|| sockets_in(station, groups))?;
            let what = || format!("join groups at server `{}`", bed.name(station.node));
            self.0.push(sockets.map_err(|error| LabError::io(what())(error))?);
        }
        if self.0.len() > before {
            std::thread::sleep(REPORTED);
        }
        Ok(())
    }

    /// Has all but the first so many leave.
    pub(super) fn keep(&mut self, count: u32) {
        self.0.truncate(count as usize);
    }
}

fn sockets_in(station: &Station, groups: &[Ipv4Addr]) -> std::io::Result<Vec<UdpSocket>> {
    let joined = |groups: &[Ipv4Addr]| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        groups.iter().try_for_each(|group| socket.join_multicast_v4(group, &station.address))?;
        Ok(socket)
    };
    groups.chunks(GROUPS_OF_SOCKET).map(joined).collect()
}
