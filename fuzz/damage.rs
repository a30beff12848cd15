//! Damage to files of text, the same in every run.

/// Gives a parser a file, cut copies of it and randomly damaged ones.
pub(crate) fn damage(parser: fn(&[u8]), bytes: &[u8]) {
    parser(bytes);
    // Files that were cut short are the most usual damage.
    for tenth in 0..10 {
        parser(&bytes[..bytes.len() * tenth / 10]);
    }
    let mut random = Random(bytes.len() as u64);
    for _ in 0..mutations() {
        parser(&random.damage(bytes));
    }
}

/// Damaged copies of each file that are tried; `RADDLE_MUTATIONS` asks for more.
fn mutations() -> u32 {
    let asked = std::env::var("RADDLE_MUTATIONS")
        .ok()
        .and_then(|text| text.parse().ok());
    asked.unwrap_or(50)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % limit.max(1) as u64) as usize
    }

    /// One to four pieces replaced by what parsers trip over.
    fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        const PIECES: [&[u8]; 18] = [
            b"",
            b"0",
            b"-1",
            b"nan",
            b"1e999",
            b"18446744073709551616",
            b"\"",
            b"'",
            b"[",
            b"]",
            b"{ a = 1 }",
            b"=",
            b"\n",
            b"\0",
            b"\xff",
            b"\xc3\xa9",
            b"  ",
            b"0.1",
        ];
        let mut damaged = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let from = self.below(damaged.len() + 1);
            let to = (from + self.below(8)).min(damaged.len());
            damaged.splice(from..to, PIECES[self.below(PIECES.len())].iter().copied());
        }
        damaged
    }
}
