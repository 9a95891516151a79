//! Deployments that are written are read by the daemons; files that cannot be are refused with their lines.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::agent::AgentConfig;
use crate::directory::DirectoryConfig;
use crate::directory::protocol::RulesRow;
use crate::rbridge::RBridgeConfig;
use crate::settings_file::read;
use crate::switch::SwitchConfig;
use crate::tor::TorConfig;
use crate::vtep::VtepConfig;

/// A folder with a file and, beside it, what is written.
struct Bed {
    dir: TempDir,
    network: Network,
}

impl Bed {
    fn new(network: Network) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), network }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn write(&self, text: &str) -> Result<Summary, NodeError> {
        let hosts = self.dir.path().join("HOSTS.toml");
        fs::write(&hosts, text).unwrap();
        write(self.network, &hosts, &self.out(), false)
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.out().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Every file with its text.
    fn all(&self) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        collect(&self.out(), &mut files);
        files
    }
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
}

fn edit(network: Network, from: &str, to: &str) -> String {
    assert!(network.example().contains(from), "`{from}` is not in the example");
    network.example().replacen(from, to, 1)
}

#[test]
fn daemons_read_what_is_written() {
    let bed = Bed::new(Network::Vl2);
    bed.write(Network::Vl2.example()).unwrap();
    let file = |name: &str| bed.out().join(name);
    let agent: AgentConfig = read(&file("srv2/agent.toml")).unwrap();
    assert_eq!((agent.la, agent.own_tor_la), (Ipv4Addr::new(10, 64, 1, 2), Ipv4Addr::new(10, 1, 0, 2)));
    let directory: DirectoryConfig = read(&file("dir1/directory.toml")).unwrap();
    assert_eq!(directory.tor_las.unwrap().len(), 2);
    let switch: SwitchConfig = read(&file("tor1/switch.toml")).unwrap();
    assert_eq!(
        (switch.ports, switch.host_ports),
        (vec!["eth1".to_owned()], vec!["eth2".to_owned(), "eth3".to_owned()])
    );
    let reporter: TorConfig = read(&file("tor1/tor.toml")).unwrap();
    assert_eq!(reporter.la, Ipv4Addr::new(10, 1, 0, 1));
    let bed = Bed::new(Network::Vxlan);
    bed.write(Network::Vxlan.example()).unwrap();
    read::<VtepConfig>(&bed.out().join("host2/vtep.toml")).unwrap().settings().unwrap();
    let bed = Bed::new(Network::Trill);
    bed.write(Network::Trill.example()).unwrap();
    assert_eq!(read::<RBridgeConfig>(&bed.out().join("s2/rbridge.toml")).unwrap().port.len(), 4);
    crate::rbridge::parse_keys(&bed.text("s3/campus.keys")).unwrap();
}

/// Whatever becomes of its floods: `members` alone says who may send into a segment.
#[test]
fn a_vtep_hears_each_segment_from_those_that_have_it() {
    let bed = Bed::new(Network::Vxlan);
    let alone = "\n[[vtep]]\nname = \"host4\"\nlocal = \"10.64.0.5\"\nuplinks = [\"eth1\"]\nports = { vm1 = 300 }\n";
    bed.write(&(Network::Vxlan.example().to_owned() + alone)).unwrap();
    for (host, expected) in [
        ("host1", vec![vec![3], vec![3, 4]]),
        ("host2", vec![vec![2], vec![2, 4]]),
        ("host3", vec![vec![2, 3]]),
        ("host4", vec![vec![]]),
    ] {
        let config: VtepConfig = read(&bed.out().join(host).join("vtep.toml")).unwrap();
        config.settings().unwrap();
        let members = config.vni.iter().map(|segment| {
            let named = segment.members.as_ref().expect("they are named");
            named.iter().map(|member| member.octets()[3]).collect::<Vec<_>>()
        });
        assert_eq!(members.collect::<Vec<_>>(), expected, "{host}");
    }
}

