//! Datagrams of messages over several rails, version 1. One packet is one UDP payload.
//!
//! ```
//! use raddle_wire::{native::JobKey, rails::{Body, Packet, Segment, Unverified}};
//! let key = JobKey::new([7; 16]);
//! let segment = Segment { payload: 3, length: 3, ..Segment::default() };
//! let packet = Packet {
//!     job: 42, source: 1, target: 2, source_epoch: 5, target_epoch: 6, number: 1,
//!     ..Packet::of(Body::Data(segment))
//! };
//! let mut buffer = [0; 100];
//! let length = packet.write(&mut buffer, b"abc", &key).unwrap();
//! assert_eq!(length, packet.length());
//!
//! let found = Unverified::parse(&buffer[..length]).unwrap();
//! assert_eq!((found.job(), found.source()), (42, 1));
//! assert_eq!(found.verify(&key).unwrap(), (packet, &b"abc"[..]));
//! buffer[82] ^= 1;
//! assert!(Unverified::parse(&buffer[..length]).unwrap().verify(&key).is_err());
//! ```

mod ack;

pub use ack::{Ack, AckHead, AckHeadView, AckRange, AckRangeView, MAX_RANGES, Numbers};

use crate::{Layer, Problem, WireError, field::header, native::JobKey};
use serde::{Deserialize, Serialize};

/// First two bytes of every packet: "Rr".
pub const MAGIC: u16 = 0x5272;
/// The version written and read.
pub const VERSION: u8 = 1;
/// Rails that two nodes may share.
pub const MAX_RAILS: usize = 8;
/// Bytes of a data packet before its payload.
pub const DATA_OVERHEAD: usize = Head::SIZE + Segment::SIZE;
/// Bytes of the longest packet without payload.
pub const MAX_CONTROL: usize = Head::SIZE + AckHead::SIZE + AckRange::SIZE * (MAX_RANGES - 1);

/// Byte of the head where the tag begins.
const TAG_AT: usize = 40;

header! {
    /// What begins every packet between two nodes.
    Head, HeadView, RailHead, 48 {
        /// 0x5272, "Rr"
        magic: u16 = Big 0:0/16,
        /// 1
        version: u8 = Big 2:0/8,
        /// what the packet is: 1 hello, 2 data, 3 acknowledgement, 4 grant, 5 probe
        kind: u8 = Big 3:0/8,
        /// rail on which it travels, 0..=7
        rail: u8 = Big 4:0/8,
        /// rails on which the sender's side is busy, bit = rail
        busy: u8 = Big 5:0/8,
        /// bytes behind this header
        body_length: u16 = Big 6:0/16,
        /// the job, whose key makes the tag
        job: u32 = Big 8:0/32,
        /// the sending node
        source: u32 = Big 12:0/32,
        /// the receiving node
        target: u32 = Big 16:0/32,
        /// which life of the sender, not 0
        source_epoch: u32 = Big 20:0/32,
        /// which life of the receiver, as the sender knows it; 0 in a hello: not known
        target_epoch: u32 = Big 24:0/32,
        /// reserved, 0
        reserved: u32 = Big 28:0/31,
        /// to be acknowledged at once
        urgent: bool = Big 31:7/1,
        /// number on the rail, from 1; 0 in hello and acknowledgement
        number: u64 = Big 32:0/64,
        /// SipHash-2-4 with the job's key over the bytes before it and the body, in SipHash's own byte order
        tag: u64 = Little 40:0/64,
    }
}

header! {
    /// The body of a hello: how the sender cuts messages.
    #[derive(Serialize, Deserialize)]
    Hello, HelloView, RailHello, 4 {
        /// bytes of every segment but the last of a message, from 1
        segment: u16 = Big 0:0/16,
        /// rails of the sender, 1..=8
        rails: u8 = Big 2:0/8,
        /// reserved, 0
        reserved: u8 = Big 3:0/6,
        /// the sender has a connection with another life of the receiver, and ends it when the receiver answers with its epoch
        occupied: bool = Big 3:6/1,
        /// the sender knows the receiver's epoch from a hello: no answer is needed
        established: bool = Big 3:7/1,
    }
}

