//! The data centre in the directory's words: its mappings, its racks, its agents.

use weft_node::directory::protocol::MappingToSet;
use weft_testbed::load::agents::{self, AgentsLoad};

use super::{FabricOptions, Run, failed};
use crate::directory::bed::{Bed, Racks};
use crate::directory::tier::{FIRST_AA, Tier, aa, mark};
use crate::error::LabError;

/// Where everybody is, and where agents listen.
pub(super) struct Layout {
    pub(super) places: agents::Layout,
    /// UDP port of all agents.
    port: u16,
}

impl Layout {
    pub(super) fn new(options: &FabricOptions) -> Result<Self, LabError> {
        let places = agents::Layout::new(options.agents, options.aas, options.rack);
        Ok(Self { places, port: agents::free_port().map_err(|error| failed(&error))? })
    }

    /// What the servers are told of it.
    pub(super) fn racks(&self) -> Racks {
        let tor_las = (0..self.places.racks()).map(|rack| self.places.tor_la(rack)).collect();
        Racks { tor_las, agent_port: self.port, apart: None }
    }

    /// Of the AA with this number.
    pub(super) fn mapping(&self, number: u32) -> MappingToSet {
        let (tor_la, host_la) = self.places.place_of(number);
        MappingToSet {
            aa: aa(number),
            tor_la,
            anycast_la: mark(0),
            service: 0,
            host_la: Some(host_la),
            if_version: None,
            version: None,
        }
    }

    /// All its agents.
    pub(super) fn agents(&self, run: &Run<'_>, bed: &Bed) -> AgentsLoad {
        let (secret, key_id) = bed.secret();
        AgentsLoad {
            servers: bed.servers().into_iter().map(|server| server.lookups).collect(),
            secret,
            key_id,
            agents: run.options.agents,
            first_la: self.places.first_la(),
            port: self.port,
            first_aa: FIRST_AA,
            aas: run.options.aas,
            questions: run.options.questions,
            cpu: run.cpus[1],
            seed: 1,
        }
    }
}