#[test]
fn a_host_has_its_own_secrets_and_no_others() {
    let bed = Bed::new(Network::Vl2);
    let summary = bed.write(&edit(Network::Vl2, "mtu = 1540", "tls_port = 5310\nmtu = 1540")).unwrap();
    let secret = crate::key::read_secret(&bed.out().join("operator/directory.key")).unwrap();
    for (host, file, la) in [("srv1", "agent.key", [10, 64, 0, 2]), ("tor2", "tor.key", [10, 1, 0, 2])] {
        assert_eq!(bed.text(&format!("{host}/{file}")).trim(), secret.derive(0, la.into()).to_hex());
    }
    let whose = |text: &str| {
        let with = bed.all().into_iter().filter(|(_, content)| content.contains(text));
        let mut hosts: Vec<String> = with.map(|(path, _)| host_of(&bed, &path)).collect();
        hosts.sort();
        hosts
    };
    assert_eq!(whose(bed.text("operator/directory.key").trim()), ["dir1", "operator"]);
    assert_eq!(whose(bed.text("srv1/agent.key").trim()), ["srv1"]);
    assert_eq!(whose(bed.text("operator/tls/ca.key").trim()), ["operator"]);
    assert_eq!(whose(bed.text("operator/tls/server.key").trim()), ["dir1", "operator"]);
    for host in &summary.hosts {
        for FileSummary { file, mode } in &host.files {
            let path = bed.out().join(&host.host).join(file);
            let actual = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let wanted = if file.ends_with(".key") { 0o600 } else { 0o644 };
            assert_eq!((actual, mode.as_str()), (wanted, &*format!("{wanted:04o}")), "{}", path.display());
        }
    }
    assert_eq!(fs::metadata(bed.out()).unwrap().permissions().mode() & 0o777, 0o700);
}

fn host_of(bed: &Bed, path: &Path) -> String {
    let inside = path.strip_prefix(bed.out()).unwrap();
    inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned()
}

#[test]
fn written_again_secrets_stay_and_hosts_that_are_gone_go() {
    let bed = Bed::new(Network::Vl2);
    let example = edit(Network::Vl2, "mtu = 1540", "tls_port = 5310\nmtu = 1540");
    bed.write(&example).unwrap();
    let before = ["operator/directory.key", "operator/tls/ca.key", "srv1/agent.key"].map(|file| bed.text(file));
    let less = example.replace("name = \"srv1\"", "name = \"srv9\"");
    bed.write(&less).unwrap();
    assert_eq!(["operator/directory.key", "operator/tls/ca.key", "srv9/agent.key"].map(|file| bed.text(file)), before);
    assert!(!bed.out().join("srv1").exists() && bed.dir.path().read_dir().unwrap().count() == 2);
    fs::rename(bed.out(), bed.dir.path().join("out.old")).unwrap();
    bed.write(&less).unwrap();
    assert_eq!(bed.text("operator/directory.key"), before[0], "a run that was interrupted lost the secrets");
    let error = bed.write(&less.replace("mtu = 1540", "mtu = 1")).unwrap_err();
    assert!(error.to_string().contains("mtu") && bed.out().join("srv9").exists(), "{error}");
}

#[test]
fn files_that_were_changed_by_hand_are_refused_by_name_and_line_and_replaced_by_force() {
    for (network, file) in [
        (Network::Vl2, "srv1/agent.toml"),
        (Network::Vxlan, "host1/vtep.toml"),
        (Network::Trill, "s2/rbridge.toml"),
        (Network::Vxlan, "host3/network.sh"),
    ] {
        let bed = Bed::new(network);
        bed.write(network.example()).unwrap();
        bed.write(network.example()).unwrap();
        let written = bed.text(file);
        let edited = format!("# mine\n{written}");
        fs::write(bed.out().join(file), &edited).unwrap();
        let error = bed.write(network.example()).unwrap_err().to_string();
        let told = format!("{file}: was changed since `weft init` wrote it (line 1: `# mine`); ");
        assert!(error.contains(&told) && error.contains("--force") && !error.contains('\n'), "{error}");
        assert_eq!(bed.text(file), edited, "a refusal has changed it");
        let hosts = bed.dir.path().join("HOSTS.toml");
        write(network, &hosts, &bed.out(), true).unwrap();
        assert_eq!(bed.text(file), written);
        // A file that was changed into what is written anyway is not refused.
        bed.write(network.example()).unwrap();
    }
}

