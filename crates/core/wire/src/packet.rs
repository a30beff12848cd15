//! Whole frames: Ethernet to UDP payload, and RoCEv2 packets in them; views of what came, and how one is built.

use core::net::Ipv4Addr;

use crate::{
    Aeth, AethView, Bth, BthView, Deth, DethView, Ethernet, EthernetView, ExtensionKind, ICRC_SIZE,
    Ipv4, Ipv4View, Layer, MacAddress, PORT_ROCE, PROTOCOL_UDP, Udp, UdpView, Vlan, VlanView,
    WireError, ethertype, icrc, ipv4_checksum, udp_checksum,
};

/// A UDP datagram over IPv4 in an Ethernet frame, checked down to its payload's bounds.
///
/// Lengths are checked, checksums are not: between a host and its own switch they may be left to the hardware. The
/// `verify_` methods check them.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    frame: &'a [u8],
    ip_at: usize,
    udp_at: usize,
    end: usize,
    /// The Ethernet header.
    pub ethernet: EthernetView<'a>,
    /// The VLAN tag, if the frame has one.
    pub vlan: Option<VlanView<'a>>,
    /// The IPv4 header without its options.
    pub ipv4: Ipv4View<'a>,
    /// The UDP header.
    pub udp: UdpView<'a>,
}

impl<'a> Datagram<'a> {
    /// Looks for a UDP datagram in a frame; bytes behind the IPv4 datagram (padding) are ignored.
    ///
    /// Gives `None` for well-formed frames of something else: other ethertypes, two VLAN tags, other IP protocols,
    /// fragments.
    ///
    /// # Errors
    /// When the frame is cut short, or its lengths contradict each other.
    #[inline]
    pub fn find(frame: &'a [u8]) -> Result<Option<Self>, WireError> {
        let ethernet = Ethernet::view(frame, 0)?;
        let mut ip_at = Ethernet::SIZE;
        let mut follows = ethernet.ethertype();
        let mut vlan = None;
        if follows == ethertype::VLAN {
            let tag = Vlan::view(frame, ip_at)?;
            ip_at += Vlan::SIZE;
            follows = tag.ethertype();
            vlan = Some(tag);
        }
        if follows != ethertype::IPV4 {
            return Ok(None);
        }
        let ipv4 = Ipv4::view(frame, ip_at)?;
        let (words, total) = (ipv4.header_words(), ipv4.total_length());
        if ipv4.version() != 4 {
            let found = u64::from(ipv4.version());
            return Err(WireError::value(Layer::Ipv4, "version", ip_at, found, "4"));
        }
        if words < 5 {
            let found = u64::from(words);
            return Err(WireError::value(
                Layer::Ipv4,
                "header_words",
                ip_at,
                found,
                "5 or more",
            ));
        }
        let udp_at = ip_at + 4 * usize::from(words);
        let end = ip_at + usize::from(total);
        if end < udp_at {
            return Err(WireError::value(
                Layer::Ipv4,
                "total_length",
                ip_at + 2,
                u64::from(total),
                "at least the header's length",
            ));
        }
        if end > frame.len() {
            let (at, needed) = (ip_at + 2, usize::from(total) - 2);
            return Err(WireError::short(
                Layer::Ipv4,
                "total_length",
                at,
                needed,
                frame.len(),
            ));
        }
        if ipv4.protocol() != PROTOCOL_UDP || ipv4.more_fragments() || ipv4.fragment_offset() != 0 {
            return Ok(None);
        }
        let udp = Udp::view(&frame[..end], udp_at)?;
        if usize::from(udp.length()) != end - udp_at {
            return Err(WireError::differs(
                Layer::Udp,
                "length",
                udp_at + 4,
                u64::from(udp.length()),
                (end - udp_at) as u64,
            ));
        }
        Ok(Some(Self {
            frame,
            ip_at,
            udp_at,
            end,
            ethernet,
            vlan,
            ipv4,
            udp,
        }))
    }

