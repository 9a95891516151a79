//! TRILL IS-IS frames of all ports (RFC 6325 section 4.2.3) and channel messages (RFC 7178): what the data path leaves to the
//! stack, by one socket for each of the two; and BPDUs of bridges on shared links by a third (section 4.9.3).

use std::os::fd::{AsFd, BorrowedFd};

use weft_datapath::trill::abi::KEPT_TAG;
use weft_wire::bpdu::{self, BridgeId};
use weft_wire::ethernet::{HEADER_LEN, MacAddress, ethertype};
use weft_wire::isis::ETHERTYPE;
use weft_wire::trill;
use weft_wire::vlan::TAG_LEN;

use crate::error::NodeError;
use crate::sys::{FrameSender, TypeSocket};

/// Sends and receives.
#[derive(Debug)]
pub(super) struct Frames {
    incoming: TypeSocket,
    tagged: TypeSocket,
    channel: TypeSocket,
    bridges: TypeSocket,
    outgoing: FrameSender,
    buffer: Vec<u8>,
}

/// A frame that came in.
pub(super) struct Frame<'a> {
    pub(super) ifindex: u32,
    pub(super) destination: MacAddress,
    pub(super) source: MacAddress,
    /// VLAN of the tag around it; `None`: there is none, or one of priority alone.
    pub(super) tag: Option<u16>,
    /// What follows the Ethertype.
    pub(super) pdu: &'a [u8],
}

/// Why a frame was not read.
#[derive(Debug)]
pub(super) enum Fault {
    Truncated,
    System(std::io::Error),
}

impl Frames {
    pub(super) fn open() -> Result<Self, NodeError> {
        let what = "opening a packet socket (needs CAP_NET_RAW)";
        Ok(Self {
            incoming: TypeSocket::open(ETHERTYPE).map_err(NodeError::system(what))?,
            tagged: TypeSocket::open(KEPT_TAG).map_err(NodeError::system(what))?,
            channel: TypeSocket::open(trill::ETHERTYPE).map_err(NodeError::system(what))?,
            bridges: TypeSocket::open(libc::ETH_P_802_2 as u16).map_err(NodeError::system(what))?,
            outgoing: FrameSender::open().map_err(NodeError::system(what))?,
            buffer: Vec::new(),
        })
    }

    /// Sends a PDU, with the highest priority where there is a tag for it (RFC 6325 section 4.1.3).
    pub(super) fn send(
        &mut self,
        ifindex: u32,
        destination: MacAddress,
        source: MacAddress,
        tag: Option<u16>,
        pdu: &[u8],
    ) -> std::io::Result<()> {
        self.buffer.clear();
        self.buffer.extend(destination.0);
        self.buffer.extend(source.0);
        if let Some(vlan) = tag {
            self.buffer.extend(ethertype::VLAN.to_be_bytes());
            self.buffer.extend((7 << 13 | vlan).to_be_bytes());
        }
        self.buffer.extend(ETHERTYPE.to_be_bytes());
        self.buffer.extend(pdu);
        self.outgoing.send(ifindex, &self.buffer)
    }

    /// Sends a frame that has its outer header.
    pub(super) fn send_whole(&self, ifindex: u32, frame: &[u8]) -> std::io::Result<()> {
        self.outgoing.send(ifindex, frame)
    }

    /// What tells that a channel message waits.
    pub(super) fn channel(&self) -> &impl AsFd {
        &self.channel
    }

    /// The next channel message, from its outer destination on.
    pub(super) fn receive_channel(&mut self) -> std::io::Result<Option<&[u8]>> {
        Ok(self.channel.receive()?.map(|(_, frame)| frame))
    }

    /// What tells that a BPDU waits.
    pub(super) fn bridges(&self) -> &impl AsFd {
        &self.bridges
    }

    /// The next BPDU: the interface that it came by, the root that it tells of, and whether it acknowledges a topology change. Inner
    /// `None`: of no root.
    pub(super) fn receive_root(&mut self) -> std::io::Result<Option<Option<(u32, BridgeId, bool)>>> {
        let Some((ifindex, bytes)) = self.bridges.receive()? else { return Ok(None) };
        let root = bytes.split_at_checked(HEADER_LEN).filter(|(header, _)| header[..6] == bpdu::GROUP.0);
        let said = root.and_then(|(_, llc)| bpdu::View::new(llc).ok());
        Ok(Some(said.map(|said| (ifindex, said.root(), said.acknowledges_change()))))
    }

    /// What tells that a frame with a tag waits.
    pub(super) fn tagged(&self) -> &impl AsFd {
        &self.tagged
    }

    /// The next one with a tag or without, if any waits.
    pub(super) fn receive(&mut self, with_tag: bool) -> Result<Option<Frame<'_>>, Fault> {
        let socket = if with_tag { &mut self.tagged } else { &mut self.incoming };
        let Some((ifindex, bytes)) = socket.receive().map_err(Fault::System)? else { return Ok(None) };
        let tag_len = if with_tag { TAG_LEN } else { 0 };
        let Some((header, pdu)) = bytes.split_at_checked(HEADER_LEN + tag_len) else { return Err(Fault::Truncated) };
        let mac = |at: usize| MacAddress(std::array::from_fn(|place| header[at + place]));
        let tag = with_tag.then(|| u16::from_be_bytes([header[14], header[15]]) & 0xfff);
        Ok(Some(Frame { ifindex, destination: mac(0), source: mac(6), tag: tag.filter(|vlan| *vlan != 0), pdu }))
    }
}

impl AsFd for Frames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.incoming.as_fd()
    }
}
