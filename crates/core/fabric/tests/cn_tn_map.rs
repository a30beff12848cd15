//! CN/TN fat trees are found in maps from their graph alone: built, relabelled and damaged ones; others are refused.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use raddle_fabric::{
    CnTn, CnTnMap, CnTnShape, Fabric, FabricBuilder, KAryFatTree, LeafSpine, Role, dumbbell,
};
use raddle_units::{BitRate, NodeId, Span};

/// A random source for shuffles: xorshift, seeded by the case.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The places that the builder gives its nodes, by its documented order.
fn builder_roles(spec: &CnTn, fabric: &Fabric) -> Vec<Role> {
    let CnTn { m, q, p, k, w, .. } = *spec;
    let t = spec.terminals_per_l0.unwrap_or(m);
    let cns = spec.cns.unwrap_or(if p == 0 { 1 } else { k * w });
    let hosts = cns * q * t;
    let l0 = |n: u32| Role::L0 {
        cn: n / q,
        i: n % q,
    };
    let mut roles: Vec<Role> = (0..hosts)
        .map(|host| Role::Host {
            l0: NodeId(hosts + host / t),
        })
        .collect();
    roles.extend((0..cns * q).map(l0));
    roles.extend((0..cns * m).map(|n| Role::L1 {
        cn: n / m,
        g: n % m,
    }));
    roles.extend((0..m * p * k).map(|n| Role::L2 {
        tn: n / k,
        i: n % k,
    }));
    if k > 1 {
        roles.extend((0..m * p * w).map(|n| Role::L3 {
            tn: n / w,
            j: n % w,
        }));
    }
    assert_eq!(roles.len(), fabric.node_count());
    roles
}

/// The shape that shows: what nothing tells takes its least value.
fn visible(spec: &CnTn) -> CnTnShape {
    let CnTn { m, q, p, k, w, .. } = *spec;
    let cns = spec.cns.unwrap_or(if p == 0 { 1 } else { k * w });
    let (k, w) = match (p, k) {
        (0, _) => (1, 1),
        (_, 1) => (1, cns),
        _ => (k, w),
    };
    CnTnShape {
        m,
        q,
        p,
        k,
        w,
        cns,
        terminals_per_l0: spec.terminals_per_l0.unwrap_or(m),
        levels: 2 + u8::from(p > 0) + u8::from(p > 0 && k > 1),
    }
}

/// A copy with other node numbers and port orders, without some nodes and links. `new[old]` is the number in the copy.
fn copy(
    fabric: &Fabric,
    order: &[NodeId],
    links: &[usize],
) -> Option<(Fabric, Vec<Option<NodeId>>)> {
    let mut builder = FabricBuilder::new("copy");
    let mut new = vec![None; fabric.node_count()];
    for &node in order {
        new[node.index()] = Some(if fabric.is_host(node) {
            builder.host()
        } else {
            builder.switch(1)
        });
    }
    for &link in links {
        let link = fabric.links()[link];
        let [a, b] = link.ports.map(|port| new[fabric.port(port).node.index()]);
        if let (Some(a), Some(b)) = (a, b) {
            builder.connect(a, b, link.rate, link.delay);
        }
    }
    builder.finish().ok().map(|fabric| (fabric, new))
}

