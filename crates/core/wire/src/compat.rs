//! The compatible layout: the packets of Li et al., "MPI Communication Optimization Based on In-network Computing under
//! RoCE Protocol" (Computer Systems & Applications 31(11), 2022, 3.2), as its published library writes them.
//!
//! Hosts send these messages to each other; a switch on the way recognises them by two magic numbers, 18 bytes apart.
//! Where the paper and the library differ, both are read, and what is written is the library's:
//!
//! | | read | written |
//! |---|---|---|
//! | RC padding before the header | 14 or 15 bytes, any content | 14 zero bytes ([`RcLayout::Code`]) unless asked otherwise |
//! | RC header of UCX | 1 byte, or 2 of tag matching | 1 byte |
//! | first magic number, bytes after the BTH | 23 or 24 | 23 for RC, 24 for UD |
//! | mode in the control payload | 0, 1, 2 | the caller's: the library has 1 Node, 2 Socket |
//!
//! There is no key and no checksum but ICRC in this layout: everybody who can send to the switch can forge it. Our own
//! protocol ([`crate::native`]) closes that.

use core::net::Ipv4Addr;

use crate::{
    Bth, DataType, Deth, Extension, ExtensionView, Layer, Operation, Path, Problem, RocePacket,
    WireError, field::header,
};

/// First magic number of the header.
pub const MAGIC_LOW: u32 = 0x1122_3344;
/// Second magic number of the header.
pub const MAGIC_HIGH: u32 = 0x5566_7788;
/// The MPI tag of every message of this layout, 24 bits.
pub const MPI_TAG: u32 = 0x33_44f4;
/// Group number of control packets.
pub const CONTROL_GROUP: u8 = 1;
/// Group numbers that data packets may have.
pub const DATA_GROUPS: core::ops::RangeInclusive<u8> = 3..=254;
/// Most bytes of elements in a data packet.
pub const MAX_DATA: usize = 256;
/// Mask of operations that hosts begin with: all, although bits 12 to 15 stand for none.
pub const ALL_OPERATIONS: u16 = 0xffff;
/// Mask of types that hosts begin with: bit = code, 0 to 10 and 14. Codes 0 and 14 name no element type here.
pub const ALL_TYPES: u16 = 0x47ff;
/// Mask of collectives: Allreduce.
pub const ALLREDUCE: u8 = 1;
/// The first byte that UCX puts before a whole small message (its id of "eager, one packet"); not looked at.
pub const UCX_EAGER_ONLY: u8 = 2;

/// Bytes of UCX before the UCP tag in UD packets.
const NETH: usize = 8;
/// Bytes of the UCP tag.
const TAG: usize = 8;

header! {
    /// The MPI header: 22 bytes before every control payload and every element list.
    Head, HeadView, Head, 22 {
        /// 0x11223344
        tag_low: u32 = Little 0:0/32,
        /// rank of the sender in its communicator
        src_rank: u32 = Big 4:0/32,
        /// 0 from hosts; a switch that can compute sets it in control packets
        data_flag: u8 = Big 8:0/8,
        /// group: 1 in control packets, 3..=254 in data packets
        comm_id: u8 = Big 9:0/8,
        /// reserved, 0
        rsv: u16 = Big 10:0/16,
        /// operation of a data packet, 1..=12
        op_code: u8 = Big 12:0/8,
        /// element type of a data packet, 1..=10
        oper_and_type: u8 = Big 13:0/8,
        /// round of a data packet, from 1, modulo 256
        req_id: u8 = Big 14:0/8,
        /// 0
        req_pkt_num: u8 = Big 15:0/8,
        /// elements of a data packet
        pkt_para_num: u16 = Big 16:0/16,
        /// 0x55667788
        tag_high: u32 = Little 18:0/32,
    }
}

impl Head {
    /// The header of a control packet from a rank.
    #[must_use]
    pub const fn control(src_rank: u32) -> Self {
        Self {
            tag_low: MAGIC_LOW,
            src_rank,
            data_flag: 0,
            comm_id: CONTROL_GROUP,
            rsv: 0,
            op_code: 0,
            oper_and_type: 0,
            req_id: 0,
            req_pkt_num: 0,
            pkt_para_num: 0,
            tag_high: MAGIC_HIGH,
        }
    }

