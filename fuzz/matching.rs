//! What a process promises about parcels with any contents, used by the fuzz target and by the tests of
//! `crates/core/matching`: no panic; a parcel that is refused changes nothing; what is kept stays within the window.

use raddle_matching::{Event, Matcher, Refused, Settings, Wanted};
use raddle_schedule::{Distance, Join, Placement, Scope, parcel::ParcelView};
use raddle_units::Bytes;

/// Ranks 0 and 1 share a node, 2 and 3 another.
const RANKS: u32 = 4;

#[derive(Default)]
struct Counter {
    received: u64,
}

impl Counter {
    fn after<T>(&mut self, matcher: &mut Matcher, call: impl FnOnce(&mut Matcher) -> T) -> T {
        let outcome = call(matcher);
        self.drain(matcher, &[]);
        outcome
    }

    fn bring(&mut self, matcher: &mut Matcher, from: u32, parcel: &[u8]) -> Result<(), Refused> {
        let outcome = matcher.handle_parcel(from, parcel);
        self.drain(matcher, parcel);
        outcome
    }

    fn drain(&mut self, matcher: &mut Matcher, parcel: &[u8]) {
        while let Some(event) = matcher.poll_event() {
            match event {
                Event::Delivered {
                    message, contents, ..
                } => {
                    assert!(contents.bytes(parcel).len() as u64 == message.bytes.min(100));
                    self.received += 1;
                    matcher.give_back(contents);
                }
                Event::Fetch { capacity, .. } => {
                    assert_eq!(capacity, 100);
                    self.received += 1;
                }
                Event::SetAside { .. } | Event::Notice { .. } => {}
            }
        }
        while let Some(transmit) = matcher.poll_transmit() {
            assert!(transmit.to < RANKS);
            ParcelView::parse(transmit.parcel.bytes()).expect("we wrote it");
        }
    }
}

/// The first byte says who receives and how; then come parcels, each after its sender (one byte) and its length (two).
pub(crate) fn parcels(bytes: &[u8]) {
    let Some((&how, mut rest)) = bytes.split_first() else {
        return;
    };
    let scope = if how & 1 == 0 {
        Scope::RankToRank
    } else {
        Scope::RankToNode
    };
    let settings = Settings {
        join: Join {
            scope,
            ..Join::default()
        },
        memory: Bytes(0),
        keys: 2,
    };
    let placement = Placement::blocks(RANKS, 2).expect("few ranks");
    let rank = u32::from(how >> 1) % RANKS;
    let mut matcher =
        Matcher::new(rank, &placement, &Distance::default(), &settings).expect("a good rank");
    let mut counter = Counter::default();
    let wanted = Wanted {
        context: 0,
        source: None,
        tag: Some(1),
    };
    for id in 0..3 {
        counter
            .after(&mut matcher, |matcher| matcher.receive(&wanted, 100, id))
            .expect("good numbers");
    }
    while let Some((&[from, high, low], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(after.len());
        let (parcel, next) = after.split_at(length);
        rest = next;
        let before = *matcher.statistics();
        if let Err(refused) = counter.bring(&mut matcher, u32::from(from), parcel) {
            assert_eq!(*matcher.statistics(), before);
            assert!(refused.to_string().len() < 200, "{refused}");
        }
        let kept = matcher.statistics().most_kept_bytes;
        assert!(kept <= u64::from(RANKS) * matcher.window());
    }
    let any = Wanted {
        tag: None,
        ..wanted
    };
    while matcher.probe(&any).expect("good numbers").is_some() {
        counter
            .after(&mut matcher, |matcher| matcher.receive(&any, 100, 0))
            .expect("good numbers");
    }
    assert_eq!(counter.received, matcher.context_counts(0).received);
}
