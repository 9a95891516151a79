//! Stations of directory-driven segments: questions of the data path go to the directory, answers into the data path.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rand_pcg::Pcg64;
use tracing::debug;
use weft_control::agent::{Bounds, Timing};
use weft_control::vtep::arp::Asker;
use weft_control::vtep::mac::{ip_of, mac_of};
use weft_control::vtep::{Input, Output, Resolver, ResolverConfig, Settings, Vni};
use weft_control::{Machine, NS_PER_S};
use weft_datapath::vxlan::To;
use weft_wire::directory::Key;
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanId;

use super::kernel::Station;
use super::{Daemon, IoFault, VtepConfig};
use crate::error::NodeError;
use crate::key::{self, Derived};
use crate::silence::Silence;
use crate::sys::{self, FrameSender};
use crate::udp;

/// Datagrams that are read before others have their turn.
const BURST: usize = 64;

/// What a resolver asks, and how its answers reach the data path.
pub(super) struct Stations {
    pub(super) resolver: Resolver<Waiting>,
    socket: UdpSocket,
    frames: FrameSender,
    pub(super) silence: Silence,
    /// How many stations are behind each VTEP that only the directory named.
    vteps: BTreeMap<Ipv4Addr, usize>,
    /// The VTEP of each station that is not here.
    behind: BTreeMap<(Vni, MacAddress), Ipv4Addr>,
}

/// Checks that directory-driven segments have a directory to ask, and keys for it.
pub(super) fn check(config: &VtepConfig, settings: &Settings) -> Result<(), NodeError> {
    let asking = |(_, segment): &(&Vni, &weft_control::vtep::Segment)| segment.directory;
    let Some((vni, _)) = settings.vnis.iter().find(asking) else { return Ok(()) };
    let Some(directory) = &config.directory else {
        let why = format!("is missing, but VNI {vni} asks it; add servers = [\"ADDRESS:PORT\"]");
        return Err(NodeError::config("directory", why));
    };
    if directory.servers.is_empty() {
        return Err(NodeError::config("directory.servers", "is empty; name at least one server as ADDRESS:PORT"));
    }
    if !(1..=86_400).contains(&directory.lifetime_s) {
        let why = format!("{} is not between 1 and 86400 seconds; 300 is usual", directory.lifetime_s);
        return Err(NodeError::config("directory.lifetime_s", why));
    }
    settings.vnis.iter().filter(asking).try_for_each(|(vni, _)| key_of(config, *vni).map(|_| ()))
}

/// The key of a segment's questions.
fn key_of(config: &VtepConfig, vni: Vni) -> Result<Key, NodeError> {
    let dir: Option<&Path> = config.directory.as_ref().and_then(|directory| directory.key_dir.as_deref());
    let whose = Derived { la: Some(config.local), service: vni.get() };
    key::read_or_open(dir.map(|dir| dir.join(format!("{vni}.key"))).as_deref(), whose)
}

impl Stations {
    /// `None` without a directory.
    pub(super) fn open(config: &VtepConfig) -> Result<Option<Self>, NodeError> {
        let Some(directory) = &config.directory else { return Ok(None) };
        let socket = udp::bind(config.local, directory.port)?;
        let resolver = ResolverConfig {
            local: udp::local(&socket)?,
            servers: directory.servers.clone(),
            key_id: directory.key_id,
            timing: Timing { lifetime_ns: u64::from(directory.lifetime_s) * NS_PER_S, ..Timing::default() },
            bounds: Bounds::default(),
        };
        let seed = sys::random_u128().map_err(NodeError::system("reading random bytes"))?;
        let resolver = Resolver::new(resolver, Pcg64::new(seed, u128::from(u32::from(config.local))));
        let frames = FrameSender::open().map_err(NodeError::system("opening a packet socket (needs CAP_NET_RAW)"))?;
        let (silence, vteps, behind) = (Silence::default(), BTreeMap::new(), BTreeMap::new());
        Ok(Some(Self { resolver, socket, frames, silence, vteps, behind }))
    }

    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.resolver.next_deadline_ns()
    }

    /// Notes where a station is now. Returns a VTEP that no station is behind any more.
    fn note(&mut self, vni: Vni, mac: MacAddress, vtep: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        let before = match vtep {
            Some(vtep) => self.behind.insert((vni, mac), vtep),
            None => self.behind.remove(&(vni, mac)),
        };
        if let Some(vtep) = vtep {
            *self.vteps.entry(vtep).or_default() += 1;
        }
        let before = before?;
        let count = self.vteps.get_mut(&before)?;
        *count -= 1;
        (*count == 0).then(|| {
            self.vteps.remove(&before);
            before
        })
    }
}

