//! Frames, RoCEv2 and its ICRC, codes; and what holds for any bytes.

use proptest::prelude::*;
use raddle_wire::{
    Bth, Class, DataType, Deth, Extension, Layer, MacAddress, Opcode, Operation, PORT_ROCE, Path,
    Problem, Vlan, classify,
    compat::{Encapsulation, Head},
    elements, icrc,
    native::{Collective, Kind, Reason, Unverified},
    write_elements,
};

use super::{DETH, RC_QUERY, UD_DATA, bth, described, envelope, hex, path, roce};

/// CNP captured on a ConnectX-4 Lx, and a UC packet: the two vectors with an ICRC in the tests of Scapy
/// (test/contrib/roce.uts). ICRCs there are read most significant byte first.
#[test]
fn public_packets_have_the_icrc_that_we_compute() {
    let cnp = hex("e41d2dab2bc27cfe90643b32080045c2003c718c400040119161\
                   0a0011010a001201000012b7002800008100ffff40000118\
                   0000000000000000000000000000000000000000 82fd002a");
    let packet = roce(&cnp);
    assert_eq!(packet.bth.opcode(), Opcode::CNP);
    assert!(packet.bth.becn());
    assert_eq!(packet.bth.destination_qp(), 0x118);
    packet.datagram.verify_ipv4().unwrap();
    packet.verify_icrc().unwrap();
    assert_eq!(packet.icrc(), 0x82fd_002a_u32.swap_bytes());

    let uc = hex("248a07a8fa22 248a07a8fa22 0800
                  45 01 0040 0478 4000 40 11 b4d5 c0a80007 c0a80007
                  c000 12b7 002c aca2
                  24 60 ffff 00 0000d3 00 cf1710
                  4630818be28935d90e9a95505401be885e500000 78f353f3");
    // Two of the twenty bytes are the padding that the BTH announces.
    let packet = roce(&uc);
    assert_eq!(packet.payload().len(), 18);
    packet.datagram.verify_ipv4().unwrap();
    packet.verify_icrc().unwrap();
    assert_eq!(packet.icrc(), 0x78f3_53f3_u32.swap_bytes());

    let mut built = [0; 100];
    let path = Path {
        ecn: 1,
        identification: 1144,
        ..Path::between(
            MacAddress([0x24, 0x8a, 7, 0xa8, 0xfa, 0x22]),
            MacAddress([0x24, 0x8a, 7, 0xa8, 0xfa, 0x22]),
            [192, 168, 0, 7].into(),
            [192, 168, 0, 7].into(),
            49152,
        )
    };
    let header = Bth {
        opcode: Opcode::UC_SEND_ONLY,
        migrated: true,
        partition_key: 0xffff,
        destination_qp: 211,
        psn: 13_571_856,
        ..Bth::default()
    };
    let payload = packet.payload();
    let length = path
        .write_roce(&mut built, header, Extension::None, &[payload])
        .unwrap();
    assert_eq!(built[length - 4..length], 0x78f3_53f3_u32.to_be_bytes());
}

#[test]
fn icrc_covers_what_may_not_change_and_nothing_else() {
    let frame = described(RC_QUERY);
    let ip = 18;
    // IPv4: class byte, TTL, checksum; UDP checksum; BTH byte 4.
    let free = [ip + 1, ip + 8, ip + 10, ip + 11, ip + 26, ip + 27, ip + 32];
    let before = icrc(&frame[ip..frame.len() - 4]).unwrap();
    for byte in ip..frame.len() - 4 {
        let mut changed = frame.clone();
        changed[byte] ^= 0x10;
        let after = icrc(&changed[ip..frame.len() - 4]).unwrap();
        assert_eq!(after == before, free.contains(&byte), "byte {byte}");
    }
    assert!(icrc(&frame[ip..ip + 39]).is_err());
}

#[test]
fn frames_of_others_are_ordinary() {
    let good = described(UD_DATA);
    let with = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        frame
    };
    // ARP, IPv6, two tags, TCP, a fragment, the DNS port.
    for frame in [
        with(13, 6),
        hex("020000000002 020000000001 86dd 6000"),
        hex("020000000002 020000000001 8100 0001 8100 0002 0800"),
        with(23, 6),
        with(21, 1),
        with(37, 0xff),
    ] {
        assert!(
            matches!(classify(&frame), Ok(Class::Ordinary)),
            "{frame:02x?}"
        );
    }
    // Padding of a short frame is not looked at.
    let mut padded = good.clone();
    padded.extend([0xee; 7]);
    assert_eq!(roce(&padded).icrc(), roce(&good).icrc());
}

