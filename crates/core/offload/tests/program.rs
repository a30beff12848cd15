//! Programs of all nodes, run from the members up, give the bits of the whole expression.

use proptest::{prelude::*, sample::Index};
use raddle_offload::{
    order::{Call, Expression, ExpressionError, HostMpi, Node, Order, Placement, Plan, Unknown},
    program::{Limits, Program, ProgramError, Step},
    reduce::Comparison,
};
use raddle_wire::{DataType, Operation, native::Collective};

const ANY: Limits = Limits {
    children: 1000,
    operands: 1000,
    steps: 1000,
    outputs: 1000,
};

/// A tree over all ranks, from choices: which two parts are combined next.
fn expression(size: u32, choices: &[(Index, Index)]) -> Expression {
    let mut nodes: Vec<Node> = (0..size).map(Node::Rank).collect();
    let mut open: Vec<u32> = (0..size).collect();
    for (left, right) in choices {
        if open.len() < 2 {
            break;
        }
        let left = open.swap_remove(left.index(open.len()));
        let right = open.swap_remove(right.index(open.len()));
        open.push(u32::try_from(nodes.len()).unwrap());
        nodes.push(Node::Combine(left, right));
    }
    Expression::new(nodes).unwrap()
}

/// A node of an aggregation tree.
enum Part {
    Rank(u32),
    Inner(Vec<Self>),
}

impl Part {
    fn ranks(&self) -> Vec<u32> {
        match self {
            Self::Rank(rank) => vec![*rank],
            Self::Inner(children) => children.iter().flat_map(Self::ranks).collect(),
        }
    }
}

/// Any tree of nodes over all ranks: parts are put together until one is left.
fn parts(size: u32, choices: &[(Index, u8)]) -> Part {
    let mut open: Vec<Part> = (0..size).map(Part::Rank).collect();
    for (first, count) in choices {
        let count = (usize::from(*count) % 4 + 1).min(open.len());
        let children = (0..count)
            .map(|_| open.swap_remove(first.index(open.len())))
            .collect();
        open.push(Part::Inner(children));
    }
    Part::Inner(open)
}

/// The outputs of a part, computed by programs alone.
fn climb(
    part: &Part,
    cut: &dyn Fn(&[Vec<u32>]) -> Program,
    operation: Operation,
    data_type: DataType,
    operands: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let children = match part {
        Part::Rank(rank) => return vec![operands[*rank as usize].clone()],
        Part::Inner(children) => children,
    };
    let program = cut(&children.iter().map(Part::ranks).collect::<Vec<_>>());
    program.check(&ANY).unwrap();
    let mut room = Vec::new();
    for (child, &inputs) in children.iter().zip(&program.inputs) {
        let below = climb(child, cut, operation, data_type, operands);
        assert_eq!(
            below.len(),
            usize::from(inputs),
            "child and parent cut alike"
        );
        room.extend(below.concat());
    }
    let bytes = operands[0].len();
    room.resize(program.operands() * bytes, 0);
    program.run(operation, data_type, &mut room, bytes).unwrap();
    program.results(&room, bytes).map(<[u8]>::to_vec).collect()
}

fn case() -> impl Strategy<Value = (Expression, Part, Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    (1_u32..24).prop_flat_map(|size| {
        let joins = prop::collection::vec(any::<(Index, Index)>(), size as usize);
        let nodes = prop::collection::vec(any::<(Index, u8)>(), 0..20);
        // Wild magnitudes: any bits of doubles, two elements each.
        let wild = prop::collection::vec(any::<[u64; 2]>(), size as usize);
        (joins, nodes, wild).prop_map(move |(joins, nodes, wild)| {
            let whole = wild
                .iter()
                .map(|v| v.map(u64::to_be_bytes).concat())
                .collect();
            let near = |v: &u64| (v & !(0x7ff << 52)) | ((1003 + v % 41) << 52);
            let wild = wild
                .iter()
                .map(|v| v.map(|v| near(&v).to_be_bytes()).concat())
                .collect();
            (expression(size, &joins), parts(size, &nodes), wild, whole)
        })
    })
}

impl std::fmt::Debug for Part {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rank(rank) => write!(out, "{rank}"),
            Self::Inner(children) => out.debug_list().entries(children).finish(),
        }
    }
}

