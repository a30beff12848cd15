//! The structure of every builder's map in closed form: counts, numbers, ports and the order of links.

use raddle_fabric::{
    CnTn, Dumbbell, Fabric, FatTree320, KAryFatTree, LeafSpine, NodeKind, RailOptimised, Small20,
    Xgft, dumbbell, write_hpcc_ns3,
};
use raddle_units::{BitRate, NodeId, Span};

/// The links as pairs of node numbers, in order.
fn pairs(fabric: &Fabric) -> Vec<(u32, u32)> {
    let node = |port| fabric.port(port).node.0;
    fabric
        .links()
        .iter()
        .map(|link| (node(link.ports[0]), node(link.ports[1])))
        .collect()
}

fn switches_per_level(fabric: &Fabric) -> Vec<usize> {
    let mut counts = Vec::new();
    for &switch in fabric.switches() {
        let level = usize::from(fabric.level(switch));
        counts.resize(counts.len().max(level), 0);
        counts[level - 1] += 1;
    }
    counts
}

/// FNV-1a, 64 bits, of a text.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn small_20_has_the_numbers_and_the_order_of_links_of_the_experiment() {
    let fabric = Small20::default().build().unwrap();
    assert_eq!(fabric.switches(), [NodeId(2), NodeId(3)]);
    let mut expected = vec![(0, 2), (1, 2), (2, 3)];
    expected.extend((4..20).map(|host| (host, 3)));
    assert_eq!(pairs(&fabric), expected);
    // The pause log of the reference names port 3 of switch 2 as the one to switch 3.
    let third = fabric.ports_of(NodeId(2))[2];
    assert_eq!((third.number, fabric.port(third.peer).node), (3, NodeId(3)));
    assert!(
        fabric
            .links()
            .iter()
            .all(|link| link.rate == BitRate::from_gbps(100))
    );
    assert!(
        fabric
            .links()
            .iter()
            .all(|link| link.delay == Span::from_us(1))
    );
}

#[test]
fn fat_tree_320_follows_the_rules_of_the_reference_topology() {
    let fabric = FatTree320 {
        fabric_rate: BitRate::from_gbps(400),
        ..FatTree320::default()
    };
    let fabric = fabric.build().unwrap();
    assert_eq!((fabric.hosts().len(), fabric.links().len()), (320, 480));
    assert_eq!(switches_per_level(&fabric), [20, 20, 16]);
    assert_eq!(fabric.switches()[0], NodeId(320));

    let (tor, aggregation, core) = (320, 340, 360);
    let mut expected = Vec::new();
    expected.extend((0..320).map(|host| (host, tor + host / 16)));
    for index in 0..20 {
        let pod = index / 4;
        expected.extend((0..4).map(|up| (tor + index, aggregation + pod * 4 + up)));
    }
    for index in 0..20 {
        expected.extend((0..4).map(|up| (aggregation + index, core + index % 4 * 4 + up)));
    }
    assert_eq!(pairs(&fabric), expected);
    for (index, link) in fabric.links().iter().enumerate() {
        assert_eq!(
            link.rate,
            BitRate::from_gbps(if index < 320 { 100 } else { 400 })
        );
    }
    // Ports by closed form: 16 hosts then 4 up; 4 down then 4 up; one per pod.
    for &switch in fabric.switches() {
        let ports = fabric.ports_of(switch);
        let expected = [20, 8, 5][usize::from(fabric.level(switch)) - 1];
        assert_eq!(ports.len(), expected);
        assert!((1..).zip(ports).all(|(number, port)| port.number == number));
    }
}

#[test]
fn presets_written_as_topology_files_hash_to_those_of_the_reference_runs() {
    // FNV-1a of the words of small/, large/ and large100/topology.txt, joined by single spaces.
    let large = FatTree320 {
        fabric_rate: BitRate::from_gbps(400),
        ..FatTree320::default()
    };
    for (fabric, hash) in [
        (Small20::default().build(), 0x5db8_d8b5_a8ff_e02f),
        (large.build(), 0x47db_e8b0_3561_d79c),
        (FatTree320::default().build(), 0x5ca0_6cf8_8d70_a5f8),
    ] {
        let text = write_hpcc_ns3(&fabric.unwrap());
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(fnv1a(&words.join(" ")), hash);
    }
}

