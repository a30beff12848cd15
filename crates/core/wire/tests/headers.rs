//! Every header: its fields cover its bits once, values come back as they went, and what does not fit is refused.

use proptest::prelude::*;
use raddle_wire::{
    Aeth, Bth, Deth, Ethernet, Field, Ipv4, Order, Problem, Udp, Vlan,
    compat::{Control, Head, UcpTag, UcpTagBytes},
    native::{ChildEntry, Header, PathEntry, ProgramHead, StepEntry, Terms},
    rails,
};

macro_rules! for_every_header {
    ($does:ident) => {
        $does!(
            Ethernet,
            Vlan,
            Ipv4,
            Udp,
            Bth,
            Deth,
            Aeth,
            Head,
            Control,
            UcpTagBytes,
            Header,
            Terms,
            PathEntry,
            ProgramHead,
            ChildEntry,
            StepEntry,
            rails::Head,
            rails::Hello,
            rails::Segment,
            rails::AckHead,
            rails::AckRange,
            rails::Grant
        )
    };
}

/// Bits of the header that a field covers, counted as the wire has them: byte, then from the most significant bit.
fn bits(field: &Field) -> Vec<usize> {
    (8 * field.byte + field.bit..8 * field.byte + field.bit + field.bits).collect()
}

#[test]
fn fields_cover_every_bit_once_and_in_order() {
    macro_rules! check {
        ($($header:ty),+) => {$(
            let covered: Vec<usize> = <$header>::FIELDS.iter().flat_map(bits).collect();
            let all: Vec<usize> = (0..8 * <$header>::SIZE).collect();
            assert_eq!(covered, all, "{}", <$header>::LAYER);
            for field in <$header>::FIELDS {
                // A little-endian field is made of whole bytes, or its bits would have no order.
                assert!(field.order == Order::Big || (field.bit == 0 && field.bits % 8 == 0));
            }
        )+};
    }
    for_every_header!(check);
}

#[test]
fn short_packets_are_refused_with_what_is_missing() {
    macro_rules! check {
        ($($header:ty),+) => {$(
            for length in 0..<$header>::SIZE {
                let bytes = vec![0; 5 + length];
                let error = <$header>::view(&bytes, 5).unwrap_err();
                assert_eq!(error.problem, Problem::Short { needed: <$header>::SIZE, left: length });
                assert_eq!((error.layer, error.offset), (<$header>::LAYER, 5));
                assert!(<$header>::default().write(&mut vec![0; 5 + length], 5).is_err());
            }
            assert!(<$header>::view(&[0; 200], usize::MAX).is_err());
        )+};
    }
    for_every_header!(check);
}

proptest! {
    /// Every bit is in one field, so that reading all fields and writing them gives the same bytes, for all bytes.
    #[test]
    fn headers_come_back_bit_by_bit(bytes in proptest::array::uniform32(any::<u8>()), more in proptest::array::uniform32(any::<u8>())) {
        let bytes = [bytes, more].concat();
        macro_rules! check {
            ($($header:ty),+) => {$(
                let values = <$header>::view(&bytes, 3).unwrap().values();
                // Ones all over: bits that are not written would stay.
                let mut written = vec![0xff; bytes.len()];
                values.write(&mut written, 3).unwrap();
                prop_assert_eq!(&written[3..3 + <$header>::SIZE], &bytes[3..3 + <$header>::SIZE]);
                prop_assert!(written[..3].iter().all(|b| *b == 0xff));
                prop_assert!(written[3 + <$header>::SIZE..].iter().all(|b| *b == 0xff));
                prop_assert_eq!(<$header>::view(&written, 3).unwrap().values(), values);
            )+};
        }
        for_every_header!(check);
    }

    #[test]
    fn ucp_tags_come_back(mpi_tag in 0_u32..1 << 24, source in 0_u32..1 << 20, context in 0_u32..1 << 20) {
        let tag = UcpTag { mpi_tag, source, context };
        let joined = tag.join().unwrap();
        prop_assert_eq!(joined, u64::from(mpi_tag) << 40 | u64::from(source) << 20 | u64::from(context));
        prop_assert_eq!(UcpTag::split(joined), tag);
    }
}