    /// The header of a data packet: sender, group (3..=254), round, and what is to be done with how many elements.
    #[must_use]
    pub const fn data(
        src_rank: u32,
        group: u8,
        round: u8,
        operation: Operation,
        data_type: DataType,
        count: u16,
    ) -> Self {
        Self {
            comm_id: group,
            op_code: operation.code(),
            oper_and_type: data_type.code(),
            req_id: round,
            pkt_para_num: count,
            ..Self::control(src_rank)
        }
    }
}

/// What a control packet asks or says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKind {
    /// A leader asks its master; switches on the way write what they support.
    Query,
    /// The master answers; switches set up their tables.
    Notify,
    /// The master ends the group; switches free its state.
    Kill,
}

impl ControlKind {
    /// The number in the field `kind`.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Query => 0,
            Self::Notify => 1,
            Self::Kill => 4,
        }
    }

    /// The kind of a number, `None` for others.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Query),
            1 => Some(Self::Notify),
            4 => Some(Self::Kill),
            _ => None,
        }
    }
}

header! {
    /// The control payload: 56 bytes behind the MPI header in query, notify and kill.
    Control, ControlView, Control, 56 {
        /// version of the MPI library; 0 in query and notify
        sup_mpi_type: u16 = Big 0:0/16,
        /// not 0: refused
        fail_cause: u8 = Big 2:0/8,
        /// 1 Node mode, 2 Socket mode (the paper: 0 and 1)
        master_num: u8 = Big 3:0/8,
        /// switches passed; each adds 1
        hops: u8 = Big 4:0/4,
        /// 0 query, 1 notify, 4 kill
        kind: u8 = Big 4:4/4,
        /// collectives supported, bit 0 Allreduce; each switch keeps what it can
        sup_comm_type: u8 = Big 5:0/8,
        /// operations supported, bit code - 1; each switch keeps what it can
        sup_allreduce_op: u16 = Big 6:0/16,
        /// element types supported, bit code; each switch keeps what it can
        sup_data_type: u16 = Big 8:0/16,
        /// most bytes of elements in a packet, 256
        sup_max_data_size: u16 = Big 10:0/16,
        /// leaders of the group
        global_group_size: u16 = Big 12:0/16,
        /// leaders under the receiver's first switch, which writes it
        local_group_size: u16 = Big 14:0/16,
        /// the group's number
        true_comm_id: u32 = Big 16:0/32,
        /// groups that the second-tier switch has room for, which writes it
        ava_grp_num: u32 = Big 20:0/32,
        /// rank that the packet is for
        dst_rank: u32 = Big 24:0/32,
        /// address of the first switch of the first tier
        tor1_ip: Ipv4Addr = Big 28:0/32,
        /// address of the switch of the second tier
        spine_ip: Ipv4Addr = Big 32:0/32,
        /// address of the last switch of the first tier
        tor2_ip: Ipv4Addr = Big 36:0/32,
        /// 0
        job_id: u64 = Big 40:0/64,
        /// 0
        c_id: u32 = Big 48:0/32,
        /// 0
        world_rank: u32 = Big 52:0/32,
    }
}

header! {
    /// What UCX puts before every message: the tag by which the receiver matches it.
    UcpTagBytes, UcpTagView, Ucx, 8 {
        /// MPI tag (24 bits), source rank (20 bits), context id (20 bits), from the highest bit down
        tag: u64 = Little 0:0/64,
    }
}

/// The parts of a UCP tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UcpTag {
    /// Low 24 bits of the MPI tag.
    pub mpi_tag: u32,
    /// Rank of the sender, below 2^20.
    pub source: u32,
    /// Number of the communicator, below 2^20.
    pub context: u32,
}

impl UcpTag {
    /// The tag of a message of this layout.
    #[must_use]
    pub const fn of(source: u32, context: u32) -> Self {
        Self {
            mpi_tag: MPI_TAG,
            source,
            context,
        }
    }