#[test]
fn a_dumbbell_has_its_hosts_on_two_sides_and_the_middle_link_last() {
    let fabric = dumbbell(5).unwrap();
    let mut expected: Vec<(u32, u32)> = (0..10).map(|host| (host, 10 + host / 5)).collect();
    expected.push((10, 11));
    assert_eq!(pairs(&fabric), expected);
    let slow = Dumbbell {
        fabric_rate: BitRate::from_gbps(10),
        ..Dumbbell::new(1)
    };
    let slow = slow.build().unwrap();
    assert_eq!(
        slow.links()
            .iter()
            .map(|link| link.rate.0 / 1_000_000_000)
            .sum::<u64>(),
        210
    );
}

#[test]
fn a_k_ary_fat_tree_has_k_ports_at_every_switch() {
    for k in [2, 4, 6, 16] {
        let fabric = KAryFatTree::new(k).build().unwrap();
        let k = k as usize;
        assert_eq!(fabric.hosts().len(), k * k * k / 4);
        assert_eq!(
            switches_per_level(&fabric),
            [k * k / 2, k * k / 2, k * k / 4]
        );
        assert!(
            fabric
                .switches()
                .iter()
                .all(|&switch| fabric.ports_of(switch).len() == k)
        );
    }
}

#[test]
fn a_k_ary_fat_tree_of_65536_hosts_is_small_in_memory() {
    let fabric = KAryFatTree::new(64).build().unwrap();
    assert_eq!(fabric.hosts().len(), 65_536);
    assert_eq!(fabric.links().len(), 3 * 65_536);
    assert!(fabric.memory_bytes() < 20_000_000);
}

#[test]
fn an_xgft_has_the_nodes_links_and_ports_of_its_definition() {
    for (children, parents) in [
        (&[5][..], &[1][..]),
        (&[3, 4], &[1, 2]),
        (&[2, 3, 4], &[1, 2, 3]),
        (&[2, 3, 2], &[2, 1, 3]),
        (&[2, 2, 2, 3], &[1, 2, 2, 2]),
        (&[2, 1, 2, 1, 2], &[1, 2, 1, 2, 1]),
    ] {
        let fabric = Xgft::new(children, parents).build().unwrap();
        let levels = children.len();
        let nodes =
            |level: usize| -> u32 { children[level..].iter().chain(&parents[..level]).product() };
        assert_eq!(fabric.hosts().len() as u32, nodes(0));
        let switches: Vec<usize> = (1..=levels).map(|level| nodes(level) as usize).collect();
        assert_eq!(switches_per_level(&fabric), switches);
        let links: u32 = (0..levels).map(|level| nodes(level) * parents[level]).sum();
        assert_eq!(fabric.links().len() as u32, links);
        for node in (0..fabric.node_count() as u32).map(NodeId) {
            let level = usize::from(fabric.level(node));
            let down = if level == 0 { 0 } else { children[level - 1] };
            let up = parents.get(level).copied().unwrap_or(0);
            // Children come first among the ports: links are added from below.
            let levels_of_peers = fabric.ports_of(node).iter().map(|port| {
                let peer = fabric.port(port.peer).node;
                usize::from(fabric.level(peer))
            });
            let expected = (0..down).map(|_| level.wrapping_sub(1));
            assert!(levels_of_peers.eq(expected.chain((0..up).map(|_| level + 1))));
        }
    }
}

#[test]
fn nodes_of_an_xgft_are_joined_where_their_other_digits_agree() {
    // Öhring et al.: a node of level l is a label of digits x_1 .. x_h, x_i < w_i up to level l and x_i < m_i above;
    // it is joined to the nodes of level l + 1 whose digits agree, but for x_(l+1).
    let (children, parents): (&[u32], &[u32]) = (&[2, 3, 2, 2], &[2, 2, 1, 3]);
    let fabric = Xgft::new(children, parents).build().unwrap();
    let mut labels = Vec::new();
    for level in 0..=children.len() {
        // Numbers go through the subtrees first (x_h .. x_(l+1)), then through the tops of each (x_1 .. x_l).
        let places = (level..children.len()).rev().chain(0..level);
        let mut digits = vec![vec![0; children.len()]];
        for place in places {
            let base = if place < level { parents } else { children }[place];
            digits = digits
                .iter()
                .flat_map(|label| {
                    (0..base).map(|digit| {
                        let mut label: Vec<u32> = label.clone();
                        label[place] = digit;
                        label
                    })
                })
                .collect();
        }
        labels.extend(digits.into_iter().map(|label| (level, label)));
    }
    assert_eq!(labels.len(), fabric.node_count());
    let mut expected = Vec::new();
    for (below, (level, label)) in labels.iter().enumerate() {
        for (above, (above_level, above_label)) in labels.iter().enumerate() {
            let agree = (0..children.len())
                .filter(|place| place != level)
                .all(|place| label[place] == above_label[place]);
            if *above_level == level + 1 && agree {
                expected.push((below as u32, above as u32));
            }
        }
    }
    assert_eq!(pairs(&fabric), expected);
}

