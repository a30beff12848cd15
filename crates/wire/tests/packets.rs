//! Whole packets: made by hand from the layouts' descriptions, and public ones; read, written and damaged.

use proptest::prelude::*;
use raddle_wire::{
    Bth, Class, DataType, Datagram, Deth, Extension, Layer, MacAddress, Opcode, Operation,
    PORT_ROCE, Path, Problem, RocePacket, Vlan, classify,
    compat::{
        self, Content, Control, ControlKind, Encapsulation, Envelope, Head, Lead, RcLayout, UcpTag,
    },
    elements, icrc,
    native::{
        self, Body, Carrier, ChildEntry, Collective, Header, JobKey, Kind, PathEntry, ProgramHead,
        Reason, StepEntry, Terms,
    },
    write_elements,
};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn path(source: u8, destination: u8) -> Path {
    Path::between(
        MacAddress([2, 0, 0, 0, 0, 1]),
        MacAddress([2, 0, 0, 0, 0, 2]),
        [10, 0, 0, source].into(),
        [10, 0, 0, destination].into(),
        0xc123,
    )
}

fn bth(opcode: Opcode) -> Bth {
    Bth {
        opcode,
        partition_key: 0xffff,
        destination_qp: 0x123,
        psn: 0x456,
        ..Bth::default()
    }
}

const DETH: Deth = Deth {
    queue_key: 0x1111_1111,
    reserved: 0,
    source_qp: 0x789,
};

fn envelope(encapsulation: Encapsulation) -> Envelope {
    let opcode = match encapsulation {
        Encapsulation::Ud(..) => Opcode::UD_SEND_ONLY,
        Encapsulation::Rc(_) => Opcode::RC_SEND_ONLY,
    };
    Envelope {
        path: path(1, 2),
        bth: bth(opcode),
        encapsulation,
        ucp_tag: UcpTag::of(2, 5),
    }
}

fn roce(frame: &[u8]) -> RocePacket<'_> {
    RocePacket::parse(Datagram::find(frame).unwrap().unwrap()).unwrap()
}

fn compat_message(frame: &[u8]) -> compat::Message<'_> {
    match classify(frame) {
        Ok(Class::Compat(_, message)) => message,
        other => panic!("{other:?}"),
    }
}

/// The layout's test vector: UD, Node mode, data, rank 2, group 7, SUM of DOUBLE, round 1, one value 1.0. IPv4 checksum
/// and ICRC were computed with Python's zlib, not with this crate.
const UD_DATA: &str = "
    020000000002 020000000001 0800                      to, from, IPv4
    45 00 0064 0000 4000 40 11 2687 0a000001 0a000002   100 bytes, don't fragment, TTL 64, UDP
    c123 12b7 0050 0000                                 to port 4791, 80 bytes, no checksum
    64 00 ffff 00 000123 00 000456                      UD send only, no pad, queue pair 0x123, PSN 0x456
    11111111 00 000789                                  queue key, from queue pair 0x789
    0000000000000000                                    UCX
    05 00 20 00 00 f44433                               tag, last byte first: MPI tag, rank 2, context 5
    44332211 00000002 00 07 0000 03 0a 01 00 0001 88776655
    3ff0000000000000                                    1.0
    0000                                                message of 4 doubles: 22 + 8 + 2 bytes
    c43b96e7                                            ICRC";

/// Comments are words; everything up to the first run of two blanks in a line is hex.
fn described(text: &str) -> Vec<u8> {
    let lines = text.lines().map(str::trim);
    hex(&lines
        .map(|line| line.split("  ").next().unwrap())
        .collect::<Vec<_>>()
        .join(" "))
}

#[test]
fn the_vector_of_the_published_layout_is_read() {
    let frame = described(UD_DATA);
    let packet = roce(&frame);
    packet.datagram.verify_ipv4().unwrap();
    packet.datagram.verify_udp().unwrap();
    packet.verify_icrc().unwrap();
    let message = compat_message(&frame);
    assert_eq!(message.lead, Lead::Ud);
    assert_eq!(message.ucp_tag, UcpTag::of(2, 5));
    assert_eq!(message.head.src_rank(), 2);
    let Content::Data(data) = message.content else {
        panic!("{message:?}")
    };
    assert_eq!((data.group, data.round, data.count), (7, 1, 1));
    assert_eq!(
        (data.operation, data.data_type),
        (Operation::Sum, DataType::Double)
    );
    assert_eq!(elements::<f64>(data.elements).collect::<Vec<_>>(), [1.0]);
    assert_eq!(&frame[message.head_at()..][..4], [0x44, 0x33, 0x22, 0x11]);
}

