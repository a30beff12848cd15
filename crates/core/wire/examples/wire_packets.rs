//! Writes one packet of every kind to a capture file, and what is in them as JSON lines to stdout: what other programs
//! that read the capture must find.
//!
//! `cargo run -p raddle-wire --example wire_packets -- FILE.pcap`
//! `cargo run -p raddle-wire --example wire_packets -- --frames FOLDER` writes each frame to a file of its own.
#![allow(clippy::print_stdout, reason = "a program that prints what it wrote")]

use std::{fs, path::Path as File};

use raddle_wire::{
    Aeth, Bth, Class, DataType, Datagram, Deth, Extension, ExtensionView, MacAddress, Opcode,
    Operation, PORT_ROCE, Path, RocePacket, Vlan, WireError, classify,
    compat::{self, Control, ControlKind, Encapsulation, Envelope, Head, RcLayout, UcpTag},
    native::{
        Carrier, ChildEntry, Header, JobKey, Kind, PathEntry, ProgramHead, StepEntry, Terms,
        type_bit, write_program,
    },
    write_elements,
};

const KEY: [u8; 16] = *b"a key for a test";

/// A name and a frame.
type Named = (String, Vec<u8>);

fn path(source: u8, destination: u8) -> Path {
    Path {
        identification: 0x1234,
        dscp: 26,
        ecn: 2,
        ..Path::between(
            MacAddress([2, 0, 0, 0, 0, source]),
            MacAddress([2, 0, 0, 0, 0, destination]),
            [10, 1, 0, source].into(),
            [10, 1, 0, destination].into(),
            0xc000 | u16::from(source),
        )
    }
}

fn bth(opcode: Opcode, psn: u32) -> Bth {
    Bth {
        opcode,
        partition_key: 0xffff,
        destination_qp: 0x00ab_cdef,
        psn,
        ..Bth::default()
    }
}