#[test]
fn an_xgft_of_three_levels_is_the_k_ary_fat_tree() {
    let tree = Xgft::new(&[4, 4, 8], &[1, 4, 4]).build().unwrap();
    let k_ary = KAryFatTree::new(8).build().unwrap();
    assert_eq!(tree.links(), k_ary.links());
    assert_eq!(switches_per_level(&tree), switches_per_level(&k_ary));
    assert_eq!(Xgft::k_ary_n_tree(4, 3), Xgft::new(&[4; 3], &[1, 4, 4]));
}

#[test]
fn a_tree_of_a_million_hosts_is_small_in_memory() {
    let spec = Xgft {
        radix: Some(64),
        ..Xgft::k_ary_n_tree(32, 4)
    };
    let fabric = spec.build().unwrap();
    assert_eq!(fabric.hosts().len(), 1 << 20);
    assert_eq!(switches_per_level(&fabric), [1 << 15; 4]);
    assert_eq!(fabric.links().len(), 4 << 20);
    // 16 bytes for each port, 24 for each link, and a few for each node.
    assert!(fabric.memory_bytes() < 250_000_000);
}

#[test]
fn leaves_and_spines_are_all_joined() {
    let spec = LeafSpine {
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 4,
        links_per_spine: 2,
        host_rate: BitRate::from_gbps(100),
        fabric_rate: BitRate::from_gbps(400),
        delay: Span::from_us(1),
        radix: Some(8),
    };
    let fabric = spec.build().unwrap();
    assert_eq!(
        (fabric.hosts().len(), fabric.links().len()),
        (12, 12 + 3 * 2 * 2)
    );
    assert_eq!(switches_per_level(&fabric), [3, 2]);
    let spine = NodeId(15);
    let leaves: Vec<u32> = (fabric.ports_of(spine).iter())
        .map(|port| fabric.port(port.peer).node.0)
        .collect();
    assert_eq!(leaves, [12, 12, 13, 13, 14, 14]);
    assert!(
        LeafSpine {
            radix: Some(7),
            ..spec
        }
        .build()
        .is_err()
    );
}

/// Links on the shortest way from a host to each node, through switches only.
fn hops(fabric: &Fabric, from: u32) -> Vec<Option<u32>> {
    let mut hops = vec![None; fabric.node_count()];
    hops[from as usize] = Some(0);
    let mut queue = std::collections::VecDeque::from([NodeId(from)]);
    while let Some(node) = queue.pop_front() {
        if node.0 != from && fabric.kind(node) == NodeKind::Host {
            continue;
        }
        let next = hops[node.0 as usize].map(|hops| hops + 1);
        for port in fabric.ports_of(node) {
            let peer = fabric.port(port.peer).node;
            if hops[peer.0 as usize].is_none() {
                hops[peer.0 as usize] = next;
                queue.push_back(peer);
            }
        }
    }
    hops
}

/// 5 servers of 4 GPUs, two groups of at most 3 servers: 8 rail switches.
#[test]
fn cards_of_one_number_share_a_rail() {
    let spec = RailOptimised {
        servers: 5,
        gpus_per_server: 4,
        servers_per_group: 3,
        spines: 2,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(400),
        fabric_rate: BitRate::from_gbps(800),
        delay: Span::from_us(1),
        server_links: false,
        server_rate: BitRate::from_gbps(3600),
        server_delay: Span::from_ns(200),
        radix: None,
    };
    let fabric = spec.build().unwrap();
    assert_eq!(fabric.hosts().len(), 20);
    assert_eq!(switches_per_level(&fabric), [8, 2]);
    assert_eq!(fabric.links().len(), 20 + 8 * 2);
    let away = hops(&fabric, 0);
    // Another GPU of the server, the same rail, another rail of the group, the same number in the other group.
    for (host, links) in [(1, 4), (4, 2), (8, 2), (5, 4), (12, 4), (13, 4)] {
        assert_eq!(away[host], Some(links), "host {host}");
    }
    let joined = RailOptimised {
        server_links: true,
        ..spec
    };
    let fabric = joined.build().unwrap();
    assert_eq!(switches_per_level(&fabric), [8 + 5, 2]);
    assert_eq!(fabric.links().len(), 2 * 20 + 8 * 2);
    let away = hops(&fabric, 0);
    for (host, links) in [(1, 2), (3, 2), (4, 2), (5, 4), (12, 4)] {
        assert_eq!(away[host], Some(links), "host {host}");
    }
}

