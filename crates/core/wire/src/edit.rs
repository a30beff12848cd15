//! Changes to a packet in place, as a switch makes them: sums and ICRC follow.

use crate::{
    Bth, Datagram, Deth, Ethernet, ICRC_SIZE, Ipv4, Layer, MacAddress, PORT_ROCE, RocePacket, Udp,
    WireError, icrc,
    ip::{sum, updated},
};

/// A frame under change. Lengths stay; [`finish`](Self::finish) makes its checksums right again.
///
/// The IPv4 and UDP checksums are updated from what changed (RFC 1624), so that a packet that came damaged stays
/// recognisable as such; a UDP checksum of 0 (none) stays 0. The ICRC is computed anew: check it before the first change.
#[derive(Debug)]
#[must_use = "the packet's checksums are wrong until `finish`"]
pub struct Edit<'a> {
    /// Up to the end of the datagram.
    frame: &'a mut [u8],
    ip_at: usize,
    udp_at: usize,
    payload_at: usize,
    payload_end: usize,
    roce: bool,
    /// Whether there is a UDP checksum to keep right.
    summed: bool,
    /// Sums of the words that the UDP checksum covers and that changed, before and after.
    old: u64,
    new: u64,
}

impl<'a> Edit<'a> {
    /// Begins to change a UDP datagram; one to port 4791 as a RoCEv2 packet. `None` if the frame carries none.
    ///
    /// # Errors
    /// Those of [`Datagram::find`] and [`RocePacket::parse`].
    #[inline]
    pub fn begin(frame: &'a mut [u8]) -> Result<Option<Self>, WireError> {
        let Some(datagram) = Datagram::find(frame)? else {
            return Ok(None);
        };
        let (ip_at, udp_at, end) = (datagram.ip_at(), datagram.udp_at(), datagram.bytes().len());
        let roce = datagram.udp.destination_port() == PORT_ROCE;
        let summed = datagram.udp.checksum() != 0;
        let (payload_at, payload_end) = if roce {
            let packet = RocePacket::parse(datagram)?;
            (
                packet.payload_at(),
                packet.payload_at() + packet.payload().len(),
            )
        } else {
            (datagram.payload_at(), end)
        };
        Ok(Some(Self {
            frame: &mut frame[..end],
            ip_at,
            udp_at,
            payload_at,
            payload_end,
            roce,
            summed,
            old: 0,
            new: 0,
        }))
    }

    /// Replaces payload bytes from byte `at` of the payload on.
    ///
    /// # Errors
    /// When they would reach beyond the payload; nothing is changed then.
    #[inline]
    pub fn set_payload(&mut self, at: usize, bytes: &[u8]) -> Result<(), WireError> {
        let from = self.payload_at.saturating_add(at);
        if from.saturating_add(bytes.len()) > self.payload_end {
            let layer = if self.roce { Layer::Bth } else { Layer::Udp };
            return Err(WireError::short(
                layer,
                "payload",
                from,
                bytes.len(),
                self.payload_end,
            ));
        }
        self.replace(from, bytes);
        Ok(())
    }

    /// Replaces the base transport header.
    ///
    /// # Errors
    /// When the packet is no RoCEv2 packet, a value does not fit into its field, or operation code, pad count or
    /// version would change the packet's layout.
    pub fn set_bth(&mut self, bth: &Bth) -> Result<(), WireError> {
        let at = self.udp_at + Udp::SIZE;
        self.must_be_roce()?;
        let old = Bth::view(self.frame, at)?;
        for (field, byte, found, expected) in [
            ("pad", 1, bth.pad, old.pad()),
            ("version", 1, bth.version, old.version()),
            (
                "opcode",
                0,
                bth.opcode.extension() as u8,
                old.opcode().extension() as u8,
            ),
        ] {
            if found != expected {
                let (found, expected) = (u64::from(found), u64::from(expected));
                return Err(WireError::differs(
                    Layer::Bth,
                    field,
                    at + byte,
                    found,
                    expected,
                ));
            }
        }
        let mut bytes = [0; Bth::SIZE];
        bth.write(&mut bytes, 0)?;
        self.replace(at, &bytes);
        Ok(())
    }

    /// Replaces the datagram header of a UD packet.
    ///
    /// # Errors
    /// When the packet has none, or a value does not fit into its field.
    pub fn set_deth(&mut self, deth: &Deth) -> Result<(), WireError> {
        let at = self.udp_at + Udp::SIZE + Bth::SIZE;
        self.must_be_roce()?;
        if self.payload_at != at + Deth::SIZE {
            let left = self.payload_at;
            return Err(WireError::short(
                Layer::Deth,
                "header",
                at,
                Deth::SIZE,
                left,
            ));
        }
        let mut bytes = [0; Deth::SIZE];
        deth.write(&mut bytes, 0)?;
        self.replace(at, &bytes);
        Ok(())
    }

