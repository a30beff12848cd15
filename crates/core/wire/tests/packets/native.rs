//! Our own protocol: header, tag and elements.

use raddle_wire::{
    Class, DataType, Opcode, Operation, Problem, classify,
    native::{Body, Carrier, Collective, Header, JobKey, Kind, Unverified},
};

use super::{DETH, bth, hex, path, roce};

/// The tag was computed with `openssl mac -macopt hexkey:000102...0f -macopt size:8 SipHash`.
const NATIVE: &str = "
    5261 01 10 38 00 0008      Ra, version 1, contribution, header of 56 bytes, body of 8
    0000002a 00000009          job 42, group 9
    00000001 00000000 00000001 round 1, segment 0 of 1
    00000003 00000000 00000000 rank 3, root 0, from a host
    01 03 0a 00 0001 0002      Allreduce, SUM, DOUBLE, one element, slot 2
    8ff0c45f6bb4bf07           tag
    3ff8000000000000           1.5";

pub(crate) const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn contribution() -> Header {
    Header {
        group: 9,
        round: 1,
        segments: 1,
        rank: 3,
        slot: 2,
        ..Header::of(Kind::Contribution, 42)
    }
    .with_data(Operation::Sum, DataType::Double, 1)
}

fn native_bytes() -> Vec<u8> {
    let lines = NATIVE.lines().map(|line| line.get(..31).unwrap_or(line));
    hex(&lines.collect::<Vec<_>>().join(" "))
}

#[test]
fn our_own_message_is_read_and_written() {
    let key = JobKey::new(KEY);
    let described = native_bytes();
    let mut written = [0; 100];
    let length = contribution()
        .write_message(&mut written, &1.5_f64.to_be_bytes(), &key)
        .unwrap();
    assert_eq!(written[..length], described);
    let unverified = Unverified::parse(&described, 0).unwrap();
    assert_eq!((unverified.job(), unverified.group()), (42, 9));
    assert_eq!(
        (unverified.kind(), unverified.length()),
        (Kind::Contribution, 64)
    );
    let message = unverified.verify(&key).unwrap();
    assert_eq!(
        message.body,
        Body::Data(Some(Operation::Sum), &1.5_f64.to_be_bytes())
    );
    assert_eq!(
        Collective::from_code(message.header.collective()),
        Some(Collective::Allreduce)
    );
}

#[test]
fn no_bit_of_our_own_message_can_be_changed_without_the_key() {
    let key = JobKey::new(KEY);
    let message = native_bytes();
    let verify = |bytes: &[u8], key: &JobKey| {
        Unverified::parse(bytes, 0)
            .and_then(|m| m.verify(key))
            .is_ok()
    };
    assert!(verify(&message, &key));
    for bit in 0..8 * message.len() {
        let mut forged = message.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&forged, &key), "bit {bit}");
    }
    for bit in 0..128 {
        let mut other = KEY;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&message, &JobKey::new(other)));
    }
    let error = Unverified::parse(&message, 0)
        .unwrap()
        .verify(&JobKey::new([0; 16]))
        .unwrap_err();
    // The right tag is a secret: only the wrong one is told.
    assert_eq!(
        error.problem,
        Problem::Tag {
            found: 0x07bf_b46b_5fc4_f08f
        }
    );
    assert_eq!(format!("{key:?}"), "JobKey(secret)");
}

#[test]
fn what_our_own_header_must_not_say_is_refused_by_name() {
    let key = JobKey::new(KEY);
    let good = native_bytes();
    for (byte, value, field) in [
        (0, 0, "magic"),
        (2, 2, "version"),
        (3, 0, "kind"),
        (3, 9, "kind"),
        (3, 19, "kind"),
        (4, 55, "header_length"),
        (5, 8, "reserved"),
        (6, 0x21, "body_length"),
        (7, 7, "body_length"),
        (7, 9, "body"),
        (23, 1, "segment"),
        (27, 0, "segment"),
        (40, 0, "collective"),
        (40, 5, "collective"),
        (41, 13, "operation"),
        // MAXLOC needs pairs, BAND whole numbers.
        (41, 11, "operation"),
        (41, 6, "operation"),
        (42, 11, "data_type"),
        (42, 9, "body_length"),
        (45, 2, "body_length"),
        // A query says nothing of data.
        (3, 1, "segments"),
    ] {
        let mut message = good.clone();
        message[byte] = value;
        let error = Unverified::parse(&message, 0).unwrap_err();
        assert_eq!(error.field, field, "byte {byte} = {value}: {error}");
    }
    let mut buffer = [0; 60];
    let error = contribution()
        .write_message(&mut buffer, &[0; 8], &key)
        .unwrap_err();
    assert_eq!(
        error.problem,
        Problem::Short {
            needed: 64,
            left: 60
        }
    );
    assert!(
        contribution()
            .write_message(&mut [0; 10_000], &[0; 9000], &key)
            .is_err()
    );
    assert!(
        contribution()
            .write_message(&mut [0; 100], &[0; 9], &key)
            .is_err()
    );
}

#[test]
fn our_own_messages_travel_in_udp_and_in_roce() {
    let key = JobKey::new(KEY);
    let body = 1.5_f64.to_be_bytes();
    let mut frame = [0; 200];
    let mut path = path(1, 2);
    path.udp_checksum = true;
    let length = contribution()
        .write_frame(&mut frame, &path, Carrier::Udp, &body, &key)
        .unwrap();
    assert_eq!(length, 14 + 20 + 8 + 64);
    let Ok(Class::Native(datagram, message)) = classify(&frame[..length]) else {
        panic!("not found")
    };
    assert_ne!(datagram.udp.checksum(), 0);
    datagram.verify_udp().unwrap();
    message.verify(&key).unwrap();

    let carrier = Carrier::RoceUd(bth(Opcode::UD_SEND_ONLY), DETH);
    let length = contribution()
        .write_frame(&mut frame, &path, carrier, &body, &key)
        .unwrap();
    let Ok(Class::NativeRoce(packet, message)) = classify(&frame[..length]) else {
        panic!("not found")
    };
    packet.verify_icrc().unwrap();
    packet.datagram.verify_udp().unwrap();
    message.verify(&key).unwrap();
    let mut reversed = frame;
    reversed[length - 1] ^= 1;
    assert!(roce(&reversed[..length]).verify_icrc().is_err());
    assert!(roce(&reversed[..length]).datagram.verify_udp().is_err());
}