impl AsFd for Stations {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Who waits for the answer to an ARP request, at which port and in which VLAN of it.
pub(super) struct Waiting {
    ifindex: u32,
    vlan: Option<VlanId>,
    asker: Asker,
}

impl Daemon {
    /// Begins to resolve where that is wanted now, and ends it where it no longer is.
    pub(super) fn follow_directory(&mut self) -> Result<(), NodeError> {
        let Some(stations) = &mut self.stations else { return Ok(()) };
        let wanted = |vni: &Vni| self.settings.vnis.get(vni).is_some_and(|segment| segment.directory);
        let gone: Vec<Vni> = stations.resolver.vnis().filter(|vni| !wanted(vni)).collect();
        for vni in self.settings.vnis.keys().filter(|vni| wanted(vni)) {
            if !stations.resolver.knows(*vni) {
                stations.resolver.add(*vni, key_of(&self.config, *vni)?);
            }
        }
        for vni in gone {
            self.forget_stations(vni);
        }
        Ok(())
    }

    /// Ends resolving in a segment. One that itself is gone has taken its entries along.
    fn forget_stations(&mut self, vni: Vni) {
        let Some(stations) = &mut self.stations else { return };
        let known: Vec<Ipv4Addr> =
            stations.resolver.stations().filter(|(of, _, _)| *of == vni).map(|(_, ip, _)| ip).collect();
        stations.resolver.remove(vni);
        for ip in known {
            self.place(Output::Remove { vni, ip, mac: mac_of(ip) });
        }
    }

    /// Takes over stations that the data path has from an earlier run.
    pub(super) fn adopt(&mut self, known: Vec<Station>) {
        for (vni, mac, vtep) in known {
            let taken = self.stations.as_ref().is_some_and(|stations| stations.resolver.knows(vni));
            match ip_of(mac).filter(|_| taken && self.may_be_named(vtep)) {
                Some(ip) => {
                    if let Some(stations) = &mut self.stations {
                        stations.note(vni, mac, Some(vtep));
                    }
                    self.resolve(Input::Adopt { vni, ip, vtep });
                }
                None => drop(self.kernel.forget_directory_entry(vni, mac)),
            }
        }
    }

    /// Forgets peers and ARP answers of an earlier run that nothing names now.
    pub(super) fn sweep(&mut self) -> Result<(), NodeError> {
        let (settings, stations) = (&self.settings, self.stations.as_ref());
        let wanted_peer = |peer: Ipv4Addr| {
            settings.peers.contains(&peer) || stations.is_some_and(|stations| stations.vteps.contains_key(&peer))
        };
        let wanted_arp = |vni: Vni, ip: Ipv4Addr, mac: MacAddress| {
            let configured = settings.entries.get(&(vni, mac)).is_some_and(|entry| entry.ip == Some(ip));
            configured || stations.is_some_and(|stations| stations.behind.contains_key(&(vni, mac)))
        };
        self.kernel.sweep(wanted_peer, wanted_arp)
    }

    /// A station asks by ARP.
    pub(super) fn asked(&mut self, vni: Vni, from: To, asker: Asker, sought: Ipv4Addr) {
        let (ifindex, vlan) = match from {
            To::Port(ifindex) => (ifindex, None),
            To::Vlan(ifindex, vlan) => (ifindex, Some(vlan)),
            // The programs ask for what comes from ports.
            To::Remote(_) => return,
        };
        if asker.asks_for(sought) {
            self.resolve(Input::Ask { vni, ip: sought, held: Some(Waiting { ifindex, vlan, asker }) });
        }
    }

    /// A station sends to a MAC that is not in the table.
    pub(super) fn missed(&mut self, vni: Vni, mac: MacAddress) {
        if let Some(ip) = ip_of(mac) {
            self.resolve(Input::Ask { vni, ip, held: None });
        }
    }

    pub(super) fn confirm_stations(&mut self) {
        let now_ns = self.clock.now_ns();
        let due = |stations: &Stations| stations.next_deadline_ns().is_some_and(|at_ns| at_ns <= now_ns);
        if self.stations.as_ref().is_some_and(due) {
            self.resolve(Input::Deadline);
        }
    }