header! {
    /// What stands before the payload of a data packet: the place of a segment.
    #[derive(Serialize, Deserialize)]
    Segment, SegmentView, RailSegment, 32 {
        /// port that sends the message
        source_port: u16 = Big 0:0/16,
        /// port that it is for
        target_port: u16 = Big 2:0/16,
        /// bytes of payload
        payload: u16 = Big 4:0/16,
        /// reserved, 0
        reserved: u16 = Big 6:0/16,
        /// number of the message among those of its two ports, from 0
        sequence: u64 = Big 8:0/64,
        /// bytes of the message
        length: u64 = Big 16:0/64,
        /// byte of the message where the payload begins
        offset: u64 = Big 24:0/64,
    }
}

header! {
    /// The body of a grant: what a port takes.
    #[derive(Serialize, Deserialize)]
    Grant, GrantView, RailGrant, 20 {
        /// the granting node's port
        port: u16 = Big 0:0/16,
        /// reserved, 0
        reserved: u16 = Big 2:0/16,
        /// messages that it takes from the receiver of this packet, counted from the start of the connection
        messages: u64 = Big 4:0/64,
        /// bytes of the longest message that it takes
        longest: u64 = Big 12:0/64,
    }
}

/// What a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Who the sender is, until both sides know each other.
    Hello(Hello),
    /// A segment; its payload is not part of this value.
    Data(Segment),
    /// Which numbers of the packet's rail have arrived.
    Ack(Ack),
    /// What a port takes.
    Grant(Grant),
    /// Nothing but a number to acknowledge.
    Probe,
}

impl Body {
    /// The number in the field `kind`.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::Data(_) => 2,
            Self::Ack(_) => 3,
            Self::Grant(_) => 4,
            Self::Probe => 5,
        }
    }

    /// Whether a packet of this kind has a number and is acknowledged.
    #[must_use]
    pub const fn is_numbered(&self) -> bool {
        matches!(self, Self::Data(_) | Self::Grant(_) | Self::Probe)
    }

    /// Bytes behind the head, payload included.
    fn length(&self) -> usize {
        match self {
            Self::Hello(_) => Hello::SIZE,
            Self::Data(segment) => Segment::SIZE + usize::from(segment.payload),
            Self::Ack(ack) => ack.length(),
            Self::Grant(_) => Grant::SIZE,
            Self::Probe => 0,
        }
    }

    fn write(&self, packet: &mut [u8], payload: &[u8]) -> Result<(), WireError> {
        match self {
            Self::Hello(hello) => hello.write(packet, Head::SIZE),
            Self::Data(segment) => {
                segment.write(packet, Head::SIZE)?;
                packet[DATA_OVERHEAD..].copy_from_slice(payload);
                Ok(())
            }
            Self::Ack(ack) => ack.write(packet, Head::SIZE),
            Self::Grant(grant) => grant.write(packet, Head::SIZE),
            Self::Probe => Ok(()),
        }
    }

    fn parse(kind: u8, packet: &[u8]) -> Result<Self, WireError> {
        let at = Head::SIZE;
        let body = match kind {
            1 => Self::Hello(hello(packet)?),
            2 => Self::Data(segment(packet)?),
            3 => Self::Ack(Ack::parse(packet, at)?),
            4 => {
                let grant = Grant::view(packet, at)?.values();
                zero(Grant::LAYER, at + 2, grant.reserved.into())?;
                Self::Grant(grant)
            }
            5 => Self::Probe,
            _ => {
                return Err(WireError::value(
                    Head::LAYER,
                    "kind",
                    3,
                    kind.into(),
                    "1..=5",
                ));
            }
        };
        let (found, expected) = ((packet.len() - at) as u64, body.length() as u64);
        if found != expected {
            return Err(WireError::differs(
                Head::LAYER,
                "body_length",
                6,
                found,
                expected,
            ));
        }
        Ok(body)
    }
}

