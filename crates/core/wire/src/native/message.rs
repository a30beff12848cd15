//! The header of a message, its tag, and a message as a whole: written, read, and believed only with the job's key.

use core::{fmt, hash::Hasher};

use siphasher::sip::SipHasher24;

use super::{
    Collective, Kind, MAGIC, MAX_BODY, PORT, PathEntry, PathView, ProgramView, Terms, TermsView,
    VERSION,
};
use crate::{Bth, DataType, Deth, Extension, Layer, Operation, Path, WireError, field::header};

/// Byte of the header where the tag begins.
const TAG_AT: usize = 48;

header! {
    /// The header of our own protocol, version 1.
    Header, HeaderView, Native, 56 {
        /// 0x5261, "Ra"
        magic: u16 = Big 0:0/16,
        /// 1
        version: u8 = Big 2:0/8,
        /// what the message is: 1 query, 2 notify, 3 kill, 4 lease, 5 refuse, 6 fallback, 7 program, 8 progress, 16 contribution, 17 result, 18 ask
        kind: u8 = Big 3:0/8,
        /// bytes of this header, 56
        header_length: u8 = Big 4:0/8,
        /// reserved, 0
        reserved: u8 = Big 5:0/5,
        /// answers a message, and is not to be answered
        answer: bool = Big 5:5/1,
        /// operands are kept apart, and combined by the group's program; 0: in any order
        ordered: bool = Big 5:6/1,
        /// sent again: an equal message went before
        resent: bool = Big 5:7/1,
        /// bytes of the body, 0..=8192
        body_length: u16 = Big 6:0/16,
        /// the job, whose key makes the tag
        job: u32 = Big 8:0/32,
        /// the group: one communicator of the job
        group: u32 = Big 12:0/32,
        /// round of the group, from 1
        round: u32 = Big 16:0/32,
        /// segment of the round, from 0
        segment: u32 = Big 20:0/32,
        /// segments of the round, from 1; 0 in control messages
        segments: u32 = Big 24:0/32,
        /// number of the sending member in the group; of a switch, the least below it
        rank: u32 = Big 28:0/32,
        /// root of Reduce and Bcast, a rank of the communicator
        root: u32 = Big 32:0/32,
        /// which life of the sending switch; it changes when the switch starts anew; 0 from hosts
        epoch: u32 = Big 36:0/32,
        /// 1 Allreduce, 2 Reduce, 3 Barrier, 4 Bcast; 0 in control messages
        collective: u8 = Big 40:0/8,
        /// reduction, 1..=12; 0 where nothing is reduced
        operation: u8 = Big 41:0/8,
        /// element type, 1..=10 or 32..=36; 0 without elements
        data_type: u8 = Big 42:0/8,
        /// why a message refuses or falls back; 0 otherwise
        reason: u8 = Big 43:0/8,
        /// elements in the body, of all operands together
        count: u16 = Big 44:0/16,
        /// slot of the sender's window that the segment uses
        slot: u16 = Big 46:0/16,
        /// SipHash-2-4 with the job's key over the bytes before it and the body, in SipHash's own byte order
        tag: u64 = Little 48:0/64,
    }
}

/// The secret of a job, 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JobKey([u8; 16]);

impl JobKey {
    /// A key from 16 secret random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, for who hands it on: to the programs of the job, to a fast path of a switch.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; 16] {
        self.0
    }

    /// The tag of a message: SipHash-2-4 over its header up to the tag, then its body.
    pub(crate) fn tag(&self, before: &[u8], body: &[u8]) -> u64 {
        let mut hash = SipHasher24::new_with_key(&self.0);
        hash.write(before);
        hash.write(body);
        hash.finish()
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JobKey(secret)")
    }
}

