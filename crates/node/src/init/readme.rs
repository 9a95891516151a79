//! What a host's folder says to people: what to do with it, and which units it enables.

use super::{File, Host, Network};
use crate::runner::DaemonKind;

/// The units of a host.
pub(super) fn units(host: &Host) -> Vec<String> {
    host.daemons.iter().map(|daemon| format!("weft-{}", daemon.word())).collect()
}

/// A script that enables them.
pub(super) fn enable(host: &Host) -> String {
    let mut text = format!("# What {} runs, now and after each boot. Run it as root.\nset -e\n", host.name);
    if host.daemons.contains(&DaemonKind::Directory) {
        text += "# The directory server is nobody but this user.\n";
        let tls = if host.certificate { " /etc/weft/tls/server.key" } else { "" };
        text += &format!("chown weft: /etc/weft/directory.key{tls}\n");
    }
    text + &format!("systemctl enable --now {}\n", units(host).join(" "))
}

/// The steps of a host.
pub(super) fn readme(network: Network, host: &Host) -> String {
    let has = |name: &str| host.files.iter().any(|File { name: known, .. }| *known == name);
    let mut steps =
        vec![format!("Copy this folder to /etc/weft with its modes: scp -pr {}/. root@{0}:/etc/weft", host.name)];
    if has("network.sh") {
        steps.push("`sh /etc/weft/network.sh` after each boot, or the same in your distribution's way.".to_owned());
    }
    if has("frr.conf") {
        steps.push("FRR with /etc/weft/frr.conf, or another routing daemon that announces the same.".to_owned());
    }
    match units(host).as_slice() {
        [] => steps.push("Nothing of weft runs here.".to_owned()),
        units => steps.push(format!("`sh /etc/weft/enable.sh`: {}.", units.join(", "))),
    }
    if has("fill.sh") {
        steps.push("Once, when the directory runs: `sh /etc/weft/fill.sh`.".to_owned());
    }
    let mut text = format!("{}: {}\nWritten by `weft init {}`.\n\n", host.name, host.role, network.word());
    for (number, step) in (1..).zip(steps) {
        text += &format!("{number}. {step}\n");
    }
    text
}