/// Every link lies where a fat tree of this shape has one, ports lead where they say, and look-ups agree with roles.
fn check_consistent(fabric: &Fabric, map: &CnTnMap) {
    let CnTnShape { m, q, p, k, w, .. } = map.shape();
    for link in fabric.links() {
        let [a, b] = link.ports.map(|port| fabric.port(port).node);
        for (a, b, port) in [(a, b, link.ports[0]), (b, a, link.ports[1])] {
            let found = map.port_between(a, b).expect("a link has a port");
            assert_eq!(found, port);
        }
        let legal = |a: Role, b: Role| match (a, b) {
            (Role::Host { .. }, Role::L0 { .. }) => true,
            (Role::L0 { cn, i }, Role::L1 { cn: other, g }) => cn == other && i < q && g < m,
            (Role::L1 { cn, g }, Role::L2 { tn, i }) => cn / w == i && tn / p == g && i < k,
            (Role::L2 { tn, i }, Role::L3 { tn: other, j }) => tn == other && i < k && j < w,
            _ => false,
        };
        let (a, b) = (map.role(a), map.role(b));
        assert!(legal(a, b) || legal(b, a), "{a:?} {b:?}");
    }
    for &switch in fabric.switches() {
        let there = match map.role(switch) {
            Role::L0 { cn, i } => map.l0(cn, i),
            Role::L1 { cn, g } => map.l1(cn, g),
            Role::L2 { tn, i } => map.l2(tn, i),
            Role::L3 { tn, j } => map.l3(tn, j),
            Role::Host { .. } => None,
        };
        assert_eq!(there, Some(switch));
    }
    for &host in fabric.hosts() {
        let Role::Host { l0 } = map.role(host) else {
            panic!("{host} is a host")
        };
        let Role::L0 { cn, i } = map.role(l0) else {
            panic!("{l0} is an L0")
        };
        assert!(map.hosts_of_l0(cn, i).contains(&host));
        assert_eq!(map.cn_of(host), Some(cn));
        assert!(map.hosts_of_l0(cn, i).is_sorted());
    }
}

/// The places in the copy are those of the original up to renumbering of CNs, switches in them, TNs and so on.
fn check_same_tree(before: &[Role], map: &CnTnMap, new: &[Option<NodeId>]) {
    let mut pairs: BTreeMap<(&str, u32, u32), (u32, u32)> = BTreeMap::new();
    let mut back: BTreeMap<(&str, u32, u32), (u32, u32)> = BTreeMap::new();
    let mut same = |what: &'static str, a: (u32, u32), b: (u32, u32)| {
        assert_eq!(
            *pairs.entry((what, a.0, a.1)).or_insert(b),
            b,
            "{what} {a:?}"
        );
        assert_eq!(
            *back.entry((what, b.0, b.1)).or_insert(a),
            a,
            "{what} {b:?}"
        );
    };
    let p = map.shape().p;
    let cns = before.iter().filter_map(|role| match role {
        Role::L0 { cn, .. } => Some(cn + 1),
        _ => None,
    });
    let blocks = cns.max().unwrap_or(0).div_ceil(map.shape().w);
    for (role, node) in before.iter().zip(new) {
        let Some(node) = *node else { continue };
        match (*role, map.role(node)) {
            (Role::Host { l0 }, Role::Host { l0: copied }) => {
                assert_eq!(new[l0.index()], Some(copied));
            }
            (Role::L0 { cn, .. }, Role::L0 { cn: copied, .. }) => same("cn", (cn, 0), (copied, 0)),
            (
                Role::L1 { cn, g },
                Role::L1 {
                    cn: other,
                    g: copied,
                },
            ) => {
                same("cn", (cn, 0), (other, 0));
                same("group", (g, 0), (copied, 0));
            }
            (
                Role::L2 { tn, i },
                Role::L2 {
                    tn: other,
                    i: copied,
                },
            ) => {
                same("tn", (tn, 0), (other, 0));
                // Blocks without CNs look all alike.
                if i < blocks {
                    same("block", (i, 0), (copied, 0));
                }
                same("group", (tn / p, 0), (other / p, 0));
            }
            (Role::L3 { tn, .. }, Role::L3 { tn: other, .. }) => same("tn", (tn, 0), (other, 0)),
            (before, after) => panic!("{before:?} became {after:?}"),
        }
    }
}

fn everything(fabric: &Fabric) -> (Vec<NodeId>, Vec<usize>) {
    let nodes = (0..fabric.node_count() as u32).map(NodeId).collect();
    (nodes, (0..fabric.links().len()).collect())
}

fn specs() -> impl Iterator<Item = CnTn> {
    let sizes = |from: u32| from..=3;
    sizes(1).flat_map(move |m| {
        sizes(1).flat_map(move |q| {
            (0..=2).flat_map(move |p| {
                sizes(1).flat_map(move |k| {
                    sizes(1).flat_map(move |w| {
                        let most = if p == 0 { 1 } else { k * w };
                        (1..=most).flat_map(move |cns| {
                            [1, 2].map(|terminals| CnTn {
                                cns: Some(cns),
                                terminals_per_l0: Some(terminals),
                                ..CnTn::new(m, q, p, k, w)
                            })
                        })
                    })
                })
            })
        })
    })
}