    /// Joins the parts.
    ///
    /// # Errors
    /// When a part is wider than its bits.
    pub fn join(self) -> Result<u64, WireError> {
        let parts = [
            ("mpi_tag", self.mpi_tag, 24),
            ("source", self.source, 20),
            ("context", self.context, 20),
        ];
        let mut tag = 0;
        for (field, value, bits) in parts {
            let found = u64::from(value);
            if found >> bits != 0 {
                let problem = Problem::Range { found, bits };
                return Err(WireError {
                    layer: Layer::Ucx,
                    field,
                    offset: 0,
                    problem,
                });
            }
            tag = tag << bits | found;
        }
        Ok(tag)
    }

    /// Splits a tag.
    #[must_use]
    pub const fn split(tag: u64) -> Self {
        Self {
            mpi_tag: (tag >> 40) as u32,
            source: (tag >> 20) as u32 & 0xf_ffff,
            context: tag as u32 & 0xf_ffff,
        }
    }
}

/// How an RC packet leads up to the MPI header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RcLayout {
    /// 1 byte of UCX, tag, 14 bytes of padding: what the published library sends.
    Code,
    /// 1 byte of UCX, tag, 15 bytes of padding: what the paper draws.
    Paper,
    /// 2 bytes of UCX (tag matching in hardware), tag, 14 bytes of padding.
    TagMatching,
}

impl RcLayout {
    /// Bytes of UCX before the tag.
    #[must_use]
    pub const fn prefix(self) -> usize {
        match self {
            Self::Code | Self::Paper => 1,
            Self::TagMatching => 2,
        }
    }

    /// Bytes between the tag and the MPI header.
    #[must_use]
    pub const fn padding(self) -> usize {
        match self {
            Self::Code | Self::TagMatching => 14,
            Self::Paper => 15,
        }
    }

    /// Bytes between the BTH and the MPI header: 23 or 24.
    #[must_use]
    pub const fn head_at(self) -> usize {
        self.prefix() + TAG + self.padding()
    }
}

/// What lies between the BTH and the MPI header, on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// Unreliable datagram: DETH, 8 bytes of UCX, tag.
    Ud,
    /// Reliable connection.
    Rc(RcLayout),
}

impl Prefix {
    /// Bytes that the message has before its body: the header, and in RC packets the padding before it.
    #[must_use]
    pub const fn message_head(self) -> usize {
        match self {
            Self::Ud => Head::SIZE,
            Self::Rc(layout) => layout.padding() + Head::SIZE,
        }
    }

    /// Bytes of a data message: the library sends whole elements, as many as header and values need.
    #[must_use]
    pub const fn message_length(self, data_type: DataType, count: u16) -> usize {
        let size = data_type.size();
        (count as usize + self.message_head().div_ceil(size)) * size
    }
}

/// A message of this layout in a packet.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// What leads up to it.
    pub prefix: Prefix,
    /// The tag that UCX matches; only the magic numbers decide what a packet is, the tag is not looked at.
    pub ucp_tag: UcpTag,
    /// The MPI header.
    pub head: HeadView<'a>,
    /// What the header announces.
    pub content: Content<'a>,
    head_at: usize,
}

/// The body of a message.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// Query, notify or kill.
    Control(ControlKind, ControlView<'a>),
    /// Values.
    Data(Data<'a>),
}

/// Values of one rank and round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// The group, 3..=254.
    pub group: u8,
    /// The round, modulo 256.
    pub round: u8,
    /// What is to be done with the values.
    pub operation: Operation,
    /// Their type.
    pub data_type: DataType,
    /// How many there are.
    pub count: u16,
    /// The values, most significant byte first: `count` times the size of the type.
    pub elements: &'a [u8],
}

