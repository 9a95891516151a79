//! Links made worse: the right share of their frames is lost, by the seed, a line takes what it carries, and what was there has
//! the rest.

#[path = "../../datapath/tests/common/mod.rs"]
mod common;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::netns::Namespace;
use weft_datapath::bpffs;
use weft_testbed::impair::{self, Impair};
use weft_testbed::loss::Cuts;

/// A bpffs that ends with this value.
struct PinFs(PathBuf);

impl PinFs {
    fn mount(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weft-impair-{name}-{}", std::process::id()));
        assert!(bpffs::ensure_mounted(&path).expect("root may mount"));
        Self(path)
    }

    /// The kernel has files of its own there.
    fn pins(&self) -> usize {
        let names = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| !name.to_string_lossy().ends_with(".debug")).count()
    }
}

impl Drop for PinFs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Which of so many datagrams to the loopback interface come.
fn survivors(datagrams: u16) -> Vec<u16> {
    let (sender, receiver) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    receiver.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let (mut came, mut buffer) = (Vec::new(), [0; 2]);
    for number in 0..datagrams {
        sender.send_to(&number.to_be_bytes(), receiver.local_addr().unwrap()).unwrap();
        // No more than the socket holds; the last ones may be late on a busy machine.
        let is_last = number + 1 == datagrams;
        for _ in 0..if is_last { 20 } else { usize::from(number % 100 == 99) } {
            while receiver.recv(&mut buffer).is_ok() {
                came.push(u16::from_be_bytes(buffer));
            }
        }
    }
    came
}

fn lost(pin: &Path, outcome: &str) -> u64 {
    impair::counters(pin).unwrap().unwrap().into_iter().find(|(name, _)| *name == outcome).unwrap().1
}

#[test]
fn which_frames_are_lost_is_up_to_the_seed() {
    if !weft_needs::root() {
        return;
    }
    let fs = PinFs::mount("seed");
    let pin = fs.0.join("port");
    Namespace::new("impair", "a").enter(|| {
        let with = |loss_percent, seed| {
            Impair { loss_percent, seed, ..Impair::default() }.put(&pin, "lo").unwrap();
            let came = survivors(1000);
            let lost = lost(&pin, "lost");
            impair::take_off(&pin, "lo").unwrap();
            assert_eq!(impair::counters(&pin).unwrap(), None);
            assert_eq!(came.len() as u64 + lost, 1000, "nothing else uses this loopback");
            came
        };
        let [one, again, other] = [7, 7, 8].map(|seed| with(30.0, seed));
        assert_eq!(one, again, "the same seed");
        assert_ne!(one, other, "another seed");
        // Five standard deviations of a binomial distribution.
        assert!((628..773).contains(&one.len()), "{}", one.len());
        assert_eq!(with(100.0, 1), Vec::<u16>::new());
        assert_eq!(survivors(200).len(), 200, "as before");
        assert!(Impair::default().put(&pin, "nothing").is_err());
        assert_eq!(fs.pins(), 0, "no pins are left");
    });
}

#[test]
fn an_xdp_program_has_what_is_not_lost_and_its_place_again_afterwards() {
    if !weft_needs::root() {
        return;
    }
    let fs = PinFs::mount("xdp");
    let pin = fs.0.join("port");
    Namespace::new("impair", "b").enter(|| {
        for line in [
            "link add v0 address 02:00:00:00:00:02 type veth peer name v1",
            "addr add 10.0.0.1/24 dev v1",
            "link set v0 up",
            "link set v1 up",
            "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v1",
        ] {
            assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success(), "{line}");
        }
        let cuts = Cuts::load().unwrap();
        let _behind = cuts.cut_at_xdp("v0").unwrap();
        let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
        // How many of a thousand frames the program has.
        let had = || {
            let before = cuts.frames().unwrap();
            (0..1000).for_each(|_| assert_eq!(socket.send_to(&[7; 1000], "10.0.0.2:9").unwrap(), 1000));
            // Its softirq may be another CPU's.
            let mut after = cuts.frames().unwrap();
            for _ in 0..100 {
                std::thread::sleep(Duration::from_millis(2));
                let now = cuts.frames().unwrap();
                if now == after {
                    break;
                }
                after = now;
            }
            after - before
        };
        assert!((1000..1010).contains(&had()));
        let put = |impair: Impair| impair.put(&pin, "v0").unwrap();
        put(Impair { loss_percent: 30.0, seed: 7, ..Impair::default() });
        let some = had();
        assert!((625..785).contains(&some), "{some}");
        impair::take_off(&pin, "v0").unwrap();
        assert!((1000..1010).contains(&had()), "it has its place again");
        // A line of 8 kbit/s whose queue takes ten frames and the one that is being sent.
        put(Impair { rate_bps: Some(8000), queue_ns: 10 * 1_066_000_000, ..Impair::default() });
        let some = had();
        assert!((10..14).contains(&some), "{some}");
        assert!(lost(&pin, "beyond_rate") >= 985);
        impair::take_off(&pin, "v0").unwrap();
        assert!((1000..1010).contains(&had()));
        assert_eq!(fs.pins(), 0, "no pins are left");
    });
}
