//! `weft init`: a folder for each host of a deployment.

use std::process::ExitCode;

use weft_node::NodeError;
use weft_node::init::{self, Network};

use crate::args::InitArgs;
use crate::exit::{FAILED, Failure, USAGE};
use crate::output::{self, Rows};

pub(crate) fn init(args: &InitArgs) -> Result<ExitCode, Failure> {
    let network = Network::from(args.network);
    if args.print_example {
        output::print_line(network.example().trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (hosts, out) = args.hosts.as_deref().zip(args.out.as_deref()).expect("clap asks for both");
    let summary = init::write(network, hosts, out, args.force).map_err(|error| failure(&error))?;
    let mut rows = Rows::new(&["host", "services", "files"]);
    for host in &summary.hosts {
        let files: Vec<&str> = host.files.iter().map(|file| &*file.file).collect();
        rows.push(vec![host.host.clone(), host.services.join(" "), files.join(" ")]);
    }
    output::print(args.output.output, &rows, &summary)?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: &NodeError) -> Failure {
    let is_usage = matches!(error, NodeError::ConfigFile { .. } | NodeError::KeyFile { .. } | NodeError::Config { .. });
    Failure::new(if is_usage { USAGE } else { FAILED }, error)
}
