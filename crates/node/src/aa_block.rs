//! The AA block as a setting: names, so no address of the network below may lie in it (VL2 4.2.1).

use std::net::Ipv4Addr;

use weft_wire::block::Block;
use weft_wire::flow::HASH_SOURCES;

use crate::error::NodeError;

/// Reads the block. It must leave out the outer source addresses, in which the fabric has flow hashes (VL2 4.2.2).
pub(crate) fn read(text: &str) -> Result<Block, NodeError> {
    let block: Block = text.parse().map_err(|error| NodeError::config("aa_block", format!("{error}")))?;
    if block.overlaps(HASH_SOURCES) {
        let why = format!("{block} overlaps {HASH_SOURCES}, whose addresses carry flow hashes; 20.0.0.0/8 is usual");
        return Err(NodeError::config("aa_block", why));
    }
    Ok(block)
}

/// Refuses addresses of the network that are AAs. `field` is the setting that they come from.
pub(crate) fn check_las(
    block: Block,
    field: &'static str,
    las: impl IntoIterator<Item = Ipv4Addr>,
) -> Result<(), NodeError> {
    match las.into_iter().find(|la| block.contains(*la)) {
        Some(la) => {
            Err(NodeError::config(field, format!("{la} is inside the AA block {block}; LAs and AAs are apart")))
        }
        None => Ok(()),
    }
}
