//! What cannot be reached from outside in reasonable time.

use raddle_schedule::{Distance, Join, Placement, Scope};

use crate::{Matcher, Mode, Outgoing, Settings, Wanted, store::Store};
use driver::Driver;

#[path = "../tests/driver/mod.rs"]
mod driver;

/// After 2^32 messages of a pair their numbers begin anew, whichever comes first.
#[test]
fn numbers_of_a_pair_begin_anew() {
    for scope in [Scope::RankToRank, Scope::RankToNode] {
        let placement = Placement::blocks(2, 1).unwrap();
        let settings = Settings {
            join: Join {
                scope,
                most_parts: 1,
                ..Join::default()
            },
            ..Settings::default()
        };
        let new = |rank| Matcher::new(rank, &placement, &Distance::default(), &settings).unwrap();
        let (mut zero, mut one, mut driver) = (new(0), new(1), Driver::default());
        zero.peers[1].begin_at(u32::MAX - 1);
        one.peers[0].begin_at(u32::MAX - 1);
        for byte in 0..4 {
            let message = Outgoing {
                to: 1,
                context: 0,
                tag: 0,
                bytes: 1,
                mode: Mode::Standard,
            };
            driver
                .call(&mut zero, |matcher| {
                    matcher.send(&message, |room| room[0] = byte)
                })
                .unwrap();
        }
        driver.call(&mut zero, |matcher| matcher.flush());
        let mut parcels = std::mem::take(&mut driver.parcels);
        assert_eq!(parcels.len(), 4);
        if scope == Scope::RankToNode {
            parcels.reverse();
        }
        for (_, parcel) in parcels {
            driver.handle_parcel(&mut one, 0, parcel.bytes()).unwrap();
        }
        let wanted = Wanted {
            context: 0,
            source: Some(0),
            tag: Some(0),
        };
        for id in 0..4 {
            driver
                .call(&mut one, |matcher| matcher.receive(&wanted, 1, id))
                .unwrap();
        }
        let received: Vec<_> = driver
            .delivered
            .into_iter()
            .map(|(.., bytes)| bytes)
            .collect();
        assert_eq!(received, [[0], [1], [2], [3]]);
    }
}

/// Blocks are used again, and no more than a limit is kept for that.
#[test]
fn spare_memory_is_bounded() {
    let mut store = Store::new();
    for _ in 0..5 {
        let blocks: Vec<_> = (0..2000).map(|_| store.block(10_000)).collect();
        assert_eq!(store.spare(), 0);
        blocks.into_iter().for_each(|block| store.give_back(block));
        assert_eq!(store.spare(), 16 << 20);
        let blocks: Vec<_> = (0..1000).map(|_| store.block(9000)).collect();
        assert_eq!(store.spare(), (16 << 20) - 1000 * 16_384);
        blocks.into_iter().for_each(|block| store.give_back(block));
    }
}

/// A process stays awake for others only where their messages come to it.
#[test]
fn leaders_of_several_ranks_hand_on() {
    let placement = Placement::new(&[0, 1, 0, 2]).unwrap();
    for scope in [Scope::RankToRank, Scope::RankToNode] {
        let mut settings = Settings::default();
        settings.join.scope = scope;
        let hands_on = |rank| {
            let matcher = Matcher::new(rank, &placement, &Distance::default(), &settings);
            matcher.unwrap().hands_on()
        };
        let leads = scope == Scope::RankToNode;
        assert_eq!([0, 1, 2, 3].map(hands_on), [leads, false, false, false]);
    }
}
