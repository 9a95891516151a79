//! What other programs print, and what is refused with its line.

use weft_scenario::record::Records;

use super::super::places::RackRule;
use super::super::{Options, fact};
use super::*;

fn read_with(text: &str, options: ReadOptions) -> Result<(Records, u64), ReadError> {
    let mut places = Places::new(RackRule::private());
    let mut recorder = Recorder::new(Options::default());
    let pace = read(text.as_bytes(), options, &mut places, &mut recorder, |_| true)?;
    Ok((recorder.finish(None, |_| true).unwrap(), pace.lines))
}

fn read_text(text: &str) -> Result<Records, String> {
    read_with(text, ReadOptions::default()).map(|(records, _)| records).map_err(|error| error.to_string())
}

/// Flows, bytes inside, bytes crossing, whole seconds of the log, server-seconds.
fn numbers(text: &str) -> [f64; 5] {
    let records = read_text(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    [fact::FLOWS, fact::BYTES_INSIDE, fact::BYTES_CROSSING, fact::WINDOW_S, fact::OPEN_S]
        .map(|name| records.fact(name).unwrap())
}

/// One flow inside of 10 s with 1000 bytes, then one to the outside that starts 20 s later with 50 bytes.
const EXPECTED: [f64; 5] = [2.0, 1_000.0, 50.0, 20.0, 20.0];

#[test]
fn columns_go_by_many_names() {
    for text in [
        "start_s,end_s,from,to,bytes\n0,10,10.0.0.1,10.0.1.1,1000\n20,21,10.0.0.1,8.8.8.8,50\n",
        // Other order, other columns, other units, quotes, blank lines and comments.
        "# mine\n\"to\";\"bytes\";\"colour\";\"start_ms\";\"from\";\"duration_ms\"\n\n10.0.1.1;1000;red;5000;10.0.0.1;10000\n\
         # later\n8.8.8.8;50;blue;25000;10.0.0.1;500\n",
        // IPFIX information elements, both address families.
        "flowStartMilliseconds,flowEndMilliseconds,sourceIPv4Address,destinationIPv4Address,sourceIPv6Address,\
         destinationIPv6Address,octetDeltaCount\n1000,11000,10.0.0.1,10.0.1.1,,,1000\n21000,22000,,,fd00::1,2001:db8::1,50\n",
        "flowStartMilliseconds,flowEndMilliseconds,sourceIPv4Address,destinationIPv4Address,octetTotalCount\n\
         2009-08-17 10:00:00.500,2009-08-17 10:00:10.500,10.0.0.1,10.0.1.1,1000\n\
         2009-08-17T10:00:20.500Z,2009-08-17T10:00:21Z,10.0.0.1,8.8.8.8,50\n",
        // nfdump 1.6: whole seconds, the duration has the rest; its summary follows.
        "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt\n\
         2024-06-28 23:17:41,2024-06-28 23:17:51,10.000,10.0.0.1,10.0.1.1,443,10693,TCP,........,0,0,9,1000,0,0\n\
         2024-06-28 23:18:01,2024-06-28 23:18:01,0.000,10.0.0.1,8.8.8.8,443,10693,TCP,........,0,0,1,50,0,0\n\
         Summary\nflows,bytes,packets,avg_bps,avg_pps,avg_bpp\n2,1050,10,1,1,1\n",
        // nfdump 1.7.
        "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,flows\n\
         2024-06-28 23:17:41.250,00:00:10.000,TCP,10.0.0.1,443,10.0.1.1,10693,9,1000,1\n\
         2024-06-28 23:18:01.250,00:00:00.000,TCP,10.0.0.1,443,8.8.8.8,10693,1,50,1\n",
        // SiLK's rwcut: the header ends with a bar, lines too.
        "            sIP|            dIP|sPort|dPort|pro|packets|   bytes|   flags|                  sTime| duration|sen|\n\
                10.0.0.1|       10.0.1.1| 1025|   80|  6|      9|    1000|    SA  |2009/08/17T10:00:00.000|   10.000| S0|\n\
                10.0.0.1|        8.8.8.8| 1025|   53| 17|      1|      50|        |2009/08/17T10:00:20.000|    0.000| S0|\n",
        // yafscii --tabular --print-header.
        "start-time|end-time|duration|rtt|proto|sip|sp|dip|dp|iflags|pkt|oct|rpkt|roct|end-reason\n\
         2009-08-17 10:00:00.000|2009-08-17 10:00:10.000|10.000|0.000|6|10.0.0.1|1|10.0.1.1|80|S|9|1000|0|0|\n\
         2009-08-17 10:00:20.000|2009-08-17 10:00:21.000|1.000|0.000|6|10.0.0.1|1|8.8.8.8|80|S|1|50|0|0|idle\n",
    ] {
        assert_eq!(numbers(text), EXPECTED, "{text}");
    }
}

const EXTENDED: &str = "\
Date first seen          Duration Proto      Src IP Addr:Port          Dst IP Addr:Port   Flags Tos  Packets    Bytes      pps      bps    Bpp Flows
2005-08-30 06:53:53.370    10.000 TCP           10.0.0.1:25    ->         10.0.1.1:3575   .AP.SF   0        9     1000        0      442     56     1
2005-08-30 06:54:13.370     0.000 UDP           10.0.0.1:53    ->          8.8.8.8:53     ......   0        1       50        0        0     50     1
Summary: total flows: 2, total bytes: 1050, total packets: 10, avg bps: 1, avg pps: 0, avg bpp: 124
Time window: 2005-08-30 06:53:53 - 2005-08-30 06:54:13
";

#[test]
fn nfdumps_tables_are_read_up_to_their_summary() {
    assert_eq!(numbers(EXTENDED), EXPECTED);
    let line = EXTENDED.replace("Flags Tos  ", "").replace(".AP.SF   0 ", "").replace("......   0 ", "");
    assert_eq!(numbers(&line), EXPECTED);
    let large = EXTENDED.replace("        9     1000 ", "    1.2 M    2.5 G ");
    assert_eq!(numbers(&large)[1], 2.5e9);
    let v6 = EXTENDED.replace("10.0.0.1:25 ", "fd00::1.25").replace("10.0.1.1:3575", "fd00:0:0:1::1.3575");
    assert_eq!(numbers(&v6)[..3], EXPECTED[..3]);
}

#[test]
fn both_directions_of_one_line_are_two_flows() {
    let text =
        "start_s,end_s,from,to,bytes,reverse_bytes\n0,10,10.0.0.1,10.0.1.1,1000,30\n10,10,10.0.0.1,8.8.8.8,0,50\n";
    assert_eq!(numbers(text), [4.0, 1_030.0, 50.0, 10.0, 40.0]);
}

#[test]
fn what_is_wrong_is_refused_with_its_line() {
    const HEAD: &str = "start_s,end_s,from,to,bytes\n";
    for (text, message) in [
        ("end_s,from,to,bytes\n", "line 1: no column for the start; call it `start_s`"),
        ("start_s,from,to,bytes\n", "line 1: no column for the end or the duration; call it `end_s`"),
        ("start_s,end_s,to,bytes\n", "line 1: no column for the sender's address; call it `from`"),
        ("start_s,end_s,from,bytes\n", "line 1: no column for the receiver's address; call it `to`"),
        ("# a\nstart_s,end_s,from,to\n", "line 2: no column for the number of bytes; call it `bytes`"),
        (&format!("{HEAD}0,1,10.0.0.1,10.0.0.2\n"), "line 2: 4 columns where the header has 5"),
        (
            &format!("{HEAD}0,1,10.0.0.1,10.0.0.2,5\n0,1,ten,10.0.0.2,5\n"),
            "line 3: `ten` in column `from` is no address",
        ),
        (&format!("{HEAD}0,1,10.0.0.1,,5\n"), "line 2: `` in column `to` is no address"),
        (&format!("{HEAD}0,1,10.0.0.1,10.0.0.2,-5\n"), "line 2: `-5` in column `bytes` is no number of bytes"),
        (&format!("{HEAD}now,1,10.0.0.1,10.0.0.2,5\n"), "line 2: `now` in column `start_s` is no time"),
        (&format!("{HEAD}2,1,10.0.0.1,10.0.0.2,5\n"), "line 2: the flow ends before it starts"),
        (
            &format!("{HEAD}5,6,10.0.0.1,10.0.0.2,5\n\n2.5,6,10.0.0.1,10.0.0.2,5\n"),
            "line 4: time goes back: the flow starts 2.5 s before one of an earlier line",
        ),
        (&format!("{HEAD}0,99999999999,10.0.0.1,10.0.0.2,5\n"), "line 2: `99999999999` in column `end_s` is no time"),
        (&format!("{HEAD}0,9999999999,10.0.0.1,10.0.0.2,5\n"), "line 2: the flow lasts until 9999999999 s"),
        ("Date first seen  Event\n", "line 1: this is not the header of `nfdump"),
        (&EXTENDED.replace("->  ", "    "), "line 2: no `->`"),
        (&EXTENDED.replace("10.0.0.1:25 ", "fd00..1:1.25"), "line 2: `fd00..1:1.25` is a shortened address"),
        (&EXTENDED.replace(" 1000 ", " many "), "line 2: `many` is no number of bytes"),
        (&EXTENDED.replace("06:53:53.370", "06:63:53.370"), "line 2: `2005-08-30 06:63:53.370` is no time"),
        ("", "there are no flows in it"),
        (HEAD, "there are no flows in it"),
        ("\u{7f}ELF\n", "line 1: no column"),
    ] {
        let error = read_text(text).unwrap_err();
        assert!(error.starts_with(message), "wanted `{message}`, got `{error}`");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn what_is_no_text_or_has_no_end_of_line_is_refused() {
    let mut places = Places::new(RackRule::private());
    let mut refuse = |bytes: &[u8]| {
        let mut recorder = Recorder::new(Options::default());
        read(bytes, ReadOptions::default(), &mut places, &mut recorder, |_| true).unwrap_err().to_string()
    };
    assert!(refuse(b"start\xff\n").starts_with("line 1: this is no text"));
    assert!(refuse(&vec![b'a'; 1 << 20]).starts_with("line 1: the line is longer than 65536 bytes"));
}

#[test]
fn lines_may_come_late_by_as_much_as_is_allowed() {
    let text = "start_s,end_s,from,to,bytes\n5,6,10.0.0.1,10.0.0.2,1\n3,9,10.0.0.1,10.0.0.2,2\n4,5,10.0.0.1,10.0.0.2,4\n\
                9,9,10.0.0.1,10.0.0.2,8\n";
    let with = |reorder_ns| read_with(text, ReadOptions { reorder_ns, ..ReadOptions::default() });
    let (records, lines) = with(2_000_000_000).unwrap();
    let fact = |name| records.fact(name).unwrap();
    // From 3 s to 9 s; both servers have 1 + 6 + 1 s of flows.
    assert_eq!((lines, fact(fact::WINDOW_S), fact(fact::OPEN_S)), (5, 6.0, 16.0));
    let error = with(1_999_999_999).unwrap_err().to_string();
    assert!(error.starts_with("line 3: time goes back: the flow starts 2 s before"), "{error}");
}

#[test]
fn the_format_can_be_said_and_reading_stopped() {
    let asked = ReadOptions { format: Some(Format::Nfdump), ..ReadOptions::default() };
    let error = read_with("start_s,end_s,from,to,bytes\n", asked).unwrap_err().to_string();
    assert!(error.starts_with("line 1: this is not the header of `nfdump -o line`"), "{error}");
    let mut text = "start_s,end_s,from,to,bytes\n".to_owned();
    (0..40_000).for_each(|_| text.push_str("1,2,10.0.0.1,10.0.0.2,3\n"));
    let (mut places, mut recorder) = (Places::new(RackRule::private()), Recorder::new(Options::default()));
    let stopped = read(text.as_bytes(), ReadOptions::default(), &mut places, &mut recorder, |_| false);
    assert_eq!(stopped, Err(ReadError::Interrupted));
}

proptest::proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "(start_s,end_s,from,to,bytes\n)?([ -~é]{0,40}\n){0,6}") {
        let _ = read_text(&text);
    }

    #[test]
    fn no_line_of_numbers_breaks_the_reader(rows in proptest::collection::vec(proptest::prelude::any::<(u64, u64, u32, u32, u64)>(), 0..6)) {
        let mut text = "start_ns,end_ns,from,to,bytes\n".to_owned();
        for (start, end, from, to, bytes) in rows {
            let (from, to) = (std::net::Ipv4Addr::from(from), std::net::Ipv4Addr::from(to));
            text.push_str(&format!("{start},{end},{from},{to},{bytes}\n"));
        }
        let _ = read_text(&text);
    }
}
