//! `weft fabric`, and fabrics that other commands name.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weft_experiment::fabric::{self, Checked, Facts, drawing};
use weft_experiment::plan::embedded_fabrics;
use weft_scenario::topology::{Fabric, FabricSpec, Generator, to_yaml};

use crate::args::{DrawingFormat, FabricCommand, Output};
use crate::exit::{CLAIM_FAILED, Failure};
use crate::output::{self, Rows};

pub(crate) fn fabric(command: &FabricCommand) -> Result<ExitCode, Failure> {
    match command {
        FabricCommand::List { output } => list(output.output),
        FabricCommand::Make { fabric, write, force } => make(fabric, write.as_deref(), *force),
        FabricCommand::Check { fabric, output } => check(fabric, output.output),
        FabricCommand::Draw { fabric, format } => draw(fabric, *format),
    }
}

/// Reads or makes the fabric that a word of the command line names.
pub(super) fn read(word: &str) -> Result<Fabric, Failure> {
    fabric::read(word).map_err(Failure::usage)
}

/// What a word of the command line names, not yet read or made.
pub(super) fn named(word: &str) -> Result<FabricSpec, Failure> {
    fabric::named(word).map_err(|error| Failure::usage(format!("fabric `{word}`: {error}")))
}

#[derive(Serialize)]
struct List {
    schema_version: u32,
    fabrics: Vec<&'static str>,
    generators: Vec<GeneratorRow>,
}

#[derive(Serialize)]
struct GeneratorRow {
    name: &'static str,
    keys: &'static [&'static str],
    example: &'static str,
}

fn list(format: Output) -> Result<ExitCode, Failure> {
    let mut rows = Rows::new(&["fabric", "kind", "parameters"]);
    let fabrics: Vec<&str> = embedded_fabrics().collect();
    for name in &fabrics {
        rows.push(vec![(*name).to_owned(), "comes with weft".to_owned(), String::new()]);
    }
    let row = |generator: Generator| GeneratorRow {
        name: generator.name(),
        keys: generator.keys(),
        example: generator.example(),
    };
    let generators: Vec<GeneratorRow> = Generator::ALL.into_iter().map(row).collect();
    for generator in &generators {
        rows.push(vec![generator.example.to_owned(), "generator".to_owned(), generator.keys.join(", ")]);
    }
    output::print(format, &rows, &List { schema_version: 1, fabrics, generators })?;
    Ok(ExitCode::SUCCESS)
}

fn make(word: &str, file: Option<&Path>, force: bool) -> Result<ExitCode, Failure> {
    let text = to_yaml(&read(word)?);
    let Some(file) = file else {
        output::print_line(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut options = OpenOptions::new();
    options.write(true);
    // Without --force nobody's file is opened, not even one that comes between.
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!("{} is there already; --force replaces it", file.display())),
        _ => Failure::failed(format!("cannot write {}: {error}", file.display())),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn check(word: &str, format: Output) -> Result<ExitCode, Failure> {
    let checked = fabric::check(word).map_err(Failure::usage)?;
    match (format, &checked.fabric) {
        (Output::Table, Some(facts)) => output::print_line(&in_words(facts))?,
        (Output::Table, None) => {
            for mistake in &checked.mistakes {
                output::print_line(&format!("{}: {}", mistake.place, mistake.message))?;
            }
        }
        _ => output::print(format, &mistakes(&checked), &checked)?,
    }
    match checked.mistakes.len() {
        0 => Ok(ExitCode::SUCCESS),
        1 => Err(Failure::new(CLAIM_FAILED, format!("{word} has a mistake"))),
        count => Err(Failure::new(CLAIM_FAILED, format!("{word} has {count} mistakes"))),
    }
}

fn mistakes(checked: &Checked) -> Rows {
    let mut rows = Rows::new(&["place", "mistake"]);
    for mistake in &checked.mistakes {
        rows.push(vec![mistake.place.clone(), mistake.message.clone()]);
    }
    rows
}

/// What is in a fabric, for people.
fn in_words(facts: &Facts) -> String {
    let roles: Vec<String> = facts.roles.iter().map(|(role, count)| format!("{count} {role}")).collect();
    let ratio = match facts.oversubscription {
        None => String::new(),
        Some(ratio) if ratio <= 1.0 => ", not oversubscribed at the edge".to_owned(),
        Some(ratio) => format!(", oversubscribed {ratio:.3}:1 at the edge"),
    };
    format!(
        "{} is a fabric: {} nodes ({}), {} links\nservers send {} in all{ratio}; overlay unless another is asked for: {}",
        facts.name,
        facts.nodes,
        roles.join(", "),
        facts.links,
        facts.server_rate,
        facts.overlay
    )
}

fn draw(word: &str, format: DrawingFormat) -> Result<ExitCode, Failure> {
    let fabric = read(word)?;
    let drawn = match format {
        DrawingFormat::Text => drawing::text(&fabric),
        DrawingFormat::Dot => drawing::dot(&fabric),
        DrawingFormat::Svg => drawing::svg(&fabric),
    };
    output::print_line(&drawn)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use weft_scenario::engine::Overlay;

    use super::*;

    #[test]
    fn every_shipped_fabric_has_an_overlay_that_it_can_carry() {
        for (name, overlay) in [
            ("vl2-4servers", Overlay::Vl2),
            ("trill-s1-s6", Overlay::RBRIDGE),
            ("leaf-spine-small", Overlay::Routed),
            ("overlay-pair", Overlay::Vl2),
        ] {
            assert_eq!(read(name).expect("it is embedded").default_overlay(), overlay, "{name}");
        }
    }
}