/// One frame of every kind.
fn frames() -> Result<Vec<Named>, WireError> {
    let mut all = Vec::new();
    let mut buffer = [0; 2048];
    let mut keep = |name: &str, buffer: &[u8], length: usize| {
        all.push((name.to_owned(), buffer[..length].to_vec()));
    };
    let deth = Deth {
        queue_key: 0x8001_0000,
        reserved: 0,
        source_qp: 0x0001_0203,
    };
    let tagged = Path {
        vlan: Some(Vlan {
            priority: 5,
            drop_eligible: false,
            id: 42,
            ethertype: 0,
        }),
        udp_checksum: true,
        ..path(3, 4)
    };
    let rc = |layout| Envelope {
        path: path(1, 2),
        bth: Bth {
            acknowledge: true,
            ..bth(Opcode::RC_SEND_ONLY, 0x00ff_ffff)
        },
        encapsulation: Encapsulation::Rc(layout),
        ucp_tag: UcpTag::of(8, 5),
    };
    let ud = Envelope {
        path: tagged,
        bth: bth(Opcode::UD_SEND_ONLY, 7),
        encapsulation: Encapsulation::Ud(deth, [1, 2, 3, 4, 5, 6, 7, 8]),
        ucp_tag: UcpTag::of(12, 0xf_ffff),
    };

    let terms = Control {
        master_num: 1,
        sup_comm_type: compat::ALLREDUCE,
        sup_allreduce_op: compat::ALL_OPERATIONS,
        sup_data_type: compat::ALL_TYPES,
        sup_max_data_size: compat::MAX_DATA as u16,
        global_group_size: 9,
        true_comm_id: 77,
        spine_ip: [10, 1, 0, 254].into(),
        ..Control::default()
    };
    for (name, kind, hops) in [
        ("query", ControlKind::Query, 0),
        ("notify", ControlKind::Notify, 2),
        ("kill", ControlKind::Kill, 15),
    ] {
        let control = Control {
            kind: kind.code(),
            hops,
            ..terms
        };
        let length = rc(RcLayout::Code).write_control(&mut buffer, &Head::control(8), &control)?;
        keep(&format!("rc {name}"), &buffer, length);
        let length = ud.write_control(&mut buffer, &Head::control(12), &control)?;
        keep(&format!("ud vlan {name}"), &buffer, length);
    }

    let mut values = [0; compat::MAX_DATA];
    for (name, layout) in [
        ("code", RcLayout::Code),
        ("paper", RcLayout::Paper),
        ("tag matching", RcLayout::TagMatching),
    ] {
        let size = write_elements(&[1.0_f64, -0.0, f64::NAN], &mut values);
        let head = Head::data(8, 7, 1, Operation::Sum, DataType::Double, 3);
        let length = rc(layout).write_data(&mut buffer, &head, &values[..size])?;
        keep(&format!("rc data {name}"), &buffer, length);
    }
    for data_type in DataType::ALL.into_iter().filter(|found| found.is_compat()) {
        // 7 elements: with one-byte types, the BTH pads.
        let size = 7 * data_type.size();
        for (index, byte) in values[..size].iter_mut().enumerate() {
            *byte = index as u8;
        }
        let head = Head::data(12, 254, 255, Operation::Min, data_type, 7);
        let length = ud.write_data(&mut buffer, &head, &values[..size])?;
        keep(
            &format!("ud vlan data {}", data_type.name()),
            &buffer,
            length,
        );
    }

    let ack = Aeth {
        syndrome: 0x1f,
        msn: 0x0001_0002,
    };
    let acknowledge = bth(Opcode::RC_ACKNOWLEDGE, 9);
    let length = path(2, 1).write_roce(&mut buffer, acknowledge, Extension::Aeth(ack), &[])?;
    keep("acknowledgement", &buffer, length);
    let nak = Aeth {
        syndrome: 0x60,
        msn: 3,
    };
    let length = tagged.write_roce(&mut buffer, acknowledge, Extension::Aeth(nak), &[])?;
    keep("vlan refusal", &buffer, length);
    let notification = Bth {
        becn: true,
        ..bth(Opcode::CNP, 0)
    };
    let length = path(2, 1).write_roce(&mut buffer, notification, Extension::None, &[&[0; 16]])?;
    keep("congestion notification", &buffer, length);

    let key = JobKey::new(KEY);
    let checked = Path {
        udp_checksum: true,
        ..path(5, 6)
    };
    let contribution = Header {
        group: 0x0102_0304,
        round: 0x1000_0001,
        segment: 1,
        segments: 2,
        rank: 3,
        slot: 2,
        ..Header::of(Kind::Contribution, 0xdead_beef)
    }
    .with_data(Operation::Sum, DataType::Float, 5);
    let size = write_elements(&[1.0_f32, 2.0, 3.0, 4.0, 5.0], &mut values);
    for (name, carrier) in [
        ("udp", Carrier::Udp),
        ("roce", Carrier::RoceUd(bth(Opcode::UD_SEND_ONLY, 1), deth)),
    ] {
        let body = &values[..size];
        let length = contribution.write_frame(&mut buffer, &checked, carrier, body, &key)?;
        keep(&format!("native {name} contribution"), &buffer, length);
        let mut body = [0; Terms::SIZE + PathEntry::SIZE];
        let terms = Terms {
            hops: 1,
            operations: 0x0fff,
            collectives: 0x000f,
            types: DataType::ALL.into_iter().map(type_bit).sum(),
            group_size: 16,
            ..Terms::default()
        };
        terms.write(&mut body, 0)?;
        let hop = PathEntry {
            address: [10, 1, 255, 1].into(),
            tier: 1,
            reserved: 0,
            room: 64,
        };
        hop.write(&mut body, Terms::SIZE)?;
        let query = Header::of(Kind::Query, 0xdead_beef);
        let length = query.write_frame(&mut buffer, &checked, carrier, &body, &key)?;
        keep(&format!("native {name} query"), &buffer, length);
        let head = ProgramHead {
            group_size: 2,
            slots: 8,
            segment_bytes: 256,
            ..ProgramHead::default()
        };
        let children = [0, 1].map(|rank| ChildEntry {
            address: [10, 1, 0, rank].into(),
            port: 50_000,
            operands: 1,
            rank: u32::from(rank),
        });
        let step = StepEntry {
            into: 2,
            left: 0,
            right: 1,
        };
        let mut body = [0; 100];
        let size = write_program(&mut body, &head, &children, &[step], &[2])?;
        let program = Header::of(Kind::Program, 0xdead_beef);
        let length = program.write_frame(&mut buffer, &checked, carrier, &body[..size], &key)?;
        keep(&format!("native {name} program"), &buffer, length);
        let kill = Header::of(Kind::Kill, 0xdead_beef);
        let length = kill.write_frame(&mut buffer, &checked, carrier, &[], &key)?;
        keep(&format!("native {name} kill"), &buffer, length);
    }
    Ok(all)
}

