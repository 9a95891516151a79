//! Questions that many plans share.

/// All of them by name; what comes later may ask what came before. A plan's `measured` takes the place of the first.
pub(crate) fn views(measured: Option<&str>) -> Vec<(String, String)> {
    let views = [
        ("measured", measured.unwrap_or(MEASURED)),
        ("fct", FCT),
        ("unfinished", UNFINISHED),
        ("incomplete", INCOMPLETE),
        ("capacity", CAPACITY),
        ("link_use", LINK_USE),
        ("splits", SPLITS),
        ("crossed", CROSSED),
        ("switch_costs", SWITCH_COSTS),
        ("requests", REQUESTS),
        ("directory_steps", DIRECTORY_STEPS),
    ];
    views.map(|(name, sql)| (name.to_owned(), sql.to_owned())).to_vec()
}

const MEASURED: &str = "
    select trial, warm_up_ns / 1e9 as from_s,
      coalesce(measure_until_ns, (select max(time_ns) from progress where progress.trial = trials.trial)) / 1e9 as to_s
    from trials";

const FCT: &str = "
    select flows.*, row_number() over (partition by flows.trial order by flows.rowid) as flow,
      end_ns - start_ns as fct_ns, (end_ns - start_ns) * 1.0 / nullif(ideal_ns, 0) as slowdown,
      case when class = 'query' then 'query'
        when bytes_asked * size_divisor < 100e3 then 'small'
        when bytes_asked * size_divisor <= 10e6 then 'medium'
        else 'large' end as size_class
    from flows join (select trial, warm_up_ns, measure_until_ns, size_divisor from trials) using (trial)
    where start_ns >= warm_up_ns and (measure_until_ns is null or start_ns <= measure_until_ns)";

const UNFINISHED: &str = "
    select trial, count(*) - count(end_ns) as open_flows, count(*) as all_flows,
      printf('%d of %d flows of trial %d did not end within the time limit', count(*) - count(end_ns), count(*), trial) as text
    from fct group by trial having count(end_ns) < count(*)";

const INCOMPLETE: &str = "
    select trial, printf('%d of %d flows of trial %d did not finish', sum(is_open), count(*), trial) as text
    from (select trial, end_ns is null or bytes_received < bytes_asked as is_open from flows)
    group by trial having sum(is_open) > 0
    union all
    select trial, printf('trial %d has no flows', trial) from trials where trial not in (select trial from flows)";

/// Ends are joined one by one: `node in (a, b)` would look at every server for every link.
const CAPACITY: &str = "
    with edges as (
      select wires.fabric_number, rate_bps, iif(from_a.role = 'server', b, a) as edge
      from fabric_links wires
      join nodes from_a on from_a.fabric_number = wires.fabric_number and from_a.node = a
      join nodes from_b on from_b.fabric_number = wires.fabric_number and from_b.node = b
      where 'server' in (from_a.role, from_b.role))
    select fabric_number, count(*) as servers, sum(rate_bps) as servers_bps, max(in_rack) as largest_rack
    from (select *, count(*) over (partition by fabric_number, edge) as in_rack from edges) group by fabric_number";

const LINK_USE: &str = "
    select trial, repetition, seed, overlay, workload, node, role, interface, peer, peer_role, class, rate_bps,
      sum(sent_bytes) as sent_bytes, sum(sent_bytes) * 8 / (max(to_s) - min(from_s)) / rate_bps as use_ratio
    from link_parts group by trial, node, interface";

const SPLITS: &str = "
    select trial, repetition, seed, overlay, workload, node, part, (from_s + to_s) / 2 as time_s, jain(sent_bytes) as jain_index
    from link_parts where (role, peer_role) in (values ('aggregation', 'intermediate'), ('leaf', 'spine')) group by trial, node, part";

/// Less than nine tenths of the rate that was asked for is another load, of which a share or a rate would say nothing: other work on the
/// machine takes the generator's core away.
const CROSSED: &str = "
    with judged as (
      select *, sent_frames > 0 and wall_ns > 0 and sent_frames * 1e9 >= 0.9 * asked_per_s * wall_ns as was_offered from crossings)
    select *, iif(was_offered, received_frames * 1.0 / sent_frames, null) as delivered,
      iif(was_offered, received_frames * 1e9 / wall_ns, null) as received_per_s
    from judged";

/// What a switch's chain takes more than the one before, which ends behind the hop before it or at the test centre.
const SWITCH_COSTS: &str = "
    select upto.*, upto.until as switch, upto.chain_ns_per_frame - before.chain_ns_per_frame as frame_ns
    from chains upto join chains before on before.trial = upto.trial and before.frame_bytes = upto.frame_bytes
      and before.crossing_percent = upto.crossing_percent and before.hops = upto.hops - 1
    where upto.hops > 0 and upto.chain_ns_per_frame > before.chain_ns_per_frame";

/// A request without an answer, or never sent because the load itself had no time for it, took the whole timeout: 2 s where the plan says
/// no other. What happens to an update later happens not at all to one that failed.
const REQUESTS: &str = "
    select trial, repetition, seed, overlay, workload, kind, step, server, latency_at_most_ns as latency_ns, requests, 0 as is_failure
    from latencies
    union all
    select trial, repetition, seed, overlay, workload, kinds.column2, step, null,
      coalesce((select value from settings where settings.trial = directory.trial and name = 'workload.' || workload || '.timeout'), 2000000000),
      unanswered + wrong + skipped, 1
    from directory join (values ('lookup', 'lookup'), ('update', 'update'), ('update', 'visible'), ('update', 'pushed')) kinds
      on kinds.column1 = directory.kind
    where unanswered + wrong + skipped > 0 and (kinds.column1 = kinds.column2 or exists
      (select 1 from latencies where latencies.trial = directory.trial and latencies.kind = kinds.column2))";

/// Where other work took more than a twentieth of the cores, a tail says nothing that it does not excuse. The tail of times (`tail_limited_by`)
/// is moved by much less: an echo of a bare socket that took a quarter of it was disturbed as it was.
const DIRECTORY_STEPS: &str = "
    with percentiles as (
      select trial, kind, step, weighted_quantile(latency_ns, requests, 0.01) / 1e6 as p1_ms,
        weighted_quantile(latency_ns, requests, 0.5) / 1e6 as p50_ms, weighted_quantile(latency_ns, requests, 0.99) / 1e6 as p99_ms
      from requests where server is null group by trial, kind, step)
    select directory.*, p1_ms, p50_ms, p99_ms, sent * 1e9 / max(wall_ns, 1) as sent_per_s,
      answered * 1.0 / max(sent + skipped, 1) as answered_ratio,
      iif(max(foreign_cpu_ratio, skipped * 1.0 / max(sent + skipped, 1)) > 0.05, 'other-work', 'shared-cores') as limited_by,
      iif(max(foreign_cpu_ratio, skipped * 1.0 / max(sent + skipped, 1)) > 0.05 or echo_p99_ns / 1e6 > p99_ms / 4, 'other-work', 'shared-cores')
        as tail_limited_by
    from directory left join percentiles using (trial, kind, step)";
