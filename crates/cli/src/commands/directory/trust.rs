//! `weft directory key` and `certs`: what servers, agents and clients need to trust each other.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use weft_node::{certs, key};

use super::failure;
use crate::args::{CertsArgs, KeyArgs};
use crate::exit::Failure;
use crate::output::{self, Rows};

#[derive(Serialize)]
struct KeyReport<'a> {
    schema_version: u32,
    la: std::net::Ipv4Addr,
    service: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a PathBuf>,
}

#[derive(Serialize)]
struct CertsReport {
    schema_version: u32,
    made: Vec<PathBuf>,
}

pub(super) fn key(args: &KeyArgs) -> Result<ExitCode, Failure> {
    let key = key::derive(&args.secret, args.service, args.la).map_err(failure)?;
    if let Some(file) = &args.write {
        key::write(file, &key).map_err(failure)?;
    }
    let text = key.to_hex();
    let shown = args.write.is_none().then(|| text.clone());
    let mut rows = Rows::new(&["LA", "service", if shown.is_some() { "key" } else { "file" }]);
    let last = shown.clone().or_else(|| args.write.as_ref().map(|file| file.display().to_string()));
    rows.push(vec![args.la.to_string(), args.service.to_string(), last.unwrap_or_default()]);
    let report =
        KeyReport { schema_version: 1, la: args.la, service: args.service, key: shown, file: args.write.as_ref() };
    output::print(args.output.output, &rows, &report)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn certs(args: &CertsArgs) -> Result<ExitCode, Failure> {
    let wanted =
        certs::Wanted { addresses: args.address.clone(), names: args.name.clone(), services: args.service.clone() };
    let made = certs::make(&args.dir, &wanted).map_err(failure)?;
    let mut rows = Rows::new(&["made"]);
    for path in &made {
        rows.push(vec![path.display().to_string()]);
    }
    output::print(args.output.output, &rows, &CertsReport { schema_version: 1, made })?;
    Ok(ExitCode::SUCCESS)
}
