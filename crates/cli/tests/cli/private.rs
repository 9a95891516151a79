//! A machine of a test's own: what labs touch machine-wide (`/run`, `/var/lib`, process ids), private to one test process, so that
//! hostile tests put nobody's files and processes at risk.

use std::process::Command;

use crate::common::one_lab_at_a_time;

const INSIDE: &str = "WEFT_TEST_PRIVATE_MACHINE";

/// Leaves the machine's own places behind. `/var/lib/dpkg` and the like are not needed by anything here.
const PREPARE: &str = "set -e
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
install -d -o frr -g frr /run/frr
exec \"$@\"";

/// Runs the test of this name again, alone, on a machine of its own. True in that run; false in the one that started it, which
/// has seen it pass, or says why it could not be.
pub(crate) fn in_private_machine(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let Some(_turn) = one_lab_at_a_time() else { return false };
    let flags = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"];
    let mut again = Command::new("unshare");
    again.args(flags).args(["sh", "-c", PREPARE, "private"]).arg(std::env::current_exe().expect("a test has a path"));
    again.args(["--exact", test, "--nocapture", "--test-threads", "1"]).env(INSIDE, "1");
    let output = again.output().expect("unshare is part of util-linux");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    eprint!("{said}");
    false
}
