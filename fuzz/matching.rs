//! What a process promises about parcels with any contents, used by the fuzz target and by the tests of
//! `crates/core/matching`: no panic; a parcel that is refused changes nothing; what is kept stays within the window.

use raddle_matching::{Actions, Envelope, Fetch, Matcher, Parcel, Settings, Wanted};
use raddle_schedule::{Distance, Join, Placement, Scope, parcel::ParcelView};
use raddle_units::Bytes;

/// Ranks 0 and 1 share a node, 2 and 3 another.
const RANKS: u32 = 4;

#[derive(Default)]
struct Counter {
    received: u64,
}

impl Actions for Counter {
    fn send(&mut self, to: u32, parcel: Parcel) {
        assert!(to < RANKS);
        ParcelView::parse(parcel.bytes()).expect("we wrote it");
    }
    fn deliver(&mut self, _receive: u64, message: &Envelope, bytes: &[u8]) {
        assert!(bytes.len() as u64 == message.bytes.min(100));
        self.received += 1;
    }
    fn fetch(&mut self, _receive: u64, capacity: u64, _message: &Envelope, _from: Fetch) {
        assert_eq!(capacity, 100);
        self.received += 1;
    }
    fn set_aside(&mut self, _aside: u64, _message: &Envelope, _key: u32) {}
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
        matcher
            .receive(&wanted, 100, id, &mut counter)
            .expect("good numbers");
    }
    while let Some((&[from, high, low], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(after.len());
        let (parcel, next) = after.split_at(length);
        rest = next;
        let before = *matcher.statistics();
        if let Err(refused) = matcher.handle_parcel(u32::from(from), parcel, &mut counter) {
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
        matcher
            .receive(&any, 100, 0, &mut counter)
            .expect("good numbers");
    }
    assert_eq!(counter.received, matcher.context_counts(0).received);
}
