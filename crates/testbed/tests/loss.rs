//! Losses on purpose: the right share, of the right datagrams, both ways, and none afterwards.

#[path = "../../datapath/tests/common/mod.rs"]
mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::netns::Namespace;
use weft_testbed::loss::Loss;

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);

/// How many of 1000 datagrams to `port` of the loopback interface come back as echoes. Without a wait for each of them: on
/// loopback it is there, or lost, as soon as it is sent, but for a moment now and then.
fn echoes(server: &UdpSocket, port: u16, wait: Option<Duration>) -> usize {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut buffer = [0; 16];
    // What came too late to count is not of this round.
    server.set_nonblocking(true).unwrap();
    while server.recv(&mut buffer).is_ok() {}
    for socket in [&client, server] {
        socket.set_nonblocking(wait.is_none()).unwrap();
        socket.set_read_timeout(wait).unwrap();
    }
    let mut back = 0;
    for _ in 0..1000 {
        client.send_to(&[7; 10], ("127.0.0.1", port)).unwrap();
        if let Ok((length, from)) = server.recv_from(&mut buffer) {
            server.send_to(&buffer[..length], from).unwrap();
        }
        back += usize::from(client.recv(&mut buffer).is_ok());
    }
    back
}

#[test]
fn a_share_of_one_ports_datagrams_is_lost() {
    if !weft_needs::root() {
        return;
    }
    let namespace = Namespace::new("loss", "a");
    namespace.enter(|| {
        let server = |address: &str| UdpSocket::bind(address).unwrap();
        let (lossy, spared) = (server("127.0.0.1:5300"), server("127.0.0.1:5301"));
        let loss = Loss::attach("lo", 5300, 30).unwrap();
        let back = echoes(&lossy, 5300, None);
        // Both ways are in each echo, and loopback shows the outgoing one to both hooks: between 0.7^2 and 0.7^4.
        assert!((180..600).contains(&back), "{back}");
        assert_eq!(echoes(&spared, 5301, Some(WAIT)), 1000);
        let counters = loss.counters().unwrap();
        let count = |name| counters.iter().find(|(known, _)| *known == name).unwrap().1 as f64;
        let share = count("lost") / (count("lost") + count("spared"));
        assert!((0.24..0.36).contains(&share), "{counters:?}");
        assert!(count("passed") >= 2000.0);
        drop(loss);
        assert_eq!(echoes(&lossy, 5300, Some(WAIT)), 1000);
        assert!(Loss::attach("lo", 5300, 101).unwrap_err().to_string().contains("choose 0 to 100"));
        assert!(Loss::attach("nothing", 5300, 1).is_err());
    });
}
