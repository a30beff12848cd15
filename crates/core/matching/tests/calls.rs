//! Single calls: what leaves when, what has no room, what is refused.

use raddle_matching::{
    CallError, Envelope, Event, Fetch, Matcher, Mode, Outgoing, Posted, Refused, Sent, SetUpError,
    Settings, Wanted,
};
use raddle_schedule::{
    Distance, Join, Placement, Scope,
    parcel::{ParcelView, ParcelWriter, PartHead},
};
use raddle_units::Bytes;

use driver::Driver;

mod driver;

impl Driver {
    /// Receivers of the parcels so far, and how many parts each has.
    fn sent(&mut self) -> Vec<(u32, u32)> {
        let parcels = std::mem::take(&mut self.parcels).into_iter();
        let count = |parcel: &[u8]| ParcelView::parse(parcel).unwrap().count();
        parcels
            .map(|(to, parcel)| (to, count(parcel.bytes())))
            .collect()
    }

    /// Messages to fetch: receive, capacity, message, where from.
    fn fetched(&self) -> Vec<(u64, u64, Envelope, Fetch)> {
        let fetched = self.by_reference.iter().filter_map(|event| match *event {
            Event::Fetch {
                receive,
                capacity,
                message,
                from,
            } => Some((receive, capacity, message, from)),
            _ => None,
        });
        fetched.collect()
    }

    /// Messages to set aside: number and key.
    fn set_aside(&self) -> Vec<(u64, u32)> {
        let aside = self.by_reference.iter().filter_map(|event| match *event {
            Event::SetAside { aside, key, .. } => Some((aside, key)),
            _ => None,
        });
        aside.collect()
    }
}

fn matcher(rank: u32, placement: &Placement, settings: &Settings) -> Matcher {
    Matcher::new(rank, placement, &Distance::default(), settings).unwrap()
}

/// Ranks 0 to n-1, each on a node of its own.
fn apart(ranks: u32) -> Placement {
    Placement::blocks(ranks, 1).unwrap()
}

const fn message(to: u32, bytes: u64) -> Outgoing {
    Outgoing {
        to,
        context: 0,
        tag: 0,
        bytes,
        mode: Mode::Standard,
    }
}

const ANY: Wanted = Wanted {
    context: 0,
    source: None,
    tag: None,
};

fn send(matcher: &mut Matcher, message: Outgoing, driver: &mut Driver) -> Sent {
    driver
        .call(matcher, |matcher| {
            matcher.send(&message, |room| room.fill(1))
        })
        .unwrap()
}

fn bring(from: u32, to: &mut Matcher, driver: &mut Driver) {
    for (_, parcel) in std::mem::take(&mut driver.parcels) {
        driver.handle_parcel(to, from, parcel.bytes()).unwrap();
    }
}

/// 256 B and a head of 24 B: 4096 B have room for a parcel's head and 14 parts, alpha is 1.5: 6144 B, 21 parts.
#[test]
fn parcels_grow_and_leave_when_they_are_full() {
    let (mut zero, mut driver) = (
        matcher(0, &apart(2), &Settings::default()),
        Driver::default(),
    );
    for _ in 0..32 {
        send(&mut zero, message(1, 256), &mut driver);
    }
    assert_eq!(driver.sent(), [(1, 1), (1, 14)]);
    driver.call(&mut zero, |matcher| matcher.flush());
    assert_eq!(driver.sent(), [(1, 17)]);
    driver.call(&mut zero, |matcher| matcher.flush());
    assert!(driver.parcels.is_empty());
    let statistics = zero.statistics();
    assert_eq!((statistics.parcels, statistics.parts), (3, 32));
    // The window begins anew, but the first is joined: it was not alone before.
    for _ in 0..15 {
        send(&mut zero, message(1, 256), &mut driver);
    }
    assert_eq!(driver.sent(), [(1, 14)]);
    driver.call(&mut zero, |matcher| matcher.flush());
    send(&mut zero, message(1, 256), &mut driver);
    driver.call(&mut zero, |matcher| matcher.flush());
    assert_eq!(driver.sent(), [(1, 1), (1, 1)]);
    send(&mut zero, message(1, 256), &mut driver);
    assert_eq!(driver.sent(), [(1, 1)]);
}