impl Header {
    /// The header of a message of a job, with 0 where nothing else is given.
    #[must_use]
    pub fn of(kind: Kind, job: u32) -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            kind: kind.code(),
            header_length: Self::SIZE as u8,
            job,
            ..Self::default()
        }
    }

    /// The same for an Allreduce of elements.
    #[must_use]
    pub const fn with_data(self, operation: Operation, data_type: DataType, count: u16) -> Self {
        Self {
            collective: Collective::Allreduce.code(),
            operation: operation.code(),
            data_type: data_type.code(),
            count,
            ..self
        }
    }

    /// Writes header and body at the start of `buffer`, lengths and tag filled in; gives the message's length in bytes.
    ///
    /// # Errors
    /// When the message does not fit into `buffer`, or would not be accepted by [`Unverified::parse`].
    pub fn write_message(
        &self,
        buffer: &mut [u8],
        body: &[u8],
        key: &JobKey,
    ) -> Result<usize, WireError> {
        let (length, room) = (Self::SIZE + body.len(), buffer.len());
        let Some(behind) = buffer.get_mut(Self::SIZE..length) else {
            return Err(WireError::short(Layer::Native, "message", 0, length, room));
        };
        behind.copy_from_slice(body);
        self.seal_message(buffer, body.len(), key)
    }

    /// Makes a message of the body that stands in `buffer` behind room for the header; gives its length in bytes.
    ///
    /// # Errors
    /// As [`Self::write_message`].
    pub fn seal_message(
        &self,
        buffer: &mut [u8],
        body_length: usize,
        key: &JobKey,
    ) -> Result<usize, WireError> {
        let (length, room) = (Self::SIZE + body_length, buffer.len());
        let Some(message) = buffer.get_mut(..length) else {
            return Err(WireError::short(Layer::Native, "message", 0, length, room));
        };
        let (before, body) = message.split_at_mut(Self::SIZE);
        before.copy_from_slice(&self.sealed(body, key)?);
        Ok(length)
    }

    /// Writes a whole frame; gives its length in bytes.
    ///
    /// # Errors
    /// Those of [`Self::write_message`] and of [`Path::write_udp`] or [`Path::write_roce`].
    pub fn write_frame(
        &self,
        buffer: &mut [u8],
        path: &Path,
        carrier: Carrier,
        body: &[u8],
        key: &JobKey,
    ) -> Result<usize, WireError> {
        let header = self.sealed(body, key)?;
        match carrier {
            Carrier::Udp => path.write_udp(buffer, PORT, &[&header, body]),
            Carrier::RoceUd(bth, deth) => {
                path.write_roce(buffer, bth, Extension::Deth(deth), &[&header, body])
            }
        }
    }

    /// The header's bytes with lengths and tag filled in.
    fn sealed(&self, body: &[u8], key: &JobKey) -> Result<[u8; Self::SIZE], WireError> {
        let Some(body_length) = u16::try_from(body.len())
            .ok()
            .filter(|length| usize::from(*length) <= MAX_BODY)
        else {
            let found = body.len() as u64;
            return Err(WireError::value(
                Layer::Native,
                "body_length",
                6,
                found,
                "0..=8192",
            ));
        };
        let header = Self {
            magic: MAGIC,
            version: VERSION,
            header_length: Self::SIZE as u8,
            body_length,
            tag: 0,
            ..*self
        };
        let mut bytes = [0; Self::SIZE];
        header.write(&mut bytes, 0)?;
        Body::check(HeaderView(&bytes), body, 0)?;
        let tag = key.tag(&bytes[..TAG_AT], body);
        bytes[TAG_AT..].copy_from_slice(&tag.to_le_bytes());
        Ok(bytes)
    }
}

/// What carries a message on Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// UDP to [`PORT`].
    Udp,
    /// A RoCEv2 UD packet.
    RoceUd(Bth, Deth),
}

/// A message whose form is right and whose tag has not been checked.
///
/// It tells only what is needed to find the key.
#[derive(Debug, Clone, Copy)]
pub struct Unverified<'a> {
    header: HeaderView<'a>,
    message: Message<'a>,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Unverified<'a> {
    /// Whether a message of this protocol, of any version, seems to begin at byte `at` of `packet`.
    #[inline]
    #[must_use]
    pub fn is_at(packet: &[u8], at: usize) -> bool {
        packet
            .get(at..)
            .is_some_and(|rest| rest.starts_with(&MAGIC.to_be_bytes()))
    }

    /// Reads the message that begins at byte `at` of `packet`; bytes behind it are ignored.
    ///
    /// # Errors
    /// When it is cut short, of another version, or its fields contradict each other or its length.
    #[inline]
    pub fn parse(packet: &'a [u8], at: usize) -> Result<Self, WireError> {
        let header = Header::view(packet, at)?;
        let refuse = |field, byte, found: u64, expected| {
            Err(WireError::value(
                Layer::Native,
                field,
                at + byte,
                found,
                expected,
            ))
        };
        if header.magic() != MAGIC {
            return refuse("magic", 0, u64::from(header.magic()), "0x5261");
        }
        if header.version() != VERSION {
            return refuse("version", 2, u64::from(header.version()), "1");
        }
        if usize::from(header.header_length()) != Header::SIZE {
            return refuse("header_length", 4, u64::from(header.header_length()), "56");
        }
        let length = usize::from(header.body_length());
        if length > MAX_BODY {
            return refuse("body_length", 6, length as u64, "0..=8192");
        }
        let body_at = at + Header::SIZE;
        let Some(body) = packet.get(body_at..body_at + length) else {
            return Err(WireError::short(
                Layer::Native,
                "body",
                body_at,
                length,
                packet.len(),
            ));
        };
        let message = Body::check(header, body, at)?;
        Ok(Self {
            header,
            message,
            bytes: body,
            at,
        })
    }

    /// The job whose key makes the tag.
    #[must_use]
    pub fn job(&self) -> u32 {
        self.header.job()
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.header.group()
    }

    /// What it claims to be.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.message.kind
    }

    /// Bytes of the message.
    #[must_use]
    pub const fn length(&self) -> usize {
        Header::SIZE + self.bytes.len()
    }

    /// Checks the tag and gives the message.
    ///
    /// Both tags are compared as one 64-bit word, so that the time does not tell how much was right.
    ///
    /// # Errors
    /// When the tag was not made with this key for these bytes.
    #[inline]
    pub fn verify(self, key: &JobKey) -> Result<Message<'a>, WireError> {
        let found = self.header.tag();
        if found == key.tag(&self.header.bytes()[..TAG_AT], self.bytes) {
            return Ok(self.message);
        }
        Err(WireError {
            layer: Layer::Native,
            field: "tag",
            offset: self.at + TAG_AT,
            problem: crate::Problem::Tag { found },
        })
    }
}

