//! Why a run of bytes was refused: one enum for all formats, so that a daemon counts refusals per reason.

/// A frame, packet or datagram that does not follow its format.
///
/// Nothing is ever half accepted: a view exists only for bytes that passed every check of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than the header, or the length that the header declares, needs.
    #[error("truncated: {found_bytes} bytes where {needed_bytes} are needed")]
    Truncated {
        /// Bytes that the format needs.
        needed_bytes: usize,
        /// Bytes that were there.
        found_bytes: usize,
    },
    /// The first two bytes are not the format's magic number.
    #[error("magic number {0:#06x} is not that of this format")]
    Magic(u16),
    /// A version of the format that this code does not speak.
    #[error("version {0} is not spoken here")]
    Version(u8),
    /// A message type, ARP operation or ICMP type that has no meaning here.
    #[error("message type {0} has no meaning here")]
    Kind(u16),
    /// A number of entries that this message type may not carry.
    #[error("{0} entries are not allowed in this message type")]
    Count(u8),
    /// A length field, or the datagram's size, that contradicts the rest.
    #[error("length {found_bytes} bytes where the header says {expected_bytes}")]
    Length {
        /// Bytes that the header asks for.
        expected_bytes: usize,
        /// Bytes that were there.
        found_bytes: usize,
    },
    /// Bits that must be zero are not.
    #[error("reserved bits are not zero")]
    Reserved,
    /// An IPv4 header checksum that does not sum up (RFC 1071).
    #[error("header checksum {0:#06x} is wrong")]
    Checksum(u16),
    /// A protocol number or EtherType other than the one that this format follows.
    #[error("protocol {0:#06x} is not the one expected here")]
    Protocol(u16),
    /// An IPv4 fragment where only whole packets can be handled.
    #[error("fragment where a whole packet is needed")]
    Fragment,
    /// Well-formed outer headers that are not, or no longer, as the sender of a VL2 stack writes them.
    #[error("outer headers are not as they leave a server")]
    Altered,
}

impl ParseError {
    /// A stable lower-case word for counters and metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "truncated",
            Self::Magic(_) => "magic",
            Self::Version(_) => "version",
            Self::Kind(_) => "kind",
            Self::Count(_) => "count",
            Self::Length { .. } => "length",
            Self::Reserved => "reserved",
            Self::Checksum(_) => "checksum",
            Self::Protocol(_) => "protocol",
            Self::Fragment => "fragment",
            Self::Altered => "altered",
        }
    }
}

/// The error for `bytes` that hold less than `needed_bytes`, if they do.
pub(crate) fn need(bytes: &[u8], needed_bytes: usize) -> Result<(), ParseError> {
    if bytes.len() < needed_bytes {
        return Err(ParseError::Truncated { needed_bytes, found_bytes: bytes.len() });
    }
    Ok(())
}