#[test]
fn contradicting_lengths_are_refused_by_name_and_place() {
    let good = described(UD_DATA);
    for (byte, value, layer, field, offset) in [
        (14, 0x55, Layer::Ipv4, "version", 14),
        (14, 0x44, Layer::Ipv4, "header_words", 14),
        (17, 19, Layer::Ipv4, "total_length", 16),
        (17, 101, Layer::Ipv4, "total_length", 16),
        (17, 99, Layer::Udp, "length", 38),
        (39, 79, Layer::Udp, "length", 38),
        (43, 1, Layer::Bth, "version", 43),
    ] {
        let mut frame = good.clone();
        frame[byte] = value;
        let error = classify(&frame).unwrap_err();
        assert_eq!(
            (error.layer, error.field, error.offset),
            (layer, field, offset),
            "{error}"
        );
    }
    for length in 0..good.len() {
        assert!(classify(&good[..length]).is_err(), "{length}");
    }
    // A RoCEv2 packet of headers only that announces padding.
    let mut frame = [0; 100];
    let length = path(1, 2)
        .write_roce(&mut frame, bth(Opcode::RC_SEND_ONLY), Extension::None, &[])
        .unwrap();
    assert!(classify(&frame[..length]).is_ok());
    frame[43] = 0x10;
    let error = classify(&frame[..length]).unwrap_err();
    assert_eq!((error.layer, error.field), (Layer::Bth, "pad"));
    // IPv4 options are skipped for UDP and refused for RoCEv2.
    let mut options = good[..34].to_vec();
    options[14] = 0x46;
    options[17] += 4;
    options.extend([1, 1, 1, 0]);
    options.extend(&good[34..]);
    let error = classify(&options).unwrap_err();
    assert_eq!((error.layer, error.field), (Layer::Ipv4, "header_words"));
}

#[test]
fn frames_that_cannot_be_are_not_built() {
    let path = path(1, 2);
    let mut small = [0; 50];
    let error = path.write_udp(&mut small, 1, &[&[0; 20]]).unwrap_err();
    assert_eq!(
        error.problem,
        Problem::Short {
            needed: 62,
            left: 50
        }
    );
    let error = path
        .write_udp(&mut [0; 70_000], 1, &[&[0; 65_508]])
        .unwrap_err();
    assert_eq!(error.field, "total_length");
    let wrong = path.write_roce(
        &mut [0; 200],
        bth(Opcode::UD_SEND_ONLY),
        Extension::None,
        &[],
    );
    assert_eq!(wrong.unwrap_err().field, "opcode");
    let head = Head::data(0, 3, 1, Operation::Sum, DataType::Double, 33);
    let ud = envelope(Encapsulation::Ud(DETH, [0; 8]));
    assert_eq!(
        ud.write_data(&mut [0; 900], &head, &[0; 264])
            .unwrap_err()
            .field,
        "elements"
    );
    assert_eq!(
        ud.write_data(&mut [0; 900], &head, &[0; 8])
            .unwrap_err()
            .field,
        "pkt_para_num"
    );
    let head = Head::data(0, 1, 1, Operation::Sum, DataType::Double, 1);
    assert_eq!(
        ud.write_data(&mut [0; 900], &head, &[0; 8])
            .unwrap_err()
            .field,
        "comm_id"
    );
}

#[test]
fn codes_of_types_and_operations_come_back() {
    for data_type in DataType::ALL {
        assert_eq!(DataType::from_code(data_type.code()), Some(data_type));
    }
    for operation in Operation::ALL {
        assert_eq!(Operation::from_code(operation.code()), Some(operation));
    }
    let known = (0..=255).filter_map(DataType::from_code).count();
    assert_eq!(
        (known, (0..=255).filter_map(Operation::from_code).count()),
        (15, 12)
    );
    assert_eq!(
        (0..=255).filter_map(Kind::from_code).collect::<Vec<_>>(),
        Kind::ALL
    );
    assert_eq!(
        (0..=255).filter_map(Reason::from_code).collect::<Vec<_>>(),
        Reason::ALL
    );
    assert_eq!(
        (0..=255)
            .filter_map(Collective::from_code)
            .collect::<Vec<_>>(),
        Collective::ALL
    );
    // The codes that the published library's headers give.
    assert_eq!(
        (
            Operation::Max.code(),
            Operation::Sum.code(),
            Operation::MinLoc.code()
        ),
        (1, 3, 12)
    );
    assert_eq!(
        (
            DataType::Int8.code(),
            DataType::Int32.code(),
            DataType::Double.code()
        ),
        (1, 5, 10)
    );
    assert!(Operation::Sum.accepts(DataType::Float) && !Operation::BitAnd.accepts(DataType::Float));
    assert!(Operation::MaxLoc.accepts(DataType::DoubleIndex));
    assert!(!Operation::MaxLoc.accepts(DataType::Double));
}