#[test]
fn the_vector_of_the_published_layout_is_written() {
    let mut frame = [0xaa; 200];
    let mut value = [0; 8];
    write_elements(&[1.0_f64], &mut value);
    let head = Head::data(2, 7, 1, Operation::Sum, DataType::Double, 1);
    let envelope = envelope(Encapsulation::Ud(DETH, [0; 8]));
    let length = envelope.write_data(&mut frame, &head, &value).unwrap();
    assert_eq!(frame[..length], described(UD_DATA));
    assert!(frame[length..].iter().all(|b| *b == 0xaa));
}

/// A query of rank 8 to its master, rank 0, in RC with a VLAN tag: 92 bytes of message. Sums as above.
const RC_QUERY: &str = "
    020000000002 020000000001 8100 6064 0800            priority 3, VLAN 100
    45 00 0094 0000 4000 40 11 2650 0a000009 0a000001
    c123 12b7 0080 0000
    04 30 ffff 00 000123 80 000456                      RC send only, 3 bytes of pad, acknowledge
    02                                                  UCX
    05 00 80 00 00 f44433                               rank 8, context 5
    0000000000000000000000000000                        14 bytes before the header
    44332211 00000008 00 01 0000 00 00 00 00 0000 88776655
    0000 00 01 00 01 ffff 47ff 0100 0009 0000           Node mode, query, 9 leaders
    00000007 00000000 00000000 00000000 00000000 00000000
    0000000000000000 00000000 00000000
    000000 fd76d8b0                                     pad, ICRC";

#[test]
fn a_query_is_read_and_written() {
    let control = Control {
        master_num: 1,
        kind: ControlKind::Query.code(),
        sup_comm_type: compat::ALLREDUCE,
        sup_allreduce_op: compat::ALL_OPERATIONS,
        sup_data_type: compat::ALL_TYPES,
        sup_max_data_size: 256,
        global_group_size: 9,
        true_comm_id: 7,
        ..Control::default()
    };
    let mut envelope = envelope(Encapsulation::Rc(RcLayout::Code));
    envelope.path = path(9, 1);
    envelope.path.vlan = Some(Vlan {
        priority: 3,
        drop_eligible: false,
        id: 100,
        ethertype: 0,
    });
    envelope.bth.acknowledge = true;
    envelope.ucp_tag = UcpTag::of(8, 5);
    let mut frame = [0; 200];
    let length = envelope
        .write_control(&mut frame, &Head::control(8), &control)
        .unwrap();
    assert_eq!(frame[..length], described(RC_QUERY));

    let packet = roce(&frame[..length]);
    packet.verify_icrc().unwrap();
    assert_eq!(packet.payload().len(), 1 + 8 + 92);
    let message = compat_message(&frame[..length]);
    assert_eq!(message.lead, Lead::Rc(RcLayout::Code));
    let Content::Control(ControlKind::Query, view) = message.content else {
        panic!("{message:?}")
    };
    assert_eq!(view.values(), control);
}

#[test]
fn both_places_of_the_magic_number_and_all_leads_are_read() {
    let head = Head::data(4, 3, 255, Operation::Max, DataType::Int16, 3);
    let values = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06];
    for (encapsulation, lead, at) in [
        (Encapsulation::Ud(DETH, [9; 8]), Lead::Ud, 24),
        (
            Encapsulation::Rc(RcLayout::Code),
            Lead::Rc(RcLayout::Code),
            23,
        ),
        (
            Encapsulation::Rc(RcLayout::Paper),
            Lead::Rc(RcLayout::Paper),
            24,
        ),
        (
            Encapsulation::Rc(RcLayout::TagMatching),
            Lead::Rc(RcLayout::TagMatching),
            24,
        ),
    ] {
        let mut frame = [0; 200];
        let length = envelope(encapsulation)
            .write_data(&mut frame, &head, &values)
            .unwrap();
        let frame = &frame[..length];
        let packet = roce(frame);
        packet.verify_icrc().unwrap();
        let message = compat_message(frame);
        assert_eq!(message.lead, lead);
        assert_eq!(message.ucp_tag, UcpTag::of(2, 5));
        assert_eq!(message.head_at() - (packet.bth_at() + Bth::SIZE), at);
        let Content::Data(data) = message.content else {
            panic!("{message:?}")
        };
        assert_eq!(data.elements, values);
    }
}

/// The library's messages have whole elements: count + ceil(header / size), header 36 (RC) or 22 (UD).
#[test]
fn messages_are_as_long_as_the_library_makes_them() {
    for data_type in DataType::ALL.into_iter().filter(|t| t.is_compat()) {
        let size = data_type.size();
        for count in [1, 2, 256 / size as u16] {
            let elements = usize::from(count);
            let ceil = |header: usize| header / size + usize::from(!header.is_multiple_of(size));
            let rc = Lead::Rc(RcLayout::Code);
            assert_eq!(
                rc.message_length(data_type, count),
                (elements + ceil(36)) * size
            );
            assert_eq!(
                Lead::Ud.message_length(data_type, count),
                (elements + ceil(22)) * size
            );
        }
    }
}