#[test]
fn near_nodes_are_flushed_first_and_those_inside_at_once() {
    let placement = Placement::new(&[7, 0, 7, 9, 6, 20]).unwrap();
    let (mut zero, mut driver) = (
        matcher(0, &placement, &Settings::default()),
        Driver::default(),
    );
    for to in [5, 1, 3, 4, 2, 5, 1, 2, 3, 4] {
        send(&mut zero, message(to, 8), &mut driver);
    }
    let first: Vec<u32> = driver.sent().iter().map(|&(to, _)| to).collect();
    assert_eq!(first, [5, 1, 3, 4, 2, 2]);
    driver.call(&mut zero, |matcher| matcher.flush());
    assert_eq!(driver.sent(), [(4, 1), (3, 1), (1, 1), (5, 1)]);
}

#[test]
fn a_leader_takes_apart_what_is_for_several_ranks_of_its_node() {
    let settings = Settings {
        join: Join {
            scope: Scope::RankToNode,
            ..Join::default()
        },
        ..Settings::default()
    };
    let placement = Placement::blocks(4, 2).unwrap();
    let [mut zero, mut two, mut three] = [0, 2, 3].map(|rank| matcher(rank, &placement, &settings));
    let mut driver = Driver::default();
    for to in [3, 3, 2, 3] {
        send(&mut zero, message(to, 8), &mut driver);
    }
    driver.call(&mut zero, |matcher| matcher.flush());
    // The first alone to its target; the others to the leader.
    let mut parcels = std::mem::take(&mut driver.parcels);
    assert_eq!(
        parcels.iter().map(|&(to, _)| to).collect::<Vec<_>>(),
        [3, 2]
    );
    driver
        .handle_parcel(&mut two, 0, parcels.pop().unwrap().1.bytes())
        .unwrap();
    assert_eq!(two.probe(&ANY).unwrap().unwrap().source, 0);
    assert_eq!(two.statistics().handed_on, 2);
    // What was handed on comes before the first one, and waits for it.
    let (to, handed) = driver.parcels.pop().unwrap();
    assert_eq!(to, 3);
    driver.handle_parcel(&mut three, 2, handed.bytes()).unwrap();
    assert_eq!(three.probe(&ANY).unwrap(), None);
    driver
        .handle_parcel(&mut three, 0, parcels.pop().unwrap().1.bytes())
        .unwrap();
    for id in 0..3 {
        assert_eq!(
            driver
                .call(&mut three, |matcher| matcher.receive(&ANY, 8, id))
                .unwrap(),
            Posted::Matched
        );
    }
    assert_eq!(driver.delivered.len(), 3);
}

/// alpha of degree 1 is 1.5, of degree 2 2.5: what leaves before the superstep ends depends on it.
#[test]
fn the_published_window_grows_by_the_degrees_of_the_superstep_before() {
    let settings = Settings {
        join: Join::published_within(Bytes(63 << 10)),
        ..Settings::default()
    };
    for (nodes, expected) in [
        (1, [1, 1, 2, 3, 5, 8, 12]),
        (2, [1, 2, 6, 17, 43, 109, 273]),
    ] {
        let mut zero = matcher(0, &apart(nodes + 1), &settings);
        let mut driver = Driver::default();
        // 76 B are 100 B with their head; a parcel has 12 B more.
        for to in 1..=nodes {
            send(&mut zero, message(to, 76), &mut driver);
        }
        driver.call(&mut zero, |matcher| matcher.flush());
        driver.sent();
        for _ in 0..expected.iter().sum::<u32>() + 1 {
            send(&mut zero, message(1, 76), &mut driver);
        }
        let parts: Vec<u32> = driver.sent().iter().map(|&(_, parts)| parts).collect();
        assert_eq!(parts, expected, "{nodes} targets");
    }
}

/// Two of a node's four ranks lead: sources 0 and 1 take them in turn.
#[test]
fn several_leaders_share_what_comes_for_their_node() {
    let settings = Settings {
        join: Join {
            leaders: 2,
            ..Join::published()
        },
        ..Settings::default()
    };
    let placement = Placement::new(&[0, 0, 1, 1, 1, 1]).unwrap();
    for (source, leader) in [(0, 2), (1, 4)] {
        let mut sender = matcher(source, &placement, &settings);
        let mut driver = Driver::default();
        for to in [5, 3, 3, 5] {
            send(&mut sender, message(to, 8), &mut driver);
        }
        driver.call(&mut sender, |matcher| matcher.flush());
        let joined = std::mem::take(&mut driver.parcels).pop().unwrap();
        assert_eq!(joined.0, leader);
        let mut other = matcher(6 - leader, &placement, &settings);
        let refused = driver.handle_parcel(&mut other, source, joined.1.bytes());
        assert!(refused.unwrap_err().to_string().contains("target"));
        let mut leading = matcher(leader, &placement, &settings);
        driver
            .handle_parcel(&mut leading, source, joined.1.bytes())
            .unwrap();
        assert!(leading.statistics().handed_on > 0);
    }
}

