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
#[cfg(test)]
const WIDTHS: [u64; 5] = [1, 2, 4, 8, 12];

#[cfg(test)]
/// Rate of a word like `4xHDR`; `None` for other words.
pub(super) fn read(word: &str) -> Option<BitRate> {
    let (width, speed) = word.split_once('x')?;
    let width = width.parse().ok().filter(|width| WIDTHS.contains(width))?;
    let lane = LANES.iter().find(|(name, _)| *name == speed)?.1;
    Some(BitRate(width * lane))
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
