//! IPv4 and UDP, and their checksums.

use core::net::Ipv4Addr;

use crate::field::header;

/// The IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// The UDP destination port of RoCEv2 (IANA).
pub const PORT_ROCE: u16 = 4791;

header! {
    /// IPv4 header without options (RFC 791, 3.1).
    Ipv4, Ipv4View, Ipv4, 20 {
        /// always 4
        version: u8 = Big 0:0/4,
        /// header length in 4-byte words, 5 without options
        header_words: u8 = Big 0:4/4,
        /// class of service, 0..=63; ICRC takes it as all ones
        dscp: u8 = Big 1:0/6,
        /// congestion mark, 0..=3; ICRC takes it as all ones
        ecn: u8 = Big 1:6/2,
        /// bytes from this header's start to the end of the datagram
        total_length: u16 = Big 2:0/16,
        /// number of the datagram
        identification: u16 = Big 4:0/16,
        /// reserved, 0
        reserved: bool = Big 6:0/1,
        /// must not be cut into fragments (DF)
        dont_fragment: bool = Big 6:1/1,
        /// more fragments follow (MF)
        more_fragments: bool = Big 6:2/1,
        /// place of the fragment in units of 8 bytes
        fragment_offset: u16 = Big 6:3/13,
        /// hops that it may still take; ICRC takes it as all ones
        ttl: u8 = Big 8:0/8,
        /// what follows: 17 UDP
        protocol: u8 = Big 9:0/8,
        /// checksum of the header; ICRC takes it as all ones
        checksum: u16 = Big 10:0/16,
        /// address of the sender
        source: Ipv4Addr = Big 12:0/32,
        /// address of the receiver
        destination: Ipv4Addr = Big 16:0/32,
    }
}

header! {
    /// UDP header (RFC 768).
    Udp, UdpView, Udp, 8 {
        /// port of the sender; RoCEv2 takes it as entropy for equal paths
        source_port: u16 = Big 0:0/16,
        /// port of the receiver: 4791 RoCEv2
        destination_port: u16 = Big 2:0/16,
        /// bytes of this header and its payload
        length: u16 = Big 4:0/16,
        /// checksum with pseudo header, 0 = none; ICRC takes it as all ones
        checksum: u16 = Big 6:0/16,
    }
}

/// The Internet sum of 16-bit words (RFC 1071), unfolded; an odd last byte counts as the high half of a word.
///
/// Sums of pieces may be added if every piece but the last has an even length.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<2>();
    let total: u64 = words
        .iter()
        .map(|word| u64::from(u16::from_be_bytes(*word)))
        .sum();
    total + odd.first().map_or(0, |byte| u64::from(*byte) << 8)
}

/// Folds a sum into 16 bits with end-around carry.
#[inline]
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum of an IPv4 header (RFC 791), whatever its checksum field holds.
///
/// `header` is the whole header, options included; its length is a multiple of 4.
#[must_use]
pub fn ipv4_checksum(header: &[u8]) -> u16 {
    let without = header
        .get(10..12)
        .map_or(0, |word| u64::from(!fold(sum(word))));
    !fold(sum(header) + without)
}

/// The checksum of a UDP datagram (RFC 768), whatever its checksum field holds; never 0, which means "none".
///
/// `datagram` begins with the UDP header and is as long as the length field of that header says.
#[must_use]
pub fn udp_checksum(source: Ipv4Addr, destination: Ipv4Addr, datagram: &[u8]) -> u16 {
    let without = datagram
        .get(6..8)
        .map_or(0, |word| u64::from(!fold(sum(word))));
    let pseudo = sum(&source.octets())
        + sum(&destination.octets())
        + u64::from(PROTOCOL_UDP)
        + datagram.len() as u64;
    match !fold(pseudo + sum(datagram) + without) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// The checksum after part of what it covers has changed (RFC 1624, equation 3).
///
/// `old` and `new` are the sums of the words that changed.
#[inline]
pub(crate) fn updated(checksum: u16, old: u64, new: u64) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!fold(old)) + new)
}