/// 4096 B of window are 25 messages of 8 B, at 160 B each.
#[test]
fn without_room_messages_go_by_reference_until_it_is_granted() {
    let settings = Settings {
        memory: Bytes(0),
        ..Settings::default()
    };
    let placement = apart(2);
    let [mut zero, mut one] = [0, 1].map(|rank| matcher(rank, &placement, &settings));
    let mut driver = Driver::default();
    assert_eq!(one.window(), 4096);
    for _ in 0..25 {
        assert_eq!(send(&mut zero, message(1, 8), &mut driver), Sent::Copied);
    }
    let sent = send(&mut zero, message(1, 8), &mut driver);
    let by_reference = Sent::ByReference {
        key: 1,
        synchronous: true,
    };
    assert_eq!(sent, by_reference);
    assert_eq!((zero.room(1), zero.statistics().without_room), (96, 1));
    driver.call(&mut zero, |matcher| matcher.flush());
    bring(0, &mut one, &mut driver);
    assert_eq!(one.statistics().kept_bytes, 4000);
    for id in 0..26 {
        driver
            .call(&mut one, |matcher| matcher.receive(&ANY, 8, id))
            .unwrap();
    }
    assert_eq!((driver.delivered.len(), driver.fetched().len()), (25, 1));
    assert_eq!(driver.fetched()[0].3, Fetch::Key(1));
    // Half a window is 13 messages.
    assert_eq!(one.statistics().grants, 1);
    bring(1, &mut zero, &mut driver);
    assert_eq!(zero.room(1), 96 + 13 * 160);
    assert_eq!(send(&mut zero, message(1, 8), &mut driver), Sent::Copied);
}

/// 128 B count 256 B.
#[test]
fn room_is_used_to_the_last_byte() {
    let settings = Settings {
        memory: Bytes(0),
        ..Settings::default()
    };
    let (mut zero, mut driver) = (matcher(0, &apart(2), &settings), Driver::default());
    for _ in 0..16 {
        assert_eq!(send(&mut zero, message(1, 128), &mut driver), Sent::Copied);
    }
    assert_eq!(zero.room(1), 0);
    assert_ne!(send(&mut zero, message(1, 128), &mut driver), Sent::Copied);
}

/// After a superstep with 4 nodes alpha is 1.5 + log2(4): 3.5 times 4096 B have room for 51 parts.
#[test]
fn windows_grow_with_the_number_of_nodes() {
    let (mut zero, mut driver) = (
        matcher(0, &apart(5), &Settings::default()),
        Driver::default(),
    );
    for to in 1..5 {
        send(&mut zero, message(to, 256), &mut driver);
    }
    driver.call(&mut zero, |matcher| matcher.flush());
    driver.sent();
    for _ in 0..70 {
        send(&mut zero, message(1, 256), &mut driver);
    }
    assert_eq!(driver.sent(), [(1, 1), (1, 14), (1, 51)]);
}

#[test]
fn large_and_synchronous_messages_go_by_reference() {
    let (mut zero, mut driver) = (
        matcher(0, &apart(2), &Settings::default()),
        Driver::default(),
    );
    let large = message(1, 16 << 20);
    let synchronous = Outgoing {
        mode: Mode::Synchronous,
        ..message(1, 0)
    };
    for (outgoing, key, synchronous) in
        [(large, 1, false), (synchronous, 2, true), (large, 3, false)]
    {
        let sent = driver.call(&mut zero, |matcher| {
            matcher.send(&outgoing, |_| panic!("nothing to copy"))
        });
        assert_eq!(sent.unwrap(), Sent::ByReference { key, synchronous });
    }
}

