//! Commands of people in a node of a lab: there the node's name is the host's name, the lab's nodes have names, and `vtysh` talks to
//! the node's own routing daemons.
//!
//! * `names`: what the node's files of names say
//! * `view`: puts these, and what else differs, before the command's eyes alone

mod names;
mod view;

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};

use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::state::{LabState, NodeState};
use view::View;

/// Becomes a command in a node, with this process's input, output and id: whoever ends this process ends the command. The
/// directory of `weft_binary` is on its `PATH`.
///
/// # Errors
/// [`LabError`]: no such lab or node, or a command that cannot be started.
pub fn exec(lab: &str, node: &str, argv: &[OsString], weft_binary: &Path) -> Result<Infallible, LabError> {
    let state = LabState::load(lab)?;
    let (program, arguments) = argv.split_first().ok_or_else(|| no_command(node))?;
    let mut command = Command::new(program);
    command.args(arguments);
    become_in(&state, state.node(node)?, command, weft_binary)
}

/// Becomes the user's shell in a node, as [`exec`] does; its prompt begins with the names of lab and node.
///
/// # Errors
/// [`LabError`]: no such lab or node, or no shell.
pub fn shell(lab: &str, node: &str, weft_binary: &Path) -> Result<Infallible, LabError> {
    let state = LabState::load(lab)?;
    let wanted = std::env::var_os("SHELL").map(PathBuf::from);
    let usable = |shell: &PathBuf| shell.is_absolute() && access(shell, Access::EXEC_OK).is_ok();
    let program = wanted.into_iter().chain(["/bin/bash".into()]).find(usable).unwrap_or_else(|| "/bin/sh".into());
    let command = with_prompt(&program, lab, node);
    become_in(&state, state.node(node)?, command, weft_binary)
}

fn no_command(node: &str) -> LabError {
    LabError::io(format!("run a command in {node}"))(std::io::Error::other("none is named"))
}

fn become_in(
    state: &LabState,
    node: &NodeState,
    mut command: Command,
    weft_binary: &Path,
) -> Result<Infallible, LabError> {
    let view = View::of(state, node)?;
    let path = [Some(view.programs()), weft_binary.parent().map(Path::to_owned)].into_iter().flatten();
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let inherited = std::env::split_paths(&inherited).filter(|folder| !folder.as_os_str().is_empty());
    let path = std::env::join_paths(path.chain(inherited));
    command.env("WEFT_LAB", &state.lab).env("WEFT_NODE", &node.name);
    if let Ok(path) = path {
        command.env("PATH", path);
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = netns::in_namespace(&namespace_path(&node.namespace), || {
        view.put_on()?;
        Ok::<_, LabError>(command.exec())
    })??;
    Err(LabError::io(format!("run `{program}` in {}", node.name))(failed))
}

/// A shell whose prompt says where it is, before whatever the user's own prompt says.
fn with_prompt(program: &Path, lab: &str, node: &str) -> Command {
    let place = format!("({lab}/{node})");
    let mut command = Command::new(program);
    match program.file_name().and_then(OsStr::to_str) {
        Some("bash") => {
            command.arg("--rcfile").arg(view::rc_file(lab));
        }
        Some("fish") => {
            let prompt = format!(
                "functions -c fish_prompt weft_prompt; function fish_prompt; echo -n '{place} '; weft_prompt; end"
            );
            command.args(["-C", &prompt]);
        }
        Some("zsh") => {
            command.env("PS1", format!("{place} %n@%m:%~%# "));
        }
        _ => {
            command.env("PS1", format!("{place} # "));
        }
    }
    command
}

/// What `bash` reads instead of the user's own file, which it reads first.
fn bash_rc(lab: &str, node: &str) -> String {
    format!("[ ! -r ~/.bashrc ] || . ~/.bashrc\nPS1=\"({lab}/{node}) ${{PS1:-\\\\w\\\\$ }}\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_is_told_where_it_is() {
        let of = |shell: &str| {
            let command = with_prompt(Path::new(shell), "blue", "h1");
            let said = |word: &OsStr| word.to_string_lossy().into_owned();
            let words = command.get_args().map(said).collect::<Vec<_>>().join(" ");
            words + &command.get_envs().filter_map(|(_, value)| value.map(said)).collect::<String>()
        };
        assert!(of("/bin/dash").contains("(blue/h1)") && of("/usr/bin/zsh").contains("(blue/h1)"));
        assert!(of("/usr/bin/fish").contains("(blue/h1)"));
        assert!(of("/bin/bash").contains("--rcfile"));
        assert!(bash_rc("blue", "h1").contains("(blue/h1) "), "{}", bash_rc("blue", "h1"));
    }
}
