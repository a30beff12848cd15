//! Files of ibnetdiscover and ibsim become maps, maps become net files, and what is wrong is named with its line.

use proptest::prelude::*;
use raddle_fabric::{
    CnTn, Fabric, FabricBuilder, ImportFormat, ImportOptions, Imported, ibsim_guid, import,
    parse_toml, write_ibsim, write_toml,
};
use raddle_units::{BitRate, NodeId, Span};

/// As ibnetdiscover 44 prints it on a fabric with the quirks of real ones: two leaves, two spines, a dual-port
/// adapter, an aggregation node, descriptions that several nodes share, a link that came up at half its width.
const DISCOVERED: &str = "\
#
# Topology file: generated on Sat Nov 21 11:28:44 2026
#
# Initiated from node b8599f0300112233 port b8599f0300112233

vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb8599f0300fc6de4
switchguid=0xb8599f0300fc6de4(b8599f0300fc6de4)
Switch\t41 \"S-b8599f0300fc6de4\"\t\t# \"MF0;leaf1:MQM8700/U1\" enhanced port 0 lid 13 lmc 0
[1]\t\"H-b8599f0300112233\"[1](b8599f0300112233) \t\t# \"node1 HCA-1\" lid 9 4xHDR
[2]\t\"H-b8599f0300112244\"[1](b8599f0300112244) \t\t# \"node10 HCA-1\" lid 28 4xHDR
[21]\t\"S-b8599f0300aaaaa0\"[1]\t\t# \"Quantum Mellanox Technologies\" lid 19 4xHDR
[22]\t\"S-b8599f0300bbbbb0\"[1]\t\t# \"Quantum Mellanox Technologies\" lid 20 2xHDR
[41]\t\"H-b8599f0300fc6dec\"[1](b8599f0300fc6dec) \t\t# \"Mellanox Technologies Aggregation Node\" lid 14 4xHDR

vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb8599f0300fc7de4
switchguid=0xb8599f0300fc7de4(b8599f0300fc7de4)
Switch\t41 \"S-b8599f0300fc7de4\"\t\t# \"MF0;leaf2:MQM8700/U1\" enhanced port 0 lid 14 lmc 0
[1]\t\"H-b8599f0300112255\"[1](b8599f0300112255) \t\t# \"node2 HCA-1\" lid 30 4xHDR
[2]\t\"H-b8599f0300112255\"[2](b8599f0300112256) \t\t# \"node2 HCA-1\" lid 31 4xHDR
[21]\t\"S-b8599f0300aaaaa0\"[2]\t\t# \"Quantum Mellanox Technologies\" lid 19 4xHDR
[22]\t\"S-b8599f0300bbbbb0\"[2]\t\t# \"Quantum Mellanox Technologies\" lid 20 4xHDR

vendid=0x2c9
switchguid=0xb8599f0300aaaaa0(b8599f0300aaaaa0)
Switch\t41 \"S-b8599f0300aaaaa0\"\t\t# \"Quantum Mellanox Technologies\" base port 0 lid 19 lmc 0
[1]\t\"S-b8599f0300fc6de4\"[21]\t\t# \"MF0;leaf1:MQM8700/U1\" lid 13 4xHDR
[2]\t\"S-b8599f0300fc7de4\"[21]\t\t# \"MF0;leaf2:MQM8700/U1\" lid 14 4xHDR

vendid=0x2c9
switchguid=0xb8599f0300bbbbb0(b8599f0300bbbbb0)
Switch\t41 \"S-b8599f0300bbbbb0\"\t\t# \"Quantum Mellanox Technologies\" base port 0 lid 20 lmc 0
[1]\t\"S-b8599f0300fc6de4\"[22]\t\t# \"MF0;leaf1:MQM8700/U1\" lid 13 2xHDR
[2]\t\"S-b8599f0300fc7de4\"[22]\t\t# \"MF0;leaf2:MQM8700/U1\" lid 14 4xHDR