proptest! {
    #[test]
    fn nodes_together_compute_the_expression((expression, tree, wild, special) in case()) {
        for operands in [&wild, &special] {
            for operation in [Operation::Sum, Operation::Max, Operation::Prod] {
                let cut = |children: &[Vec<u32>]| Program::for_node(&expression, children).unwrap();
                let results = climb(&tree, &cut, operation, DataType::Double, operands);
                let whole = expression.evaluate(operation, DataType::Double, operands).unwrap();
                prop_assert_eq!(results, vec![whole]);
            }
        }
    }

    #[test]
    fn whole_numbers_may_be_folded_anyhow((expression, tree, _, operands) in case()) {
        let operations = [Operation::Sum, Operation::Prod, Operation::Min, Operation::BitXor];
        for operation in operations {
            let cut = |children: &[Vec<u32>]| Program::fold(children.len()).unwrap();
            let results = climb(&tree, &cut, operation, DataType::Int64, &operands);
            let whole = expression.evaluate(operation, DataType::Int64, &operands).unwrap();
            prop_assert_eq!(results, vec![whole]);
        }
    }

    #[test]
    fn what_check_lets_through_runs(
        inputs in prop::collection::vec(0_u16..4, 0..4),
        steps in prop::collection::vec((0_u16..12, 0_u16..12, 0_u16..12), 0..6),
        outputs in prop::collection::vec(0_u16..12, 0..4),
    ) {
        let steps = steps.into_iter().map(|(into, left, right)| Step { into, left, right });
        let program = Program { inputs, steps: steps.collect(), outputs };
        let limits = Limits { children: 3, operands: 10, steps: 5, outputs: 3 };
        if program.check(&limits).is_ok() {
            prop_assert!(program.operands() <= limits.operands);
            for bytes in [0, 8] {
                let mut operands = vec![0; program.operands() * bytes];
                program.run(Operation::Sum, DataType::Double, &mut operands, bytes).unwrap();
                prop_assert_eq!(program.results(&operands, bytes).count(), program.outputs.len());
            }
        }
    }
}

#[test]
fn hostile_programs_are_refused() {
    let good = Program::fold(3).unwrap();
    let step = |into, left, right| Step { into, left, right };
    let limits = Limits {
        children: 3,
        operands: 3,
        steps: 2,
        outputs: 1,
    };
    assert_eq!(good.check(&limits), Ok(()));
    let refused = |change: fn(&mut Program)| {
        let mut program = good.clone();
        change(&mut program);
        program
            .check(&Limits {
                outputs: 2,
                ..limits
            })
            .unwrap_err()
    };
    use ProgramError::{Idle, Output, Step as Bad, TooMany};
    assert!(matches!(
        refused(|p| p.inputs.push(1)),
        TooMany {
            what: "children",
            ..
        }
    ));
    assert!(matches!(refused(|p| p.inputs[1] = 0), Idle { child: 1 }));
    assert!(matches!(
        refused(|p| p.inputs[1] = u16::MAX),
        TooMany {
            what: "operands",
            ..
        }
    ));
    assert!(matches!(
        refused(|p| p.steps[1].into = u16::MAX),
        TooMany {
            what: "operands",
            ..
        }
    ));
    assert!(matches!(
        refused(|p| p.steps[0].left = 3),
        Bad {
            step: 0,
            operand: 3
        }
    ));
    assert!(matches!(
        refused(|p| p.steps[0].right = 0),
        Bad {
            step: 0,
            operand: 0
        }
    ));
    assert!(matches!(refused(|p| p.outputs.clear()), Output { .. }));
    assert!(matches!(
        refused(|p| p.outputs[0] = 3),
        Output {
            output: 0,
            operand: 3
        }
    ));
    assert!(matches!(
        refused(|p| p.outputs = vec![0; 3]),
        TooMany {
            what: "outputs",
            ..
        }
    ));
    let wide = Limits {
        operands: 10,
        ..limits
    };
    let mut early = good.clone();
    early.steps = vec![step(4, 0, 3), step(3, 1, 2)];
    assert_eq!(
        early.check(&wide),
        Err(Bad {
            step: 0,
            operand: 3
        })
    );
    assert_eq!(Program::default().check(&limits), Err(Idle { child: 0 }));
    assert!(Program::fold(0).is_err() && Program::fold(1 << 16).is_err());
}

#[test]
fn ranks_below_two_children_are_refused() {
    let expression = Expression::in_rank_order(3).unwrap();
    let cut = |children: &[Vec<u32>]| Program::for_node(&expression, children).unwrap_err();
    assert!(matches!(
        cut(&[vec![0], vec![0]]),
        ProgramError::Rank {
            child: 1,
            rank: 0,
            size: 3
        }
    ));
    assert!(matches!(
        cut(&[vec![3]]),
        ProgramError::Rank {
            child: 0,
            rank: 3,
            size: 3
        }
    ));
    assert!(matches!(
        cut(&[vec![1], vec![]]),
        ProgramError::Idle { child: 1 }
    ));
    assert!(matches!(cut(&[]), ProgramError::Idle { child: 0 }));
}

