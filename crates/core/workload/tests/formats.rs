//! Flow files: round trips, the reference's truncated times, and what is refused with which words.

use std::io::Cursor;

use proptest::prelude::*;
use raddle_units::{BitRate, Bytes, NodeId, Time};
use raddle_workload::{
    CsvFlows, FlowFormat, FlowList, FlowTimes, HpcMix, Message, ParquetFlows, ReadOptions,
    TrafficSource, Workload, apply_class_file, has_isolated_twin, read_flows, stream_flows,
    write_csv, write_hpcc_ns3, write_parquet,
};

fn hosts(n: u32) -> Vec<NodeId> {
    (0..n).map(NodeId).collect()
}

fn write(list: &FlowList, format: FlowFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let mut list = list.rewound();
    match format {
        FlowFormat::HpccNs3 => write_hpcc_ns3(&mut list, &mut out),
        FlowFormat::Csv => write_csv(&mut list, &mut out),
        FlowFormat::Parquet => write_parquet(&mut list, &mut out),
    }
    .unwrap();
    out
}

const FORMATS: [FlowFormat; 3] = [FlowFormat::HpccNs3, FlowFormat::Csv, FlowFormat::Parquet];

/// Classes as names: their indexes depend on the order of appearance.
fn named(list: &FlowList) -> Vec<(Message, String)> {
    let name = |message: &Message| list.classes()[usize::from(message.class)].clone();
    list.messages()
        .iter()
        .map(|m| (Message { class: 0, ..*m }, name(m)))
        .collect()
}

#[test]
fn the_hpc_mix_survives_every_format() {
    let hosts = hosts(320);
    let mix = HpcMix::default();
    let list = FlowList::collect(&mut mix.build(&hosts, 1).unwrap()).unwrap();
    for format in FORMATS {
        let bytes = write(&list, format);
        let options = ReadOptions {
            hosts: Some(&hosts),
            ..ReadOptions::new("mix")
        };
        let read = read_flows(&bytes, format, &options).unwrap();
        if format == FlowFormat::HpccNs3 {
            let plain = |list: &FlowList| -> Vec<Message> {
                list.messages()
                    .iter()
                    .map(|m| Message { class: 0, ..*m })
                    .collect()
            };
            assert_eq!(plain(&read), plain(&list));
        } else {
            assert_eq!(named(&read), named(&list));
        }
        assert_eq!(write(&read, format).len(), bytes.len());
    }
}

#[test]
fn readers_stream_after_checking_the_whole_file() {
    let list = FlowList::collect(&mut HpcMix::default().build(&hosts(320), 2).unwrap()).unwrap();
    let options = ReadOptions::new("mix");
    let parquet = bytes::Bytes::from(write(&list, FlowFormat::Parquet));
    let mut stream = stream_flows(|| ParquetFlows::new(parquet.clone(), &options)).unwrap();
    assert_eq!(stream.expected_messages(), Some(19_181));
    assert_eq!(stream.expected_bytes(), list.expected_bytes());
    let collected = FlowList::collect(&mut stream).unwrap();
    assert_eq!(named(&collected), named(&list));
    let broken = "src,dst,size_bytes,start_ns\n0,1,10,5\n0,1,10,4\n";
    let error = stream_flows(|| CsvFlows::new(Cursor::new(broken), &options))
        .err()
        .unwrap();
    assert!(error.to_string().contains("mix:3"), "{error}");
}

#[test]
fn reference_times_are_cut_as_the_reference_simulator_cuts_them() {
    let text = b"3\n0 1 3 100 1000 0.000000754\n0 1 3 100 1000 0.000020000\n0 1 3 100 1000 0.005\n";
    let starts = |times| -> Vec<u64> {
        let options = ReadOptions {
            times,
            ..ReadOptions::new("f")
        };
        let list = read_flows(text, FlowFormat::HpccNs3, &options).unwrap();
        list.messages().iter().map(|m| m.start.0).collect()
    };
    assert_eq!(
        starts(FlowTimes::Exact),
        [754_000, 20_000_000, 5_000_000_000]
    );
    // 0.000020 as a double lies a little below 20 us: 19,999 ns.
    assert_eq!(starts(FlowTimes::HpccNs3)[1], 19_999_000);
}