    /// The frame's bytes up to the end of the datagram.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        &self.frame[..self.end]
    }

    /// Byte of the frame where the IPv4 header begins.
    #[must_use]
    pub const fn ip_at(&self) -> usize {
        self.ip_at
    }

    /// Byte of the frame where the UDP header begins.
    #[must_use]
    pub const fn udp_at(&self) -> usize {
        self.udp_at
    }

    /// Byte of the frame where the UDP payload begins.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.udp_at + Udp::SIZE
    }

    /// The UDP payload.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.frame[self.payload_at()..self.end]
    }

    /// Checks the checksum of the IPv4 header.
    ///
    /// # Errors
    /// When it is wrong.
    pub fn verify_ipv4(&self) -> Result<(), WireError> {
        let expected = ipv4_checksum(&self.frame[self.ip_at..self.udp_at]);
        let found = self.ipv4.checksum();
        if found == expected {
            return Ok(());
        }
        let (found, expected) = (u64::from(found), u64::from(expected));
        Err(WireError::differs(
            Layer::Ipv4,
            "checksum",
            self.ip_at + 10,
            found,
            expected,
        ))
    }

    /// Checks the UDP checksum; 0 (none) is right.
    ///
    /// # Errors
    /// When it is wrong.
    pub fn verify_udp(&self) -> Result<(), WireError> {
        let found = self.udp.checksum();
        let expected = udp_checksum(
            self.ipv4.source(),
            self.ipv4.destination(),
            &self.frame[self.udp_at..self.end],
        );
        if found == 0 || found == expected {
            return Ok(());
        }
        let (found, expected) = (u64::from(found), u64::from(expected));
        Err(WireError::differs(
            Layer::Udp,
            "checksum",
            self.udp_at + 6,
            found,
            expected,
        ))
    }
}

/// The header behind the BTH, as views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionView<'a> {
    /// None of those known here.
    None,
    /// Datagram header.
    Deth(DethView<'a>),
    /// Acknowledgement header.
    Aeth(AethView<'a>),
}

/// A RoCEv2 packet: a UDP datagram to port 4791.
#[derive(Debug, Clone, Copy)]
pub struct RocePacket<'a> {
    /// What carries it.
    pub datagram: Datagram<'a>,
    /// The base transport header.
    pub bth: BthView<'a>,
    /// The header behind it.
    pub extension: ExtensionView<'a>,
    payload_at: usize,
    payload_end: usize,
}

impl<'a> RocePacket<'a> {
    /// Reads the transport headers of a datagram; its port is the caller's business.
    ///
    /// # Errors
    /// When it is cut short, has IPv4 options (RoCEv2 has none), another transport version than 0, or more padding
    /// than payload.
    #[inline]
    pub fn parse(datagram: Datagram<'a>) -> Result<Self, WireError> {
        let words = u64::from(datagram.ipv4.header_words());
        if words != 5 {
            let at = datagram.ip_at();
            return Err(WireError::value(
                Layer::Ipv4,
                "header_words",
                at,
                words,
                "5",
            ));
        }
        let bytes = datagram.bytes();
        let bth_at = datagram.payload_at();
        let bth = Bth::view(bytes, bth_at)?;
        if bth.version() != 0 {
            let found = u64::from(bth.version());
            return Err(WireError::value(
                Layer::Bth,
                "version",
                bth_at + 1,
                found,
                "0",
            ));
        }
        let after = bth_at + Bth::SIZE;
        let (extension, payload_at) = match bth.opcode().extension() {
            ExtensionKind::None => (ExtensionView::None, after),
            ExtensionKind::Deth => (
                ExtensionView::Deth(Deth::view(bytes, after)?),
                after + Deth::SIZE,
            ),
            ExtensionKind::Aeth => (
                ExtensionView::Aeth(Aeth::view(bytes, after)?),
                after + Aeth::SIZE,
            ),
        };
        let Some(padded_end) = bytes
            .len()
            .checked_sub(ICRC_SIZE)
            .filter(|end| *end >= payload_at)
        else {
            return Err(WireError::short(
                Layer::Icrc,
                "icrc",
                payload_at,
                ICRC_SIZE,
                bytes.len(),
            ));
        };
        let Some(payload_end) = padded_end
            .checked_sub(usize::from(bth.pad()))
            .filter(|end| *end >= payload_at)
        else {
            let found = u64::from(bth.pad());
            return Err(WireError::value(
                Layer::Bth,
                "pad",
                bth_at + 1,
                found,
                "at most the payload's length",
            ));
        };
        Ok(Self {
            datagram,
            bth,
            extension,
            payload_at,
            payload_end,
        })
    }

