//! Writing a map and reading it again gives the same map, in both formats.

use proptest::{prelude::*, test_runner::FileFailurePersistence};
use raddle_fabric::{
    CnTn, Dumbbell, Fabric, FabricBuilder, FabricSource, FabricSpec, FatTree320, KAryFatTree,
    Small20, Xgft, parse_hpcc_ns3, parse_toml, write_hpcc_ns3, write_toml,
};
use raddle_units::{BitRate, NodeId, Span};

/// A random map: a random tree of switches, more links between them, hosts with one to three ports.
fn any_fabric() -> impl Strategy<Value = Fabric> {
    let switches = 1usize..8;
    switches
        .prop_flat_map(|switches| {
            let parents = prop::collection::vec(any::<prop::sample::Index>(), switches - 1);
            let extra = prop::collection::vec((0..switches, 0..switches, 1u32..3), 0..8);
            let hosts = prop::collection::vec(
                (
                    prop::collection::btree_set(0..switches, 1..4.min(switches + 1)),
                    1u32..3,
                ),
                1..8,
            );
            (parents, extra, hosts, any::<bool>(), any::<bool>())
        })
        .prop_map(|(parents, extra, hosts, hosts_first, named)| {
            let mut builder = FabricBuilder::new("random");
            let mut host_ids = Vec::new();
            if hosts_first {
                host_ids.extend(hosts.iter().map(|_| builder.host()));
            }
            let switches: Vec<NodeId> = (0..=parents.len()).map(|_| builder.switch(0)).collect();
            if !hosts_first {
                host_ids.extend(hosts.iter().map(|_| builder.host()));
            }
            if named {
                builder.set_name(switches[0], "root \"switch\"");
            }
            let mut joined = std::collections::BTreeSet::new();
            for (index, parent) in parents.iter().enumerate() {
                let parent = parent.index(index + 1);
                joined.insert((parent, index + 1));
                builder.connect(
                    switches[parent],
                    switches[index + 1],
                    BitRate(25_000_000_001),
                    Span(1_234_567),
                );
            }
            for (a, b, count) in extra {
                if a != b && joined.insert((a.min(b), a.max(b))) {
                    let rate = BitRate::from_gbps(400);
                    builder.connect_parallel(switches[a], switches[b], rate, Span::ZERO, count);
                }
            }
            for (host, (at, count)) in host_ids.into_iter().zip(hosts) {
                for switch in at {
                    let rate = BitRate::from_gbps(100);
                    let delay = Span::from_us(1);
                    builder.connect_parallel(host, switches[switch], rate, delay, count);
                }
            }
            builder
                .finish()
                .expect("a tree with hosts on it is a good map")
        })
}

fn presets() -> Vec<Fabric> {
    [
        Small20::default().build(),
        FatTree320::default().build(),
        Dumbbell::new(3).build(),
        KAryFatTree::new(4).build(),
        Xgft::new(&[2, 3, 2], &[2, 1, 3]).build(),
        CnTn {
            radix: Some(9),
            ..CnTn::new(2, 3, 2, 2, 2)
        }
        .build(),
    ]
    .map(Result::unwrap)
    .into()
}

#[test]
fn presets_come_back_from_toml_unchanged() {
    for fabric in presets() {
        assert_eq!(
            parse_toml(&write_toml(&fabric), "copy.toml").unwrap(),
            fabric
        );
    }
}

#[test]
fn presets_come_back_from_topology_files_with_the_same_nodes_ports_and_links() {
    for fabric in presets() {
        let text = write_hpcc_ns3(&fabric);
        let copy = parse_hpcc_ns3(&text, fabric.name()).unwrap();
        assert_eq!(copy.switches(), fabric.switches());
        assert_eq!(copy.links(), fabric.links());
        assert!(
            copy.hosts()
                .iter()
                .all(|&host| copy.ports_of(host) == fabric.ports_of(host))
        );
        assert_eq!(write_hpcc_ns3(&copy), text);
    }
}

#[test]
fn every_kind_has_defaults_and_comes_back_from_toml_and_json() {
    for text in [
        "kind = \"dumbbell\"\nhosts_per_side = 5",
        "kind = \"small-20\"",
        "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3",
        "kind = \"fat-tree\"\npods = 2\ntors_per_pod = 2\nhosts_per_tor = 2\naggregations_per_pod = 2\ncores_per_aggregation = 2",
        "kind = \"fat-tree-320\"\nfabric_rate = \"400Gbps\"",
        "kind = \"k-ary-fat-tree\"\nk = 4",
        "kind = \"xgft\"\nchildren = [2, 3]\nparents = [1, 2]",
        "kind = \"cn-tn\"\nm = 2\nq = 2\np = 2\nk = 2\nw = 2",
        "kind = \"graph\"\nhost = [{ name = \"a\" }]\nswitch = [{}]\nlink = [{ a = 0, b = \"s1\" }]",
    ] {
        let spec: FabricSpec = toml::from_str(text).unwrap();
        spec.build().unwrap();
        assert_eq!(
            toml::from_str::<FabricSpec>(&toml::to_string(&spec).unwrap()).unwrap(),
            spec
        );
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<FabricSpec>(&json).unwrap(), spec);
        let source: FabricSource = toml::from_str(text).unwrap();
        assert_eq!(source, FabricSource::Spec(spec));
        parse_toml(&format!("schema = 1\n{text}"), "map.toml").unwrap();
    }
}

#[test]
fn rows_of_nodes_have_numbered_names() {
    let text = "schema = 1\n[[host]]\nname = \"node\"\ncount = 2\nid = 1\n[[switch]]\n\
        [[link]]\na = \"node0\"\nb = \"s0\"\n[[link]]\na = \"node1\"\nb = 0\ncount = 2";
    let fabric = parse_toml(text, "map.toml").unwrap();
    assert_eq!(fabric.find_node("node1"), Some(NodeId(2)));
    assert_eq!(fabric.find_node("s0"), Some(NodeId(0)));
    assert_eq!(fabric.find_node("1"), Some(NodeId(1)));
    assert_eq!(fabric.find_node("h1"), None);
    assert_eq!(fabric.find_node("s9"), None);
    assert_eq!(fabric.node_name(NodeId(1)), "node0");
    assert_eq!(fabric.ports_of(NodeId(2)).len(), 2);
}

#[test]
fn every_key_has_a_description_in_the_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(FabricSource)).unwrap();
    let mut stack = vec![&schema];
    let mut properties = 0;
    while let Some(value) = stack.pop() {
        if let Some(map) = value.get("properties").and_then(|value| value.as_object()) {
            for (key, property) in map {
                properties += 1;
                assert!(
                    key == "kind" || property.get("description").is_some(),
                    "{key}"
                );
            }
        }
        match value {
            serde_json::Value::Object(map) => stack.extend(map.values()),
            serde_json::Value::Array(list) => stack.extend(list),
            _ => {}
        }
    }
    assert!(properties > 40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(
        FileFailurePersistence::WithSource("regressions")
    ))]

    #[test]
    fn any_map_comes_back_from_toml(fabric in any_fabric()) {
        prop_assert_eq!(parse_toml(&write_toml(&fabric), "copy.toml").unwrap(), fabric);
    }

    #[test]
    fn any_map_without_parallel_links_comes_back_from_a_topology_file(fabric in any_fabric()) {
        let text = write_hpcc_ns3(&fabric);
        match parse_hpcc_ns3(&text, "copy.txt") {
            Ok(copy) => prop_assert_eq!(write_hpcc_ns3(&copy), text),
            Err(error) => {
                prop_assert!(error.to_string().contains("already joined"), "{}", error);
            }
        }
    }
}