#[test]
fn a_class_file_names_the_flows_of_a_reference_file() {
    let flows = b"2\n0 1 3 100 1000 0\n2 3 3 100 65536 0.000001\n";
    let list = read_flows(flows, FlowFormat::HpccNs3, &ReadOptions::new("f.txt")).unwrap();
    let classes = b"0 1 10000 1000 0 T_long\n2 3 10000 65536 1000 B_incast\n";
    let list = apply_class_file(&list, classes, "c.txt").unwrap();
    assert_eq!(list.classes(), ["tested-long", "background-incast"]);
    assert!(has_isolated_twin(list.classes()));
    assert_eq!(list.isolated().unwrap().messages().len(), 1);
    for (text, words) in [
        ("0 1 10000 1000 0 T_long\n", "ends after 1 of 2"),
        ("0 1 10000 1000 0 T_long\n2 3 10000 1 1000 x\n", "c.txt:2"),
        ("0 1 10000 1000 0\n", "5 fields instead of 6"),
        (
            "0 1 1 1000 0 x\n2 3 1 65536 1 x\n2 3 1 65536 1 x\n",
            "goes on after",
        ),
        ("\u{1}", "c.txt:1"),
    ] {
        let error = apply_class_file(&list, text.as_bytes(), "c.txt")
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{text:?}: {error}");
    }
}

fn refused(bytes: &[u8], format: FlowFormat, place: &str, words: &str) {
    let hosts = hosts(4);
    let options = ReadOptions {
        hosts: Some(&hosts),
        ..ReadOptions::new("flows")
    };
    let error = read_flows(bytes, format, &options).unwrap_err().to_string();
    let shown = String::from_utf8_lossy(bytes);
    assert!(error.starts_with(place), "{shown:?}: {error}");
    assert!(error.contains(words), "{shown:?}: {error}");
    assert!(
        error.len() < 400 && !error.contains('\n'),
        "one screen: {error}"
    );
}

#[test]
fn broken_reference_files_are_refused_with_place_and_cure() {
    let one = |line: &str| format!("1\n{line}\n").into_bytes();
    let huge = "9".repeat(5000);
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (b"".to_vec(), "flows:", "empty"),
        (b"many\n".to_vec(), "flows:1", "whole number"),
        (b"-1\n".to_vec(), "flows:1", "negative"),
        (
            b"2\n0 1 3 100 1000 0\n".to_vec(),
            "flows:1",
            "announces 2 flows but 1 follow",
        ),
        (b"0\n0 1 3 100 1000 0\n".to_vec(), "flows:1", "announces 0"),
        (b"99999999999999999999999\n".to_vec(), "flows:1", "64 bits"),
        (one("0 1 3 100 10"), "flows:2", "5 fields instead of 6"),
        (one("0 1 3 100 10 0 7"), "flows:2", "7 fields"),
        (one("0 1 3 100 -10 0"), "flows:2", "negative"),
        (one("0 1 3 100 10 -0.1"), "flows:2", "negative"),
        (one("0 1 3 100 10 nan"), "flows:2", "decimal number"),
        (one("0 1 3 100 10 inf"), "flows:2", "decimal number"),
        (one("0 1 3 100 1e3 0"), "flows:2", "whole number"),
        (one("0 1 3 100 99999999999999 0"), "flows:2", "1 TiB"),
        (one("0 1 3 100 10 1e300"), "flows:2", "check the unit"),
        (one("0 1 3 100 10 99999"), "flows:2", "one day"),
        (one("0 1 3 100 0 0"), "flows:2", "at least one byte"),
        (one("2 2 3 100 10 0"), "flows:2", "to itself"),
        (one("0 4 3 100 10 0"), "flows:2", "hosts: 0 to 3"),
        (one("99999999999 1 3 100 10 0"), "flows:2", "not a host"),
        (one("0 1 8 100 10 0"), "flows:2", "`pg` is `8`"),
        (one("0 1 3 80 10 0"), "flows:2", "write 100"),
        (
            b"2\n0 1 3 100 10 1\n0 1 3 100 10 0\n".to_vec(),
            "flows:3",
            "sort the flows",
        ),
        (b"1\n\xff\xfe\n".to_vec(), "flows:2", "UTF-8"),
        (one(&huge), "flows:2", "longer than"),
    ];
    for (bytes, place, words) in cases {
        refused(&bytes, FlowFormat::HpccNs3, place, words);
    }
}