#[test]
fn a_value_wider_than_its_field_is_refused_by_name_and_nothing_is_written() {
    let mut buffer = [7; 40];
    let bth = Bth {
        psn: 0x100_0000,
        ..Bth::default()
    };
    let error = bth.write(&mut buffer, 10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "BTH: psn at byte 19: 16777216 (0x1000000) does not fit into 24 bits"
    );
    let vlan = Vlan {
        id: 4096,
        ..Vlan::default()
    };
    let error = vlan.write(&mut buffer, 0).unwrap_err();
    assert_eq!(
        (error.field, error.problem),
        (
            "id",
            Problem::Range {
                found: 4096,
                bits: 12
            }
        )
    );
    let ipv4 = Ipv4 {
        dscp: 64,
        ..Ipv4::default()
    };
    assert_eq!(ipv4.write(&mut buffer, 0).unwrap_err().field, "dscp");
    assert_eq!(UcpTag::of(1 << 20, 0).join().unwrap_err().field, "source");
    assert_eq!(buffer, [7; 40]);
}

/// Offsets, sizes and orders of the layout's description, typed in from it: (name, offset, bytes, little-endian).
#[test]
fn the_compatible_headers_have_the_described_offsets() {
    let head = [
        ("tag_low", 0, 4, true),
        ("src_rank", 4, 4, false),
        ("data_flag", 8, 1, false),
        ("comm_id", 9, 1, false),
        ("rsv", 10, 2, false),
        ("op_code", 12, 1, false),
        ("oper_and_type", 13, 1, false),
        ("req_id", 14, 1, false),
        ("req_pkt_num", 15, 1, false),
        ("pkt_para_num", 16, 2, false),
        ("tag_high", 18, 4, true),
    ];
    let control = [
        ("sup_mpi_type", 0, 2, false),
        ("fail_cause", 2, 1, false),
        ("master_num", 3, 1, false),
        // One byte there: hops in the high nibble, type in the low one.
        ("hops", 4, 0, false),
        ("kind", 4, 0, false),
        ("sup_comm_type", 5, 1, false),
        ("sup_allreduce_op", 6, 2, false),
        ("sup_data_type", 8, 2, false),
        ("sup_max_data_size", 10, 2, false),
        ("global_group_size", 12, 2, false),
        ("local_group_size", 14, 2, false),
        ("true_comm_id", 16, 4, false),
        ("ava_grp_num", 20, 4, false),
        ("dst_rank", 24, 4, false),
        ("tor1_ip", 28, 4, false),
        ("spine_ip", 32, 4, false),
        ("tor2_ip", 36, 4, false),
        ("job_id", 40, 8, false),
        ("c_id", 48, 4, false),
        ("world_rank", 52, 4, false),
    ];
    let places = |fields: &[Field]| -> Vec<(&str, usize, usize, bool)> {
        fields
            .iter()
            .map(|f| (f.name, f.byte, f.bits / 8, f.order == Order::Little))
            .collect()
    };
    assert_eq!(places(Head::FIELDS), head);
    assert_eq!(places(Control::FIELDS), control);
    assert_eq!((Head::SIZE, Control::SIZE), (22, 56));
    let mut bytes = [0; 56];
    let values = Control {
        hops: 2,
        kind: 1,
        ..Control::default()
    };
    values.write(&mut bytes, 0).unwrap();
    assert_eq!(bytes[4], 0x21);
}

#[test]
fn sizes_are_those_of_the_standards() {
    let sizes = [
        Ethernet::SIZE,
        Vlan::SIZE,
        Ipv4::SIZE,
        Udp::SIZE,
        Bth::SIZE,
        Deth::SIZE,
        Aeth::SIZE,
        UcpTagBytes::SIZE,
    ];
    assert_eq!(sizes, [14, 4, 20, 8, 12, 8, 4, 8]);
    // Whole 8-byte words: the body behind a header in an aligned buffer is aligned too.
    assert_eq!((Header::SIZE, Terms::SIZE), (56, 40));
}
