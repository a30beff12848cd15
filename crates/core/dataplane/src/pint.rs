//! PINT at a switch egress: a filtered utilisation and its logarithmic code.
//!
//! u <- dt qlen / (B T^2) + size / (B T) + u (T - dt) / T, coded as base^code / 512 with randomised rounding; a packet
//! carries the largest code of its path. Source: PINT (SIGCOMM'20) appendix A.2; [`LogStamp`] does the sums through rounded
//! base-2 logarithms as a switch without multipliers would (and as HPCC's simulator does), [`ExactStamp`] in floating
//! point.

use raddle_transport::cc::pint::{CODES, UTILISATION_SCALE};

/// Queues below this many bytes do not count.
const QUEUE_FLOOR_BYTES: u64 = 256;

/// What the port knew before this packet.
#[derive(Clone, Copy, Debug)]
pub struct PintInput {
    /// Time since the last packet left, in ns, at most T.
    pub since_ns: u64,
    /// Bytes queued in the port.
    pub queue_bytes: u64,
    /// Size of the last packet (0: none yet).
    pub last_bytes: u32,
    /// Filtered utilisation so far.
    pub utilisation: f64,
    /// Line rate in bytes per second.
    pub bytes_per_s: u64,
}

/// Computes a new utilisation and its code.
pub trait PintStamp {
    /// (new utilisation, code). `random` gives 31 random bits per call.
    fn stamp(&self, input: &PintInput, random: impl FnMut() -> u32) -> (f64, u16);
}

/// Floating-point arithmetic.
#[derive(Clone, Debug)]
pub struct ExactStamp {
    base_rtt_ns: f64,
    /// base^code for every code.
    powers: Vec<f64>,
}

impl ExactStamp {
    /// For filters over `base_rtt_ns` and codes of `base`.
    pub fn new(base_rtt_ns: u64, base: f64) -> Self {
        Self {
            base_rtt_ns: base_rtt_ns.max(1) as f64,
            powers: (0..CODES)
                .map(|code| libm::pow(base, code as f64))
                .collect(),
        }
    }
}

impl PintStamp for ExactStamp {
    fn stamp(&self, input: &PintInput, mut random: impl FnMut() -> u32) -> (f64, u16) {
        let (rtt, since) = (self.base_rtt_ns, input.since_ns as f64);
        let per_rtt = 1e9 / (input.bytes_per_s as f64 * rtt);
        let queue = if input.queue_bytes >= QUEUE_FLOOR_BYTES {
            input.queue_bytes
        } else {
            0
        };
        let utilisation = since / rtt * queue as f64 * per_rtt
            + f64::from(input.last_bytes) * per_rtt
            + input.utilisation * (rtt - since).max(0.0) / rtt;
        let level = libm::ceil(utilisation * UTILISATION_SCALE).max(1.0);
        // The first power above the level; the level lies between it and the one before.
        let above = self
            .powers
            .partition_point(|&power| power < level)
            .min(CODES - 1);
        if above == 0 || self.powers[above] == level {
            return (utilisation, above as u16);
        }
        let (low, high) = (self.powers[above - 1], self.powers[above]);
        let up = f64::from(random() % 65536) < (level - low) / (high - low) * 65536.0;
        (utilisation, if up { above } else { above - 1 } as u16)
    }
}

/// Fraction bits of the rounded logarithms (b = 20, l = 20 in HPCC's simulator: 20 - 5).
const LOG_SHIFT: u32 = 15;
/// Leading bits that a logarithm looks at.
const MANTISSA_BITS: u32 = 16;
/// Utilisation is held in units of 1 / 8192.
const FILTER_SCALE: f64 = 8192.0;

/// Rounded base-2 logarithms.
#[derive(Clone, Debug)]
pub struct LogStamp {
    base_rtt_ns: u64,
    base: f64,
    per_log_base: f64,
}

impl LogStamp {
    /// For filters over `base_rtt_ns` and codes of `base`.
    pub fn new(base_rtt_ns: u64, base: f64) -> Self {
        Self {
            base_rtt_ns: base_rtt_ns.max(1),
            base,
            per_log_base: 1.0 / libm::log(base),
        }
    }
}

/// log2 of the top 16 bits of `value` (rounded up at random by the rest), times 2^15, rounded down.
fn rounded_log2(value: u64, random: &mut impl FnMut() -> u32) -> f64 {
    let mut kept = value;
    let bits = u64::BITS - value.leading_zeros();
    if bits > MANTISSA_BITS {
        let cut = bits - MANTISSA_BITS;
        let mask = (1u64 << cut) - 1;
        kept = value >> cut << cut;
        if value & mask > u64::from(random()) & mask {
            kept += 1 << cut;
        }
    }
    libm::trunc(libm::log2(kept as f64) * f64::from(1u32 << LOG_SHIFT))
}

impl PintStamp for LogStamp {
    fn stamp(&self, input: &PintInput, mut random: impl FnMut() -> u32) -> (f64, u16) {
        let scale = f64::from(1u32 << LOG_SHIFT);
        let rtt_log = libm::log2(self.base_rtt_ns as f64) * scale;
        let rate_log = libm::log2(input.bytes_per_s as f64) * scale;
        let second_log = libm::log2(1e9) * scale;
        let power = |log: f64| libm::pow(2.0, log / scale);
        let queue = input.queue_bytes / QUEUE_FLOOR_BYTES;
        let mut utilisation = 0.0;
        if queue > 0 {
            let since = rounded_log2(input.since_ns, &mut random);
            let queued = rounded_log2(queue, &mut random);
            utilisation += power(since + queued + second_log - rate_log - 2.0 * rtt_log)
                * QUEUE_FLOOR_BYTES as f64;
        }
        if input.last_bytes > 0 {
            let size = rounded_log2(u64::from(input.last_bytes), &mut random);
            utilisation += power(size + second_log - rate_log - rtt_log);
        }
        if self.base_rtt_ns > input.since_ns && input.utilisation > 0.0 {
            let rest = rounded_log2(self.base_rtt_ns - input.since_ns, &mut random);
            let filtered = libm::floor(input.utilisation * FILTER_SCALE + 0.5) as u64;
            if filtered > 0 {
                let filtered = rounded_log2(filtered, &mut random);
                utilisation += power(rest + filtered - rtt_log) / FILTER_SCALE;
            }
        }
        let level = libm::ceil(utilisation * UTILISATION_SCALE).max(1.0);
        let position = libm::log(level) * self.per_log_base;
        let (high, low) = (libm::ceil(position), libm::floor(position));
        let mut above = libm::pow(self.base, high);
        let below = libm::pow(self.base, low);
        if high == low {
            above *= self.base;
        }
        let up = f64::from(random() % 65536) < (level - below) / (above - below) * 65536.0;
        (utilisation, if up { high } else { low } as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arithmetics_agree_within_the_rounding_of_the_logarithms() {
        let (exact, logs) = (ExactStamp::new(12_480, 1.05), LogStamp::new(12_480, 1.05));
        for step in 1..200u64 {
            let input = PintInput {
                since_ns: step * 60 % 12_480,
                queue_bytes: step * 1050,
                last_bytes: 1050,
                utilisation: step as f64 / 100.0,
                bytes_per_s: 12_500_000_000,
            };
            let (a, code_a) = exact.stamp(&input, || 0);
            let (b, code_b) = logs.stamp(&input, || 0);
            assert!((a - b).abs() / a < 0.01, "step {step}: {a} and {b}");
            assert!(
                code_a.abs_diff(code_b) <= 1,
                "step {step}: codes {code_a} and {code_b}"
            );
        }
    }
}
