//! What an RBridge's control plane counts, reason by reason.

use weft_wire::ParseError;

use crate::counted;

counted! {
    /// Why a PDU, or part of it, was not used.
    pub enum DropReason {
        /// For a port that is not there, or not up.
        NoPort = "no_port",
        /// Neither to All-IS-IS-RBridges nor to the port (RFC 7780 section 5.1.2).
        WrongDestination = "wrong_destination",
        /// From the port's own address: a loop.
        OwnAddress = "own_address",
        /// Not a PDU: lengths or fixed fields are wrong.
        Malformed = "malformed",
        /// A PDU number without a meaning (RFC 7780 section 8.3).
        UnknownPdu = "unknown_pdu",
        /// A PDU that is not handled: flooding scopes, Hellos of another kind of link than the port's.
        Unsupported = "unsupported",
        /// A PDU without authentication, where keys are set (RFC 5310, RFC 5304).
        AuthMissing = "auth_missing",
        /// A PDU authenticated in a way that no key of ours is for, or several times.
        AuthType = "auth_type",
        /// A PDU that names a key that we do not have.
        AuthKey = "auth_key",
        /// A PDU whose digest is wrong: another key's, or the PDU was changed.
        AuthDigest = "auth_digest",
        /// A withdrawal that is signed with more than a withdrawal may carry: an LSP that somebody made one (RFC 6233).
        PurgeBody = "purge_body",
        /// A Hello or sequence numbers PDU without a number, where they must have one (RFC 7602).
        NoNumber = "no_number",
        /// A Hello or sequence numbers PDU whose number is not above the last one's.
        Replayed = "replayed",
        /// Maximum areas other than 1 (RFC 7177 section 8.2).
        MaxAreas = "max_areas",
        /// A Hello with another circuit type than level 1.
        CircuitType = "circuit_type",
        /// A Hello from another area than zero.
        WrongArea = "wrong_area",
        /// A Hello that lists protocols, but not TRILL.
        WrongProtocol = "wrong_protocol",
        /// A Hello without exactly one VLAN flags sub-TLV.
        VlanFlags = "vlan_flags",
        /// A Hello with our own system ID.
        OwnSystem = "own_system",
        /// A point-to-point Hello without the three-way handshake (RFC 6325 section 4.2.4.1).
        NoHandshake = "no_handshake",
        /// A Hello from another station than the neighbour of this point-to-point link.
        OtherNeighbor = "other_neighbor",
        /// A Hello on a shared link that has no room for one more neighbour of so low a priority (RFC 7177 section 3.6).
        NeighborsFull = "neighbors_full",
        /// In a VLAN that is not enabled on the port (RFC 6325 section 4.9.2).
        VlanNotEnabled = "vlan_not_enabled",
        /// Anything on a port that is suspended (RFC 7177 section 4.3).
        Suspended = "suspended",
        /// A PSNP on a shared link that another than us answers.
        NotDrb = "not_drb",
        /// An LSP or sequence numbers PDU that no neighbour on this port sent.
        NoAdjacency = "no_adjacency",
        /// A sequence numbers PDU that names another sender than the neighbour.
        WrongSource = "wrong_source",
        /// An LSP whose checksum is wrong.
        Checksum = "checksum",
        /// An LSP with sequence number 0.
        ZeroSequence = "zero_sequence",
        /// No room for one more LSP.
        DatabaseFull = "database_full",
        /// No room for one more request or acknowledgement.
        RequestsFull = "requests_full",
        /// Entries of a sequence numbers PDU that are cut short.
        BadEntries = "bad_entries",
        /// An MTU-ack that answers no probe of ours.
        StrayAck = "stray_ack",
        /// An Echo that came back, but is none of ours, or of a time that is over.
        StrayEcho = "stray_echo",
        /// An Echo that not the neighbour alone forwarded.
        EchoDetour = "echo_detour",
        /// A nickname that nobody may hold: 0 or reserved. The rest of the LSP is used.
        BadNickname = "bad_nickname",
    }
}

impl DropReason {
    /// For bytes that are no PDU, or none that is known.
    pub(super) const fn of_parse_error(error: ParseError) -> Self {
        match error {
            ParseError::Kind(_) => Self::UnknownPdu,
            _ => Self::Malformed,
        }
    }
}

counted! {
    /// What else happened.
    pub enum Event {
        /// A Hello was used.
        Hello = "hello",
        /// An adjacency became Report.
        AdjacencyUp = "adjacency_up",
        /// An adjacency was lost.
        AdjacencyDown = "adjacency_down",
        /// A neighbour told that it restarts.
        NeighborRestart = "neighbor_restart",
        /// Another DRB on a shared link, or another Designated VLAN.
        DrbChanged = "drb_changed",
        /// A port was suspended: another on its link has its address.
        PortSuspended = "port_suspended",
        /// A Hello came in another VLAN than it was sent in (RFC 6325 section 4.4.5).
        VlanMapped = "vlan_mapped",
        /// A BFD Echo was sent.
        EchoSent = "echo_sent",
        /// One came back.
        EchoReturned = "echo_returned",
        /// A neighbour returned no Echoes any more, and said no Hello.
        EchoSilence = "echo_silence",
        /// An LSP that is newer than the one held, or not held, was taken.
        LspNewer = "lsp_newer",
        /// An LSP that is held already.
        LspSame = "lsp_same",
        /// An LSP that is older than the one held.
        LspOlder = "lsp_older",
        /// Two LSPs of one sequence number with different checksums (ISO 10589 section 7.3.16.2).
        LspConfusion = "lsp_confusion",
        /// A withdrawal of somebody's LSP came in.
        PurgeReceived = "purge_received",
        /// An LSP that nobody renewed was withdrawn.
        LspExpired = "lsp_expired",
        /// An LSP that claims to be ours came in, newer than what we issued.
        OwnLspNewer = "own_lsp_newer",
        /// The sequence number of an own LSP reached its end.
        SequenceEnd = "sequence_end",
        /// An own LSP was issued.
        LspIssued = "lsp_issued",
        /// An LSP was sent.
        LspSent = "lsp_sent",
        /// The same, for want of an acknowledgement.
        LspResent = "lsp_resent",
        /// A CSNP was sent.
        CsnpSent = "csnp_sent",
        /// A PSNP was sent.
        PsnpSent = "psnp_sent",
        /// The routes were computed.
        Computed = "computed",
        /// Another holder of our nickname won it.
        NicknameLost = "nickname_lost",
        /// Another holder of our nickname lost it.
        NicknameKept = "nickname_kept",
        /// No nickname is free.
        NicknamesExhausted = "nicknames_exhausted",
        /// More to say than fits into 256 fragments; the rest was left out.
        LspTooLarge = "lsp_too_large",
    }
}
