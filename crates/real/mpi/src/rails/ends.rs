//! How two processes find their rails: each names its interfaces, and both pair them in the same way.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_units::BitRate;
use raddle_wire::rails::MAX_RAILS;

/// One end of what may be a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// Address of the interface, and the UDP port.
    pub(super) address: SocketAddrV4,
    /// Mask of its network.
    pub(super) mask: Ipv4Addr,
    /// Bytes of its longest IPv4 packet.
    pub(super) mtu: u32,
    /// Upper bound of its rate.
    pub(super) rate: BitRate,
}

/// Bytes of one: address, mask, port, MTU, rate.
const BYTES: usize = 4 + 4 + 2 + 4 + 8;

/// Ends as bytes.
pub(super) fn write(ends: &[End]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ends.len() * BYTES);
    for end in ends {
        bytes.extend(end.address.ip().octets());
        bytes.extend(end.mask.octets());
        bytes.extend(end.address.port().to_be_bytes());
        bytes.extend(end.mtu.to_be_bytes());
        bytes.extend(end.rate.0.to_be_bytes());
    }
    bytes
}

/// Ends from bytes; `None`: the bytes are not those of ends.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<End>> {
    let (ends, rest) = bytes.as_chunks::<BYTES>();
    if !rest.is_empty() || ends.len() > MAX_RAILS {
        return None;
    }
    Some(ends.iter().map(end).collect())
}

fn end(bytes: &[u8; BYTES]) -> End {
    let &[
        a0,
        a1,
        a2,
        a3,
        m0,
        m1,
        m2,
        m3,
        p0,
        p1,
        t0,
        t1,
        t2,
        t3,
        ref rate @ ..,
    ] = bytes;
    End {
        address: SocketAddrV4::new(Ipv4Addr::new(a0, a1, a2, a3), u16::from_be_bytes([p0, p1])),
        mask: Ipv4Addr::new(m0, m1, m2, m3),
        mtu: u32::from_be_bytes([t0, t1, t2, t3]),
        rate: BitRate(u64::from_be_bytes(*rate)),
    }
}

/// Which ends are rails, for the process of the lower rank and the other: those in one network, each once, in the lower one's
/// order. Equal addresses are those of two hosts' inner networks.
pub(super) fn pair(lower: &[End], higher: &[End]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (index, one) in lower.iter().enumerate() {
        let is_free = |other: usize| !pairs.iter().any(|(_, taken)| *taken == other);
        let found = higher.iter().enumerate().position(|(other, two)| {
            is_free(other) && one.address.ip() != two.address.ip() && share_a_network(one, two)
        });
        pairs.extend(found.map(|other| (index, other)));
    }
    pairs
}

fn share_a_network(one: &End, two: &End) -> bool {
    let network = |end: &End| u32::from(*end.address.ip()) & u32::from(one.mask);
    one.mask == two.mask && network(one) == network(two)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn end(network: u8, host: u8) -> End {
        End {
            address: SocketAddrV4::new(Ipv4Addr::new(10, network, 0, host), 7),
            mask: Ipv4Addr::new(255, 255, 0, 0),
            mtu: 1500,
            rate: BitRate(400_000_000),
        }
    }

    #[test]
    fn ends_are_read_as_they_were_written() {
        let ends = [end(1, 2), end(3, 4)];
        let bytes = write(&ends);
        assert_eq!(read(&bytes), Some(ends.to_vec()));
        assert_eq!(read(&bytes[1..]), None);
        assert_eq!(read(&[0; 9 * BYTES]), None);
        assert_eq!(write(&[end(1, 1); MAX_RAILS]).len(), 176);
    }

    #[test]
    fn ends_of_one_network_are_paired_once() {
        let lower = [end(1, 1), end(2, 1), end(3, 1), end(4, 1)];
        let higher = [end(3, 2), end(1, 2), end(1, 3), end(4, 1)];
        assert_eq!(pair(&lower, &higher), [(0, 1), (2, 0)]);
        assert_eq!(pair(&higher, &lower), [(0, 2), (1, 0)]);
        assert_eq!(pair(&lower, &[]), []);
    }

    /// Bytes from another process: any, or whole ends of few networks.
    fn anything() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0), Just(255), 0_u8..3, any::<u8>()];
        prop_oneof![
            vec(byte.clone(), 0..200),
            (0..=MAX_RAILS + 1).prop_flat_map(move |ends| vec(byte.clone(), ends * BYTES)),
        ]
    }

    proptest! {
        #[test]
        fn any_bytes_are_ends_or_none(one in anything(), two in anything()) {
            let whole = one.len() % BYTES == 0 && one.len() <= MAX_RAILS * BYTES;
            prop_assert_eq!(read(&one).map(|ends| write(&ends)), whole.then(|| one.clone()));
            let (one, two) = (read(&one).unwrap_or_default(), read(&two).unwrap_or_default());
            let pairs = pair(&one, &two);
            for (lower, higher) in &pairs {
                prop_assert!(one[*lower].address.ip() != two[*higher].address.ip());
                prop_assert!(share_a_network(&one[*lower], &two[*higher]));
            }
            prop_assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0));
            let mut others: Vec<usize> = pairs.iter().map(|pair| pair.1).collect();
            others.sort_unstable();
            others.dedup();
            prop_assert_eq!(others.len(), pairs.len());
        }
    }
}