#[test]
fn what_a_data_header_must_not_say_is_refused_by_name_and_place() {
    let good = described(UD_DATA);
    let head_at = compat_message(&good).head_at();
    for (byte, value, field) in [
        (9, 0, "comm_id"),
        (9, 2, "comm_id"),
        (9, 255, "comm_id"),
        (12, 0, "op_code"),
        (12, 13, "op_code"),
        (13, 0, "oper_and_type"),
        (13, 11, "oper_and_type"),
        // Pairs are our own protocol's.
        (13, 33, "oper_and_type"),
        (16, 1, "pkt_para_num"),
    ] {
        let mut frame = good.clone();
        frame[head_at + byte] = value;
        let error = classify(&frame).unwrap_err();
        assert_eq!(
            (error.layer, error.field, error.offset),
            (Layer::Head, field, head_at + byte)
        );
    }
    // Two doubles are announced, one and two bytes are there.
    let mut frame = good.clone();
    frame[head_at + 17] = 2;
    let error = classify(&frame).unwrap_err();
    assert_eq!(
        error.to_string(),
        "data payload: elements at byte 100: 16 bytes are needed, 10 are left"
    );
    // Without one of its magic numbers it is somebody's datagram.
    for byte in [0, 3, 18, 21] {
        let mut frame = good.clone();
        frame[head_at + byte] ^= 1;
        assert!(matches!(classify(&frame), Ok(Class::Ordinary)));
    }
    let mut query = described(RC_QUERY);
    let kind_at = compat_message(&query).head_at() + Head::SIZE + 4;
    query[kind_at] = 0x12;
    let error = classify(&query).unwrap_err();
    assert_eq!((error.field, error.offset), ("kind", kind_at));
}

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

/// The tag was computed with `openssl mac -macopt hexkey:000102...0f -macopt size:8 SipHash`.
const NATIVE: &str = "
    5261 01 10 38 00 0008      Ra, version 1, contribution, header of 56 bytes, body of 8
    0000002a 00000009          job 42, group 9
    00000001 00000000 00000001 round 1, segment 0 of 1
    00000003 00000000 00000000 rank 3, root 0, from a host
    01 03 0a 00 0001 0002      Allreduce, SUM, DOUBLE, one element, slot 2
    8ff0c45f6bb4bf07           tag
    3ff8000000000000           1.5";

const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

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
    let unverified = native::Unverified::parse(&described, 0).unwrap();
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
        native::Unverified::parse(bytes, 0)
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
    let error = native::Unverified::parse(&message, 0)
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
fn our_own_control_messages_carry_terms() {
    let key = JobKey::new(KEY);
    let terms = Terms {
        operations: Operation::ALL.iter().map(|o| o.bit()).sum(),
        collectives: Collective::ALL.iter().map(|c| c.bit()).sum(),
        types: DataType::ALL.iter().map(|t| native::type_bit(*t)).sum(),
        leaders: 2,
        group_size: 18,
        parent: [10, 0, 0, 254].into(),
        lease_ms: 2000,
        ..Terms::default()
    };
    assert_eq!((terms.operations, terms.collectives), (0x0fff, 0x000f));
    assert_eq!(terms.types, 0x001f_07fe);
    let mut body = [0; Terms::SIZE];
    terms.write(&mut body, 0).unwrap();
    let mut message = [0; 200];
    for kind in Kind::ALL {
        let with_terms = matches!(kind, Kind::Query | Kind::Notify);
        let bare = !with_terms && kind != Kind::Program;
        let is_data = kind >= Kind::Contribution;
        let header = Header::of(kind, 1);
        assert_eq!(
            header.write_message(&mut message, &body, &key).is_ok(),
            with_terms
        );
        if !is_data {
            assert_eq!(header.write_message(&mut message, &[], &key).is_ok(), bare);
        }
        if with_terms {
            header.write_message(&mut message, &body, &key).unwrap();
            let read = native::Unverified::parse(&message, 0)
                .unwrap()
                .verify(&key)
                .unwrap();
            let Body::Terms(view, path) = read.body else {
                panic!("{read:?}")
            };
            assert_eq!(view.values(), terms);
            assert_eq!(path.entries().len(), 0);
        }
    }
}