#[test]
fn broken_csv_files_are_refused_with_place_and_cure() {
    let head = "src,dst,size_bytes,start_us\n";
    let cases: Vec<(String, &str, &str)> = vec![
        (String::new(), "flows:", "empty"),
        (
            "src,dst,size,start_us\n".into(),
            "flows:1",
            "name it size_bytes",
        ),
        (
            "src,dst,size_bytes,start\n".into(),
            "flows:1",
            "has no unit",
        ),
        (
            "src,dst,size_bytes\n".into(),
            "flows:1",
            "`start_ps` is missing",
        ),
        (
            "src,dest,size_bytes,start_ps\n".into(),
            "flows:1",
            "did you mean `dst`",
        ),
        (
            "src,dst,size_bytes,start_ps,colour\n".into(),
            "flows:1",
            "unknown column `colour`",
        ),
        (
            "src,dst,size_bytes,start_ps,start_ns\n".into(),
            "flows:1",
            "is there twice",
        ),
        (
            format!("{head}0,1,10\n"),
            "flows:2",
            "3 fields instead of 4",
        ),
        (
            format!("{head}0,1,10,1\n0,1,ten,2\n"),
            "flows:3",
            "whole number",
        ),
        (format!("{head}0,1,10,-1\n"), "flows:2", "negative"),
        (format!("{head}0,1,10,NaN\n"), "flows:2", "decimal number"),
        (format!("{head}0,1,10,1e30\n"), "flows:2", "check the unit"),
        (format!("{head}0,1,10,\n"), "flows:2", "decimal number"),
        (format!("{head}1,1,10,1\n"), "flows:2", "to itself"),
        (format!("{head}1,7,10,1\n"), "flows:2", "not a host"),
        (
            format!("{head}0,1,10,2\n0,1,10,1\n"),
            "flows:3",
            "sort the flows",
        ),
        (
            format!("{head}0,1,10,2\n\n0,1,64KiB,3\n"),
            "flows:4",
            "whole number",
        ),
    ];
    for (text, place, words) in cases {
        refused(text.as_bytes(), FlowFormat::Csv, place, words);
    }
    let many: String = (0..300).map(|i| format!("0,1,10,1,c{i}\n")).collect();
    let text = format!("src,dst,size_bytes,start_ps,class\n{many}");
    refused(
        text.as_bytes(),
        FlowFormat::Csv,
        "flows:257",
        "255 different classes",
    );
}

#[test]
fn csv_times_in_any_unit_are_exact() {
    for (name, text) in [
        ("ps", "1500000"),
        ("ns", "1500"),
        ("us", "1.5"),
        ("ms", "0.0015"),
        ("s", "1.5e-6"),
    ] {
        let csv = format!("src,dst,size_bytes,start_{name}\n0,1,10,{text}\n");
        let list = read_flows(csv.as_bytes(), FlowFormat::Csv, &ReadOptions::new("f")).unwrap();
        assert_eq!(list.messages()[0].start, Time(1_500_000), "{name}");
    }
}

mod parquet_files {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::{FlowFormat, refused};

    fn table(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut out = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        out
    }