#[test]
fn metrics_are_where_the_file_says_on_every_host() {
    let bed = Bed::new(Network::Vl2);
    let with = |network: Network| {
        let text = network.example().replace("# http_listen", "http_listen");
        assert_ne!(text, network.example(), "the example does not have it");
        text
    };
    bed.write(&with(Network::Vl2)).unwrap();
    for (file, port) in [
        ("srv1/agent.toml", 9541),
        ("dir1/directory.toml", 9542),
        ("tor1/switch.toml", 9543),
        ("int1/switch.toml", 9543),
        ("tor1/tor.toml", 9544),
    ] {
        let line = format!("http_listen = \"127.0.0.1:{port}\"");
        assert!(bed.text(file).lines().any(|one| one == line), "{file}: {}", bed.text(file));
    }
    for (network, file, port) in [(Network::Vxlan, "host2/vtep.toml", 9545), (Network::Trill, "s1/rbridge.toml", 9546)]
    {
        let bed = Bed::new(network);
        bed.write(network.example()).unwrap();
        assert!(!bed.text(file).contains("http_listen"), "nowhere without it");
        bed.write(&with(network)).unwrap();
        assert!(bed.text(file).contains(&format!("http_listen = \"127.0.0.1:{port}\"")), "{}", bed.text(file));
    }
}

#[test]
fn folders_of_others_are_left_alone() {
    let bed = Bed::new(Network::Trill);
    fs::create_dir(bed.out()).unwrap();
    bed.write(Network::Trill.example()).unwrap();
    let hosts = bed.dir.path().join("HOSTS.toml");
    fs::write(&hosts, Network::Vxlan.example()).unwrap();
    let error = write(Network::Vxlan, &hosts, &bed.out(), false).unwrap_err().to_string();
    assert!(error.contains("weft init trill"), "{error}");
    let other = bed.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter"), "dear").unwrap();
    let error = write(Network::Vxlan, &hosts, &other, false).unwrap_err().to_string();
    assert!(error.contains("not empty") && other.join("letter").exists(), "{error}");
}

#[test]
fn the_page_about_vl2_is_the_examples_network() {
    let page = include_str!("../../../../docs/vl2.md");
    assert!(
        page.contains(Network::Vl2.example()),
        "docs/vl2.md has another hosts.toml than `weft init vl2 --print-example`"
    );
}

#[test]
fn a_vtep_knows_those_that_share_its_segments() {
    let bed = Bed::new(Network::Vxlan);
    bed.write(Network::Vxlan.example()).unwrap();
    let peers = |host: &str| {
        let config: VtepConfig = read(&bed.out().join(host).join("vtep.toml")).unwrap();
        let ids = config.vni.iter().map(|table| table.id.clone().unwrap());
        (config.peers.iter().map(|peer| peer.octets()[3]).collect::<Vec<_>>(), ids.collect::<Vec<_>>())
    };
    use crate::vtep::VniIds::One;
    assert_eq!(peers("host1"), (vec![3, 4], vec![One(100), One(200)]));
    assert_eq!(peers("host3"), (vec![2, 3], vec![One(200)]));
}

#[test]
fn services_are_told_to_the_first_directory_server() {
    let bed = Bed::new(Network::Vl2);
    let services = "[[service]]\nnumber = 7\naa_ranges = [\"20.0.0.0/24\"]\nmay_reach = [8]\n[[service]]\nnumber = 8\n";
    let example = Network::Vl2.example().replace("aa = \"20", "service = 7\naa = \"20");
    bed.write(&(example + services)).unwrap();
    assert!(bed.text("dir1/fill.sh").contains("weft directory policy allow 7 8\n"));
    let rules = RulesRow { aa_block: "20.0.0.0/8".to_owned(), tor_las: None };
    let mappings = crate::client::bulk::read(&bed.text("dir1/mappings.csv"), &rules).unwrap();
    let expected =
        [([20, 0, 0, 1], [10, 1, 0, 1]), ([20, 0, 0, 2], [10, 1, 0, 2])].map(|(aa, tor)| (aa.into(), tor.into(), 7));
    assert_eq!(mappings.iter().map(|row| (row.aa, row.tor_la, row.service)).collect::<Vec<_>>(), expected);
}

