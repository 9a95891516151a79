//! Stations, routers and questions in virtual time.

use super::*;
use weft_wire::ethernet::MacAddress;
use weft_wire::listener::Group;

const A: MacAddress = MacAddress([0x01, 0x00, 0x5e, 1, 2, 3]);
const B: MacAddress = MacAddress([0x01, 0x00, 0x5e, 1, 2, 4]);
const C: MacAddress = MacAddress([0x33, 0x33, 0, 1, 0, 3]);
const VLAN: u16 = 10;

/// A snooper of two access ports of VLAN 10 and a trunk of 10 and 20, in virtual time.
struct Bed {
    snooper: Snooper,
    now_ns: u64,
    asked: Vec<(u64, u8, u16, Family)>,
    changes: usize,
}

impl Bed {
    fn new(asks: bool) -> Self {
        let access = VlanSet::of_ranges(&[(VLAN, VLAN)]);
        let trunk = [VLAN, 20].into_iter().collect();
        let ports = [(1, access.clone()), (2, access), (3, trunk)].into();
        let snooper = Snooper::new(Config { asks, ..Config::default() }, &ports);
        let mut bed = Self { snooper, now_ns: 0, asked: Vec::new(), changes: 0 };
        (1..=3).for_each(|port| bed.put(Input::PortUp(port)));
        bed
    }

    fn put(&mut self, input: Input<'_>) {
        let mut outputs = Vec::new();
        self.snooper.handle(self.now_ns, input, &mut outputs);
        for output in outputs {
            match output {
                Output::Ask { port, vlan, family, .. } => self.asked.push((self.now_ns / NS_PER_S, port, vlan, family)),
                Output::Changed => self.changes += 1,
            }
        }
    }

    fn hear(&mut self, port: u8, message: Message) {
        self.put(Input::Heard { port, vlan: VLAN, is_from_tree: false, family: Family::Ipv4, message: &message });
        self.wait_ns(GATHER_NS);
    }

    fn report(&mut self, port: u8, group: MacAddress, listens: bool) {
        self.hear(port, Message::Report(vec![Change { group, listens }]));
    }

    fn wait_s(&mut self, seconds: u64) {
        self.wait_ns(seconds * NS_PER_S);
    }

    fn wait_ns(&mut self, pause_ns: u64) {
        let until_ns = self.now_ns + pause_ns;
        while let Some(at_ns) = self.snooper.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
            assert!(at_ns > self.now_ns, "a deadline that has passed is over");
            self.now_ns = at_ns;
            self.put(Input::Deadline);
        }
        self.now_ns = until_ns;
    }

    fn groups(&self, port: u8) -> Vec<MacAddress> {
        self.snooper.by_port()[&port].groups.iter().map(|group| group.mac).collect()
    }

    fn wants_all(&self, port: u8) -> bool {
        self.snooper.by_port()[&port].all_ipv4.contains(VLAN)
    }
}

fn query(is_router: bool) -> Message {
    Message::Query { response_ms: 10_000, group: None, is_router }
}

#[test]
fn nothing_is_pruned_before_stations_had_the_time_to_answer() {
    let mut bed = Bed::new(true);
    let first: Vec<_> = bed.asked.iter().map(|(_, port, vlan, family)| (*port, *vlan, *family)).collect();
    let both = |port, vlan| Family::ALL.map(|family| (port, vlan, family));
    assert_eq!(first, [both(1, 10), both(2, 10), both(3, 10), both(3, 20)].concat());
    bed.report(1, A, true);
    bed.wait_s(10);
    assert!((1..=3).all(|port| bed.wants_all(port)));
    bed.wait_s(1);
    assert!((1..=3).all(|port| !bed.wants_all(port)));
    assert_eq!((bed.groups(1), bed.groups(2), bed.groups(3)), (vec![A], vec![], vec![]));
    let all = bed.snooper.all();
    assert!(all.all_ipv4.is_empty() && all.all_ipv6.is_empty());
    assert_eq!(all.groups, [Group { vlan: VLAN, mac: A }].into());
    bed.wait_s(400);
    let times: Vec<u64> =
        bed.asked.iter().filter(|asked| (asked.1, asked.3) == (1, Family::Ipv4)).map(|asked| asked.0).collect();
    assert_eq!(times, [0, 31, 156, 281, 406]);
}

#[test]
fn who_does_not_say_it_again_listens_no_more() {
    let mut bed = Bed::new(true);
    bed.wait_s(20);
    bed.report(1, A, true);
    bed.wait_s(200);
    bed.report(1, A, true);
    bed.wait_s(259);
    assert_eq!(bed.groups(1), [A]);
    bed.wait_s(1);
    assert_eq!(bed.groups(1), []);
}