/// What a frame holds, as one line of JSON: names are plain, so that nothing needs escaping.
fn describe(name: &str, frame: &[u8]) -> Result<String, Box<dyn std::error::Error>> {
    let datagram = Datagram::find(frame)?.ok_or("no datagram")?;
    let mut line = format!(
        r#"{{"name": "{name}", "length": {}, "source": "{}", "destination": "{}", "ip_checksum": {}, "dscp": {}, "ecn": {}, "identification": {}, "source_port": {}, "destination_port": {}, "udp_length": {}, "udp_checksum": {}"#,
        frame.len(),
        datagram.ipv4.source(),
        datagram.ipv4.destination(),
        datagram.ipv4.checksum(),
        datagram.ipv4.dscp(),
        datagram.ipv4.ecn(),
        datagram.ipv4.identification(),
        datagram.udp.source_port(),
        datagram.udp.destination_port(),
        datagram.udp.length(),
        datagram.udp.checksum(),
    );
    if let Some(vlan) = datagram.vlan {
        line += &format!(
            r#", "vlan": {}, "priority": {}"#,
            vlan.id(),
            vlan.priority()
        );
    }
    if datagram.udp.destination_port() == PORT_ROCE {
        let packet = RocePacket::parse(datagram)?;
        let bth = packet.bth;
        line += &format!(
            r#", "opcode": {}, "pad": {}, "partition_key": {}, "becn": {}, "destination_qp": {}, "acknowledge": {}, "psn": {}, "icrc": {}, "payload": {}"#,
            bth.opcode().0,
            bth.pad(),
            bth.partition_key(),
            bth.becn(),
            bth.destination_qp(),
            bth.acknowledge(),
            bth.psn(),
            packet.icrc(),
            packet.payload().len(),
        );
        line += &match packet.extension {
            ExtensionView::None => String::new(),
            ExtensionView::Deth(deth) => format!(
                r#", "queue_key": {}, "source_qp": {}"#,
                deth.queue_key(),
                deth.source_qp()
            ),
            ExtensionView::Aeth(aeth) => {
                format!(
                    r#", "syndrome": {}, "msn": {}"#,
                    aeth.syndrome(),
                    aeth.msn()
                )
            }
        };
    }
    if let Class::Compat(_, message) = classify(frame)? {
        line += &format!(
            r#", "head_at": {}, "group": {}"#,
            message.head_at(),
            message.head.comm_id()
        );
    }
    Ok(line + "}")
}

/// A capture file of frames (pcap 2.4, Ethernet), one microsecond apart.
fn capture(frames: &[Named]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1_u32] {
        file.extend(word.to_le_bytes());
    }
    for (at, (_, frame)) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        for word in [0, at as u32, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let frames = frames()?;
    match arguments.as_slice() {
        [option, folder] if option == "--frames" => {
            for (name, frame) in &frames {
                fs::write(File::new(folder).join(name.replace(' ', "_")), frame)?;
            }
        }
        [file] => {
            fs::write(file, capture(&frames))?;
            for (name, frame) in &frames {
                println!("{}", describe(name, frame)?);
            }
        }
        _ => return Err("usage: wire_packets FILE.pcap | --frames FOLDER".into()),
    }
    Ok(())
}
