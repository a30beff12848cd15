//! Whole packets: made by hand from the layouts' descriptions, and public ones; read, written and damaged.

mod control;
mod frames;
mod native;
mod published;

use raddle_wire::{
    Bth, Class, Datagram, Deth, MacAddress, Opcode, Path, RocePacket, classify,
    compat::{self, Encapsulation, Envelope, UcpTag},
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
