//! A job in the configuration language of daytone: the same nodes, links, streams and ways, each written out.
//!
//! daytone's own fat trees have no servers, only edge switches that send, and its own routes are other choices among equal ones. With
//! `edges`, `hosts` and `path` both simulators have the same to do.

use std::fmt::Write;
use std::path::Path;

use weft_scenario::id::NodeId;
use weft_scenario::topology::Fabric;
use weft_scenario::workload::services::DatagramStream;

/// How long the run goes on after the last packet was due, so that all arrive.
const DRAIN_NS: u64 = 10_000_000_000;
const S_NS: u64 = 1_000_000_000;

/// Streams of datagrams on links that are all alike.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// Its links have one rate and one buffer; they take no time beside the transmission.
    pub fabric: &'a Fabric,
    pub streams: &'a [DatagramStream],
    /// The nodes that each stream passes, from host to host.
    pub ways: &'a [Vec<NodeId>],
    /// Payload of each packet, which the streams' rates count.
    pub payload_bytes: u32,
    /// Length of each packet on the wire.
    pub packet_bytes: u32,
}

/// The configuration with which daytone runs this in one thread and writes its results into a folder.
pub fn configuration(network: &Network<'_>, results: &Path) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = write(&mut text, network, results);
    text
}

fn write(text: &mut String, network: &Network<'_>, results: &Path) -> std::fmt::Result {
    let Network { fabric, streams, ways, .. } = network;
    let end_ns = streams.iter().map(|stream| stream.end_ns).max().unwrap_or(0) + DRAIN_NS;
    let spec = fabric.links().first().map(|link| &link.spec);
    let (rate, buffer) = spec.map_or((0, 0), |spec| (spec.rate.0, spec.buffer.0));
    let edges = fabric.links().iter().map(|link| format!("[{}, {}]", link.a.node.0, link.b.node.0));
    writeln!(text, "seed = 1\nnum_threads = 1\nduration = {}", seconds(end_ns))?;
    writeln!(text, "log_path = {}", toml::Value::from(results.to_string_lossy().into_owned()))?;
    writeln!(text, "hosts = [{}]", joined(fabric.servers().map(|server| server.0.to_string())))?;
    writeln!(text, "edges = [{}]", joined(edges))?;
    writeln!(text, "\n[switch]\nport_rate = {rate}\ncapacity = {}", buffer / u64::from(network.packet_bytes.max(1)))?;
    writeln!(text, "weights = [1]\ndiscipline = \"FIFO\"\ndrop = \"TailDrop\"")?;
    for (stream, way) in streams.iter().zip(ways.iter()) {
        write_stream(text, network, stream, way)?;
    }
    Ok(())
}

fn write_stream(text: &mut String, network: &Network<'_>, stream: &DatagramStream, way: &[NodeId]) -> std::fmt::Result {
    let (Some(first), Some(last)) = (way.first(), way.last()) else { return Ok(()) };
    let gap_ns = u64::from(network.payload_bytes) * 8 * S_NS / stream.rate.0.max(1);
    let always = |value: &str| format!("{{ type = \"Uniform\", low = {value}, high = {value} }}");
    writeln!(text, "\n[[flow]]\nflow_type = \"PacketDistribution\"\ngraph = [[{}, {}]]", first.0, last.0)?;
    writeln!(text, "path = [{}]", joined(way.iter().map(|node| node.0.to_string())))?;
    writeln!(text, "[flow.traffic]\ninitial_delay = {}", seconds(stream.start_ns))?;
    writeln!(text, "duration = {}", seconds(stream.end_ns.saturating_sub(stream.start_ns)))?;
    writeln!(text, "arr_dist = {}", always(&seconds(gap_ns)))?;
    writeln!(text, "pkt_size_dist = {}", always(&network.packet_bytes.to_string()))
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / S_NS, ns % S_NS)
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{LinkParams, overlay_pair};
    use weft_scenario::units::{BitsPerSec, Bytes};

    use super::*;

    #[test]
    fn nodes_links_streams_and_ways_are_written_out() {
        let rate = BitsPerSec(1_000_000);
        let links = LinkParams { core_rate: rate, core_buffer: Bytes(50_000), ..LinkParams::for_server_rate(rate) };
        let fabric = overlay_pair(&links).expect("it is one");
        let way: Vec<NodeId> =
            ["s1", "tor1", "int1", "tor2", "s2"].iter().filter_map(|name| fabric.find(name)).collect();
        let (start_ns, end_ns) = (250_000_000, 3_750_000_001);
        let stream = DatagramStream { from: 0, to: 1, rate: BitsPerSec(15_552), start_ns, end_ns, limit: None };
        let network =
            Network { fabric: &fabric, streams: &[stream], ways: &[way], payload_bytes: 972, packet_bytes: 1_000 };
        let read: toml::Table = configuration(&network, Path::new("/results/of \"b\"")).parse().expect("it is TOML");
        let wanted: toml::Table = r#"
            seed = 1
            num_threads = 1
            duration = 13.750000001
            log_path = '/results/of "b"'
            hosts = [3, 4]
            edges = [[0, 1], [0, 2], [1, 3], [2, 4], [1, 5]]
            switch = { port_rate = 1000000, capacity = 50, weights = [1], discipline = "FIFO", drop = "TailDrop" }
            [[flow]]
            flow_type = "PacketDistribution"
            graph = [[3, 4]]
            path = [3, 1, 0, 2, 4]
            traffic.initial_delay = 0.25
            traffic.duration = 3.500000001
            traffic.arr_dist = { type = "Uniform", low = 0.5, high = 0.5 }
            traffic.pkt_size_dist = { type = "Uniform", low = 1000, high = 1000 }
        "#
        .parse()
        .expect("it is TOML");
        assert_eq!(read, wanted);
    }
}