#[test]
fn the_published_cn_tn_fabric_has_40_448_nodes() {
    let spec = CnTn {
        cns: Some(64),
        radix: Some(40),
        ..CnTn::new(16, 32, 6, 32, 16)
    };
    let fabric = spec.build().unwrap();
    assert_eq!(fabric.node_count(), 40_448);
    assert_eq!(fabric.switches().len(), 7_680);
    assert_eq!(
        switches_per_level(&fabric),
        [64 * 32, 64 * 16, 96 * 32, 96 * 16]
    );
}

#[test]
fn cn_tn_wiring_follows_the_rules_of_the_paper() {
    let (m, q, p, k, w, cns) = (2, 3, 2, 2, 2, 3);
    let spec = CnTn {
        cns: Some(cns),
        terminals_per_l0: Some(1),
        ..CnTn::new(m, q, p, k, w)
    };
    let fabric = spec.build().unwrap();
    let hosts = cns * q;
    let (l0, l1) = (hosts, hosts + cns * q);
    let (l2, l3) = (l1 + cns * m, l1 + cns * m + m * p * k);
    let mut expected = Vec::new();
    expected.extend((0..hosts).map(|terminal| (terminal, l0 + terminal)));
    for cn in 0..cns {
        for (a, b) in (0..q).flat_map(|a| (0..m).map(move |b| (a, b))) {
            expected.push((l0 + cn * q + a, l1 + cn * m + b));
        }
    }
    for cn in 0..cns {
        // TN number T hangs on L1 switch T div p of every CN; L2 switch i of a TN serves CNs i*w to i*w + w-1.
        for tn in 0..m * p {
            expected.push((l1 + cn * m + tn / p, l2 + tn * k + cn / w));
        }
    }
    for tn in 0..m * p {
        for (a, b) in (0..k).flat_map(|a| (0..w).map(move |b| (a, b))) {
            expected.push((l2 + tn * k + a, l3 + tn * w + b));
        }
    }
    assert_eq!(pairs(&fabric), expected);
    assert_eq!(fabric.node_count() as u32, l3 + m * p * w);
}

#[test]
fn cn_tn_upper_levels_may_be_absent() {
    let three = CnTn::new(2, 2, 1, 1, 4).build().unwrap();
    assert_eq!(switches_per_level(&three), [8, 8, 2]);
    let two = CnTn::new(2, 4, 0, 1, 1).build().unwrap();
    assert_eq!(switches_per_level(&two), [4, 2]);
    assert_eq!(two.hosts().len(), 8);
}

#[test]
fn peers_links_and_numbers_of_ports_agree_with_each_other() {
    for fabric in [
        Small20::default().build().unwrap(),
        FatTree320::default().build().unwrap(),
        KAryFatTree::new(6).build().unwrap(),
        CnTn::new(2, 3, 2, 2, 2).build().unwrap(),
        Xgft::new(&[2, 3, 2], &[2, 1, 3]).build().unwrap(),
    ] {
        let mut next = 0;
        for node in (0..fabric.node_count() as u32).map(NodeId) {
            assert_eq!(fabric.first_port(node).0, next);
            for port in fabric.ports_of(node) {
                let peer = fabric.port(port.peer);
                assert_eq!(port.node, node);
                assert_eq!(fabric.port(peer.peer), port);
                assert_eq!(peer.link, port.link);
                next += 1;
            }
            assert_eq!(fabric.level(node) == 0, fabric.kind(node) == NodeKind::Host);
        }
        assert_eq!(next as usize, fabric.port_count());
    }
}

#[test]
fn a_drawing_puts_hosts_beside_their_neighbours_and_switches_above_them() {
    let fabric = FatTree320::default().build().unwrap();
    let places = fabric.layout();
    assert_eq!(places, fabric.layout());
    assert!(places.iter().all(|place| place.x > 0.0 && place.x < 1.0));
    // ToR 0 stands above the middle of its hosts 0 to 15: 8/320.
    assert!((places[320].x - 8.0 / 320.0).abs() < 1e-12);
    assert_eq!(
        (places[0].level, places[320].level, places[375].level),
        (0, 1, 3)
    );
}