/// A file with one mistake, and what is said of it.
fn refusal(network: Network, text: &str) -> String {
    let file = HostsFile::of_text(text);
    let vault = tree::Vault::open(network, Path::new("/nonexistent/out")).unwrap();
    match deployment(network, &file, &vault) {
        Ok(_) => "taken".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn mistakes_are_refused_with_line_and_key() {
    let vl2 = [
        ("mtu = 1540", "mtu = 1520"),
        ("mtu = 1540", "mtu = \"large\""),
        ("mtu = 1540", "mut = 1540"),
        ("mtu = 1540", "mtu = 1540\naa_block = \"100.64.0.0/12\""),
        ("mtu = 1540", "mtu = 1540\nla_block = \"0.0.0.0/0\""),
        ("mtu = 1540", "mtu = 1540\ngateway_mac = \"02:56\""),
        ("name = \"srv2\"", "name = \"srv1\""),
        ("name = \"srv2\"", "name = \"operator\""),
        ("name = \"srv2\"", "name = \"srv/2\""),
        ("la = \"10.64.1.2\"", "la = \"10.64.0.2\""),
        ("la = \"10.64.1.2\"", "la = \"20.0.0.7\""),
        ("la = \"10.64.1.2\"", "la = \"10.64.1\""),
        ("aa = \"20.0.0.2\"", "aa = \"20.0.0.1\""),
        ("aa = \"20.0.0.2\"", "aa = \"10.64.1.3\""),
        ("tor = \"tor2\"", "tor = \"tor7\""),
        ("tor_port = \"eth3\"", "tor_port = \"eth2\""),
        ("tor_port = \"eth3\"", "tor_port = \"eth1\""),
        ("tor_port = \"eth3\"", "tor_port = \"an-interface-too-long\""),
        ("10.128.0.3/31", "10.128.0.5/31"),
        ("10.128.0.3/31", "10.128.0.3"),
        ("10.128.0.3/31", "10.128.0.1/31"),
        ("aa = \"20.0.0.2\"", "aa = \"20.0.0.2\"\nservice = 7"),
        ("mtu = 1540", "mtu = 1540\nservice = [{ number = 7, may_reach = [9] }]"),
        ("mtu = 1540", "mtu = 1540\nservice = [{ number = 7, aa_ranges = [\"20.0.0.0/24\"] }]"),
        (
            "[[directory]]",
            "[[directory]]\nname = \"dir0\"\ninterface = \"eth1\"\nla = \"10.64.0.8\"\ntor = \"tor2\"\ntor_port = \"eth3\"\n[[directory]]",
        ),
    ];
    let vxlan = [
        ("mtu = 1550", "mtu = 1500"),
        ("10.64.0.3", "10.64.0.2"),
        ("vm1 = 100, vm2", "vm1 = 16777216, vm2"),
        ("\"20=200\"", "\"20-30=200\""),
        ("vm1 = 100, vm2", "eth1 = 100, vm2"),
        ("[\"eth1\"]", "[]"),
    ];
    let trill = [
        ("mtu = 1500", "mtu = 1"),
        ("\"s2:eth1\"]", "\"s9:eth1\"]"),
        ("\"s2:eth1\"]", "\"s1:eth3\"]"),
        ("\"s2:eth1\"]", "\"s2\"]"),
        ("[\"s1:eth2\", \"s3:eth1\"]", "[\"s1:eth1\", \"s3:eth1\"]"),
        ("host1 = 10", "eth1 = 10"),
        ("host1 = 10", "host1 = 5000"),
        ("nickname = 257", "nickname = 0"),
        ("[\"s1:eth1\", \"s2:eth1\"],\n  [\"s1:eth2\", \"s3:eth1\"],\n", ""),
    ];
    let cases = [(Network::Vl2, &vl2[..]), (Network::Vxlan, &vxlan[..]), (Network::Trill, &trill[..])];
    let mut said = String::new();
    for (network, edits) in cases {
        for (from, to) in edits {
            let error = refusal(network, &edit(network, from, to));
            assert!(error != "taken" && !error.contains('\n'), "{to}: {error}");
            said += &format!("{}\n    {error}\n", to.replace('\n', "; "));
        }
    }
    insta::assert_snapshot!(said);
}