fn hello(packet: &[u8]) -> Result<Hello, WireError> {
    let at = Head::SIZE;
    let hello = Hello::view(packet, at)?.values();
    let refuse = |field, byte, found: u64, expected| {
        Err(WireError::value(
            Hello::LAYER,
            field,
            at + byte,
            found,
            expected,
        ))
    };
    if hello.segment == 0 {
        return refuse("segment", 0, 0, "at least 1");
    }
    if !(1..=MAX_RAILS).contains(&usize::from(hello.rails)) {
        return refuse("rails", 2, hello.rails.into(), "1..=8");
    }
    zero(Hello::LAYER, at + 3, hello.reserved.into())?;
    Ok(hello)
}

fn segment(packet: &[u8]) -> Result<Segment, WireError> {
    let at = Head::SIZE;
    let segment = Segment::view(packet, at)?.values();
    zero(Segment::LAYER, at + 6, segment.reserved.into())?;
    // Only a message without bytes has an empty segment.
    let end = segment.offset.checked_add(segment.payload.into());
    if end.is_none_or(|end| end > segment.length) || (segment.payload == 0 && segment.length > 0) {
        let found = segment.offset;
        let expected = "a place in the message for at least one byte";
        return Err(WireError::value(
            Segment::LAYER,
            "offset",
            at + 24,
            found,
            expected,
        ));
    }
    Ok(segment)
}

/// A reserved field must be 0.
fn zero(layer: Layer, offset: usize, found: u64) -> Result<(), WireError> {
    match found {
        0 => Ok(()),
        _ => Err(WireError::value(layer, "reserved", offset, found, "0")),
    }
}

/// A packet without the payload of its segment: what a sender decides and a receiver learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// The job.
    pub job: u32,
    /// The sending node.
    pub source: u32,
    /// The receiving node.
    pub target: u32,
    /// Which life of the sender, not 0.
    pub source_epoch: u32,
    /// Which life of the receiver; 0 in a hello: not known.
    pub target_epoch: u32,
    /// Rail on which it travels, 0..=7.
    pub rail: u8,
    /// Rails on which the sender's side is busy, bit = rail.
    pub busy: u8,
    /// To be acknowledged at once.
    pub urgent: bool,
    /// Number on the rail, from 1; 0 where [`Body::is_numbered`] says no.
    pub number: u64,
    /// What it carries.
    pub body: Body,
}

impl Packet {
    /// A packet with this body, and 0 where nothing else is given.
    #[must_use]
    pub const fn of(body: Body) -> Self {
        Self {
            job: 0,
            source: 0,
            target: 0,
            source_epoch: 0,
            target_epoch: 0,
            rail: 0,
            busy: 0,
            urgent: false,
            number: 0,
            body,
        }
    }

    /// Bytes of the packet, payload included: those of the datagram.
    #[must_use]
    pub fn length(&self) -> usize {
        Head::SIZE + self.body.length()
    }

    /// Writes the packet with its payload (none but in a data packet) at the start of `buffer`; gives its length in bytes.
    ///
    /// # Errors
    /// When it does not fit into `buffer`, the payload is not as long as the segment says, or [`Unverified::parse`] would
    /// refuse it.
    pub fn write(
        &self,
        buffer: &mut [u8],
        payload: &[u8],
        key: &JobKey,
    ) -> Result<usize, WireError> {
        let (length, room) = (self.length(), buffer.len());
        let expected = match self.body {
            Body::Data(segment) => usize::from(segment.payload),
            _ => 0,
        };
        if payload.len() != expected {
            let (found, expected) = (payload.len() as u64, expected as u64);
            return Err(WireError::differs(
                Segment::LAYER,
                "payload",
                52,
                found,
                expected,
            ));
        }
        let Some(packet) = buffer.get_mut(..length) else {
            return Err(WireError::short(Head::LAYER, "packet", 0, length, room));
        };
        let Ok(body_length) = u16::try_from(length - Head::SIZE) else {
            let found = (length - Head::SIZE) as u64;
            return Err(WireError::value(
                Head::LAYER,
                "body_length",
                6,
                found,
                "0..=65535",
            ));
        };
        self.head(body_length).write(packet, 0)?;
        self.body.write(packet, payload)?;
        let (before, body) = packet.split_at_mut(Head::SIZE);
        let tag = key.tag(&before[..TAG_AT], body);
        before[TAG_AT..].copy_from_slice(&tag.to_le_bytes());
        Unverified::parse(packet)?;
        Ok(length)
    }