    /// Byte of the frame where the BTH begins.
    #[must_use]
    pub const fn bth_at(&self) -> usize {
        self.datagram.payload_at()
    }

    /// Byte of the frame where the payload begins.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.payload_at
    }

    /// What follows the headers known here, without padding and ICRC.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.datagram.bytes()[self.payload_at..self.payload_end]
    }

    /// Byte of the frame where the ICRC begins.
    #[must_use]
    pub fn icrc_at(&self) -> usize {
        self.datagram.bytes().len() - ICRC_SIZE
    }

    /// The ICRC in the packet.
    #[must_use]
    pub fn icrc(&self) -> u32 {
        self.datagram
            .bytes()
            .last_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Checks the ICRC.
    ///
    /// # Errors
    /// When it is wrong.
    pub fn verify_icrc(&self) -> Result<(), WireError> {
        let covered = &self.datagram.bytes()[self.datagram.ip_at()..self.icrc_at()];
        let (found, expected) = (self.icrc(), icrc(covered)?);
        if found == expected {
            return Ok(());
        }
        let (found, expected) = (u64::from(found), u64::from(expected));
        Err(WireError::differs(
            Layer::Icrc,
            "icrc",
            self.icrc_at(),
            found,
            expected,
        ))
    }
}

/// The way of a packet: what a frame needs below its UDP payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Hardware address of the sender.
    pub source_mac: MacAddress,
    /// Hardware address of the next receiver.
    pub destination_mac: MacAddress,
    /// A VLAN tag; its ethertype is filled in.
    pub vlan: Option<Vlan>,
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
    /// UDP port of the sender.
    pub source_port: u16,
    /// Class of service, 0..=63.
    pub dscp: u8,
    /// Congestion mark, 0..=3.
    pub ecn: u8,
    /// Hops that it may take.
    pub ttl: u8,
    /// Number of the datagram; the "don't fragment" bit is always set.
    pub identification: u16,
    /// Whether the UDP checksum is computed; otherwise it is 0, as RoCEv2 senders leave it.
    pub udp_checksum: bool,
}

impl Path {
    /// A way between two addresses: no VLAN, class and identification 0, TTL 64, no UDP checksum.
    #[must_use]
    pub const fn between(
        source_mac: MacAddress,
        destination_mac: MacAddress,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        source_port: u16,
    ) -> Self {
        Self {
            source_mac,
            destination_mac,
            vlan: None,
            source,
            destination,
            source_port,
            dscp: 0,
            ecn: 0,
            ttl: 64,
            identification: 0,
            udp_checksum: false,
        }
    }