    /// Replaces both hardware addresses.
    pub fn set_macs(&mut self, source: MacAddress, destination: MacAddress) {
        if let Some((addresses, _)) = self.frame.split_first_chunk_mut::<{ Ethernet::SIZE }>() {
            addresses[..6].copy_from_slice(&destination.0);
            addresses[6..12].copy_from_slice(&source.0);
        }
    }

    /// Replaces the IPv4 header, whose checksum is computed from what changed.
    ///
    /// # Errors
    /// When a value does not fit into its field, or version, lengths, protocol or fragment fields would change.
    pub fn set_ipv4(&mut self, ipv4: &Ipv4) -> Result<(), WireError> {
        let at = self.ip_at;
        let old = Ipv4::view(self.frame, at)?.values();
        for (field, byte, found, expected) in [
            (
                "version",
                0,
                u16::from(ipv4.version),
                u16::from(old.version),
            ),
            (
                "header_words",
                0,
                u16::from(ipv4.header_words),
                u16::from(old.header_words),
            ),
            ("total_length", 2, ipv4.total_length, old.total_length),
            (
                "more_fragments",
                6,
                u16::from(ipv4.more_fragments),
                u16::from(old.more_fragments),
            ),
            (
                "fragment_offset",
                6,
                ipv4.fragment_offset,
                old.fragment_offset,
            ),
            (
                "protocol",
                9,
                u16::from(ipv4.protocol),
                u16::from(old.protocol),
            ),
        ] {
            if found != expected {
                let (found, expected) = (u64::from(found), u64::from(expected));
                return Err(WireError::differs(
                    Layer::Ipv4,
                    field,
                    at + byte,
                    found,
                    expected,
                ));
            }
        }
        let mut bytes = [0; Ipv4::SIZE];
        Ipv4 {
            checksum: old.checksum,
            ..*ipv4
        }
        .write(&mut bytes, 0)?;
        let before = &self.frame[at..at + Ipv4::SIZE];
        let checksum = updated(old.checksum, sum(before), sum(&bytes));
        // The addresses are also in the pseudo header of the UDP checksum.
        self.old += sum(&before[12..]);
        self.new += sum(&bytes[12..]);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        self.frame[at..at + Ipv4::SIZE].copy_from_slice(&bytes);
        Ok(())
    }

    /// Replaces the UDP port of the sender.
    pub fn set_source_port(&mut self, port: u16) {
        self.replace(self.udp_at, &port.to_be_bytes());
    }

    /// Makes ICRC and UDP checksum right; gives the frame's length in bytes, without Ethernet padding.
    ///
    /// # Errors
    /// None: [`begin`](Self::begin) has checked all that can be wrong.
    #[inline]
    pub fn finish(mut self) -> Result<usize, WireError> {
        if self.roce {
            let at = self.frame.len() - ICRC_SIZE;
            let crc = icrc(&self.frame[self.ip_at..at])?;
            self.replace(at, &crc.to_le_bytes());
        }
        if self.summed {
            let at = self.udp_at + 6;
            let checksum = u16::from_be_bytes([self.frame[at], self.frame[at + 1]]);
            let checksum = match updated(checksum, self.old, self.new) {
                0 => 0xffff,
                checksum => checksum,
            };
            self.frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        Ok(self.frame.len())
    }

    /// Replaces bytes that the UDP checksum covers; the caller has checked that they are inside.
    #[inline]
    fn replace(&mut self, from: usize, bytes: &[u8]) {
        let to = from + bytes.len();
        if !self.summed {
            self.frame[from..to].copy_from_slice(bytes);
            return;
        }
        // Whole words count, as the checksum sees them from the start of the UDP header.
        let first = from - (from - self.udp_at) % 2;
        let last = (to + (to - self.udp_at) % 2).min(self.frame.len());
        self.old += sum(&self.frame[first..last]);
        self.frame[from..to].copy_from_slice(bytes);
        self.new += sum(&self.frame[first..last]);
    }

    fn must_be_roce(&self) -> Result<(), WireError> {
        if self.roce {
            return Ok(());
        }
        let at = self.udp_at + 2;
        let port = u16::from_be_bytes([self.frame[at], self.frame[at + 1]]);
        Err(WireError::value(
            Layer::Udp,
            "destination_port",
            at,
            u64::from(port),
            "4791",
        ))
    }
}
