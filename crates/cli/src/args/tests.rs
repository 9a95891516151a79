//! What help and documents print as examples can be typed.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser};

use super::Cli;

/// Every command that does something, with its words.
fn leaves(command: &Command, words: &str, found: &mut Vec<(String, String)>) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let words = format!("{words} {}", sub.get_name());
        if sub.has_subcommands() {
            leaves(sub, &words, found);
        } else {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            found.push((words, help));
        }
    }
}

/// The part of a line that weft reads: no prompt, no remark, nothing of other programs.
fn typed(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    let line = ["$ ", "sudo "].iter().fold(line, |line, prompt| line.strip_prefix(prompt).unwrap_or(line));
    if !line.starts_with("weft ") {
        return None;
    }
    let end = ["   ", " #", " |", " &", " >", " 2>", ";"].iter().filter_map(|mark| line.find(mark)).min();
    let words = split(&line[..end.unwrap_or(line.len())]);
    // `show vni|fdb` and `[-o csv]` say what there is; nobody types them.
    let grammar = words.iter().any(|word| word.contains('|') || word.starts_with('['));
    (!grammar).then_some(words)
}

/// Words as a shell takes them.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for character in line.chars() {
        let word = words.last_mut().expect("there is one");
        match (quote, character) {
            (Some(mark), _) if mark == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ') if word.is_empty() => {}
            (None, ' ') => words.push(String::new()),
            _ => word.push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Why clap does not read the words, if it does not.
fn refused(words: &[String]) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    error.use_stderr().then(|| format!("{}: {error}", words.join(" ")))
}

#[test]
fn every_command_has_examples_of_itself_that_can_be_typed() {
    let mut found = Vec::new();
    leaves(&Cli::command(), "weft", &mut found);
    assert!(found.len() > 40, "{found:?}");
    for (words, help) in &found {
        assert!(help.lines().any(|line| line.trim_start().starts_with(words)), "`{words} --help` has no example");
        let problems: Vec<String> = help.lines().filter_map(typed).filter_map(|words| refused(&words)).collect();
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn documents_name_commands_that_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut commands = 0;
    for document in documents(&root) {
        let text = std::fs::read_to_string(&document).expect("it is there");
        let blocks = text.split("```").skip(1).step_by(2);
        let shell = blocks.filter(|block| block.starts_with("sh\n") || block.starts_with("console\n"));
        for words in shell.flat_map(str::lines).filter_map(typed) {
            commands += 1;
            assert_eq!(refused(&words), None, "{}", document.display());
        }
    }
    assert!(commands > 20, "{commands}");
}

fn documents(root: &Path) -> Vec<PathBuf> {
    let entries = |folder: &str| std::fs::read_dir(root.join(folder)).expect("the folder is there");
    let files = ["", "docs", "plans"].into_iter().flat_map(entries).map(|entry| entry.expect("it can be read").path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect()
}
