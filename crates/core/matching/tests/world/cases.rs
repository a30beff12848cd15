//! Programs of ranks: what they send and receive, where they run, and how.

use proptest::{collection::vec, prelude::*};
use raddle_matching::{Mode, Outgoing, Settings, Wanted};
use raddle_schedule::{Join, Placement, Scope};
use raddle_units::Bytes;

/// What a program does. Numbers that name something are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Send(Outgoing),
    Receive(Wanted, u64),
    Probe(Wanted),
    Claim(Wanted),
    ReceiveClaimed(usize, u64),
    Cancel(usize),
    Flush,
}

/// Programs of all ranks, where they run, and how.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) placement: Placement,
    pub(crate) settings: Settings,
    pub(crate) programs: Vec<Vec<Op>>,
    pub(crate) seed: u64,
}

/// Which ops there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All.
    Any,
    /// Sends and receives without wildcards.
    Determined,
}

pub(crate) fn cases(kind: Kind) -> impl Strategy<Value = Case> {
    let nodes = vec(0_u32..3, 1..6);
    (nodes, settings(), any::<u64>()).prop_flat_map(move |(nodes, settings, seed)| {
        let ranks = nodes.len() as u32;
        let placement = Placement::new(&nodes).unwrap();
        let programs = vec(vec(op(kind, ranks), 0..120), nodes.len());
        programs.prop_map(move |programs| Case {
            placement: placement.clone(),
            settings,
            programs,
            seed,
        })
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let scope = prop::sample::select(vec![Scope::RankToRank, Scope::RankToNode]);
    let limit = prop::sample::select(vec![10_u64, 300, 5000, 64 << 10, u64::MAX]);
    let memory = prop::sample::select(vec![0_u64, 30_000, 64 << 20]);
    let keys = prop::sample::select(vec![0_u32, 2, 1 << 20]);
    let window = (1_u32..40, 0_u32..4, any::<bool>());
    (scope, limit, memory, keys, window).prop_map(|(scope, limit, memory, keys, window)| {
        let (most_parts, leaders, published) = window;
        let join = if published {
            Join::published()
        } else {
            Join::default()
        };
        let join = Join {
            scope,
            eager_limit: Bytes(limit),
            alone: Bytes(3000),
            cap: Bytes(u64::MAX),
            most_parts,
            leaders,
            waits: !published,
            ..join
        };
        Settings {
            join,
            memory: Bytes(memory),
            keys,
        }
    })
}

fn op(kind: Kind, ranks: u32) -> impl Strategy<Value = Op> {
    let bytes = prop_oneof![
        1 => Just(0_u64),
        5 => 1_u64..64,
        4 => 64_u64..2999,
        2 => 2999_u64..20_000,
        1 => Just(16 << 20),
    ];
    let mode = prop_oneof![6 => Just(Mode::Standard), 1 => Just(Mode::Synchronous)];
    let send =
        (0..ranks, 0_u32..2, 0_i32..3, bytes, mode).prop_map(|(to, context, tag, bytes, mode)| {
            Op::Send(Outgoing {
                to,
                context,
                tag,
                bytes,
                mode,
            })
        });
    let wild = if kind == Kind::Any { 3 } else { 0 };
    let wanted = move || {
        let numbers = (0_u32..2, 0..ranks, 0_i32..3);
        (numbers, 0_u32..10, 0_u32..10).prop_map(move |((context, source, tag), one, two)| Wanted {
            context,
            source: (one >= wild).then_some(source),
            tag: (two >= wild).then_some(tag),
        })
    };
    let capacity = || prop_oneof![4 => Just(u64::MAX), 1 => 0_u64..3000];
    let receive = (wanted(), capacity()).prop_map(|(wanted, room)| Op::Receive(wanted, room));
    let plain = prop_oneof![5 => send, 5 => receive, 1 => Just(Op::Flush)].boxed();
    if kind == Kind::Determined {
        return plain;
    }
    prop_oneof![
        12 => plain,
        1 => wanted().prop_map(Op::Probe),
        1 => wanted().prop_map(Op::Claim),
        1 => (any::<usize>(), capacity()).prop_map(|(at, room)| Op::ReceiveClaimed(at, room)),
        1 => any::<usize>().prop_map(Op::Cancel),
    ]
    .boxed()
}
