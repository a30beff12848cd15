//! Our own protocol: what control messages carry.

use raddle_wire::{
    Class, DataType, Layer, Operation, classify,
    native::{
        self, Body, ChildEntry, Collective, Header, JobKey, Kind, PathEntry, ProgramHead,
        StepEntry, Terms, Unverified,
    },
};

use super::{native::KEY, path};

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
            let read = Unverified::parse(&message, 0)
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
    let read = Unverified::parse(&message, 0)
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
    let read = Unverified::parse(&message, 0)
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
