//! Why an interface took no XDP program, in the words of its driver. Creating a link tells no more than a number; the older
//! request by netlink, which wants the same of the driver, brings the driver's own words.
#![allow(unsafe_code)]

use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libbpf_rs::ProgramMut;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::error::DatapathError;
use crate::offload;

/// The error of attaching `program` to the interface's driver, which failed with `source`; `instead` is the setting that needs
/// no driver.
pub(crate) fn explain(
    program: &ProgramMut<'_>,
    (ifindex, interface): (u32, &str),
    instead: &str,
    source: libbpf_rs::Error,
) -> DatapathError {
    if source.kind() == libbpf_rs::ErrorKind::PermissionDenied {
        return DatapathError::from_kernel(format!("attaching XDP on `{interface}`"), source);
    }
    let driver = offload::driver(interface).unwrap_or_else(|| "no driver that has a name".to_owned());
    let said = driver_words(ifindex, program.as_fd().as_raw_fd()).unwrap_or_else(|| source.to_string());
    let why = format!(
        "`{interface}` ({driver}) takes no program in its driver: {said}; {}or set {instead}",
        remedy(&said, interface)
    );
    DatapathError::Config { field: "xdp", why }
}

/// What helps against what drivers say. The texts are those of Linux 6.1 to 6.12 (`virtio_net`, `veth`, `mlx5`, `ixgbe`, `i40e`,
/// `ice`, `ena`, `bnxt_en`), which agree in their words.
fn remedy(said: &str, interface: &str) -> String {
    let said = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["mtu"]) {
        format!("lower the MTU (ip link set {interface} mtu N; most drivers take up to 3498), ")
    } else if has(&["gro_hw", "lro", "csum", "guest"]) {
        format!(
            "turn that off (ethtool -K {interface} rx-gro-hw off lro off; at a virtual machine's hypervisor guest_tso4, \
             guest_tso6, guest_ecn, guest_ufo and guest_csum), "
        )
    } else if has(&["queue", "channel"]) {
        format!("change its queues (ethtool -l {interface} shows them, ethtool -L {interface} combined N sets them), ")
    } else if has(&["xdp link"]) {
        "end what put the program on it that is there (bpftool net shows it), ".to_owned()
    } else if has(&["busy", "already", "exist"]) {
        format!("take off the program that is on it (ip link set {interface} xdp off), ")
    } else {
        String::new()
    }
}

/// `SOL_NETLINK` and `NETLINK_EXT_ACK` of `linux/netlink.h`.
const SOL_NETLINK: i32 = 270;
const EXT_ACK: i32 = 11;
/// `NETLINK_CAP_ACK`: an answer without the whole request.
const CAP_ACK: i32 = 10;
/// `NLM_F_ACK_TLVS`: words follow the number.
const ACK_TLVS: u16 = 0x200;
/// `NLMSGERR_ATTR_MSG`.
const WORDS: u16 = 1;

/// Asks for the same once more. Should the driver take it now, it is taken off again, and there are no words.
fn driver_words(ifindex: u32, program: i32) -> Option<String> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None).ok()?;
    for option in [EXT_ACK, CAP_ACK] {
        let on: libc::c_int = 1;
        // SAFETY: the kernel reads one int from a pointer to one.
        let set = unsafe {
            libc::setsockopt(socket.as_raw_fd(), SOL_NETLINK, option, (&raw const on).cast(), size_of_val(&on) as _)
        };
        if set != 0 {
            return None;
        }
    }
    let answer = ask(&socket, &set_program(ifindex, program)).ok()?;
    if answer.get(16..20) == Some(&[0; 4]) {
        ask(&socket, &set_program(ifindex, -1)).ok()?;
        return None;
    }
    words_in(&answer)
}

