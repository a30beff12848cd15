//! Changes in place give the packet that would have been built with the new values.

use proptest::prelude::*;
use raddle_wire::{
    Bth, Datagram, Deth, Edit, Extension, MacAddress, Opcode, Path, RocePacket, WireError, native,
};

const DETH: Deth = Deth {
    queue_key: 0x1111_1111,
    reserved: 0,
    source_qp: 0x789,
};

fn path(a: [u8; 8], port: u16, udp_checksum: bool) -> Path {
    let [a0, a1, a2, a3, b0, b1, b2, b3] = a;
    Path {
        udp_checksum,
        ..Path::between(
            MacAddress([2, a0, a1, a2, a3, 1]),
            MacAddress([2, b0, b1, b2, b3, 2]),
            [a0, a1, a2, a3].into(),
            [b0, b1, b2, b3].into(),
            port,
        )
    }
}

fn build(path: &Path, bth: Bth, deth: Deth, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 600];
    let length = path
        .write_roce(&mut frame, bth, Extension::Deth(deth), &[payload])
        .unwrap();
    frame.truncate(length);
    frame
}

/// Changes a frame into one with other addresses, numbers and payload.
fn change(
    frame: &mut [u8],
    to: &Path,
    bth: &Bth,
    deth: &Deth,
    payload: &[u8],
    cut: usize,
) -> Result<usize, WireError> {
    let datagram = Datagram::find(frame)?.unwrap();
    let (ipv4, pad) = (
        datagram.ipv4.values(),
        RocePacket::parse(datagram)?.bth.pad(),
    );
    let mut edit = Edit::begin(frame)?.unwrap();
    edit.set_macs(to.source_mac, to.destination_mac);
    edit.set_ipv4(&raddle_wire::Ipv4 {
        source: to.source,
        destination: to.destination,
        ttl: to.ttl,
        ..ipv4
    })?;
    edit.set_source_port(to.source_port);
    edit.set_bth(&Bth { pad, ..*bth })?;
    edit.set_deth(deth)?;
    // In two pieces, at odd places too.
    edit.set_payload(cut, &payload[cut..])?;
    edit.set_payload(0, &payload[..cut])?;
    edit.finish()
}

proptest! {
    #[test]
    fn an_edited_packet_is_the_one_built_anew(
        a in any::<[u8; 8]>(),
        b in any::<[u8; 8]>(),
        ports in any::<(u16, u16)>(),
        udp_checksum in any::<bool>(),
        psn in 0_u32..1 << 24,
        payloads in (0_usize..300).prop_flat_map(|n| {
            let bytes = || proptest::collection::vec(any::<u8>(), n);
            (bytes(), bytes(), 0..=n)
        }),
    ) {
        let (old, new, cut) = payloads;
        let bth = Bth { opcode: Opcode::UD_SEND_ONLY, partition_key: 0xffff, ..Bth::default() };
        let mut frame = build(&path(a, ports.0, udp_checksum), bth, DETH, &old);
        let (bth, deth) = (Bth { psn, destination_qp: 0xff_ffff, fecn: true, ..bth }, Deth { source_qp: psn, ..DETH });
        let to = path(b, ports.1, udp_checksum);
        let length = change(&mut frame, &to, &bth, &deth, &new, cut).unwrap();
        prop_assert_eq!(length, frame.len());
        prop_assert_eq!(frame, build(&to, bth, deth, &new));
    }

    /// RFC 1624: a checksum that was wrong stays wrong by as much; it is not made right by an edit.
    #[test]
    fn damage_is_not_healed(at in 0_usize..40, bit in 0_u32..8, new in any::<[u8; 8]>()) {
        let bth = Bth { opcode: Opcode::UD_SEND_ONLY, ..Bth::default() };
        let mut frame = build(&path([1; 8], 7, true), bth, DETH, &[3; 40]);
        let payload_at = 14 + 20 + 8 + 12 + 8;
        frame[payload_at + at] ^= 1_u8 << bit;
        let mut edit = Edit::begin(&mut frame).unwrap().unwrap();
        // Bytes that are replaced take their damage with them as far as the checksum can tell: leave those alone.
        let place = if at < 20 { 32 } else { 0 };
        edit.set_payload(place, &new).unwrap();
        edit.finish().unwrap();
        let datagram = Datagram::find(&frame).unwrap().unwrap();
        prop_assert!(datagram.verify_udp().is_err());
        prop_assert!(datagram.verify_ipv4().is_ok());
    }

    #[test]
    fn any_bytes_can_be_edited_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), at in any::<usize>()) {
        let mut bytes = bytes;
        if let Ok(Some(mut edit)) = Edit::begin(&mut bytes) {
            let _ = edit.set_payload(at, &[1, 2, 3]);
            let _ = edit.set_bth(&Bth::default());
            let _ = edit.set_deth(&DETH);
            let _ = edit.finish();
        }
    }
}

#[test]
fn a_plain_datagram_is_edited_without_icrc() {
    let from = path([1; 8], 5, true);
    let mut frame = [0; 200];
    let length = from
        .write_udp(&mut frame, native::PORT, &[&[1, 2, 3, 4, 5]])
        .unwrap();
    let mut edit = Edit::begin(&mut frame[..length]).unwrap().unwrap();
    edit.set_payload(3, &[9, 9]).unwrap();
    let error = edit.set_bth(&Bth::default()).unwrap_err();
    assert_eq!(error.field, "destination_port");
    edit.finish().unwrap();
    let mut anew = [0; 200];
    from.write_udp(&mut anew, native::PORT, &[&[1, 2, 3, 9, 9]])
        .unwrap();
    assert_eq!(frame, anew);
}

#[test]
fn an_edit_cannot_leave_the_payload_or_change_the_layout() {
    let bth = Bth {
        opcode: Opcode::UD_SEND_ONLY,
        ..Bth::default()
    };
    let mut frame = build(&path([1; 8], 7, true), bth, DETH, &[3; 6]);
    let before = frame.clone();
    let ipv4 = Datagram::find(&frame).unwrap().unwrap().ipv4.values();
    let mut edit = Edit::begin(&mut frame).unwrap().unwrap();
    // Six bytes of payload, two of padding.
    assert_eq!(edit.set_payload(5, &[1, 2]).unwrap_err().field, "payload");
    assert!(edit.set_payload(usize::MAX, &[1]).is_err());
    assert_eq!(edit.set_bth(&bth).unwrap_err().field, "pad");
    let other = Bth {
        opcode: Opcode::RC_SEND_ONLY,
        pad: 2,
        ..bth
    };
    assert_eq!(edit.set_bth(&other).unwrap_err().field, "opcode");
    let longer = raddle_wire::Ipv4 {
        total_length: ipv4.total_length + 1,
        ..ipv4
    };
    assert_eq!(edit.set_ipv4(&longer).unwrap_err().field, "total_length");
    edit.finish().unwrap();
    assert_eq!(frame, before);
}