#[test]
fn who_leaves_is_gone_unless_another_is_there_who_is_asked() {
    let mut bed = Bed::new(true);
    bed.wait_s(20);
    bed.report(3, A, true);
    bed.report(3, B, true);
    bed.asked.clear();
    bed.report(3, A, false);
    bed.report(3, MacAddress([0x01, 0x00, 0x5e, 9, 9, 9]), false);
    assert_eq!(bed.asked, [(20, 3, VLAN, Family::Ipv4)], "at once, for the group that there was");
    bed.report(3, B, false);
    bed.report(3, B, false);
    bed.wait_s(1);
    assert_eq!(bed.asked.len(), 2, "no more often than once a second");
    bed.report(3, B, true);
    bed.wait_s(2);
    assert_eq!(bed.groups(3), [B], "somebody answered");
    let mut outputs = Vec::new();
    bed.snooper.handle(
        bed.now_ns,
        Input::Heard {
            message: &Message::Report(vec![Change { group: B, listens: false }]),
            port: 3,
            vlan: VLAN,
            is_from_tree: false,
            family: Family::Ipv4,
        },
        &mut outputs,
    );
    assert_eq!(outputs, [Output::Ask { port: 3, vlan: VLAN, family: Family::Ipv4, response_ns: NS_PER_S }]);
}

#[test]
fn a_router_gets_all_and_one_that_falls_silent_does_not() {
    let mut bed = Bed::new(false);
    assert!(bed.asked.is_empty());
    bed.wait_s(1000);
    assert!(bed.wants_all(1), "nobody has ever asked");
    bed.hear(2, query(true));
    bed.wait_s(11);
    assert_eq!([1, 2, 3].map(|port| bed.wants_all(port)), [false, true, false]);
    assert!(bed.snooper.by_port()[&1].all_ipv6.contains(VLAN), "of IPv6 nobody has asked");
    bed.hear(2, query(false));
    bed.wait_s(244);
    assert!(!bed.wants_all(2), "a bridge asks in its place");
    assert!(!bed.wants_all(1));
    bed.hear(1, Message::Router);
    assert!(bed.wants_all(1));
    bed.wait_s(12);
    assert!(bed.wants_all(3), "nobody has asked for twice the interval and half a response");
}

#[test]
fn a_question_from_another_rbridge_is_answered_here_and_its_router_is_not_here() {
    let mut bed = Bed::new(false);
    let message = query(true);
    let by_tree = Input::Heard { port: 9, vlan: VLAN, is_from_tree: true, family: Family::Ipv4, message: &message };
    bed.put(by_tree);
    bed.report(1, A, true);
    bed.wait_s(11);
    assert_eq!([1, 2, 3].map(|port| bed.wants_all(port)), [false; 3]);
    assert_eq!(bed.groups(1), [A]);
}

#[test]
fn a_port_that_comes_back_is_a_new_one() {
    let mut bed = Bed::new(true);
    bed.wait_s(20);
    bed.report(1, A, true);
    bed.put(Input::PortDown(1));
    bed.wait_ns(GATHER_NS);
    assert!(bed.wants_all(1) && bed.groups(1).is_empty());
    bed.wait_s(5);
    bed.asked.clear();
    bed.put(Input::PortUp(1));
    assert_eq!(bed.asked.len(), 2);
    bed.wait_s(10);
    assert!(bed.wants_all(1));
    bed.wait_ns(NS_PER_S + GATHER_NS);
    assert!(!bed.wants_all(1));
}

#[test]
fn more_groups_than_are_kept_mean_all() {
    let mut bed = Bed::new(true);
    bed.wait_s(20);
    let group = |n: u16| MacAddress([0x01, 0x00, 0x5e, 1, (n >> 8) as u8, n as u8]);
    let changes = |range: std::ops::Range<u16>| range.map(|n| Change { group: group(n), listens: true }).collect();
    bed.hear(1, Message::Report(changes(0..PORT_GROUPS_MAX as u16)));
    assert_eq!((bed.groups(1).len(), bed.wants_all(1)), (PORT_GROUPS_MAX, false));
    bed.hear(1, Message::Report(changes(0..1000)));
    assert!(bed.wants_all(1) && !bed.wants_all(2));
    assert_eq!(bed.snooper.counters().get(Snooped::Full), 1000 - PORT_GROUPS_MAX as u64);
    bed.report(2, A, true);
    assert_eq!(bed.groups(2), [A], "another port has room");
    bed.wait_s(260);
    assert!(!bed.wants_all(1) && bed.groups(1).is_empty());
}

#[test]
fn what_is_everybodys_or_of_the_other_family_or_elsewhere_changes_nothing() {
    let mut bed = Bed::new(true);
    bed.wait_s(20);
    bed.changes = 0;
    bed.report(1, MacAddress([0x01, 0x00, 0x5e, 0, 0, 251]), true);
    bed.report(1, C, true);
    bed.report(7, A, true);
    bed.hear(7, Message::Router);
    assert_eq!((bed.changes, bed.snooper.counters().get(Snooped::OtherVlan)), (0, 2));
    let message = Message::Report(vec![Change { group: C, listens: true }]);
    bed.put(Input::Heard { port: 3, vlan: 20, is_from_tree: false, family: Family::Ipv6, message: &message });
    bed.wait_ns(GATHER_NS);
    assert_eq!(bed.snooper.by_port()[&3].groups, [Group { vlan: 20, mac: C }].into());
    bed.wait_s(1);
    assert_eq!(bed.changes, 1);
}
