//! The simulated hosts and ToRs: the shipped agent and reporter, a model of the data path, and packets between them.

use std::net::{Ipv4Addr, SocketAddrV4};

use rand::Rng;
use rand_pcg::Pcg64;
use weft_control::address::Locator;
use weft_control::agent::{self, Agent, Bounds, Config, Timing};
use weft_control::directory::record::{decode_batch, encode_batch};
use weft_control::directory::{Batch, Change, Request, Stale, Table, Update};
use weft_control::tor::{self, Reporter};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_wire::block::Block;

use super::truth::ANYCAST;
use super::{AAS, TORS, World, aa, key, tor_la};
use crate::datapath::Datapath;

/// A host with its agent.
pub(super) struct AgentNode {
    pub(super) address: SocketAddrV4,
    service: u32,
    own_aa: Ipv4Addr,
    machine: Agent,
    datapath: Datapath,
    frames: u64,
}

/// A ToR with its reporter.
pub(super) struct TorNode {
    address: SocketAddrV4,
    machine: Reporter,
}

/// A machine with a deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MachineOf {
    Agent(usize),
    Tor(usize),
    Nobody,
}

impl World {
    /// Hosts and ToRs, and a first record that says where the hosts are.
    pub(super) fn set_up_agents(&mut self) {
        let mut updates = Vec::new();
        for k in 0..self.plan.agents {
            let host_la = Ipv4Addr::new(10, 64, k as u8, 2);
            let (service, own_aa) = (1 + k as u32 % 2, Ipv4Addr::new(20, 255, 0, k as u8 + 1));
            let locator = Locator { tor_la: tor_la(k as u8), anycast_la: ANYCAST };
            let change = Change::Set { locator, service, host_la: Some(host_la) };
            updates.push(Update { change, ..Update::delete(own_aa) });
            let address = SocketAddrV4::new(host_la, 5301);
            let machine = self.new_agent(address, service, own_aa);
            self.agents.push(AgentNode { address, service, own_aa, machine, datapath: Datapath::default(), frames: 0 });
        }
        self.found(encode_batch(&Batch::of(Request::once(updates))));
        for k in 0..TORS {
            let address = SocketAddrV4::new(tor_la(k), 5302);
            let config = tor::Config {
                local: address,
                servers: self.servers.iter().map(|server| server.address).collect(),
                key: key(0, tor_la(k)),
                key_id: 1,
                limits: tor::Limits::default(),
            };
            let machine = Reporter::new(config, Pcg64::new(self.rng.next_u64().into(), 4));
            self.tors.push(TorNode { address, machine });
        }
    }

    fn new_agent(&mut self, local: SocketAddrV4, service: u32, own_aa: Ipv4Addr) -> Agent {
        let lifetime_ns = if self.plan.short_lives { NS_PER_S } else { 300 * NS_PER_S };
        let timing = Timing {
            lifetime_ns,
            refresh_retry_max_ns: NS_PER_S / 2,
            negative_ns: 50 * NS_PER_MS,
            adopt_spread_ns: 500 * NS_PER_MS,
            ..Timing::default()
        };
        let entries_max = if self.plan.small_caches { 4 } else { 64 };
        let bounds = Bounds { entries_max, lookups_max: 16, frame_bytes_per_aa_max: 40, frame_bytes_max: 240 };
        let config = Config {
            aa: own_aa,
            aa_block: Block::of(Ipv4Addr::new(20, 0, 0, 0), 8),
            local,
            servers: self.servers.iter().map(|server| server.address).collect(),
            key: key(service, *local.ip()),
            key_id: 1,
            service,
            path_mtu: 1500,
            timing,
            bounds,
        };
        Agent::new(config, Pcg64::new(self.rng.next_u64().into(), 2))
    }

    /// A host sends: the data path knows the way, or the agent gets the frame.
    pub(super) fn packet(&mut self, agent: usize, aa: Ipv4Addr) {
        if self.agents[agent].datapath.forward(aa) {
            return self.leave(agent, aa);
        }
        let node = &mut self.agents[agent];
        node.frames += 1;
        node.datapath.missed(aa, node.frames);
        let held = node.frames.to_be_bytes().to_vec();
        self.drive(agent, agent::Input::Miss { aa, packet_bytes: 100, held });
    }

    /// A packet leaves its host and comes to the ToR that the mapping names.
    fn leave(&mut self, agent: usize, aa: Ipv4Addr) {
        let node = &self.agents[agent];
        let found = node.datapath.mappings().find(|(mapped, _)| *mapped == aa);
        let (_, mapping) = found.expect("a packet leaves with a mapping");
        let source_aa = node.own_aa;
        if self.truth.packet(agent, aa, mapping.locator.tor_la) {
            return;
        }
        self.totals.stale_packets += 1;
        let tor = self.tors.iter().position(|tor| *tor.address.ip() == mapping.locator.tor_la).expect("a known ToR");
        self.drive_tor(tor, tor::Input::Sample(Stale { aa, source_aa }));
    }

    pub(super) fn agent_hears(&mut self, agent: usize, from: SocketAddrV4, bytes: &[u8]) {
        self.drive(agent, agent::Input::Datagram { from, bytes });
    }