    fn head(&self, body_length: u16) -> Head {
        Head {
            magic: MAGIC,
            version: VERSION,
            kind: self.body.kind(),
            rail: self.rail,
            busy: self.busy,
            body_length,
            job: self.job,
            source: self.source,
            target: self.target,
            source_epoch: self.source_epoch,
            target_epoch: self.target_epoch,
            reserved: 0,
            urgent: self.urgent,
            number: self.number,
            tag: 0,
        }
    }
}

/// A packet whose form is right and whose tag has not been checked.
///
/// It tells only what is needed to find key and connection.
#[derive(Debug, Clone, Copy)]
pub struct Unverified<'a> {
    head: HeadView<'a>,
    body: Body,
    behind: &'a [u8],
}

impl<'a> Unverified<'a> {
    /// Reads a datagram's payload, which is one packet.
    ///
    /// # Errors
    /// When it is cut short or too long, of another version, or its fields contradict each other.
    pub fn parse(packet: &'a [u8]) -> Result<Self, WireError> {
        let head = Head::view(packet, 0)?;
        let refuse = |field, byte, found: u64, expected| {
            Err(WireError::value(Head::LAYER, field, byte, found, expected))
        };
        if head.magic() != MAGIC {
            return refuse("magic", 0, head.magic().into(), "0x5272");
        }
        if head.version() != VERSION {
            return refuse("version", 2, head.version().into(), "1");
        }
        if usize::from(head.rail()) >= MAX_RAILS {
            return refuse("rail", 4, head.rail().into(), "0..=7");
        }
        if head.source_epoch() == 0 {
            return refuse("source_epoch", 20, 0, "at least 1");
        }
        zero(Head::LAYER, 28, head.reserved().into())?;
        let length = Head::SIZE + usize::from(head.body_length());
        if length > packet.len() {
            let needed = length - Head::SIZE;
            return Err(WireError::short(
                Head::LAYER,
                "body",
                Head::SIZE,
                needed,
                packet.len(),
            ));
        }
        if length < packet.len() {
            let (found, expected) = (length as u64, packet.len() as u64);
            return Err(WireError::differs(
                Head::LAYER,
                "body_length",
                6,
                found,
                expected,
            ));
        }
        let body = Body::parse(head.kind(), packet)?;
        if body.is_numbered() != (head.number() != 0) {
            let expected = "0 in hello and acknowledgement, else at least 1";
            return refuse("number", 32, head.number(), expected);
        }
        Ok(Self {
            head,
            body,
            behind: &packet[Head::SIZE..],
        })
    }

    /// The job whose key makes the tag.
    #[must_use]
    pub fn job(&self) -> u32 {
        self.head.job()
    }

    /// The node that it claims to come from.
    #[must_use]
    pub fn source(&self) -> u32 {
        self.head.source()
    }

    /// Checks the tag and gives the packet and the payload of its segment (empty in other kinds).
    ///
    /// # Errors
    /// When the tag was not made with this key for these bytes.
    pub fn verify(self, key: &JobKey) -> Result<(Packet, &'a [u8]), WireError> {
        let head = self.head;
        let found = head.tag();
        // One comparison of 64 bits, so that the time does not tell how much was right.
        if found != key.tag(&head.bytes()[..TAG_AT], self.behind) {
            return Err(WireError {
                layer: Head::LAYER,
                field: "tag",
                offset: TAG_AT,
                problem: Problem::Tag { found },
            });
        }
        let packet = Packet {
            job: head.job(),
            source: head.source(),
            target: head.target(),
            source_epoch: head.source_epoch(),
            target_epoch: head.target_epoch(),
            rail: head.rail(),
            busy: head.busy(),
            urgent: head.urgent(),
            number: head.number(),
            body: self.body,
        };
        let payload = match self.body {
            Body::Data(_) => &self.behind[Segment::SIZE..],
            _ => &[],
        };
        Ok((packet, payload))
    }
}