#[test]
fn nodes_that_are_no_tree_are_refused() {
    use Node::{Combine, Rank};
    let refused = |nodes: &[Node]| Expression::new(nodes.to_vec()).unwrap_err();
    assert_eq!(refused(&[]), ExpressionError::Empty);
    assert!(matches!(
        refused(&[Rank(0), Rank(0), Combine(0, 1)]),
        ExpressionError::Rank { .. }
    ));
    assert!(matches!(
        refused(&[Rank(0), Rank(2), Combine(0, 1)]),
        ExpressionError::Rank { .. }
    ));
    assert!(matches!(
        refused(&[Rank(0), Combine(0, 1)]),
        ExpressionError::Forward { .. }
    ));
    assert!(matches!(
        refused(&[Rank(0), Rank(1), Combine(0, 0)]),
        ExpressionError::Uses { .. }
    ));
    assert!(matches!(
        refused(&[Rank(0), Rank(1)]),
        ExpressionError::Rank { .. }
    ));
    assert_eq!(Expression::in_rank_order(0), None);
}

fn text(expression: &Expression) -> String {
    let mut texts: Vec<String> = Vec::new();
    for node in expression.nodes() {
        texts.push(match *node {
            Node::Rank(rank) => rank.to_string(),
            Node::Combine(a, b) => format!("({}{})", texts[a as usize], texts[b as usize]),
        });
    }
    texts.pop().unwrap()
}

fn call(collective: Collective, count: usize, size: u32, root: u32) -> Call {
    Call {
        collective,
        operation: Operation::Sum,
        data_type: DataType::Double,
        count,
        size,
        root,
        placement: Placement::OnePerNode,
        comparison: Comparison::Same,
    }
}

/// Written down by hand from the descriptions of the algorithms; `tests/mpi` compares with the libraries.
#[test]
fn trees_of_known_algorithms() {
    let tree = |host, collective, count, size, root| match Order::Host(host)
        .plan(&call(collective, count, size, root))
    {
        Plan::Tree(tree) => text(&tree),
        other => format!("{other:?}"),
    };
    let (open, mpich) = (HostMpi::OpenMpi41, HostMpi::Mpich40);
    let (all, one) = (Collective::Allreduce, Collective::Reduce);
    assert_eq!(tree(open, all, 1, 4, 0), "((01)(23))");
    assert_eq!(tree(open, all, 1, 6, 0), "(((01)(23))(45))");
    assert_eq!(tree(mpich, all, 1, 7, 0), "(((01)(23))((45)6))");
    assert_eq!(tree(open, one, 4, 3, 1), "(0(12))"); // linear
    assert_eq!(tree(open, one, 1, 6, 0), "((24)(0(5(13))))");
    assert_eq!(tree(open, one, 512, 4, 2), "(2(3(01)))"); // chain from the root
    assert_eq!(tree(mpich, one, 1, 4, 1), "((03)(21))");
    assert_eq!(
        tree(open, all, 600, 3, 0),
        format!("{:?}", Plan::Plain(Unknown::Mixed))
    );
}

#[test]
fn orders_that_need_no_tree() {
    let mut asked = call(Collective::Allreduce, 1, 5, 0);
    assert_eq!(Order::Arrival.plan(&asked), Plan::Any);
    let in_rank_order = Expression::in_rank_order(5).unwrap();
    assert_eq!(Order::Rank.plan(&asked), Plan::Tree(in_rank_order));
    asked.data_type = DataType::Int32;
    for order in [
        Order::Rank,
        Order::Host(HostMpi::OpenMpi41),
        Order::Host(HostMpi::Mpich40),
    ] {
        assert_eq!(order.plan(&asked), Plan::Any);
    }
    asked.comparison = Comparison::Other;
    let plan = Order::Host(HostMpi::OpenMpi41).plan(&asked);
    assert_eq!(plan, Plan::Plain(Unknown::Arithmetic));
    asked.size = 0;
    assert_eq!(Order::Rank.plan(&asked), Plan::Plain(Unknown::Algorithm));
}

#[test]
fn every_size_has_a_tree_where_one_is_promised() {
    for size in 1..200 {
        for count in [1, 4, 32, 255] {
            for host in [HostMpi::OpenMpi41, HostMpi::Mpich40] {
                for root in [0, size / 2, size - 1] {
                    for collective in [Collective::Allreduce, Collective::Reduce] {
                        let plan = Order::Host(host).plan(&call(collective, count, size, root));
                        let known = size < 128
                            || host == HostMpi::Mpich40
                            || collective == Collective::Reduce;
                        let Plan::Tree(tree) = plan else {
                            assert!(!known, "{host:?} {collective:?} {size} {count}");
                            continue;
                        };
                        assert_eq!(tree.size(), size);
                    }
                }
            }
        }
    }
}
