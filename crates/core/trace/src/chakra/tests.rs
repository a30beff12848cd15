use super::{
    schema::{Attribute, Value},
    *,
};

pub(crate) fn node(id: u64, kind: NodeType, deps: &[u64], attributes: &[(&str, u64)]) -> Node {
    let attr = attributes.iter().map(|(name, value)| Attribute {
        name: (*name).to_owned(),
        value: Some(Value::Uint64(*value)),
    });
    Node {
        id,
        kind: kind.into(),
        data_deps: deps.to_vec(),
        attr: attr.collect(),
        ..Node::default()
    }
}

fn computing(id: u64, deps: &[u64], micros: u64) -> Node {
    Node {
        duration_micros: micros,
        ..node(id, NodeType::Comp, deps, &[])
    }
}

fn in_group(mut node: Node, name: &str) -> Node {
    node.attr.push(Attribute {
        name: "pg_name".to_owned(),
        value: Some(Value::Text(name.to_owned())),
    });
    node
}

fn file(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = GlobalMetadata {
        version: "0.0.4".to_owned(),
    }
    .encode_length_delimited_to_vec();
    for node in nodes {
        bytes.extend(node.encode_length_delimited_to_vec());
    }
    bytes
}

fn trace(ranks: &[Vec<Node>]) -> Result<Trace, ChakraError> {
    let files: Vec<Vec<u8>> = ranks.iter().map(|nodes| file(nodes)).collect();
    let names: Vec<String> = (0..files.len())
        .map(|rank| format!("x.{rank}.et"))
        .collect();
    let files: Vec<File<'_>> = names
        .iter()
        .zip(&files)
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    read(&files)
}

fn step() -> Vec<Node> {
    vec![
        computing(1, &[], 10),
        node(
            2,
            NodeType::CommColl,
            &[1],
            &[("comm_type", 0), ("comm_size", 4096)],
        ),
        computing(3, &[1], 5),
        computing(4, &[2, 3], 7),
    ]
}

#[test]
fn a_step_is_computing_a_sum_beside_computing_and_computing() {
    let found = trace(&vec![step(); 4]).unwrap();
    found.check().unwrap();
    assert_eq!(found.communicators, [vec![0, 1, 2, 3]]);
    for rank in &found.ranks {
        let told: Vec<(u64, &Action)> =
            rank.iter().map(|it| (it.at.start_ns, &it.action)).collect();
        let call = Collective {
            kind: CollectiveKind::Allreduce,
            comm: 0,
            bytes: Bytes(4096),
            root: None,
        };
        let request = Some(0);
        let requests = Box::new([0]);
        assert_eq!(
            told,
            [
                (10_000, &Action::Collective { call, request }),
                (15_000, &Action::Wait { requests }),
                (22_000, &Action::End),
            ]
        );
    }
}

#[test]
fn messages_go_round_a_ring() {
    let ranks: Vec<Vec<Node>> = (0..3_u64)
        .map(|rank| {
            let (to, from) = ((rank + 1) % 3, (rank + 2) % 3);
            vec![
                node(
                    7,
                    NodeType::CommRecv,
                    &[],
                    &[("comm_src", from), ("comm_size", 9)],
                ),
                node(
                    5,
                    NodeType::CommSend,
                    &[],
                    &[("comm_dst", to), ("comm_size", 9)],
                ),
                computing(9, &[7], 1),
            ]
        })
        .collect();
    let found = trace(&ranks).unwrap();
    found.check().unwrap();
    let first: Vec<&Action> = found.ranks[0].iter().map(|event| &event.action).collect();
    // The receive is waited for before the task that needs it, the send at the end.
    assert!(matches!(
        first[0],
        Action::Send {
            message: Message { peer: 1, .. },
            ..
        }
    ));
    assert!(matches!(
        first[1],
        Action::Receive {
            message: Message { peer: 2, .. },
            ..
        }
    ));
    assert!(matches!(first[2], Action::Wait { requests } if **requests == [1]));
    assert!(matches!(first[3], Action::Wait { requests } if **requests == [0]));
    assert_eq!(first.len(), 5);
}

#[test]
fn members_of_a_group_are_those_who_call_it() {
    let sum = |id, deps: &[u64]| {
        node(
            id,
            NodeType::CommColl,
            deps,
            &[("comm_type", 0), ("comm_size", 8)],
        )
    };
    let ranks: Vec<Vec<Node>> = (0..4)
        .map(|rank| {
            let own = in_group(sum(0, &[]), if rank < 2 { "low" } else { "high" });
            vec![own, in_group(sum(1, &[0]), "all"), sum(2, &[1])]
        })
        .collect();
    let found = trace(&ranks).unwrap();
    found.check().unwrap();
    assert_eq!(
        found.communicators,
        [vec![0, 1, 2, 3], vec![2, 3], vec![0, 1]]
    );
}

#[test]
fn what_is_wrong_is_told_with_file_and_node() {
    let coll = |attributes: &[(&str, u64)]| node(3, NodeType::CommColl, &[], attributes);
    let ops = node(3, NodeType::Comp, &[], &[("num_ops", 5)]);
    for (nodes, told) in [
        (
            vec![computing(3, &[8], 1)],
            "it waits for node 8, which is not in the file",
        ),
        (
            vec![computing(3, &[4], 1), computing(4, &[3], 1)],
            "it waits for itself",
        ),
        (
            vec![computing(3, &[], 1), computing(3, &[], 1)],
            "there are two of this id",
        ),
        (vec![coll(&[("comm_type", 0)])], "`comm_size` must be"),
        (
            vec![coll(&[("comm_type", 0), ("comm_size", u64::MAX)])],
            "`comm_size` must be",
        ),
        (
            vec![coll(&[("comm_type", 10), ("comm_size", 8)])],
            "`comm_type` must be from 0 to 9",
        ),
        (
            vec![coll(&[("comm_type", 1), ("comm_size", 8), ("root", 9)])],
            "`root` must be",
        ),
        (
            vec![node(3, NodeType::CommSend, &[], &[("comm_size", 8)])],
            "`comm_dst` must be a rank",
        ),
        (
            vec![node(
                3,
                NodeType::CommRecv,
                &[],
                &[("comm_size", 8), ("comm_src", 1)],
            )],
            "`comm_src` must be a rank, from 0 to 0",
        ),
        (
            vec![node(3, NodeType::Invalid, &[], &[])],
            "its type is not known",
        ),
        (vec![computing(3, &[], u64::MAX)], "out of range"),
        (vec![ops], "say how long it takes"),
    ] {
        let error = trace(&[nodes]).unwrap_err();
        assert_eq!(
            (error.file.as_str(), error.node),
            ("x.0.et", Some(3)),
            "{error}"
        );
        assert!(error.to_string().contains(told), "{error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_told() {
    let bytes = file(&step());
    let whole = read(&[("x", &bytes)]).unwrap();
    let mut ends = 0;
    for length in 0..bytes.len() {
        match read(&[("x", &bytes[..length])]) {
            // Between two nodes nothing shows that more were to come, unless a node waits for one of them.
            Ok(found) => {
                assert!(found.ranks[0].len() < whole.ranks[0].len() || found != whole);
                ends += 1;
            }
            Err(error) => assert!(!error.problem.is_empty()),
        }
    }
    assert_eq!(ends, 4);
}