    fn ints(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn broken_parquet_files_are_refused_with_place_and_cure() {
        let flows = |src, dst, size, start| {
            table(vec![
                ("src", ints(src)),
                ("dst", ints(dst)),
                ("size_bytes", ints(size)),
                ("start_ns", ints(start)),
            ])
        };
        let cases = [
            (
                flows(&[0, 0], &[1, 1], &[9, 9], &[5, 4]),
                "flows row 2",
                "sort the flows",
            ),
            (flows(&[0], &[0], &[9], &[5]), "flows row 1", "to itself"),
            (flows(&[0], &[9], &[9], &[5]), "flows row 1", "not a host"),
            (flows(&[0], &[1], &[-9], &[5]), "flows row 1", "negative"),
            (
                flows(&[0], &[1], &[0], &[5]),
                "flows row 1",
                "at least one byte",
            ),
            (
                flows(&[0], &[1], &[9], &[i64::MAX]),
                "flows row 1",
                "one day",
            ),
        ];
        for (bytes, place, words) in cases {
            refused(&bytes, FlowFormat::Parquet, place, words);
        }
        let start: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        let floats = table(vec![
            ("src", ints(&[0])),
            ("dst", ints(&[1])),
            ("size_bytes", ints(&[9])),
            ("start_s", start),
        ]);
        refused(
            &floats,
            FlowFormat::Parquet,
            "flows row 1",
            "store whole numbers",
        );
        let class: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
        let null = table(vec![
            ("src", ints(&[0])),
            ("dst", ints(&[1])),
            ("size_bytes", ints(&[9])),
            ("start_ps", ints(&[0])),
            ("class", class),
        ]);
        refused(&null, FlowFormat::Parquet, "flows row 1", "empty values");
        let unit = table(vec![("src", ints(&[0])), ("size", ints(&[0]))]);
        refused(&unit, FlowFormat::Parquet, "flows", "size_bytes");
        refused(b"", FlowFormat::Parquet, "flows", "cannot be read");
        refused(
            b"1\n0 1 3 100 10 0\n",
            FlowFormat::Parquet,
            "flows",
            "cannot be read",
        );
    }
}

#[test]
fn a_traffic_table_names_its_problem() {
    let parse = |text: &str| toml::from_str::<TrafficSource>(text);
    for text in [
        "generator = \"hpc-mix\"",
        "generator = \"gpcnet\"\ncongestors = [\"alltoall\"]",
        "generator = \"poisson\"\nload = 0.3\nflows = 10\nsizes = { table = [[\"1kB\", 0.5], [\"1MB\", 1.0]] }",
        "generator = \"poisson\"\nload = 0.3\nflows = 10\nsizes = \"mice-and-elephants\"",
        "generator = \"permutation\"\nsize = \"64KiB\"",
        "generator = \"incast\"\ntarget = 3",
        "generator = \"all-to-all\"",
        "file = \"f.txt\"\nformat = \"hpcc-ns3\"",
        "file = \"f.csv\"",
    ] {
        let source = parse(text).unwrap();
        let again: TrafficSource = toml::from_str(&toml::to_string(&source).unwrap()).unwrap();
        assert_eq!(again, source, "{text}");
    }
    for (text, words) in [
        ("", "needs `generator"),
        ("generator = \"hpc-mix\"\nfile = \"x\"", "both"),
        ("generator = \"hpcmix\"", "hpc-mix"),
        ("generator = \"hpc-mix\"\nload = 0.3", "load_factor"),
        ("generator = \"hpc-mix\"\nlong_size = 10", "no unit"),
        (
            "generator = \"hpc-mix\"\nwindow = \"5MB\"",
            "not a unit of a time",
        ),
        ("generator = \"poisson\"\nflows = 10", "load"),
        ("file = \"x\"\nformat = \"xml\"", "hpcc-ns3"),
        ("file = \"x\"\nsort = true", "sort"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_flow_file_source_is_read_checked_and_isolated() {
    let source: TrafficSource =
        toml::from_str("file = \"f.txt\"\nformat = \"hpcc-ns3\"\nclasses = \"c.txt\"").unwrap();
    assert_eq!(source.files(), ["f.txt", "c.txt"]);
    let mut read = |name: &str| match name {
        "f.txt" => Ok(b"2\n0 1 3 100 1000 0\n2 3 3 100 65536 0.000020\n".to_vec()),
        "c.txt" => Ok(b"0 1 10000 1000 0 T_long\n2 3 10000 65536 20000 B_a2a\n".to_vec()),
        other => Err(format!("no file {other}")),
    };
    let rate = BitRate::from_gbps(100);
    let mut build = |source: &TrafficSource| {
        source
            .build(&mut read, &hosts(4), rate, 1, FlowTimes::HpccNs3)
            .map(|mut workload| {
                let mut sizes = Vec::new();
                while let Some(message) = workload.pop() {
                    sizes.push(message.size);
                }
                sizes
            })
    };
    assert_eq!(build(&source), Ok(vec![Bytes(1000), Bytes(65_536)]));
    assert_eq!(build(&source.isolated().unwrap()), Ok(vec![Bytes(1000)]));
    let missing: TrafficSource = toml::from_str("file = \"nowhere\"").unwrap();
    assert!(build(&missing).unwrap_err().to_string().contains("nowhere"));
    let cdf: TrafficSource = toml::from_str(
        "generator = \"poisson\"\nload = 0.1\nflows = 3\nsizes = { file = \"x.cdf\" }",
    )
    .unwrap();
    let mut read = |_: &str| Ok(b"1000 100\n".to_vec());
    let mut workload = cdf
        .build(&mut read, &hosts(4), rate, 1, FlowTimes::Exact)
        .unwrap();
    assert_eq!(workload.pop().unwrap().size, Bytes(1000));
}

#[test]
fn the_schema_knows_every_generator_and_refuses_other_keys() {
    let schema = serde_json::to_string(&schemars::schema_for!(TrafficSource)).unwrap();
    for (name, _) in raddle_workload::TrafficSpec::GENERATORS {
        assert!(schema.contains(&format!("\"const\":\"{name}\"")), "{name}");
    }
    assert!(schema.contains("\"load_factor\""));
    assert!(schema.contains("\"additionalProperties\":false"));
}

proptest! {
    #[test]
    fn any_list_of_flows_survives_every_format(
        flows in prop::collection::vec((0u64..80_000_000_000_000_000, 0u32..50, 1u32..50, 1u64..1 << 40, 0u8..3, 0u8..8), 1..60)
    ) {
        let messages = flows
            .into_iter()
            .map(|(start, src, shift, size, class, priority)| Message {
                start: Time(start),
                src: NodeId(src),
                dst: NodeId((src + shift) % 50).into(),
                size: Bytes(size),
                class,
                priority,
                tag: 0,
            })
            .collect();
        let classes = vec!["a".to_owned(), "b, \"c\"".to_owned(), "ü".to_owned()];
        let list = FlowList::new(messages, classes);
        for format in FORMATS {
            let read = read_flows(&write(&list, format), format, &ReadOptions::new("f")).unwrap();
            if format == FlowFormat::HpccNs3 {
                let plain: Vec<Message> =
                    list.messages().iter().map(|m| Message { class: 0, ..*m }).collect();
                prop_assert_eq!(read.messages(), plain.as_slice());
            } else {
                prop_assert_eq!(named(&read), named(&list));
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in FORMATS {
            let _ = read_flows(&bytes, format, &ReadOptions::new("f"));
        }
    }
}
