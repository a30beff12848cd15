//! Widths and speeds of InfiniBand links as `ibnetdiscover` prints them: `4xHDR`.

use raddle_units::BitRate;

/// Data rate of one lane in bit/s, after 8b/10b (to QDR) or 64b/66b coding and, from EDR on, as it is sold.
const LANES: [(&str, u64); 9] = [
    ("SDR", 2_000_000_000),
    ("DDR", 4_000_000_000),
    ("QDR", 8_000_000_000),
    ("FDR10", 10_000_000_000),
    // 14.0625 Gbit/s on the wire, 64 bits of 66.
    ("FDR", 13_636_363_636),
    ("EDR", 25_000_000_000),
    ("HDR", 50_000_000_000),
    ("NDR", 100_000_000_000),
    ("XDR", 200_000_000_000),
];
const WIDTHS: [u64; 5] = [1, 2, 4, 8, 12];

/// Rate of a word like `4xHDR`; `None` for other words.
pub(super) fn read(word: &str) -> Option<BitRate> {
    let (width, speed) = word.split_once('x')?;
    let width = width.parse().ok().filter(|width| WIDTHS.contains(width))?;
    let lane = LANES.iter().find(|(name, _)| *name == speed)?.1;
    Some(BitRate(width * lane))
}

/// Whether a word is a width and some speed, known or not: `4xHDR`, `12x?`.
pub(super) fn is_width_and_speed(word: &str) -> bool {
    word.split_once('x').is_some_and(|(width, speed)| {
        let digits = !width.is_empty() && width.len() <= 2;
        digits
            && width.bytes().all(|byte| byte.is_ascii_digit())
            && !speed.is_empty()
            && width != "0"
    })
}

/// Widths and speeds as bits of the port's registers (IBTA 1.4, 14.2.5.6): what ibsim's `w`, `s` and `e` set.
#[derive(Clone, Copy, Default)]
pub(super) struct Masks {
    /// 1x, 4x, 8x, 12x, 2x from bit 0 on.
    pub(super) width: Option<u32>,
    /// SDR, DDR, QDR.
    pub(super) speed: Option<u32>,
    /// FDR, EDR, HDR, NDR; 0 for none.
    pub(super) extended: Option<u32>,
}

impl Masks {
    /// Whether one was given.
    pub(super) fn any(self) -> bool {
        self.width.is_some() || self.speed.is_some() || self.extended.is_some()
    }

    /// The widest width with the fastest speed; ibsim's 4x and SDR where nothing is said.
    pub(super) fn rate(self) -> Option<BitRate> {
        let has = |mask: u32, bit: u32| mask & (1 << bit) != 0;
        let width = self.width.unwrap_or(2);
        let widest = [(3, 12), (2, 8), (1, 4), (4, 2), (0, 1)];
        let width = widest.iter().find(|(bit, _)| has(width, *bit))?.1;
        let (extended, speed) = (self.extended.unwrap_or(0), self.speed.unwrap_or(1));
        let fastest = [(3, "NDR"), (2, "HDR"), (1, "EDR"), (0, "FDR")].into_iter();
        let plain = [(2, "QDR"), (1, "DDR"), (0, "SDR")].into_iter();
        let name = (fastest.filter(|(bit, _)| has(extended, *bit)))
            .chain(plain.filter(|(bit, _)| has(speed, *bit)))
            .next()?
            .1;
        read(&format!("{width}x{name}"))
    }
}

/// The fastest word for a rate that is not faster, of those that ibsim knows: 4x, or 1x below 4xSDR; SDR to NDR.
pub(super) fn write(rate: BitRate) -> String {
    let width = if rate.0 < 4 * LANES[0].1 { 1 } else { 4 };
    let known = LANES
        .iter()
        .filter(|(name, _)| !matches!(*name, "XDR" | "FDR10"));
    let fitting = known.rev().find(|(_, lane)| width * lane <= rate.0);
    format!("{width}x{}", fitting.unwrap_or(&LANES[0]).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_infiniband_are_written_exactly() {
        for gbps in [8, 16, 32, 100, 200, 400] {
            let rate = BitRate::from_gbps(gbps);
            assert_eq!(read(&write(rate)), Some(rate), "{gbps}");
        }
        assert_eq!(write(BitRate::from_gbps(99)), "4xFDR");
        assert_eq!(write(BitRate::from_gbps(800)), "4xNDR");
        assert_eq!(write(BitRate(1)), "1xSDR");
    }
}
