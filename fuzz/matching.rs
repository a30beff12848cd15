//! What a process promises about parcels with any contents, used by the fuzz target and by the tests of
//! `crates/core/matching`: no panic; a parcel that is refused changes nothing; what is kept stays within the window.

use raddle_matching::{Event, Matcher, Settings, Wanted};
use raddle_schedule::{Distance, Join, Placement, Scope, parcel::ParcelView};
use raddle_units::Bytes;

use driver::Driver;

#[path = "../crates/core/matching/tests/driver/mod.rs"]
mod driver;

/// Ranks 0 and 1 share a node, 2 and 3 another.
const RANKS: u32 = 4;

/// Checks what a matcher gave out; how many receives are complete by it.
fn check(driver: &mut Driver) -> u64 {
    let mut received = 0;
    for (_, message, bytes) in driver.delivered.drain(..) {
        assert!(bytes.len() as u64 == message.bytes.min(100));
        received += 1;
    }
    for event in driver.by_reference.drain(..) {
        if let Event::Fetch { capacity, .. } = event {
            assert_eq!(capacity, 100);
            received += 1;
        }
    }
    driver.notices.clear();
    for (to, parcel) in driver.parcels.drain(..) {
        assert!(to < RANKS);
        ParcelView::parse(parcel.bytes()).expect("we wrote it");
    }
    received
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
    let (mut driver, mut received) = (Driver::default(), 0);
    let wanted = Wanted {
        context: 0,
        source: None,
        tag: Some(1),
    };
    for id in 0..3 {
        driver
            .call(&mut matcher, |matcher| matcher.receive(&wanted, 100, id))
            .expect("good numbers");
        received += check(&mut driver);
    }
    while let Some((&[from, high, low], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(after.len());
        let (parcel, next) = after.split_at(length);
        rest = next;
        let before = *matcher.statistics();
        if let Err(refused) = driver.handle_parcel(&mut matcher, u32::from(from), parcel) {
            assert_eq!(*matcher.statistics(), before);
            assert!(refused.to_string().len() < 200, "{refused}");
        }
        received += check(&mut driver);
        let kept = matcher.statistics().most_kept_bytes;
        assert!(kept <= u64::from(RANKS) * matcher.window());
    }
    let any = Wanted {
        tag: None,
        ..wanted
    };
    while matcher.probe(&any).expect("good numbers").is_some() {
        driver
            .call(&mut matcher, |matcher| matcher.receive(&any, 100, 0))
            .expect("good numbers");
        received += check(&mut driver);
    }
    assert_eq!(received, matcher.context_counts(0).received);
}
