//! What the readers of packets promise about any bytes, used by the fuzz targets and by the replay of the corpus in
//! `crates/core/wire/tests/fuzz_corpus.rs`: no panic, errors that name a place, and what is accepted comes back.

#![allow(dead_code, reason = "each user takes some of the functions")]

use raddle_wire::{
    Class, Datagram, Edit, ExtensionView, RocePacket, WireError, classify,
    compat::{Content, Head},
    native::{Body, JobKey, Unverified},
};

const KEY: [u8; 16] = *b"a key for a test";

/// A frame as a switch gets it.
pub(crate) fn frame(bytes: &[u8]) {
    match classify(bytes) {
        Err(error) => judge(&error, bytes.len()),
        Ok(Class::Ordinary) => {}
        Ok(Class::Compat(packet, message)) => {
            visit(&packet);
            let head_at = message.head_at();
            assert_eq!(
                bytes[head_at..head_at + Head::SIZE],
                message.head.bytes()[..]
            );
            match message.content {
                Content::Control(kind, control) => assert_eq!(kind.code(), control.kind()),
                Content::Data(data) => {
                    let size = usize::from(data.count) * data.data_type.size();
                    assert_eq!(data.elements.len(), size);
                    assert!(size <= 256);
                }
            }
        }
        Ok(Class::Native(datagram, message)) => {
            assert!(message.length() <= datagram.payload().len());
            accepted(&message);
        }
        Ok(Class::NativeRoce(packet, message)) => {
            visit(&packet);
            assert!(message.length() <= packet.payload().len());
            accepted(&message);
        }
    }
}

/// A message of our own protocol, as a socket gives it.
pub(crate) fn message(bytes: &[u8]) {
    match Unverified::parse(bytes, 0) {
        Err(error) => judge(&error, bytes.len()),
        Ok(message) => accepted(&message),
    }
}

/// A frame that a switch changes: it stays what it was, and its sums are right where they were.
pub(crate) fn edit(bytes: &[u8]) {
    let mut frame = bytes.to_vec();
    let begun = match Edit::begin(&mut frame) {
        Err(error) => return judge(&error, bytes.len()),
        Ok(begun) => begun,
    };
    let Some(mut edit) = begun else { return };
    let before = find(bytes);
    let at = bytes.len() % 7;
    let changed = edit.set_payload(at, b"odd").is_ok();
    edit.set_source_port(0x1234);
    let length = edit.finish().expect("what could begin can finish");
    let after = find(&frame);
    assert_eq!(after.bytes().len(), length);
    assert_eq!(before.verify_ipv4().is_ok(), after.verify_ipv4().is_ok());
    assert_eq!(after.udp.source_port(), 0x1234);
    if after.udp.destination_port() == 4791 {
        let packet = RocePacket::parse(after).expect("still a packet");
        packet.verify_icrc().expect("an edit makes the ICRC anew");
        assert!(!changed || packet.payload()[at..].starts_with(b"odd"));
    }
    // A sum that was right is right; one that was wrong is not made right, or an ICRC that was replaced did it.
    if before.verify_udp().is_ok() {
        after.verify_udp().expect("the UDP checksum follows");
    }
}

fn find(bytes: &[u8]) -> Datagram<'_> {
    Datagram::find(bytes)
        .ok()
        .flatten()
        .expect("it was one before")
}

/// Reads all there is to read, and writes the headers again.
fn visit(packet: &RocePacket<'_>) {
    let bytes = packet.datagram.bytes();
    let mut copy = bytes.to_vec();
    packet
        .bth
        .values()
        .write(&mut copy, packet.bth_at())
        .expect("it fitted");
    match packet.extension {
        ExtensionView::None => {}
        ExtensionView::Deth(deth) => {
            deth.values()
                .write(&mut copy, packet.bth_at() + 12)
                .expect("it fitted");
        }
        ExtensionView::Aeth(aeth) => {
            aeth.values()
                .write(&mut copy, packet.bth_at() + 12)
                .expect("it fitted");
        }
    }
    packet
        .datagram
        .ipv4
        .values()
        .write(&mut copy, packet.datagram.ip_at())
        .expect("it fitted");
    packet
        .datagram
        .udp
        .values()
        .write(&mut copy, packet.datagram.udp_at())
        .expect("it fitted");
    assert_eq!(copy, bytes);
    let _ = packet.verify_icrc();
    let _ = packet.datagram.verify_ipv4();
    let _ = packet.datagram.verify_udp();
}

/// What was made with the key is written as it was read; what was not says so without telling the right tag.
fn accepted(message: &Unverified<'_>) {
    let key = JobKey::new(KEY);
    match message.verify(&key) {
        Err(error) => assert_eq!(error.field, "tag"),
        Ok(message) => {
            let joined;
            let body: &[u8] = match message.body {
                Body::Empty => &[],
                Body::Terms(terms, path) => {
                    joined = [terms.bytes(), path.bytes()].concat();
                    &joined
                }
                Body::Program(program) => {
                    assert!(program.children().len() <= usize::from(u16::MAX));
                    program.bytes()
                }
                Body::Data(_, bytes) => bytes,
            };
            let mut written = vec![0; 56 + body.len()];
            let header = message.header.values();
            header
                .write_message(&mut written, body, &key)
                .expect("it was read");
            assert_eq!(written[..56], message.header.bytes()[..]);
        }
    }
}

fn judge(error: &WireError, length: usize) {
    // Where something is missing the place is the end of what is there.
    assert!(error.offset <= length, "{error}");
    let text = error.to_string();
    assert!(text.contains(error.field) && text.len() < 200, "{text}");
}
