//! The hash that spreads flows over equal paths: MurmurHash3_x86_32 over twelve bytes.
//!
//! The key is a packet's `source address, destination address, ports` as three little-endian words, where the ports
//! are `source port | destination port << 16`; the seed is the number of the switch. An index into the next hops is
//! the hash modulo their count. Public domain algorithm by Austin Appleby; the test vectors are its published ones.

use serde::{Deserialize, Serialize};
const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;
const KEY_BYTES: u32 = 12;

/// MurmurHash3_x86_32 of three words (twelve bytes, little-endian) with a seed.
///
/// ```
/// // The twelve bytes of "Hello World!".
/// let key = [*b"Hell", *b"o Wo", *b"rld!"].map(u32::from_le_bytes);
/// assert_eq!(raddle_unicast::ecmp_murmur3(key, 0), 0xdc09_357d);
/// ```
#[inline]
pub const fn ecmp_murmur3(key: [u32; 3], seed: u32) -> u32 {
    FlowHash {
        words: [premix(key[0]), premix(key[1]), premix(key[2])],
    }
    .at(seed)
}

/// A flow's key with the part of the hash that does not depend on the switch already done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct FlowHash {
    words: [u32; 3],
}

impl FlowHash {
    /// The hash of a packet's addresses and `ports` = source port | destination port << 16.
    #[inline]
    pub const fn new(source_ip: u32, destination_ip: u32, ports: u32) -> Self {
        Self {
            words: [premix(source_ip), premix(destination_ip), premix(ports)],
        }
    }

    /// The hash at the switch with this seed: the same value as [`ecmp_murmur3`].
    #[inline(always)]
    pub const fn at(&self, seed: u32) -> u32 {
        finish(
            mix(mix(mix(seed, self.words[0]), self.words[1]), self.words[2]),
            KEY_BYTES,
        )
    }
}

const fn premix(word: u32) -> u32 {
    word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}

const fn mix(hash: u32, premixed: u32) -> u32 {
    (hash ^ premixed)
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

const fn finish(hash: u32, bytes: u32) -> u32 {
    let hash = hash ^ bytes;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn murmur3_of_words(bytes: &[u8], seed: u32) -> u32 {
        let words = bytes
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        finish(
            words.fold(seed, |hash, word| mix(hash, premix(word))),
            bytes.len() as u32,
        )
    }

    #[test]
    fn agrees_with_the_published_vectors_of_murmur3_x86_32() {
        // Whole-word vectors of the SMHasher test suite and of its widely copied list.
        for (bytes, seed, hash) in [
            (&b""[..], 0, 0),
            (b"", 1, 0x514e_28b7),
            (b"", 0xffff_ffff, 0x81f1_6f39),
            (b"\xff\xff\xff\xff", 0, 0x7629_3b50),
            (b"\x21\x43\x65\x87", 0, 0xf55b_516b),
            (b"\x21\x43\x65\x87", 0x5082_edee, 0x2362_f9de),
            (b"\0\0\0\0", 0, 0x2362_f9de),
            (b"aaaa", 0x9747_b28c, 0x5a97_808a),
            (b"abcd", 0x9747_b28c, 0xf047_8627),
        ] {
            assert_eq!(murmur3_of_words(bytes, seed), hash, "{bytes:?} seed {seed}");
        }
    }

    #[test]
    fn premixed_and_direct_hash_are_the_same_function() {
        for seed in [0, 1, 320, u32::MAX] {
            for key in [
                [0; 3],
                [1, 2, 3],
                [0x0b00_0001, 0x0b01_3f01, 10_000 | 100 << 16],
            ] {
                let bytes: Vec<u8> = key
                    .iter()
                    .flat_map(|word: &u32| word.to_le_bytes())
                    .collect();
                let hash = murmur3_of_words(&bytes, seed);
                assert_eq!(ecmp_murmur3(key, seed), hash);
                assert_eq!(FlowHash::new(key[0], key[1], key[2]).at(seed), hash);
            }
        }
    }

    #[test]
    fn a_flow_of_the_reference_runs_hashes_as_there() {
        // First flow of hosts 0 and 319 (addresses 11.0.0.1 + id << 8) at switch 320; formula of the reference.
        let key = [0x0b00_0001, 0x0b01_3f01, 10_000 | 100 << 16];
        assert_eq!(ecmp_murmur3(key, 320), 0x750e_303d);
    }
}