    pub(super) fn read_answers(&mut self) {
        let mut buffer = [0; 2048];
        for _ in 0..BURST {
            let Some(stations) = &self.stations else { return };
            match stations.socket.recv_from(&mut buffer) {
                Ok((length, SocketAddr::V4(from))) => self.resolve(Input::Datagram { from, bytes: &buffer[..length] }),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // An ICMP error about an earlier question, or a signal.
                Err(error) => debug!(%error, "reading answers"),
            }
        }
    }

    fn resolve(&mut self, input: Input<'_, Waiting>) {
        let now_ns = self.clock.now_ns();
        let Some(stations) = &mut self.stations else { return };
        let mut outputs = Vec::new();
        stations.resolver.handle(now_ns, input, &mut outputs);
        for output in outputs {
            self.place(output);
        }
        self.say_whether_answered();
    }

    fn say_whether_answered(&mut self) {
        let (Some(stations), Some(directory)) = (&mut self.stations, &self.config.directory) else { return };
        if let Some(notice) = stations.silence.look(self.clock.now_ns(), stations.resolver.heard()) {
            let keys =
                directory.key_dir.as_ref().map_or("no key".into(), |dir| format!("the keys in {}", dir.display()));
            notice.log(&directory.servers, self.config.local, &keys);
        }
    }

    fn place(&mut self, output: Output<Waiting>) {
        if let Err(fault) = self.try_to_place(output) {
            self.io.add(fault);
        }
    }

    fn not_installed(error: &NodeError) -> IoFault {
        tracing::warn!(%error, "data path");
        IoFault::NotInstalled
    }

    fn try_to_place(&mut self, output: Output<Waiting>) -> Result<(), IoFault> {
        let is_foreign = matches!(output, Output::Install { vtep: Some(vtep), .. } if !self.may_be_named(vtep));
        let Some(stations) = &mut self.stations else { return Ok(()) };
        match output {
            Output::Send { to, datagram } => {
                stations.silence.asked(self.clock.now_ns());
                stations.socket.send_to(&datagram, to).map_err(|_| IoFault::NotSent)?;
            }
            Output::Install { vni, ip, mac, vtep } if is_foreign => {
                debug!(%vni, %ip, ?vtep, "station behind a VTEP that is none");
                self.forget(vni, ip, mac)?;
                return Err(IoFault::ForeignVtep);
            }
            Output::Install { vni, ip, mac, vtep } => {
                debug!(%vni, %ip, ?vtep, "station");
                let last = stations.note(vni, mac, vtep);
                self.kernel.set_station(vni, ip, mac, vtep).map_err(|error| Self::not_installed(&error))?;
                self.leave(last)?;
            }
            Output::Remove { vni, ip, mac } => self.forget(vni, ip, mac)?,
            Output::Found { ip, held: waiting, .. } => {
                if let Some(frame) = waiting.asker.answer(ip, mac_of(ip)) {
                    let frame = waiting.vlan.map_or(frame.clone(), |vlan| vlan.tag(&frame));
                    stations.frames.send(waiting.ifindex, &frame).map_err(|_| IoFault::NotAnswered)?;
                }
            }
            Output::Drop { vni, ip, reason } => debug!(%vni, %ip, ?reason, "not found"),
        }
        Ok(())
    }

    /// Whether a station may be behind this VTEP.
    fn may_be_named(&self, vtep: Ipv4Addr) -> bool {
        let directory = self.config.directory.as_ref();
        self.settings.peers.contains(&vtep) || directory.is_some_and(|directory| directory.tor_las.contains(&vtep))
    }

    fn forget(&mut self, vni: Vni, ip: Ipv4Addr, mac: MacAddress) -> Result<(), IoFault> {
        let last = self.stations.as_mut().and_then(|stations| stations.note(vni, mac, None));
        self.kernel.remove_station(vni, ip, mac).map_err(|error| Self::not_installed(&error))?;
        self.leave(last)
    }

    /// A VTEP that nobody names any more is no peer any more.
    fn leave(&mut self, vtep: Option<Ipv4Addr>) -> Result<(), IoFault> {
        match vtep.filter(|vtep| !self.settings.peers.contains(vtep)) {
            Some(vtep) => self.kernel.remove_peer(vtep).map_err(|error| Self::not_installed(&error)),
            None => Ok(()),
        }
    }
}
