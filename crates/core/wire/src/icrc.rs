//! The invariant CRC of RoCEv2 (IBTA volume 1, 7.8.1; annex A17, A17.3.3).

use crate::{Bth, Ipv4, Layer, Udp, WireError};

/// Bytes of the ICRC at the end of a packet.
pub const ICRC_SIZE: usize = 4;

/// IPv4, UDP and BTH: what has fields that may change on the way.
const MASKED: usize = Ipv4::SIZE + Udp::SIZE + Bth::SIZE;

/// CRC-32 of eight bytes 0xff, which stand for a local routing header: where every ICRC begins.
const AFTER_ROUTING_HEADER: u32 = 0x2144_df1c;

/// The ICRC of a RoCEv2 packet over IPv4 without options.
///
/// `datagram` begins with the IPv4 header and ends before the ICRC. The fields that switches and routers may change
/// (DSCP, ECN, TTL, both checksums, the BTH's byte of congestion marks) count as all ones, so that their contents do
/// not matter. The Ethernet header and VLAN tag are not covered. Its bytes on the wire are those of the result in
/// little-endian order.
///
/// # Errors
/// When `datagram` is shorter than IPv4, UDP and BTH together.
#[inline]
pub fn icrc(datagram: &[u8]) -> Result<u32, WireError> {
    let Some((headers, rest)) = datagram.split_first_chunk::<MASKED>() else {
        return Err(WireError::short(
            Layer::Icrc,
            "icrc",
            0,
            MASKED,
            datagram.len(),
        ));
    };
    let mut masked = *headers;
    for byte in [1, 8, 10, 11, 26, 27, 32] {
        masked[byte] = 0xff;
    }
    let mut crc = crc32fast::Hasher::new_with_initial(AFTER_ROUTING_HEADER);
    crc.update(&masked);
    crc.update(rest);
    Ok(crc.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_after_eight_bytes_of_ones() {
        assert_eq!(crc32fast::hash(&[0xff; 8]), AFTER_ROUTING_HEADER);
        // The same start as a running CRC, as the Linux driver rdma_rxe has it.
        assert_eq!(!AFTER_ROUTING_HEADER, 0xdebb_20e3);
    }
}
