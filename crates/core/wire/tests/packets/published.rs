//! The published layout.

use raddle_wire::{
    Bth, Class, DataType, Layer, Operation, Vlan, classify,
    compat::{self, Content, Control, ControlKind, Encapsulation, Head, Prefix, RcLayout, UcpTag},
    elements, write_elements,
};

use super::{DETH, RC_QUERY, UD_DATA, compat_message, described, envelope, path, roce};

#[test]
fn the_vector_of_the_published_layout_is_read() {
    let frame = described(UD_DATA);
    let packet = roce(&frame);
    packet.datagram.verify_ipv4().unwrap();
    packet.datagram.verify_udp().unwrap();
    packet.verify_icrc().unwrap();
    let message = compat_message(&frame);
    assert_eq!(message.prefix, Prefix::Ud);
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
    assert_eq!(message.prefix, Prefix::Rc(RcLayout::Code));
    let Content::Control(ControlKind::Query, view) = message.content else {
        panic!("{message:?}")
    };
    assert_eq!(view.values(), control);
}

#[test]
fn both_places_of_the_magic_number_and_all_leads_are_read() {
    let head = Head::data(4, 3, 255, Operation::Max, DataType::Int16, 3);
    let values = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06];
    for (encapsulation, prefix, at) in [
        (Encapsulation::Ud(DETH, [9; 8]), Prefix::Ud, 24),
        (
            Encapsulation::Rc(RcLayout::Code),
            Prefix::Rc(RcLayout::Code),
            23,
        ),
        (
            Encapsulation::Rc(RcLayout::Paper),
            Prefix::Rc(RcLayout::Paper),
            24,
        ),
        (
            Encapsulation::Rc(RcLayout::TagMatching),
            Prefix::Rc(RcLayout::TagMatching),
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
        assert_eq!(message.prefix, prefix);
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
            let rc = Prefix::Rc(RcLayout::Code);
            assert_eq!(
                rc.message_length(data_type, count),
                (elements + ceil(36)) * size
            );
            assert_eq!(
                Prefix::Ud.message_length(data_type, count),
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
