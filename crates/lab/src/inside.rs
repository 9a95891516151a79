//! Work in the namespaces of a lab's nodes; what fails names the node.

use std::fmt::Display;

use weft_datapath::DatapathError;
use weft_scenario::id::NodeId;

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns::in_namespace;
use crate::overlay::datapath_error;
use crate::up::Lab;

impl Lab {
    /// Runs a batch of iproute2.
    pub(crate) fn batch(&self, node: NodeId, program: Program, lines: &[impl Display + Sync]) -> Result<(), LabError> {
        let plan = self.plan.node(node);
        in_namespace(&namespace_path(&plan.namespace), || batch::run(program, &plan.name, lines))?
    }

    /// Works on the data path.
    pub(crate) fn inside<T: Send>(
        &self,
        node: NodeId,
        work: impl FnOnce() -> Result<T, DatapathError> + Send,
    ) -> Result<T, LabError> {
        let plan = self.plan.node(node);
        in_namespace(&namespace_path(&plan.namespace), work)?.map_err(|error| datapath_error(&plan.name, &error))
    }
}