#[test]
fn a_long_message_is_cut_to_its_receive() {
    let placement = apart(1);
    let (mut zero, mut driver) = (
        matcher(0, &placement, &Settings::default()),
        Driver::default(),
    );
    driver
        .call(&mut zero, |matcher| matcher.receive(&ANY, 2, 5))
        .unwrap();
    let envelope = Envelope {
        context: 0,
        source: 0,
        tag: 0,
        bytes: 3,
    };
    send(&mut zero, message(0, 3), &mut driver);
    send(&mut zero, message(0, 1 << 20), &mut driver);
    driver
        .call(&mut zero, |matcher| matcher.receive(&ANY, 2, 6))
        .unwrap();
    assert_eq!(driver.delivered, [(5, envelope, vec![1, 1])]);
    let envelope = Envelope {
        bytes: 1 << 20,
        ..envelope
    };
    assert_eq!(driver.fetched(), [(6, 2, envelope, Fetch::Key(1))]);
    assert!(driver.parcels.is_empty());
}

/// A message whose key is used again is fetched first, and then found where it was put.
#[test]
fn a_key_is_not_mistaken() {
    let settings = Settings {
        keys: 2,
        ..Settings::default()
    };
    let (mut zero, mut driver) = (matcher(0, &apart(1), &settings), Driver::default());
    for tag in 0..3 {
        let outgoing = Outgoing {
            tag,
            ..message(0, 1 << 20)
        };
        send(&mut zero, outgoing, &mut driver);
    }
    assert_eq!(driver.set_aside(), [(0, 1)]);
    for tag in [2, 1, 0] {
        let wanted = Wanted {
            tag: Some(tag),
            ..ANY
        };
        driver
            .call(&mut zero, |matcher| matcher.receive(&wanted, 8, tag as u64))
            .unwrap();
    }
    let from: Vec<Fetch> = driver.fetched().iter().map(|fetch| fetch.3).collect();
    assert_eq!(from, [Fetch::Key(1), Fetch::Key(2), Fetch::Aside(0)]);
}

#[test]
fn calls_with_wrong_numbers_change_nothing() {
    let (mut zero, mut driver) = (
        matcher(0, &apart(2), &Settings::default()),
        Driver::default(),
    );
    let wrong = [
        (2, 0, 0, CallError::Rank { rank: 2, ranks: 2 }),
        (0, 1 << 16, 0, CallError::Context(1 << 16)),
        (0, 0, -3, CallError::Tag(-3)),
    ];
    for (to, context, tag, error) in wrong {
        let outgoing = Outgoing {
            to,
            context,
            tag,
            ..message(0, 1)
        };
        let sent = driver.call(&mut zero, |matcher| matcher.send(&outgoing, |_| ()));
        assert_eq!(sent, Err(error.clone()));
        let wanted = Wanted {
            context,
            source: Some(to),
            tag: Some(tag),
        };
        assert_eq!(
            driver.call(&mut zero, |matcher| matcher.receive(&wanted, 1, 1)),
            Err(error.clone())
        );
        assert_eq!(zero.probe(&wanted), Err(error.clone()));
        assert_eq!(zero.claim(&wanted), Err(error));
    }
    assert_eq!(*zero.statistics(), Default::default());
    let placement = apart(2);
    let set_up = |rank, settings| Matcher::new(rank, &placement, &Distance::default(), &settings);
    let error = set_up(2, Settings::default()).unwrap_err();
    assert_eq!(error, SetUpError::Rank { rank: 2, ranks: 2 });
    let mut settings = Settings::default();
    settings.join.scope = Scope::NodeToNode;
    assert_eq!(set_up(0, settings).unwrap_err(), SetUpError::Scope);
}

fn parcel(parts: &[(PartHead, &[u8])]) -> Vec<u8> {
    let mut buffer = vec![0; 10_000];
    let mut writer = ParcelWriter::new(&mut buffer).unwrap();
    for (head, bytes) in parts {
        writer.push(head, bytes).unwrap();
    }
    let length = writer.finish();
    buffer.truncate(length);
    buffer
}

