//! Nicknames: the 16-bit names of RBridges, and the values that never are one (RFC 6325 section 3.7, RFC 7178 section 7.1).

/// No nickname.
pub const NONE: u16 = 0;
/// The largest value that an RBridge may hold.
pub const LARGEST: u16 = 0xffbf;
/// Whoever receives the frame: the egress of a one-hop RBridge Channel message (RFC 7178).
pub const ANY_RBRIDGE: u16 = 0xffc0;
/// "Overload originated multi-destination frame" (RFC 7780 section 2).
pub const OVERLOAD_MULTI_DESTINATION: u16 = 0xffc1;

/// Number of values that an RBridge may hold.
pub const USABLE: u16 = LARGEST;

/// Whether an RBridge may hold this value: neither 0 nor reserved.
pub const fn is_usable(nickname: u16) -> bool {
    nickname != NONE && nickname <= LARGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_what_may_be_held() {
        let usable = [0x0001, 0x8000, 0xffbf].map(is_usable);
        let reserved = [0x0000, 0xffc0, 0xffc1, 0xffd8, 0xffff].map(is_usable);
        assert_eq!((usable, reserved), ([true; 3], [false; 5]));
    }
}