impl<'a> Message<'a> {
    /// Looks for a message of this layout in a RoCEv2 packet; `None` when the magic numbers are not there.
    ///
    /// # Errors
    /// When they are there and the rest does not fit: too short for what the header says, or with a group, operation,
    /// type, count or kind that does not exist.
    #[inline]
    pub fn find(packet: &RocePacket<'a>) -> Result<Option<Self>, WireError> {
        let payload = packet.payload();
        let (prefix, from) = match packet.extension {
            ExtensionView::Deth(_) if is_head(payload, NETH + TAG) => (Prefix::Ud, NETH + TAG),
            ExtensionView::None if is_head(payload, RcLayout::Code.head_at()) => {
                (Prefix::Rc(RcLayout::Code), RcLayout::Code.head_at())
            }
            ExtensionView::None if is_head(payload, RcLayout::Paper.head_at()) => {
                // One or two bytes of UCX: the tag is where its known part is.
                let known = |at| ucp_tag(payload, at).mpi_tag == MPI_TAG;
                let layout = match known(2) && !known(1) {
                    true => RcLayout::TagMatching,
                    false => RcLayout::Paper,
                };
                (Prefix::Rc(layout), layout.head_at())
            }
            _ => return Ok(None),
        };
        let tag_at = match prefix {
            Prefix::Ud => NETH,
            Prefix::Rc(layout) => layout.prefix(),
        };
        // Offsets in errors count from the start of the frame.
        let payload_at = packet.payload_at();
        let packet = &packet.datagram.bytes()[..payload_at + payload.len()];
        let head_at = payload_at + from;
        let head = Head::view(packet, head_at)?;
        let body_at = head_at + Head::SIZE;
        let content = if head.comm_id() == CONTROL_GROUP {
            let control = Control::view(packet, body_at)?;
            let Some(kind) = ControlKind::from_code(control.kind()) else {
                let found = u64::from(control.kind());
                let expected = "0 (query), 1 (notify) or 4 (kill)";
                return Err(WireError::value(
                    Layer::Control,
                    "kind",
                    body_at + 4,
                    found,
                    expected,
                ));
            };
            Content::Control(kind, control)
        } else {
            Content::Data(Data::of(head, packet, body_at)?)
        };
        Ok(Some(Self {
            prefix,
            ucp_tag: ucp_tag(payload, tag_at),
            head,
            content,
            head_at,
        }))
    }

    /// Byte of the frame where the MPI header begins; the body begins [`Head::SIZE`] bytes later.
    #[must_use]
    pub const fn head_at(&self) -> usize {
        self.head_at
    }
}

impl<'a> Data<'a> {
    /// Checks the data header `head` and the body that begins at byte `at` of `packet`.
    #[inline]
    fn of(head: HeadView<'_>, packet: &'a [u8], at: usize) -> Result<Self, WireError> {
        let refuse = |field, byte, found: u64, expected| {
            Err(WireError::value(
                Layer::Head,
                field,
                at - Head::SIZE + byte,
                found,
                expected,
            ))
        };
        let group = head.comm_id();
        if !DATA_GROUPS.contains(&group) {
            return refuse("comm_id", 9, u64::from(group), "1 (control) or 3..=254");
        }
        let Some(operation) = Operation::from_code(head.op_code()) else {
            return refuse("op_code", 12, u64::from(head.op_code()), "1..=12");
        };
        let data_type = DataType::from_code(head.oper_and_type()).filter(|found| found.is_compat());
        let Some(data_type) = data_type else {
            return refuse(
                "oper_and_type",
                13,
                u64::from(head.oper_and_type()),
                "1..=10",
            );
        };
        let count = head.pkt_para_num();
        let length = usize::from(count) * data_type.size();
        if length > MAX_DATA {
            return refuse(
                "pkt_para_num",
                16,
                u64::from(count),
                "256 bytes of elements at most",
            );
        }
        let Some(elements) = packet.get(at..at + length) else {
            return Err(WireError::short(
                Layer::Data,
                "elements",
                at,
                length,
                packet.len(),
            ));
        };
        Ok(Self {
            group,
            round: head.req_id(),
            operation,
            data_type,
            count,
            elements,
        })
    }
}

/// Whether both magic numbers are where a header at byte `at` has them.
#[inline]
fn is_head(payload: &[u8], at: usize) -> bool {
    Head::view(payload, at)
        .is_ok_and(|head| head.tag_low() == MAGIC_LOW && head.tag_high() == MAGIC_HIGH)
}

