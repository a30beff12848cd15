//! Packets of messages over rails: they come back as they went, and what is wrong is refused by name.

use proptest::prelude::*;
use raddle_wire::{
    Problem,
    native::JobKey,
    rails::{Ack, Body, Grant, Hello, MAX_RANGES, Numbers, Packet, Segment, Unverified},
};

const KEY: [u8; 16] = *b"a key for a test";

fn key() -> JobKey {
    JobKey::new(KEY)
}

fn segment() -> impl Strategy<Value = Body> {
    (
        any::<(u16, u16, u64)>(),
        0_u16..2000,
        any::<u32>(),
        any::<u32>(),
    )
        .prop_map(
            |((source_port, target_port, sequence), bytes, offset, behind)| {
                let offset = if bytes == 0 { 0 } else { u64::from(offset) };
                let length = if bytes == 0 {
                    0
                } else {
                    offset + u64::from(bytes) + u64::from(behind)
                };
                Body::Data(Segment {
                    source_port,
                    target_port,
                    payload: bytes,
                    reserved: 0,
                    sequence,
                    length,
                    offset,
                })
            },
        )
}

fn ack() -> impl Strategy<Value = Body> {
    let steps = prop::collection::vec((1_u64..1 << 33, 1_u64..1 << 33), 1..20);
    (any::<u32>(), any::<bool>(), 1_u64..1 << 50, steps).prop_map(
        |(delay_ns, marked, least, steps)| {
            let mut ranges = Vec::new();
            let mut next = least;
            for (gap, count) in steps {
                ranges.push(Numbers {
                    first: next,
                    last: next + count - 1,
                });
                next += count + gap;
            }
            ranges.reverse();
            Body::Ack(Ack::new(delay_ns, marked, ranges).unwrap())
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let hello = (1_u16.., 1_u8..=8, any::<[bool; 2]>()).prop_map(
        |(segment, rails, [occupied, established])| {
            Body::Hello(Hello {
                segment,
                rails,
                reserved: 0,
                occupied,
                established,
            })
        },
    );
    let grant = any::<(u16, u64, u64)>().prop_map(|(port, messages, longest)| {
        Body::Grant(Grant {
            port,
            reserved: 0,
            messages,
            longest,
        })
    });
    let body = prop_oneof![segment(), ack(), hello, grant, Just(Body::Probe)];
    let head = (
        any::<[u32; 4]>(),
        1_u32..,
        0_u8..8,
        any::<(u8, bool)>(),
        1_u64..,
    );
    (body, head).prop_map(
        |(
            body,
            ([job, source, target, target_epoch], source_epoch, rail, (busy, urgent), number),
        )| {
            Packet {
                job,
                source,
                target,
                source_epoch,
                target_epoch,
                rail,
                busy,
                urgent,
                number: if body.is_numbered() { number } else { 0 },
                body,
            }
        },
    )
}

fn payload(packet: &Packet) -> Vec<u8> {
    match packet.body {
        Body::Data(segment) => (0..segment.payload).map(|at| (at * 7) as u8).collect(),
        _ => Vec::new(),
    }
}

proptest! {
    #[test]
    fn packets_come_back(packet in packet()) {
        let payload = payload(&packet);
        let mut buffer = vec![0xff; 3000];
        let length = packet.write(&mut buffer, &payload, &key()).unwrap();
        prop_assert_eq!(length, packet.length());
        let found = Unverified::parse(&buffer[..length]).unwrap();
        prop_assert_eq!((found.job(), found.source()), (packet.job, packet.source));
        prop_assert_eq!(found.verify(&key()).unwrap(), (packet, &payload[..]));
    }

    /// Cut anywhere, with bytes behind it, or with any bit turned, it is not taken.
    #[test]
    fn damage_is_found(packet in packet(), place in any::<prop::sample::Index>(), bit in 0_u32..8) {
        let mut buffer = vec![0; 5000];
        let length = packet.write(&mut buffer, &payload(&packet), &key()).unwrap();
        let cut = place.index(length);
        prop_assert!(Unverified::parse(&buffer[..cut]).is_err());
        prop_assert!(Unverified::parse(&buffer[..length + 1 + cut]).is_err());
        buffer[cut] ^= 1_u8 << bit;
        if let Ok(found) = Unverified::parse(&buffer[..length]) {
            let error = found.verify(&key()).unwrap_err();
            let is_tag = matches!(error.problem, Problem::Tag { .. });
            prop_assert!(is_tag, "{}", error);
        }
    }

    /// The ranges of an acknowledgement are some of those given, from the newest on, and name no other number.
    #[test]
    fn an_acknowledgement_names_nothing_that_did_not_arrive(body in ack()) {
        let Body::Ack(ack) = body else { unreachable!("the strategy makes them") };
        prop_assert!((1..=MAX_RANGES).contains(&ack.ranges().len()));
        for pair in ack.ranges().windows(2) {
            prop_assert!(pair[1].last + 1 < pair[0].first);
        }
    }
}

#[test]
fn long_ranges_and_gaps_are_cut_to_what_the_fields_hold() {
    let wide = 1 << 40;
    let newest = Numbers {
        first: 5,
        last: wide,
    };
    let ack = Ack::new(0, false, [newest, Numbers { first: 1, last: 2 }]).unwrap();
    assert_eq!(ack.largest(), wide);
    assert!(
        ack.ranges()[0].first > 5,
        "32 bits count the numbers of a range"
    );
    assert_eq!(
        ack.ranges().len(),
        1,
        "what lies behind the cut is too far away to name"
    );
    let far = [
        Numbers {
            first: wide,
            last: wide,
        },
        Numbers { first: 1, last: 1 },
    ];
    assert_eq!(Ack::new(0, false, far).unwrap().ranges().len(), 1);
    assert!(Ack::new(0, false, []).is_none());
}

#[test]
fn a_segment_outside_its_message_is_refused() {
    let segment = Segment {
        payload: 4,
        length: 10,
        offset: 7,
        ..Segment::default()
    };
    let packet = Packet {
        source_epoch: 1,
        number: 1,
        ..Packet::of(Body::Data(segment))
    };
    let error = packet.write(&mut [0; 200], &[0; 4], &key()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rails segment: offset at byte 72: 7 (0x7) is not a place in the message for at least one byte"
    );
    let packet = Packet {
        body: Body::Data(Segment {
            offset: 6,
            ..segment
        }),
        ..packet
    };
    assert!(packet.write(&mut [0; 200], &[0; 4], &key()).is_ok());
    assert!(
        packet.write(&mut [0; 200], &[0; 5], &key()).is_err(),
        "a payload of another length"
    );
    assert!(
        packet.write(&mut [0; 83], &[0; 4], &key()).is_err(),
        "a buffer too small"
    );
}