#[test]
fn a_built_map_gets_the_numbers_of_the_builder() {
    let mut count = 0;
    for spec in specs() {
        let fabric = spec.build().unwrap();
        let map = CnTnMap::recognise(&fabric).unwrap_or_else(|error| panic!("{spec:?}: {error}"));
        assert_eq!(map.shape(), visible(&spec), "{spec:?}");
        for (node, role) in (0..).map(NodeId).zip(builder_roles(&spec, &fabric)) {
            assert_eq!(map.role(node), role, "{spec:?} {node}");
        }
        check_consistent(&fabric, &map);
        let missing = map.missing();
        assert!(missing.is_empty(), "{spec:?} {missing:?}");
        count += 1;
    }
    assert!(count > 1000);
}

#[test]
fn the_papers_fabric_is_found_in_well_under_a_second() {
    let spec = CnTn {
        cns: Some(64),
        ..CnTn::new(16, 32, 6, 32, 16)
    };
    let fabric = spec.build().unwrap();
    let map = CnTnMap::recognise(&fabric).unwrap();
    assert_eq!(map.shape(), visible(&spec));
    for (node, role) in (0..).map(NodeId).zip(builder_roles(&spec, &fabric)) {
        assert_eq!(map.role(node), role);
    }
    assert_eq!(map.shape().tns(), 96);
    assert!(map.missing().is_empty());
}