/// The tag at byte `at`; zero where the payload is too short, which a payload with a header behind the tag is not.
#[inline]
fn ucp_tag(payload: &[u8], at: usize) -> UcpTag {
    UcpTag::split(UcpTagBytes::view(payload, at).map_or(0, UcpTagView::tag))
}

/// What a message is sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// Ethernet to UDP.
    pub path: Path,
    /// The base transport header; its pad count is filled in.
    pub bth: Bth,
    /// What lies between it and the MPI header.
    pub encapsulation: Encapsulation,
    /// The tag that UCX matches.
    pub ucp_tag: UcpTag,
}

/// What lies between the BTH and the MPI header, on writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// Unreliable datagram: the datagram header and the 8 bytes of UCX.
    Ud(Deth, [u8; NETH]),
    /// Reliable connection.
    Rc(RcLayout),
}

impl Envelope {
    /// Writes a control packet; gives the frame's length in bytes.
    ///
    /// # Errors
    /// When it does not fit into `buffer`, or a value not into its field.
    pub fn write_control(
        &self,
        buffer: &mut [u8],
        head: &Head,
        control: &Control,
    ) -> Result<usize, WireError> {
        let mut body = [0; Control::SIZE];
        control.write(&mut body, 0)?;
        self.write(buffer, head, &body, 0)
    }

    /// Writes a data packet with the values `elements` (most significant byte first), padded as the library does;
    /// gives the frame's length in bytes.
    ///
    /// # Errors
    /// When it does not fit into `buffer`, a value not into its field, or the header does not describe `elements`.
    pub fn write_data(
        &self,
        buffer: &mut [u8],
        head: &Head,
        elements: &[u8],
    ) -> Result<usize, WireError> {
        let mut bytes = [0; Head::SIZE];
        head.write(&mut bytes, 0)?;
        let mut body = [0; MAX_DATA];
        let Some(room) = body.get_mut(..elements.len()) else {
            let length = elements.len() as u64;
            let expected = "256 bytes of elements at most";
            return Err(WireError::value(
                Layer::Data,
                "elements",
                Head::SIZE,
                length,
                expected,
            ));
        };
        room.copy_from_slice(elements);
        let data = Data::of(HeadView(&bytes), &[0; Head::SIZE + MAX_DATA], Head::SIZE)?;
        if data.elements.len() != elements.len() {
            let (found, expected) = (elements.len() as u64, data.elements.len() as u64);
            return Err(WireError::differs(
                Layer::Data,
                "elements",
                Head::SIZE,
                found,
                expected,
            ));
        }
        let prefix = match self.encapsulation {
            Encapsulation::Ud(..) => Prefix::Ud,
            Encapsulation::Rc(layout) => Prefix::Rc(layout),
        };
        let padding = prefix.message_length(data.data_type, data.count)
            - prefix.message_head()
            - elements.len();
        self.write(buffer, head, elements, padding)
    }

    /// Writes prefix, header, body and `padding` bytes of zeros, at most 7.
    fn write(
        &self,
        buffer: &mut [u8],
        head: &Head,
        body: &[u8],
        padding: usize,
    ) -> Result<usize, WireError> {
        let mut prefix = [0; NETH + TAG + Head::SIZE + Head::SIZE];
        let (extension, tag_at, head_at) = match self.encapsulation {
            Encapsulation::Ud(deth, neth) => {
                prefix[..NETH].copy_from_slice(&neth);
                (Extension::Deth(deth), NETH, NETH + TAG)
            }
            Encapsulation::Rc(layout) => {
                prefix[0] = UCX_EAGER_ONLY;
                (Extension::None, layout.prefix(), layout.head_at())
            }
        };
        let tag = self.ucp_tag.join()?;
        UcpTagBytes { tag }.write(&mut prefix, tag_at)?;
        let head = Head {
            tag_low: MAGIC_LOW,
            tag_high: MAGIC_HIGH,
            ..*head
        };
        head.write(&mut prefix, head_at)?;
        let pieces = [&prefix[..head_at + Head::SIZE], body, &[0; 8][..padding]];
        self.path.write_roce(buffer, self.bth, extension, &pieces)
    }
}