/// Ranks 0 and 1 on one node, 2 and 3 on another; each line is a parcel to rank 0.
#[test]
fn parcels_that_say_what_their_sender_could_not_are_refused() {
    let head = PartHead {
        source: 2,
        target: 0,
        context: 0,
        tag: 0,
        sequence: 0,
    };
    let envelope = [0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1];
    let reference = PartHead {
        context: 1 << 31,
        ..head
    };
    let grant = PartHead {
        context: u32::MAX,
        ..head
    };
    let from = |source| PartHead { source, ..head };
    let to = |target| PartHead { target, ..head };
    let number = |sequence| PartHead { sequence, ..head };
    let context = PartHead {
        context: 1 << 16,
        ..head
    };
    let tag = PartHead { tag: -1, ..head };
    type Line<'a> = (Scope, &'static str, &'a [(PartHead, &'a [u8])]);
    let lines: [Line<'_>; 19] = [
        (Scope::RankToRank, "source", &[(from(3), b"")]),
        (Scope::RankToRank, "source", &[(from(9), b"")]),
        (Scope::RankToNode, "source", &[(from(3), b"")]),
        (Scope::RankToRank, "target", &[(to(1), b"")]),
        (Scope::RankToRank, "target", &[(to(9), b"")]),
        (Scope::RankToNode, "target", &[(to(3), b"")]),
        (Scope::RankToRank, "context", &[(context, b"")]),
        (Scope::RankToRank, "tag", &[(tag, b"")]),
        (Scope::RankToRank, "sequence", &[(number(1), b"")]),
        (Scope::RankToRank, "sequence", &[(head, b""), (head, b"")]),
        (
            Scope::RankToNode,
            "sequence",
            &[(number(2), b""), (number(1), b"")],
        ),
        (Scope::RankToNode, "sequence", &[(number(u32::MAX), b"")]),
        (Scope::RankToRank, "bytes", &[(head, &[0; 4000])]),
        (
            Scope::RankToRank,
            "bytes",
            &[(head, &[0; 2000]), (number(1), &[0; 2000])],
        ),
        (
            Scope::RankToRank,
            "bytes of an envelope",
            &[(reference, &envelope[..11])],
        ),
        (
            Scope::RankToRank,
            "bytes of an envelope",
            &[(reference, b"")],
        ),
        (Scope::RankToRank, "key", &[(reference, &[0; 12])]),
        (Scope::RankToRank, "bytes of a grant", &[(grant, b"")]),
        (
            Scope::RankToRank,
            "grant",
            &[(grant, &[0, 0, 0, 0, 0, 0, 0, 1])],
        ),
    ];
    let placement = Placement::blocks(4, 2).unwrap();
    let settings = |scope| Settings {
        join: Join {
            scope,
            ..Join::default()
        },
        memory: Bytes(0),
        ..Settings::default()
    };
    let mut driver = Driver::default();
    for (scope, wrong, parts) in lines {
        let mut zero = matcher(0, &placement, &settings(scope));
        match driver.handle_parcel(&mut zero, 2, &parcel(parts)) {
            Err(Refused::Part { field, .. }) => assert_eq!(field, wrong),
            other => panic!("{wrong}: {other:?}"),
        }
        // As if it had never come.
        driver
            .handle_parcel(&mut zero, 2, &parcel(&[(head, b"x"), (number(1), b"")]))
            .unwrap();
    }
    // It waits for the one before.
    let mut zero = matcher(0, &placement, &settings(Scope::RankToNode));
    let early = parcel(&[(number(1), b"")]);
    driver.handle_parcel(&mut zero, 2, &early).unwrap();
    let twice = driver.handle_parcel(&mut zero, 2, &early).unwrap_err();
    assert!(twice.to_string().contains("sequence"));

    let mut zero = matcher(0, &placement, &settings(Scope::RankToRank));
    for from in [0, 4] {
        let refused = driver.handle_parcel(&mut zero, from, &parcel(&[(head, b"")]));
        assert!(refused.unwrap_err().to_string().contains("sender"));
    }
    let refused = driver.handle_parcel(&mut zero, 2, b"RP").unwrap_err();
    assert!(matches!(refused, Refused::Parcel(_)));
}

#[test]
fn what_waits_can_be_taken_back_once() {
    let (mut zero, mut driver) = (
        matcher(0, &apart(1), &Settings::default()),
        Driver::default(),
    );
    let Posted::Waiting(ticket) = driver
        .call(&mut zero, |matcher| matcher.receive(&ANY, 1, 1))
        .unwrap()
    else {
        panic!("there is no message");
    };
    assert_eq!(zero.context_counts(0).waiting, 1);
    assert!(zero.cancel(ticket));
    assert!(!zero.cancel(ticket));
    // Another receive has its place.
    driver
        .call(&mut zero, |matcher| matcher.receive(&ANY, 1, 2))
        .unwrap();
    assert!(!zero.cancel(ticket));
    send(&mut zero, message(0, 1), &mut driver);
    assert_eq!(driver.delivered[0].0, 2);
}