fn ask(socket: &OwnedFd, message: &[u8]) -> Result<Vec<u8>, Error> {
    sendto(socket, message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = vec![0; 1024];
    let (_, length) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}

/// `RTM_SETLINK` with `IFLA_XDP`, in the driver: `struct nlmsghdr`, `struct ifinfomsg`, and one attribute that holds two.
/// Only where there is none yet, but for taking it off.
fn set_program(ifindex: u32, program: i32) -> Vec<u8> {
    const IFLA_XDP: u16 = 43;
    const NESTED: u16 = 1 << 15;
    const IFLA_XDP_FD: u16 = 1;
    const IFLA_XDP_FLAGS: u16 = 3;
    let only_where_none_is = if program < 0 { 0 } else { libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST };
    let flags = libbpf_sys::XDP_FLAGS_DRV_MODE | only_where_none_is;
    let mut message = Vec::with_capacity(52);
    message.extend(52u32.to_ne_bytes());
    message.extend(libc::RTM_SETLINK.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
    message.extend([0; 12]);
    message.extend(ifindex.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([20u16, IFLA_XDP | NESTED, 8, IFLA_XDP_FD].iter().flat_map(|half| half.to_ne_bytes()));
    message.extend(program.to_ne_bytes());
    message.extend([8u16, IFLA_XDP_FLAGS].iter().flat_map(|half| half.to_ne_bytes()));
    message.extend(flags.to_ne_bytes());
    message
}

/// After the header (16 bytes), the number (4) and the request's header (16).
fn words_in(answer: &[u8]) -> Option<String> {
    let u16_at = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    if u16_at(6)? & ACK_TLVS == 0 {
        return None;
    }
    let mut at = 36;
    loop {
        let (length, kind) = (usize::from(u16_at(at)?), u16_at(at + 2)?);
        let value = answer.get(at + 4..at + length)?;
        if kind == WORDS {
            let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
            return Some(String::from_utf8_lossy(&value[..end]).into_owned()).filter(|words| !words.is_empty());
        }
        at += length.next_multiple_of(4).max(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the texts in the kernel's sources: `virtnet_xdp_set`, `veth_xdp_set`, `mlx5e_xdp_allowed`, `ena_xdp_set`.
    #[test]
    fn what_drivers_say_has_a_remedy() {
        for (said, helps) in [
            ("MTU too large to enable XDP without frags", "eth7 mtu N"),
            ("veth: Peer MTU is too large to set XDP", "eth7 mtu N"),
            ("Can't set XDP while host is implementing GRO_HW/CSUM, disable GRO_HW/CSUM first", "guest_tso4"),
            ("XDP is not compatible with HW-GRO/LRO", "rx-gro-hw off"),
            ("XDP expects number of rx queues not less than peer tx queues", "ethtool -L"),
            ("Device or resource busy (os error 16)", "xdp off"),
        ] {
            let remedy = remedy(said, "eth7");
            assert!(remedy.contains(helps) && remedy.contains("eth7"), "{said}: {remedy}");
        }
        assert!(remedy("Can't replace active BPF XDP link", "eth7").starts_with("end what put the program"));
        assert_eq!(remedy("Operation not supported (os error 95)", "eth7"), "");
    }

    #[test]
    fn words_follow_the_number_and_bad_answers_have_none() {
        let mut answer = vec![0; 36];
        answer[6..8].copy_from_slice(&ACK_TLVS.to_ne_bytes());
        for (kind, value) in [(2u16, &b"\x01\x02\x03\x04"[..]), (WORDS, &b"too large\0"[..])] {
            answer.extend((4 + value.len() as u16).to_ne_bytes());
            answer.extend(kind.to_ne_bytes());
            answer.extend(value);
            answer.resize(answer.len().next_multiple_of(4), 0);
        }
        assert_eq!(words_in(&answer).as_deref(), Some("too large"));
        for cut in 0..answer.len() - 12 {
            assert_eq!(words_in(&answer[..cut]), None);
        }
        answer[6..8].fill(0);
        assert_eq!(words_in(&answer), None);
    }

    #[test]
    fn the_request_says_how_long_it_is() {
        let message = set_program(7, 9);
        assert_eq!(message[..4], (message.len() as u32).to_ne_bytes());
    }
}