    /// Byte of the frame where the UDP payload begins.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        let tag = if self.vlan.is_some() { Vlan::SIZE } else { 0 };
        Ethernet::SIZE + tag + Ipv4::SIZE + Udp::SIZE
    }

    /// Writes a frame with a UDP payload made of `pieces`; gives its length in bytes.
    ///
    /// # Errors
    /// When the frame does not fit into `buffer`, or a value not into its field.
    pub fn write_udp(
        &self,
        buffer: &mut [u8],
        destination_port: u16,
        pieces: &[&[u8]],
    ) -> Result<usize, WireError> {
        let payload = pieces.iter().map(|piece| piece.len()).sum();
        let end = self.write_headers(buffer, destination_port, payload)?;
        copy(buffer, self.payload_at(), pieces);
        self.finish(&mut buffer[..end]);
        Ok(end)
    }

    /// Writes a RoCEv2 packet with a payload made of `pieces`; gives its length in bytes.
    ///
    /// Padding, ICRC and checksums are filled in, the BTH's pad count too.
    ///
    /// # Errors
    /// When the frame does not fit into `buffer`, a value not into its field, or `extension` is not the header that
    /// the BTH's operation code asks for.
    pub fn write_roce(
        &self,
        buffer: &mut [u8],
        bth: Bth,
        extension: Extension,
        pieces: &[&[u8]],
    ) -> Result<usize, WireError> {
        let bth_at = self.payload_at();
        let (kind, size) = match extension {
            Extension::None => (ExtensionKind::None, 0),
            Extension::Deth(_) => (ExtensionKind::Deth, Deth::SIZE),
            Extension::Aeth(_) => (ExtensionKind::Aeth, Aeth::SIZE),
        };
        if kind != bth.opcode.extension() {
            return Err(WireError::value(
                Layer::Bth,
                "opcode",
                bth_at,
                u64::from(bth.opcode.0),
                "the operation code of this extension header",
            ));
        }
        let payload: usize = pieces.iter().map(|piece| piece.len()).sum();
        let pad = payload.wrapping_neg() % 4;
        let length = Bth::SIZE + size + payload + pad + ICRC_SIZE;
        let end = self.write_headers(buffer, PORT_ROCE, length)?;
        let frame = &mut buffer[..end];
        let bth = Bth {
            pad: pad as u8,
            ..bth
        };
        bth.write(frame, bth_at)?;
        match extension {
            Extension::None => {}
            Extension::Deth(deth) => deth.write(frame, bth_at + Bth::SIZE)?,
            Extension::Aeth(aeth) => aeth.write(frame, bth_at + Bth::SIZE)?,
        }
        let pad_at = copy(frame, bth_at + Bth::SIZE + size, pieces);
        frame[pad_at..pad_at + pad].fill(0);
        let icrc_at = pad_at + pad;
        let crc = icrc(&frame[bth_at - Udp::SIZE - Ipv4::SIZE..icrc_at])?;
        frame[icrc_at..].copy_from_slice(&crc.to_le_bytes());
        self.finish(frame);
        Ok(end)
    }

    /// Writes Ethernet to UDP, UDP checksum left 0; gives the frame's length, which fits into `buffer`.
    fn write_headers(
        &self,
        buffer: &mut [u8],
        destination_port: u16,
        payload: usize,
    ) -> Result<usize, WireError> {
        let payload_at = self.payload_at();
        let udp_at = payload_at - Udp::SIZE;
        let ip_at = udp_at - Ipv4::SIZE;
        let total = payload_at - ip_at + payload;
        let Ok(total_length) = u16::try_from(total) else {
            return Err(WireError {
                layer: Layer::Ipv4,
                field: "total_length",
                offset: ip_at + 2,
                problem: crate::Problem::Range {
                    found: total as u64,
                    bits: 16,
                },
            });
        };
        let end = ip_at + total;
        if end > buffer.len() {
            return Err(WireError::short(
                Layer::Ethernet,
                "frame",
                0,
                end,
                buffer.len(),
            ));
        }
        let ethernet = Ethernet {
            destination: self.destination_mac,
            source: self.source_mac,
            ethertype: if self.vlan.is_some() {
                ethertype::VLAN
            } else {
                ethertype::IPV4
            },
        };
        ethernet.write(buffer, 0)?;
        if let Some(tag) = self.vlan {
            let tag = Vlan {
                ethertype: ethertype::IPV4,
                ..tag
            };
            tag.write(buffer, Ethernet::SIZE)?;
        }
        let mut ipv4 = Ipv4 {
            version: 4,
            header_words: 5,
            dscp: self.dscp,
            ecn: self.ecn,
            total_length,
            identification: self.identification,
            reserved: false,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: self.ttl,
            protocol: PROTOCOL_UDP,
            checksum: 0,
            source: self.source,
            destination: self.destination,
        };
        ipv4.write(buffer, ip_at)?;
        ipv4.checksum = ipv4_checksum(&buffer[ip_at..udp_at]);
        ipv4.write(buffer, ip_at)?;
        let udp = Udp {
            source_port: self.source_port,
            destination_port,
            length: total_length - Ipv4::SIZE as u16,
            checksum: 0,
        };
        udp.write(buffer, udp_at)?;
        Ok(end)
    }

    /// Fills in the UDP checksum of a complete frame, if it is wanted.
    fn finish(&self, frame: &mut [u8]) {
        if self.udp_checksum {
            let udp_at = self.payload_at() - Udp::SIZE;
            let checksum = udp_checksum(self.source, self.destination, &frame[udp_at..]);
            frame[udp_at + 6..udp_at + 8].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// The header behind the BTH, as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// None.
    None,
    /// Datagram header.
    Deth(Deth),
    /// Acknowledgement header.
    Aeth(Aeth),
}

/// Copies the pieces to byte `at` and on; the caller has checked that they fit. Gives the byte behind them.
fn copy(buffer: &mut [u8], mut at: usize, pieces: &[&[u8]]) -> usize {
    for piece in pieces {
        buffer[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
    at
}