caguid=0xb8599f0300fc6dec
Ca\t1 \"H-b8599f0300fc6dec\"\t\t# \"Mellanox Technologies Aggregation Node\"
[1](b8599f0300fc6dec) \t\"S-b8599f0300fc6de4\"[41]\t\t# lid 14 lmc 0 \"MF0;leaf1:MQM8700/U1\" lid 13 4xHDR

caguid=0xb8599f0300112255
Ca\t2 \"H-b8599f0300112255\"\t\t# \"node2 HCA-1\"
[1](b8599f0300112255) \t\"S-b8599f0300fc7de4\"[1]\t\t# lid 30 lmc 0 \"MF0;leaf2:MQM8700/U1\" lid 14 4xHDR
[2](b8599f0300112256) \t\"S-b8599f0300fc7de4\"[2]\t\t# lid 31 lmc 0 \"MF0;leaf2:MQM8700/U1\" lid 14 4xHDR

caguid=0xb8599f0300112244
Ca\t1 \"H-b8599f0300112244\"\t\t# \"node10 HCA-1\"
[1](b8599f0300112244) \t\"S-b8599f0300fc6de4\"[2]\t\t# lid 28 lmc 0 \"MF0;leaf1:MQM8700/U1\" lid 13 4xHDR

caguid=0xb8599f0300112233
Ca\t1 \"H-b8599f0300112233\"\t\t# \"node1 HCA-1\"
[1](b8599f0300112233) \t\"S-b8599f0300fc6de4\"[1]\t\t# lid 9 lmc 0 \"MF0;leaf1:MQM8700/U1\" lid 13 4xHDR
";