/// A message whose tag is the job's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its header.
    pub header: HeaderView<'a>,
    /// Its body.
    pub body: Body<'a>,
}

/// The body of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// None.
    Empty,
    /// What is supported, and the switches passed.
    Terms(TermsView<'a>, PathView<'a>),
    /// A switch's place in a group.
    Program(ProgramView<'a>),
    /// Elements, most significant byte first, and what is to be done with them (nothing in Bcast).
    Data(Option<Operation>, &'a [u8]),
}

impl<'a> Body<'a> {
    /// Checks all fields of a header against each other and against the body; `at` is the header's place.
    #[inline]
    fn check(header: HeaderView<'a>, body: &'a [u8], at: usize) -> Result<Message<'a>, WireError> {
        let refuse = |field, byte, found: u64, expected| {
            Err(WireError::value(
                Layer::Native,
                field,
                at + byte,
                found,
                expected,
            ))
        };
        let of_length = |expected: usize| {
            let (found, expected) = (body.len() as u64, expected as u64);
            if found == expected {
                return Ok(());
            }
            Err(WireError::differs(
                Layer::Native,
                "body_length",
                at + 6,
                found,
                expected,
            ))
        };
        let Some(kind) = Kind::from_code(header.kind()) else {
            return refuse("kind", 3, u64::from(header.kind()), "1..=8 or 16..=18");
        };
        if header.reserved() != 0 {
            return refuse("reserved", 5, u64::from(header.reserved()), "0");
        }
        let message = |body| Ok(Message { kind, header, body });
        if kind < Kind::Contribution {
            let nothing = [
                ("segments", 24, u64::from(header.segments())),
                ("collective", 40, u64::from(header.collective())),
                ("operation", 41, u64::from(header.operation())),
                ("data_type", 42, u64::from(header.data_type())),
                ("count", 44, u64::from(header.count())),
            ];
            if let Some((field, byte, found)) = nothing.into_iter().find(|(_, _, v)| *v != 0) {
                return refuse(field, byte, found, "0 in control messages");
            }
            if matches!(kind, Kind::Query | Kind::Notify) {
                let Ok(terms) = Terms::view(body, 0) else {
                    return refuse(
                        "body_length",
                        6,
                        body.len() as u64,
                        "40 and more with terms",
                    );
                };
                let size = Terms::SIZE + PathEntry::SIZE * usize::from(terms.hops());
                of_length(size)?;
                let path = PathView(body[Terms::SIZE..].as_chunks().0);
                return message(Self::Terms(terms, path));
            }
            if kind == Kind::Program {
                let program = ProgramView::parse(body, at + Header::SIZE)?;
                return message(Self::Program(program));
            }
            if !body.is_empty() {
                return refuse(
                    "body_length",
                    6,
                    body.len() as u64,
                    "0 in this kind of message",
                );
            }
            return message(Self::Empty);
        }
        if header.segment() >= header.segments() {
            let found = u64::from(header.segment());
            return refuse("segment", 20, found, "less than the field segments");
        }
        if Collective::from_code(header.collective()).is_none() {
            return refuse("collective", 40, u64::from(header.collective()), "1..=4");
        }
        let operation = Operation::from_code(header.operation());
        if operation.is_none() && header.operation() != 0 {
            return refuse("operation", 41, u64::from(header.operation()), "0..=12");
        }
        let code = header.data_type();
        let data_type = DataType::from_code(code);
        if data_type.is_none() && code != 0 {
            return refuse("data_type", 42, u64::from(code), "0, 1..=10 or 32..=36");
        }
        if let (Some(operation), Some(data_type)) = (operation, data_type)
            && !operation.accepts(data_type)
        {
            let found = u64::from(operation.code());
            return refuse("operation", 41, found, "an operation on this type");
        }
        let size = data_type.map_or(0, DataType::size);
        // A request for a result describes elements and carries none.
        let expected = if kind == Kind::Ask {
            0
        } else {
            usize::from(header.count()) * size
        };
        of_length(expected)?;
        if data_type.is_none() && header.count() != 0 {
            return refuse("count", 44, u64::from(header.count()), "0 without a type");
        }
        if body.is_empty() {
            return message(Self::Empty);
        }
        message(Self::Data(operation, body))
    }
}