fn any_path() -> impl Strategy<Value = Path> {
    let vlan = proptest::option::of((0_u8..8, any::<bool>(), 0_u16..4096));
    (
        any::<[u8; 12]>(),
        any::<[u8; 8]>(),
        vlan,
        any::<(u16, u16, u8, bool)>(),
        0_u8..64,
        0_u8..4,
    )
        .prop_map(
            |(
                macs,
                addresses,
                vlan,
                (source_port, identification, ttl, udp_checksum),
                dscp,
                ecn,
            )| {
                let (from, to) = macs.split_at(6);
                let [a, b, c, d, e, f, g, h] = addresses;
                Path {
                    source_mac: MacAddress(from.try_into().unwrap()),
                    destination_mac: MacAddress(to.try_into().unwrap()),
                    vlan: vlan.map(|(priority, drop_eligible, id)| Vlan {
                        priority,
                        drop_eligible,
                        id,
                        ethertype: 0x0800,
                    }),
                    source: [a, b, c, d].into(),
                    destination: [e, f, g, h].into(),
                    source_port,
                    dscp,
                    ecn,
                    ttl,
                    identification,
                    udp_checksum,
                }
            },
        )
}

proptest! {
    #[test]
    fn packets_come_back(
        path in any_path(),
        psn in 0_u32..1 << 24,
        qp in 0_u32..1 << 24,
        which in 0..3,
        payload in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let (opcode, extension) = match which {
            0 => (Opcode::RC_SEND_ONLY, Extension::None),
            1 => (Opcode::UD_SEND_ONLY, Extension::Deth(Deth { source_qp: psn, ..DETH })),
            _ => (Opcode::RC_ACKNOWLEDGE, Extension::Aeth(raddle_wire::Aeth { syndrome: 0x1f, msn: qp })),
        };
        let header = Bth { psn, destination_qp: qp, ..bth(opcode) };
        let mut frame = [0x55; 500];
        let (front, back) = payload.split_at(payload.len() / 3);
        let length = path.write_roce(&mut frame, header, extension, &[front, back]).unwrap();
        let packet = roce(&frame[..length]);
        packet.datagram.verify_ipv4().unwrap();
        packet.datagram.verify_udp().unwrap();
        packet.verify_icrc().unwrap();
        prop_assert_eq!(packet.payload(), &payload);
        prop_assert_eq!(packet.bth.values(), Bth { pad: (payload.len().wrapping_neg() % 4) as u8, ..header });
        prop_assert_eq!(packet.datagram.vlan.map(raddle_wire::VlanView::values), path.vlan);
        prop_assert_eq!(packet.datagram.ipv4.source(), path.source);
        prop_assert_eq!(packet.datagram.ipv4.dscp(), path.dscp);
        prop_assert_eq!(packet.datagram.udp.destination_port(), PORT_ROCE);
        prop_assert_eq!(packet.datagram.udp.checksum() != 0, path.udp_checksum);
        match (packet.extension, extension) {
            (raddle_wire::ExtensionView::None, Extension::None) => {}
            (raddle_wire::ExtensionView::Deth(view), Extension::Deth(deth)) => prop_assert_eq!(view.values(), deth),
            (raddle_wire::ExtensionView::Aeth(view), Extension::Aeth(aeth)) => prop_assert_eq!(view.values(), aeth),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn any_bytes_are_judged_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = classify(&bytes);
        let _ = Unverified::parse(&bytes, 0);
    }

    #[test]
    fn elements_come_back(values in proptest::collection::vec(any::<i32>(), 0..20), floats in proptest::collection::vec(any::<u64>(), 0..20)) {
        let mut body = vec![0; 4 * values.len()];
        prop_assert_eq!(write_elements(&values, &mut body), body.len());
        prop_assert_eq!(&elements::<i32>(&body).collect::<Vec<_>>(), &values);
        let doubles: Vec<f64> = floats.iter().map(|bits| f64::from_bits(*bits)).collect();
        let mut body = vec![0; 8 * floats.len()];
        write_elements(&doubles, &mut body);
        let back: Vec<u64> = elements::<f64>(&body).map(f64::to_bits).collect();
        prop_assert_eq!(back, floats);
    }
}