    fn drive(&mut self, agent: usize, input: agent::Input<'_>) {
        let mut outputs = Vec::new();
        let seen = self.agents[agent].machine.summary().revision;
        self.agents[agent].machine.handle(self.now_ns, input, &mut outputs);
        let from = self.agents[agent].address;
        for output in outputs {
            match output {
                agent::Output::Send { to, datagram } => self.send(from, to, &datagram),
                agent::Output::Release { aa, .. } => {
                    self.carry_out(agent, seen, output);
                    self.leave(agent, aa);
                }
                _ => self.carry_out(agent, seen, output),
            }
        }
    }

    fn carry_out(&mut self, agent: usize, seen: u64, output: agent::Output) {
        let node = &mut self.agents[agent];
        if let agent::Output::Install { aa, mapping } = &output {
            self.totals.installed += 1;
            if !node.datapath.mappings().any(|(mapped, _)| mapped == *aa) {
                self.truth.assert_not_withdrawn(node.service, *aa, mapping.version, seen);
            }
        }
        node.datapath.carry_out(output, self.truth.known(node.service));
    }

    fn drive_tor(&mut self, tor: usize, input: tor::Input) {
        let mut outputs = Vec::new();
        self.tors[tor].machine.handle(self.now_ns, input, &mut outputs);
        let from = self.tors[tor].address;
        for tor::Output::Send { to, datagram } in outputs {
            self.send(from, to, &datagram);
        }
    }

    /// The earliest deadline of a machine.
    pub(super) fn next_deadline(&self) -> (u64, MachineOf) {
        let agents =
            self.agents.iter().enumerate().map(|(k, node)| (node.machine.next_deadline_ns(), MachineOf::Agent(k)));
        let tors = self.tors.iter().enumerate().map(|(k, node)| (node.machine.next_deadline_ns(), MachineOf::Tor(k)));
        let all = agents.chain(tors).filter_map(|(at_ns, machine)| Some((at_ns?, machine)));
        all.min().unwrap_or((u64::MAX, MachineOf::Nobody))
    }

    pub(super) fn deadline(&mut self, machine: MachineOf) {
        match machine {
            MachineOf::Agent(agent) => self.drive(agent, agent::Input::Deadline),
            MachineOf::Tor(tor) => self.drive_tor(tor, tor::Input::Deadline),
            MachineOf::Nobody => {}
        }
    }

    /// The agent's process dies and comes back; the data path keeps what is pinned.
    pub(super) fn restart(&mut self, agent: usize) {
        self.count(agent);
        let AgentNode { address, service, own_aa, .. } = self.agents[agent];
        self.agents[agent].machine = self.new_agent(address, service, own_aa);
        for (aa, mapping) in self.agents[agent].datapath.restarted() {
            self.drive(agent, agent::Input::Adopt { aa, mapping });
        }
    }

    fn count(&mut self, agent: usize) {
        let counters = self.agents[agent].machine.counters();
        self.totals.corrected += counters.events.get(agent::Event::Corrected);
        self.totals.hidden += counters.dropped.get(agent::DropReason::Unknown);
    }

    /// After traffic in peace: agents agree with the log, and packets came to where the AAs are.
    pub(super) fn assert_agents_agree(&mut self) {
        for (k, node) in self.agents.iter().enumerate() {
            for (aa, mapping) in node.datapath.mappings() {
                let there = self.truth.table.mapping(aa).map(|mapping| mapping.locator);
                assert_eq!(Some(mapping.locator), there, "agent {k}, AA {aa}: a stale mapping was not corrected");
                if self.plan.short_lives {
                    assert_eq!(Some(mapping), self.truth.mapping_for(node.service, aa), "agent {k}, AA {aa}");
                }
            }
            for aa in (0..AAS).map(aa) {
                let may = self.truth.mapping_for(node.service, aa).is_some();
                let did = self.truth.delivered(k, aa);
                assert!(did || !may, "agent {k}: nothing came to {aa}");
                assert!(!did || may || !self.plan.short_lives, "agent {k}: {aa} was reached although it must not be");
            }
        }
        assert_eq!(self.truth.strayed, 0, "packets still came to wrong ToRs");
    }

    /// Without traffic: nothing is open.
    pub(super) fn assert_agents_at_rest(&mut self) {
        for k in 0..self.agents.len() {
            self.count(k);
            let summary = self.agents[k].machine.summary();
            assert_eq!((summary.resolving, summary.waiting_frames), (0, 0), "agent {k}");
            self.agents[k].datapath.assert_conserved();
        }
    }

    /// Every server is where the log is, in every bit.
    pub(super) fn assert_servers_equal(&self) {
        for (k, server) in self.servers.iter().enumerate() {
            assert_eq!(server.table.hash(), self.truth.table.hash(), "server {k} is not where the log is");
            assert_eq!(server.table, self.truth.table, "server {k} is not where the log is");
        }
    }

    pub(super) fn assert_history(&self) {
        let mut log = Table::at(self.etcd.origin.ours(self.etcd.origin.began));
        for put in self.etcd.puts.iter().filter(|put| put.version == 1) {
            let batch = decode_batch(&put.bytes).expect("it was written by us");
            log.apply(self.etcd.origin.ours(put.revision), &batch);
        }
        self.truth.assert_linearizable(self.now_ns, &log);
    }
}