#[test]
fn a_leaf_spine_is_one_cn_and_a_k_ary_tree_has_pods_below_tns_of_one_l2() {
    let leaves = LeafSpine {
        leaves: 6,
        spines: 4,
        hosts_per_leaf: 3,
        ..serde_json::from_str(r#"{"leaves": 6, "spines": 4, "hosts_per_leaf": 3}"#).unwrap()
    };
    let shape = CnTnMap::recognise(&leaves.build().unwrap())
        .unwrap()
        .shape();
    assert_eq!(
        (shape.m, shape.q, shape.p, shape.cns, shape.levels),
        (4, 6, 0, 1, 2)
    );
    assert_eq!(shape.terminals_per_l0, 3);

    for half in 1..=4 {
        let fabric = KAryFatTree::new(2 * half).build().unwrap();
        let map = CnTnMap::recognise(&fabric).unwrap();
        let expected = CnTnShape {
            m: half,
            q: half,
            p: half,
            k: 1,
            w: 2 * half,
            cns: 2 * half,
            terminals_per_l0: half,
            levels: 3,
        };
        assert_eq!(map.shape(), expected);
        assert!(map.missing().is_empty());
        check_consistent(&fabric, &map);
    }
}

#[test]
fn a_cn_without_hosts_is_told_from_the_top_of_a_tn() {
    for (k, w, p) in [(2, 3, 2), (1, 4, 2), (3, 2, 2), (2, 3, 1)] {
        let spec = CnTn::new(2, 3, p, k, w);
        let fabric = spec.build().unwrap();
        let before = builder_roles(&spec, &fabric);
        let empty = |cn: u32| {
            let (mut nodes, links) = everything(&fabric);
            nodes.retain(|&node| match before[node.index()] {
                Role::Host { l0 } => {
                    !matches!(before[l0.index()], Role::L0 { cn: own, .. } if own == cn)
                }
                _ => true,
            });
            copy(&fabric, &nodes, &links).unwrap()
        };
        for cn in 0..k * w {
            let (fabric, new) = empty(cn);
            let map = CnTnMap::recognise(&fabric).unwrap();
            let found = map.shape();
            assert_eq!(
                (found.m, found.q, found.p, found.k, found.w),
                (2, 3, p, k, w)
            );
            check_consistent(&fabric, &map);
            check_same_tree(&before, &map, &new);
            assert_eq!(map.missing().short_of_hosts, 3);
        }
    }
}

#[test]
fn whole_switches_may_be_missing_and_are_counted() {
    let spec = CnTn::new(3, 3, 2, 2, 3);
    let fabric = spec.build().unwrap();
    let before = builder_roles(&spec, &fabric);
    let (nodes, links) = everything(&fabric);
    for &gone in fabric.switches() {
        // The hosts of a missing L0 are gone with it.
        let kept: Vec<NodeId> = (nodes.iter().copied())
            .filter(|node| *node != gone)
            .filter(|node| !matches!(before[node.index()], Role::Host { l0 } if l0 == gone))
            .collect();
        let (fabric, new) = copy(&fabric, &kept, &links).unwrap();
        let map = CnTnMap::recognise(&fabric).unwrap();
        assert_eq!(map.shape(), visible(&spec));
        check_consistent(&fabric, &map);
        check_same_tree(&before, &map, &new);
        let missing = map.missing();
        let counts = [missing.l0, missing.l1, missing.l2, missing.l3];
        let expected = match before[gone.index()] {
            Role::Host { .. } => unreachable!(),
            Role::L0 { .. } => [1, 0, 0, 0],
            Role::L1 { .. } => [0, 1, 0, 0],
            Role::L2 { .. } => [0, 0, 1, 0],
            Role::L3 { .. } => [0, 0, 0, 1],
        };
        assert_eq!((counts, missing.links, missing.cns), (expected, 0, 0));
    }
}

/// Every way to split a CN in two by cutting links between its L0 and L1 switches.
#[test]
fn a_cn_that_missing_links_split_is_one_cn() {
    let mut tried = 0;
    for (m, q, p, k, w) in [
        (2, 2, 1, 2, 2),
        (2, 2, 2, 1, 3),
        (2, 2, 2, 3, 1),
        (2, 3, 1, 2, 2),
        (3, 2, 1, 2, 2),
        (3, 2, 2, 3, 1),
        (3, 3, 1, 2, 2),
        (2, 5, 1, 2, 2),
    ] {
        let spec = CnTn {
            terminals_per_l0: Some(2),
            ..CnTn::new(m, q, p, k, w)
        };
        let fabric = spec.build().unwrap();
        let before = builder_roles(&spec, &fabric);
        let (nodes, links) = everything(&fabric);
        for cn in 0..k * w {
            // Bit i of `low` and bit g of `high`: the side of an L0 and of an L1.
            for (low, high) in
                (1..(1 << q) - 1).flat_map(|low| (1..(1 << m) - 1).map(move |high| (low, high)))
            {
                let apart = |link: &usize| {
                    let ends = fabric.links()[*link]
                        .ports
                        .map(|port| fabric.port(port).node);
                    let [a, b] = ends.map(|node| before[node.index()]);
                    match (a, b) {
                        (Role::L0 { cn: own, i }, Role::L1 { g, .. })
                        | (Role::L1 { g, .. }, Role::L0 { cn: own, i }) => {
                            own == cn && (low >> i & 1) != (high >> g & 1)
                        }
                        _ => false,
                    }
                };
                let (cut, kept): (Vec<usize>, Vec<usize>) =
                    links.iter().partition(|link| apart(link));
                let (fabric, new) = copy(&fabric, &nodes, &kept).unwrap();
                let map = CnTnMap::recognise(&fabric).unwrap();
                assert_eq!(
                    map.shape(),
                    visible(&spec),
                    "{spec:?} {cn} {low:b} {high:b}"
                );
                check_consistent(&fabric, &map);
                check_same_tree(&before, &map, &new);
                let missing = map.missing();
                assert_eq!(missing.links, cut.len() as u64);
                assert_eq!(
                    (missing.l0, missing.l1, missing.l2, missing.l3),
                    (0, 0, 0, 0)
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 300);
}

/// Two CNs that each lack another L1 switch are no pieces of one: together they have too many L0.
#[test]
fn cns_without_an_l1_each_stay_two() {
    for (m, q, p, k, w) in [(2, 2, 1, 2, 3), (2, 3, 2, 1, 3), (2, 2, 1, 3, 1)] {
        let spec = CnTn::new(m, q, p, k, w);
        let fabric = spec.build().unwrap();
        let before = builder_roles(&spec, &fabric);
        let (mut nodes, links) = everything(&fabric);
        nodes.retain(|node| {
            !matches!(
                before[node.index()],
                Role::L1 { cn: 0, g: 0 } | Role::L1 { cn: 1, g: 1 }
            )
        });
        let (fabric, new) = copy(&fabric, &nodes, &links).unwrap();
        let map = CnTnMap::recognise(&fabric).unwrap();
        assert_eq!(map.shape(), visible(&spec));
        check_same_tree(&before, &map, &new);
        assert_eq!((map.missing().l1, map.missing().links), (2, 0));
    }
}

#[test]
fn a_refusal_names_the_node_and_what_was_expected() {
    let error = CnTnMap::recognise(&dumbbell(2).unwrap()).unwrap_err();
    assert_eq!(error.node, "s4");
    assert!(error.to_string().contains("neighbouring levels"), "{error}");

    // A ring of six switches, one host on the first.
    let mut builder = FabricBuilder::new("ring");
    let host = builder.host();
    let ring: Vec<NodeId> = (0..7).map(|_| builder.switch(0)).collect();
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    builder.connect(host, ring[0], rate, delay);
    for index in 0..7 {
        builder.connect(ring[index], ring[(index + 1) % 7], rate, delay);
    }
    let error = CnTnMap::recognise(&builder.finish().unwrap()).unwrap_err();
    assert!(error.to_string().contains("3 hops"), "{error}");

    // Cores joined to every aggregation switch of two pods.
    let mut builder = FabricBuilder::new("mesh");
    let hosts: Vec<NodeId> = (0..4).map(|_| builder.host()).collect();
    let low: Vec<NodeId> = (0..4).map(|_| builder.switch(1)).collect();
    let mid: Vec<NodeId> = (0..4).map(|_| builder.switch(2)).collect();
    let core = builder.switch(3);
    builder.set_name(core, "core");
    for index in 0..4 {
        builder.connect(hosts[index], low[index], rate, delay);
        builder.connect(mid[index], core, rate, delay);
        for up in 0..2 {
            builder.connect(low[index], mid[index / 2 * 2 + up], rate, delay);
        }
    }
    let error = CnTnMap::recognise(&builder.finish().unwrap()).unwrap_err();
    assert_eq!(error.node, "core");

    // A host on two switches.
    let mut builder = FabricBuilder::new("rails");
    let host = builder.host();
    let [a, b, top] = [1, 1, 2].map(|level| builder.switch(level));
    for (low, high) in [(host, a), (host, b), (a, top), (b, top)] {
        builder.connect(low, high, rate, delay);
    }
    let error = CnTnMap::recognise(&builder.finish().unwrap()).unwrap_err();
    assert_eq!(
        (error.node.as_str(), error.expected.as_str()),
        ("h0", "a host on one switch")
    );
}

#[test]
fn parallel_cables_count_as_one_link() {
    let mut builder = FabricBuilder::new("trunks");
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let hosts: Vec<NodeId> = (0..2).map(|_| builder.host()).collect();
    let low: Vec<NodeId> = (0..2).map(|_| builder.switch(1)).collect();
    let top: Vec<NodeId> = (0..2).map(|_| builder.switch(2)).collect();
    for (&host, &low) in hosts.iter().zip(&low) {
        builder.connect(host, low, rate, delay);
        for &top in &top {
            builder.connect_parallel(low, top, rate, delay, 3);
        }
    }
    let fabric = builder.finish().unwrap();
    let map = CnTnMap::recognise(&fabric).unwrap();
    assert_eq!((map.shape().m, map.shape().q), (2, 2));
    for (low, top) in [(low[0], top[1]), (low[1], top[0])] {
        let port = map.port_between(low, top).unwrap();
        let first = (fabric.ports_of(low).iter()).find(|p| fabric.port(p.peer).node == top);
        assert_eq!(fabric.port(port).number, first.unwrap().number);
    }
    assert!(map.missing().is_empty());
}

fn some_spec() -> impl Strategy<Value = CnTn> {
    (
        1u32..5,
        1u32..5,
        0u32..4,
        1u32..4,
        1u32..4,
        1u32..4,
        0u32..100,
    )
        .prop_map(|(m, q, p, k, w, terminals, cns)| {
            let most = if p == 0 { 1 } else { k * w };
            CnTn {
                cns: Some(cns % most + 1),
                terminals_per_l0: Some(terminals),
                ..CnTn::new(m, q, p, k, w)
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_relabelled_map_is_the_same_tree(spec in some_spec(), seed in 1u64..) {
        let fabric = spec.build().unwrap();
        let before = builder_roles(&spec, &fabric);
        let (mut nodes, mut links) = everything(&fabric);
        let mut draw = Draw(seed);
        draw.shuffle(&mut nodes);
        draw.shuffle(&mut links);
        let (fabric, new) = copy(&fabric, &nodes, &links).unwrap();
        let map = CnTnMap::recognise(&fabric).unwrap();
        prop_assert_eq!(map.shape(), visible(&spec));
        check_consistent(&fabric, &map);
        check_same_tree(&before, &map, &new);
        prop_assert!(map.missing().is_empty());
        prop_assert_eq!(&CnTnMap::recognise(&fabric).unwrap(), &map);
    }

    /// A few links are cut, at most one on each switch, and a few hosts are taken away, never the last one of an L0:
    /// without hosts and beside a cut link it may be read as an L2. Two cuts part a CN of two L0 and two L1; one such
    /// CN is put together again, of two nobody can say which halves belonged together.
    #[test]
    fn a_damaged_map_is_the_same_tree(
        (m, q, p) in (2u32..5, 2u32..5, 2u32..4),
        (k, w) in (1u32..4, 3u32..5),
        cuts in 1usize..8,
        seed in 1u64..,
    ) {
        let spec = CnTn { terminals_per_l0: Some(3), ..CnTn::new(m, q, p, k, w) };
        let fabric = spec.build().unwrap();
        let before = builder_roles(&spec, &fabric);
        let (mut nodes, mut links) = everything(&fabric);
        let mut draw = Draw(seed);
        draw.shuffle(&mut nodes);
        draw.shuffle(&mut links);
        let mut hurt = vec![false; fabric.node_count()];
        let mut hurt_cns = BTreeSet::new();
        let mut parted = false;
        let mut cut = 0;
        links.retain(|&link| {
            let ends = fabric.links()[link].ports.map(|port| fabric.port(port).node);
            if cut == cuts || ends.iter().any(|end| fabric.is_host(*end) || hurt[end.index()]) {
                return true;
            }
            let inside = ends.iter().find_map(|end| match before[end.index()] {
                Role::L0 { cn, .. } => Some(cn),
                _ => None,
            });
            if let Some(cn) = inside.filter(|_| (m, q) == (2, 2)) && !hurt_cns.insert(cn) {
                if parted {
                    return true;
                }
                parted = true;
            }
            for end in ends {
                hurt[end.index()] = true;
            }
            cut += 1;
            false
        });
        let mut hosts = 0;
        let mut hosts_left = vec![3; fabric.node_count()];
        nodes.retain(|&node| {
            let Role::Host { l0 } = before[node.index()] else { return true };
            let left = &mut hosts_left[l0.index()];
            if hosts == cuts || *left == 1 {
                return true;
            }
            hosts += 1;
            *left -= 1;
            false
        });
        let Some((fabric, new)) = copy(&fabric, &nodes, &links) else { return Ok(()) };
        let map = CnTnMap::recognise(&fabric).unwrap();
        let (found, expected) = (map.shape(), visible(&spec));
        prop_assert_eq!(CnTnShape { terminals_per_l0: 3, ..found }, expected);
        check_consistent(&fabric, &map);
        check_same_tree(&before, &map, &new);
        prop_assert_eq!(map.missing().links, cut as u64);
        let listed: Vec<_> = map.missing_links().collect();
        prop_assert_eq!(listed.len(), cut);
        for (lower, upper) in listed {
            prop_assert_eq!(map.port_between(lower, upper), None);
        }
    }

    /// However many links are cut: what is accepted is consistent.
    #[test]
    fn whatever_is_accepted_fits_its_own_shape(spec in some_spec(), keep in 50usize..100, seed in 1u64..) {
        let fabric = spec.build().unwrap();
        let (mut nodes, mut links) = everything(&fabric);
        let mut draw = Draw(seed);
        draw.shuffle(&mut nodes);
        links.retain(|_| draw.below(100) < keep);
        // The part that hangs together with the first host.
        let mut group: Vec<usize> = (0..fabric.node_count()).collect();
        fn root(group: &[usize], mut at: usize) -> usize {
            while group[at] != at { at = group[at]; }
            at
        }
        for &link in &links {
            let [a, b] = fabric.links()[link].ports.map(|port| root(&group, fabric.port(port).node.index()));
            group[a] = b;
        }
        let home = root(&group, fabric.links()[*links.first().unwrap_or(&0)].ports.map(|port| fabric.port(port).node)[0].index());
        nodes.retain(|node| root(&group, node.index()) == home);
        if let Some((fabric, _)) = copy(&fabric, &nodes, &links)
            && let Ok(map) = CnTnMap::recognise(&fabric)
        {
            check_consistent(&fabric, &map);
        }
    }

    /// A random regular graph of switches with a host on each is refused: hosts' switches are joined.
    #[test]
    fn random_graphs_are_refused(switches in 4usize..40, hosts in 1usize..4, extra in 2usize..60, seed in 1u64..) {
        let mut draw = Draw(seed);
        let mut builder = FabricBuilder::new("random");
        let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
        let nodes: Vec<NodeId> = (0..switches).map(|_| builder.switch(0)).collect();
        let mut pairs = Vec::new();
        for at in 1..switches {
            pairs.push((draw.below(at), at));
        }
        // A triangle: no bipartite graph, so no tree of levels.
        pairs.extend([(0, 1), (0, 2), (1, 2)]);
        for _ in 0..extra {
            let (a, b) = (draw.below(switches), draw.below(switches));
            if a != b {
                pairs.push((a.min(b), a.max(b)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        for (a, b) in pairs {
            builder.connect(nodes[a], nodes[b], rate, delay);
        }
        for index in 0..hosts * switches / 4 + 1 {
            let host = builder.host();
            builder.connect(host, nodes[index * 7 % switches], rate, delay);
        }
        let error = CnTnMap::recognise(&builder.finish().unwrap()).unwrap_err();
        prop_assert!(!error.node.is_empty() && !error.expected.is_empty());
    }

    /// A connected random bipartite graph, hosts on one side, is one CN exactly if half of its links are there.
    #[test]
    fn random_bipartite_graphs_need_half_of_their_links(
        low in 6usize..20,
        high in 6usize..20,
        extra in 0usize..300,
        seed in 1u64..,
    ) {
        let mut draw = Draw(seed);
        let mut builder = FabricBuilder::new("bipartite");
        let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
        let lower: Vec<NodeId> = (0..low).map(|_| builder.switch(0)).collect();
        let upper: Vec<NodeId> = (0..high).map(|_| builder.switch(0)).collect();
        let mut pairs: Vec<(usize, usize)> = (0..low).map(|at| (at, 0)).collect();
        pairs.extend((1..high).map(|at| (draw.below(low), at)));
        pairs.extend((0..extra).map(|_| (draw.below(low), draw.below(high))));
        pairs.sort_unstable();
        pairs.dedup();
        for &(a, b) in &pairs {
            builder.connect(lower[a], upper[b], rate, delay);
        }
        for &switch in &lower {
            let host = builder.host();
            builder.connect(host, switch, rate, delay);
        }
        let found = CnTnMap::recognise(&builder.finish().unwrap());
        if 2 * pairs.len() < low * high {
            prop_assert!(found.unwrap_err().expected.contains("at least half"));
        } else {
            let shape = found.unwrap().shape();
            prop_assert_eq!((shape.m as usize, shape.q as usize, shape.cns), (high, low, 1));
        }
    }
}
