//! What waits in queues and what they have dropped: one rtnetlink dump of a namespace's root queueing disciplines.
//!
//! The interface's own counters do not see what its queue refuses.

use std::collections::HashMap;
use std::io;

use crate::netlink::{HEADER, NLM_F_REQUEST, NLMSG_ERROR, Rtnetlink, attribute, message, u16_at, u32_at};

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_DONE: u16 = 3;
/// `struct tcmsg`: family and padding, interface index, handle, parent, info.
const TCMSG: usize = 20;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// Places in `struct gnet_stats_queue`.
const BACKLOG_AT: usize = 4;
const DROPS_AT: usize = 8;

/// A root queueing discipline with all that is below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Frames dropped since it was made.
    pub(crate) dropped_frames: u64,
    /// Bytes that wait.
    pub(crate) queued_bytes: u64,
}

/// An open rtnetlink socket; it stays in the namespace it was opened in.
pub(crate) struct QdiscReader(Rtnetlink);

impl QdiscReader {
    pub(crate) fn open() -> io::Result<Self> {
        Rtnetlink::open().map(Self)
    }

    /// The root qdisc of each interface index.
    pub(crate) fn roots(&mut self) -> io::Result<HashMap<u32, Queue>> {
        self.0.send(&message(RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, &[0; TCMSG]))?;
        let mut queues = HashMap::new();
        while !read_messages(self.0.receive()?, &mut queues)? {}
        Ok(queues)
    }
}

/// Adds what one datagram tells; true when it was the last.
fn read_messages(mut data: &[u8], queues: &mut HashMap<u32, Queue>) -> io::Result<bool> {
    while data.len() >= HEADER {
        let length = (u32_at(data, 0) as usize).clamp(HEADER, data.len());
        match u16_at(data, 4) {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => return Err(io::Error::other("the kernel refused to list queueing disciplines")),
            RTM_NEWQDISC if length >= HEADER + TCMSG => {
                let (message, attributes) = data[HEADER..length].split_at(TCMSG);
                if u32_at(message, 12) == TC_H_ROOT {
                    queues.insert(u32_at(message, 4), queue(attributes).unwrap_or_default());
                }
            }
            _ => {}
        }
        data = &data[length.next_multiple_of(4).min(data.len())..];
    }
    Ok(false)
}

fn queue(attributes: &[u8]) -> Option<Queue> {
    let queue = attribute(attribute(attributes, TCA_STATS2)?, TCA_STATS_QUEUE)?;
    let at = |place: usize| u64::from(u32_at(queue, place));
    (queue.len() >= DROPS_AT + 4).then(|| Queue { dropped_frames: at(DROPS_AT), queued_bytes: at(BACKLOG_AT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut out = ((payload.len() + 4) as u16).to_ne_bytes().to_vec();
        out.extend(kind.to_ne_bytes());
        out.extend(payload);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    fn qdisc(interface: u32, parent: u32, backlog: u32, drops: u32) -> Vec<u8> {
        let queue: Vec<u8> = [1, backlog, drops, 3, 4].iter().flat_map(|value: &u32| value.to_ne_bytes()).collect();
        let mut body = vec![0; 4];
        body.extend(interface.to_ne_bytes());
        body.extend([0; 4]);
        body.extend(parent.to_ne_bytes());
        body.extend([0; 4]);
        body.extend(tlv(1, b"tbf\0"));
        body.extend(tlv(TCA_STATS2, &[tlv(1, &[0; 12]), tlv(TCA_STATS_QUEUE, &queue)].concat()));
        message(RTM_NEWQDISC, 0, &body)
    }

    #[test]
    fn only_root_qdiscs_count() {
        let mut queues = HashMap::new();
        let data = [qdisc(3, TC_H_ROOT, 1514, 17), qdisc(3, 0x10001, 98, 99), qdisc(4, TC_H_ROOT, 0, 0)].concat();
        assert!(!read_messages(&data, &mut queues).unwrap());
        assert!(read_messages(&message(NLMSG_DONE, 0, &[0; 4]), &mut queues).unwrap());
        let full = Queue { dropped_frames: 17, queued_bytes: 1514 };
        assert_eq!(queues, HashMap::from([(3, full), (4, Queue::default())]));
    }

    #[test]
    fn cut_and_nonsensical_messages_are_survived() {
        let whole = qdisc(3, TC_H_ROOT, 1514, 17);
        for cut in 0..whole.len() {
            let _ = read_messages(&whole[..cut], &mut HashMap::new());
        }
        for byte in 0..whole.len() {
            let mut bad = whole.clone();
            bad[byte] ^= 0xff;
            let _ = read_messages(&bad, &mut HashMap::new());
        }
        assert!(read_messages(&message(NLMSG_ERROR, 0, &[0; 20]), &mut HashMap::new()).is_err());
    }
}