#[test]
fn a_query_carries_the_switches_that_it_passed() {
    let key = JobKey::new(KEY);
    let hops: Vec<PathEntry> = (1..4)
        .map(|tier| PathEntry {
            address: [10, 0, 255, tier].into(),
            tier,
            reserved: 0,
            room: 1000 + u32::from(tier),
        })
        .collect();
    let terms = Terms {
        hops: 3,
        ..Terms::default()
    };
    let mut body = [0; Terms::SIZE + 3 * PathEntry::SIZE];
    terms.write(&mut body, 0).unwrap();
    for (index, hop) in hops.iter().enumerate() {
        hop.write(&mut body, Terms::SIZE + PathEntry::SIZE * index)
            .unwrap();
    }
    let mut message = [0; 200];
    let query = Header::of(Kind::Query, 1);
    query.write_message(&mut message, &body, &key).unwrap();
    let read = native::Unverified::parse(&message, 0)
        .unwrap()
        .verify(&key)
        .unwrap();
    let Body::Terms(_, path) = read.body else {
        panic!("{read:?}")
    };
    assert_eq!(
        path.entries()
            .map(native::PathEntryView::values)
            .collect::<Vec<_>>(),
        hops
    );
    assert_eq!(path.bytes(), &body[Terms::SIZE..]);
    for length in (0..body.len()).chain([body.len() + 1]) {
        let mut other = [0; 100];
        other[..body.len()].copy_from_slice(&body);
        let error = query
            .write_message(&mut message, &other[..length], &key)
            .unwrap_err();
        assert_eq!(error.field, "body_length");
    }
}

#[test]
fn a_program_comes_back_and_its_numbers_are_its_length() {
    let key = JobKey::new(KEY);
    let head = ProgramHead {
        parent: [10, 0, 255, 9].into(),
        master: [10, 0, 0, 1].into(),
        group_size: 3,
        lease_ms: 2000,
        slots: 8,
        segment_bytes: 256,
        ..ProgramHead::default()
    };
    let children: Vec<ChildEntry> = (0..3)
        .map(|rank| ChildEntry {
            address: [10, 0, 0, rank as u8].into(),
            port: 50_000 + rank as u16,
            operands: 1 + (rank == 2) as u16,
            rank,
        })
        .collect();
    let steps = [(4, 0, 1), (5, 4, 2)].map(|(into, left, right)| StepEntry { into, left, right });
    let mut body = [0; 500];
    let length = native::write_program(&mut body, &head, &children, &steps, &[5, 3]).unwrap();
    assert_eq!(length, 32 + 3 * 12 + 2 * 6 + 2 * 2);
    let mut message = [0; 600];
    let header = Header::of(Kind::Program, 1);
    header
        .write_message(&mut message, &body[..length], &key)
        .unwrap();
    let read = native::Unverified::parse(&message, 0)
        .unwrap()
        .verify(&key)
        .unwrap();
    let Body::Program(program) = read.body else {
        panic!("{read:?}")
    };
    assert_eq!(
        program.head.values(),
        ProgramHead {
            children: 3,
            steps: 2,
            outputs: 2,
            ..head
        }
    );
    let read: Vec<_> = program
        .children()
        .map(native::ChildEntryView::values)
        .collect();
    assert_eq!(read, children);
    let read: Vec<_> = program.steps().map(native::StepEntryView::values).collect();
    assert_eq!(read, steps);
    assert_eq!(program.outputs().collect::<Vec<_>>(), [5, 3]);
    assert_eq!(program.bytes(), &body[..length]);
    for other in (0..length).chain([length + 1]) {
        let error = header
            .write_message(&mut message, &body[..other], &key)
            .unwrap_err();
        assert_eq!(error.layer, Layer::Program, "{error}");
    }
    assert!(
        native::write_program(&mut body[..length - 1], &head, &children, &steps, &[5, 3]).is_err()
    );
}

#[test]
fn a_query_to_a_members_port_is_seen_and_what_only_looks_like_one_is_not() {
    let key = JobKey::new(KEY);
    let mut body = [0; Terms::SIZE];
    Terms::default().write(&mut body, 0).unwrap();
    let mut message = [0; 200];
    let length = Header::of(Kind::Query, 7)
        .write_message(&mut message, &body, &key)
        .unwrap();
    let mut frame = [0; 300];
    let size = path(1, 2)
        .write_udp(&mut frame, 50_001, &[&message[..length]])
        .unwrap();
    assert!(matches!(classify(&frame[..size]), Ok(Class::Native(_, found)) if found.job() == 7));
    let size = path(1, 2)
        .write_udp(&mut frame, 53, &[b"Ra-ra-ra"])
        .unwrap();
    assert!(matches!(classify(&frame[..size]), Ok(Class::Ordinary)));
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
        let error = native::Unverified::parse(&message, 0).unwrap_err();
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
        let _ = native::Unverified::parse(&bytes, 0);
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
