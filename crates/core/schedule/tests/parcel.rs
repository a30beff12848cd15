//! The layout of joined parcels, and what is no parcel.

use proptest::{collection::vec, prelude::*};
use raddle_schedule::parcel::{
    HEAD_BYTES, PART_BYTES, ParcelError, ParcelView, ParcelWriter, PartHead, Problem,
};

#[path = "../../../../fuzz/parcels.rs"]
mod parcels;

const HEAD: PartHead = PartHead {
    source: 0x0102_0304,
    target: 0x1112_1314,
    context: 0x2122_2324,
    tag: -2,
    sequence: 0x3132_3334,
};

fn written(parts: &[(PartHead, Vec<u8>)]) -> Vec<u8> {
    let bytes: usize = parts
        .iter()
        .map(|(_, bytes)| PART_BYTES + bytes.len())
        .sum();
    let mut buffer = vec![0xee; HEAD_BYTES + bytes];
    let mut writer = ParcelWriter::new(&mut buffer).unwrap();
    for (head, bytes) in parts {
        writer.push(head, bytes).unwrap();
    }
    assert_eq!(writer.parts() as usize, parts.len());
    assert_eq!(writer.length(), HEAD_BYTES + bytes);
    assert_eq!(writer.finish(), buffer.len());
    buffer
}

/// Byte for byte as the tables of the module say.
#[test]
fn the_layout_is_the_documented_one() {
    let bytes = written(&[(HEAD, b"abc".to_vec())]);
    let head = [0x52, 0x50, 1, 0, 0, 0, 0, 1, 0, 0, 0, 39];
    let part = [
        1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0xff, 0xff, 0xff, 0xfe, 0x31,
        0x32, 0x33, 0x34, 0, 0, 0, 3,
    ];
    assert_eq!(bytes, [&head[..], &part, b"abc"].concat());
}

fn error(bytes: &[u8]) -> ParcelError {
    ParcelView::parse(bytes).unwrap_err()
}

#[test]
fn errors_name_field_place_and_value() {
    let good = written(&[(HEAD, b"abc".to_vec()), (HEAD, vec![])]);
    assert_eq!(good.len(), 63);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        error(&bytes)
    };
    let expect = |field, offset, problem| ParcelError {
        field,
        offset,
        problem,
    };
    let differs = |found, expected| Problem::Differs { found, expected };
    let short = |needed, left| Problem::Short { needed, left };
    assert_eq!(error(&[]), expect("head", 0, short(12, 0)));
    assert_eq!(with(0, 0), expect("magic", 0, differs(0x50, 0x5250)));
    assert_eq!(with(2, 2), expect("version", 2, differs(2, 1)));
    assert_eq!(with(3, 1), expect("reserved", 3, differs(1, 0)));
    assert_eq!(with(7, 3), expect("parts", 4, differs(3, 2)));
    assert_eq!(with(4, 1), expect("parts", 4, differs(0x0100_0002, 2)));
    assert_eq!(with(11, 62), expect("length", 8, differs(62, 63)));
    // The first part takes too much, and leaves too little for a second head.
    assert_eq!(with(35, 4), expect("part", 40, short(24, 23)));
    assert_eq!(with(35, 28), expect("bytes", 36, short(28, 27)));
    assert_eq!(with(62, 1), expect("bytes", 63, short(1, 0)));
    let text = with(62, 1).to_string();
    assert_eq!(
        text,
        "parcel: bytes at byte 63: 1 bytes are needed, 0 are left"
    );
}

#[test]
fn a_parcel_without_parts_is_refused() {
    let mut buffer = [0; 12];
    let length = ParcelWriter::new(&mut buffer).unwrap().finish();
    assert_eq!(error(&buffer[..length]).field, "parts");
}

#[test]
fn a_part_that_does_not_fit_changes_nothing() {
    let mut buffer = [0; 50];
    assert!(ParcelWriter::new(&mut buffer[..11]).is_err());
    let mut writer = ParcelWriter::new(&mut buffer).unwrap();
    writer.push(&HEAD, b"abc").unwrap();
    for bytes in [0, 1, 1000, u32::MAX as usize, usize::MAX] {
        assert!(writer.part(&HEAD, bytes).is_err(), "{bytes}");
    }
    let length = writer.finish();
    assert_eq!(buffer[..length], written(&[(HEAD, b"abc".to_vec())]));
}

fn part() -> impl Strategy<Value = (PartHead, Vec<u8>)> {
    let head = any::<(u32, u32, u32, i32, u32)>();
    (head, vec(any::<u8>(), 0..40)).prop_map(|(head, bytes)| {
        let (source, target, context, tag, sequence) = head;
        let head = PartHead {
            source,
            target,
            context,
            tag,
            sequence,
        };
        (head, bytes)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(parts in vec(part(), 1..12)) {
        let bytes = written(&parts);
        let view = ParcelView::parse(&bytes).unwrap();
        prop_assert_eq!(view.count() as usize, parts.len());
        let read: Vec<_> = view.parts().map(|(head, bytes)| (head, bytes.to_vec())).collect();
        prop_assert_eq!(read, parts);
    }

    /// A writer that goes on in a buffer that grows writes the same.
    #[test]
    fn a_parcel_can_be_written_in_turns(parts in vec(part(), 1..12)) {
        let (mut buffer, mut count) = (vec![0; HEAD_BYTES], 0);
        for (head, bytes) in &parts {
            let length = buffer.len();
            buffer.resize(length + PART_BYTES + bytes.len(), 0);
            let mut writer = ParcelWriter::resume(&mut buffer, length, count);
            writer.push(head, bytes).unwrap();
            count = writer.parts();
        }
        let length = buffer.len();
        prop_assert_eq!(ParcelWriter::resume(&mut buffer, length, count).finish(), length);
        prop_assert_eq!(buffer, written(&parts));
    }

    #[test]
    fn no_part_of_a_parcel_is_a_parcel(parts in vec(part(), 1..6), more in vec(any::<u8>(), 1..30)) {
        let bytes = written(&parts);
        for length in 0..bytes.len() {
            prop_assert!(ParcelView::parse(&bytes[..length]).is_err());
        }
        prop_assert!(ParcelView::parse(&[bytes, more].concat()).is_err());
    }

    #[test]
    fn any_bytes_are_a_parcel_or_an_error(bytes in vec(any::<u8>(), 0..100)) {
        parcels::parcel(&bytes);
    }

    #[test]
    fn damaged_parcels_are_other_parcels_or_errors(
        parts in vec(part(), 1..6),
        damage in vec(any::<(prop::sample::Index, u8)>(), 1..6),
    ) {
        let mut bytes = written(&parts);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
            parcels::parcel(&bytes);
        }
    }
}