fn read(text: &str) -> Imported {
    import(text, "net", &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn names(fabric: &Fabric, nodes: &[NodeId]) -> Vec<String> {
    (nodes.iter())
        .map(|&node| fabric.node_name(node).into_owned())
        .collect()
}

#[test]
fn a_discovered_fabric_is_read_with_its_quirks() {
    let found = read(DISCOVERED);
    let fabric = &found.fabric;
    assert_eq!(
        names(fabric, fabric.hosts()),
        [
            "node1 HCA-1",
            "node2 HCA-1/1",
            "node2 HCA-1/2",
            "node10 HCA-1"
        ]
    );
    assert_eq!(
        names(fabric, fabric.switches()),
        [
            "MF0;leaf1:MQM8700/U1",
            "MF0;leaf2:MQM8700/U1",
            "S-b8599f0300aaaaa0",
            "S-b8599f0300bbbbb0"
        ]
    );
    assert_eq!(fabric.links().len(), 8);
    let shape = found.tree.unwrap().shape();
    assert_eq!(
        (shape.m, shape.q, shape.p, shape.terminals_per_l0),
        (2, 2, 0, 2)
    );
    let notes = &found.notes;
    assert_eq!(notes.format, "ibnetdiscover");
    assert_eq!((notes.aggregation_nodes.count, notes.split.count), (1, 1));
    assert_eq!(notes.without_rate.count, 0);
    assert_eq!(
        notes.slow.first,
        ["MF0;leaf1:MQM8700/U1 - S-b8599f0300bbbbb0: 100Gbps instead of 200Gbps"]
    );

    // Unsplit, the adapter is one host with two cables.
    let options = ImportOptions {
        split_ports: false,
        ..ImportOptions::default()
    };
    let whole = import(DISCOVERED, "net", &options).unwrap();
    assert_eq!(whole.fabric.hosts().len(), 3);
    assert_eq!(whole.fabric.ports_of(NodeId(1)).len(), 2);
    assert!(whole.tree.is_ok());
    // What was read can be kept as our own map.
    assert_eq!(
        parse_toml(&write_toml(&found.fabric), "map.toml")
            .unwrap()
            .ports_of(NodeId(5)),
        found.fabric.ports_of(NodeId(5))
    );
}

/// ibsim's own example, with the comment lines, spaces and defaults that it allows.
const IBSIM: &str = "\
# Net configuration file example
Switch\t8 \"Switch1\"
[1]\t\"Hca1\"[1]
[2]\t\"Hca1\"[2]
# in between
[3]\t\"Switch2\"[3] w=1
[5]\t\"Switch2\"[5]

Switch 8 \"Switch2\"
[1]\t\"Hca2\"
[2]\t\"Hca2\"[2]
[3]\t\"Switch1\"[3]
[5]\t\"Switch1\"[5]

Hca\t2 \"Hca1\"
[1]\t\"Switch1\"[1]
[2]\t\"Switch1\"[2]

Hca\t2 \"Hca2\"
[1]\t\"Switch2\"[1]\ts=4
[2]\t\"Switch2\"[2]

Hca 1 \"spare\"

do Dump
";

#[test]
fn a_net_file_of_ibsim_is_read_as_ibsim_does() {
    let found = read(IBSIM);
    let fabric = &found.fabric;
    assert_eq!(found.notes.format, "ibsim");
    assert_eq!((fabric.hosts().len(), fabric.switches().len()), (4, 2));
    assert_eq!(found.notes.without_links.first, ["spare"]);
    assert_eq!(found.notes.ignored_lines.first, ["line 25: do Dump"]);
    // 4xSDR, and the pair of cables as slow as the 1x one of the two.
    let rates: Vec<BitRate> = fabric.links().iter().map(|link| link.rate).collect();
    assert!(rates.contains(&BitRate::from_gbps(2)) && rates.contains(&BitRate::from_gbps(8)));
    assert!(found.tree.is_err());
}

#[test]
fn rates_can_be_set_for_files_without() {
    let options = ImportOptions {
        rate: Some(BitRate::from_gbps(400)),
        delay: Span::from_us(2),
        ..ImportOptions::default()
    };
    let text = "Switch 4 \"s\"\n[1] \"a\"[1]\n[2] \"b\"[1] # \"b\" lid 0 4xEDR\n\nHca 1 \"a\"\n[1] \"s\"[1]\n\n\
                Hca 1 \"b\"\n[1] \"s\"[2]\n";
    let found = import(text, "net", &options).unwrap();
    let links = found.fabric.links();
    let rates: Vec<u64> = links
        .iter()
        .map(|link| link.rate.0 / 1_000_000_000)
        .collect();
    assert_eq!((rates, found.notes.without_rate.count), (vec![400, 100], 1));
    assert!(links.iter().all(|link| link.delay == Span::from_us(2)));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_a_cure() {
    let cut = DISCOVERED.rfind("caguid").unwrap();
    let host = "Hca 1 \"h\"\n[1] \"s\"[1]\n";
    for (text, expected) in [
        (String::new(), "net:1: there is no `Switch`"),
        ("hello\n".to_owned(), "there is no `Switch`"),
        (
            DISCOVERED[..cut].to_owned(),
            "net:11: there is no record of `H-b8599f0300112233`",
        ),
        (
            DISCOVERED.replace("vendid=0x2c9\ndevid", "vndid=0x2c9\ndevid"),
            "net:6: `vndid=0x2c9` is not a line",
        ),
        (
            format!("Switch \"s\"\n\n{host}"),
            "net:1: `\"s\"` is not a number of ports",
        ),
        (format!("Switch 300 \"s\"\n\n{host}"), "1 to 255"),
        (
            format!("Switch 4 s\n\n{host}"),
            "net:1: the node's id is missing",
        ),
        (
            format!("Switch 4 \"s\"\n[0] \"h\"[1]\n\n{host}"),
            "net:2: the port is `0`",
        ),
        (
            format!("Switch 4 \"s\"\n[5] \"h\"[1]\n\n{host}"),
            "net:2: port 5 is above what the node's line gives: 4 ports",
        ),
        (
            format!("Switch 4 \"s\"\n[1 \"h\"[1]\n\n{host}"),
            "net:2: the port is `1 \"h\"[1`",
        ),
        (
            format!("Switch 4 \"s\"\n[1] h[1]\n\n{host}"),
            "net:2: the quoted id",
        ),
        (
            format!("Switch 4 \"s\"\n[1] \"h\"[9]\n\n{host}"),
            "net:2: port 9 of `h` is named",
        ),
        (
            format!("Switch 4 \"s\"\n[1] \"h\"[1] w=wide\n\n{host}"),
            "net:2: `w` is `wide`",
        ),
        (
            format!("Switch 4 \"s\"\n[2] \"h\"[1]\n\n{host}"),
            "net:2: port 1 of `h` is joined to port 1 of `s` in line 5",
        ),
        (
            format!("Switch 4 \"s\"\n\n{host}"),
            "net:4: `s` has no line for port 1: ibsim wants every link at both ends, add `[1] \"h\"[1]`",
        ),
        (
            format!("Switch 4 \"s\"\n[1] \"h\"[1]\n[1] \"h\"[1]\n\n{host}"),
            "net:3: port 1 has a link in line 2 already",
        ),
        (
            format!("Switch 4 \"s\"\n[1] \"h\"[1]\n\n{host}\n{host}"),
            "net:7: `h` has a record in line 4",
        ),
        (
            format!("[1] \"h\"[1]\n{host}"),
            "net:1: a port line without a node",
        ),
        (
            format!("Switch 4 \"s\"\n@[1] \"up\"\n\n{host}"),
            "net:2: port aliases",
        ),
        (
            format!("include \"other\"\n{host}"),
            "net:1: `include` is not followed",
        ),
        (format!("width=fast\n{host}"), "net:1: `width` is `fast`"),
        (
            "Switch 4 \"s\"\n[1] \"s\"[2]\n[2] \"s\"[1]\n\nSwitch 4 \"t\"\n".to_owned(),
            "no hosts",
        ),
        (
            format!("Switch 4 \"s\"\n{}\n", "x".repeat(5000)),
            "net:2: the line has 5000 bytes",
        ),
    ] {
        let error = import(&text, "net", &ImportOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{text:.60}: {error}");
        assert!(error.len() < 500, "{error}");
    }
}

#[test]
fn a_link_told_from_one_end_is_taken_from_ibnetdiscover_and_said() {
    let cut = "[2]\t\"S-b8599f0300fc7de4\"[22]\t\t# \"MF0;leaf2:MQM8700/U1\" lid 14 4xHDR\n";
    let found = read(&DISCOVERED.replace(cut, ""));
    assert_eq!(found.fabric.links().len(), 8);
    assert_eq!(
        found.notes.from_one_end.first,
        ["S-b8599f0300fc7de4[22] - S-b8599f0300bbbbb0[2]"]
    );
}

#[test]
fn net_files_say_every_link_twice_and_guids_say_which_node() {
    let fabric = CnTn::new(1, 1, 0, 1, 1).build().unwrap();
    let text = write_ibsim(&fabric).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines[1..5],
        [
            "switchguid=0x2000000000100",
            "Switch\t2 \"s1\"\t\t# \"s1\" enhanced port 0 lid 0 lmc 0",
            "[1]\t\"h0\"[1]\t\t# \"h0\" lid 0 4xEDR",
            "[2]\t\"s2\"[1]\t\t# \"s2\" lid 0 4xEDR",
        ]
    );
    assert_eq!(
        lines[10..13],
        [
            "caguid=0x1000000000000",
            "Ca\t1 \"h0\"\t\t# \"h0\"",
            "[1]\t\"s1\"[1]\t\t# lid 0 lmc 0 \"s1\" lid 0 4xEDR"
        ]
    );
    assert_eq!(ibsim_guid(&fabric, NodeId(2)), 0x0002_0000_0000_0200);

    // Names that ibsim would misread, and a node with too many ports.
    let mut builder = FabricBuilder::new("odd");
    let (host, switch) = (builder.host(), builder.switch(1));
    builder.set_name(host, "a #1 \"best\" w=4 é");
    builder.connect(host, switch, BitRate::from_gbps(100), Span::from_us(1));
    let text = write_ibsim(&builder.finish().unwrap()).unwrap();
    assert!(text.contains("Ca\t1 \"a _1 _best_ w_4 _-0\""), "{text}");
    let mut builder = FabricBuilder::new("wide");
    let switch = builder.switch(1);
    for _ in 0..255 {
        let host = builder.host();
        builder.connect(host, switch, BitRate::from_gbps(100), Span::from_us(1));
    }
    let error = write_ibsim(&builder.finish().unwrap()).unwrap_err();
    assert!(error.to_string().contains("s0 has 255 ports"), "{error}");
}

fn same_wiring(a: &Fabric, b: &Fabric) {
    assert_eq!((a.hosts(), a.switches()), (b.hosts(), b.switches()));
    for node in (0..a.node_count() as u32).map(NodeId) {
        let far = |fabric: &Fabric| -> Vec<(NodeId, u16, BitRate)> {
            (fabric.ports_of(node).iter())
                .map(|port| (fabric.port(port.peer), fabric.link(port.link).rate))
                .map(|(peer, rate)| (peer.node, peer.number, rate))
                .collect()
        };
        assert_eq!(far(a), far(b), "{node}");
        assert_eq!(
            (a.level(node), a.node_name(node)),
            (b.level(node), b.node_name(node))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_map_comes_back_from_its_net_file(
        (m, q, p, k, w, t) in (1u32..4, 1u32..4, 0u32..3, 1u32..3, 1u32..4, 1u32..4),
        cables in 1u32..4,
    ) {
        let spec = CnTn { terminals_per_l0: Some(t), ..CnTn::new(m, q, p, k, w) };
        let fabric = spec.build().unwrap();
        let options = ImportOptions { format: ImportFormat::Ibsim, ..ImportOptions::default() };
        let found = import(&write_ibsim(&fabric).unwrap(), "net", &options).unwrap();
        same_wiring(&fabric, &found.fabric);
        prop_assert_eq!(found.tree.unwrap().shape().m, m);

        // Parallel cables.
        let mut builder = FabricBuilder::new("trunks");
        let host = builder.host();
        let switches = [1, 2, 1].map(|level| builder.switch(level));
        let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
        builder.connect(host, switches[0], rate, delay);
        let other = builder.host();
        prop_assert_eq!(other, NodeId(4));
        builder.connect(other, switches[2], rate, delay);
        builder.connect_parallel(switches[0], switches[1], rate, delay, cables);
        builder.connect_parallel(switches[2], switches[1], rate, delay, cables);
        let fabric = builder.finish().unwrap();
        let found = import(&write_ibsim(&fabric).unwrap(), "net", &options).unwrap();
        prop_assert_eq!(found.fabric.links().len(), fabric.links().len());
        parse_toml(&write_toml(&found.fabric), "map.toml").unwrap();
    }

    #[test]
    fn damaged_files_are_refused_or_read_but_never_break(at in 0usize..2000, byte in 0u8..128, cut in 0usize..4000) {
        for text in [DISCOVERED, IBSIM] {
            let mut bytes = text.as_bytes().to_vec();
            bytes.truncate(cut.max(1));
            let at = at % bytes.len();
            bytes[at] = byte;
            let text = String::from_utf8(bytes).unwrap();
            if let Err(error) = import(&text, "net", &ImportOptions::default()) {
                prop_assert!(error.to_string().contains("net"), "{}", error);
            }
        }
    }
}
