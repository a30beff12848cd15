//! In-band telemetry as it travels: the 64-bit hop record of HPCC and the one-byte digest of PINT.
//!
//! A switch writes them (`raddle-switch`), a sender reads them; this is the layout they agree on.
//! Source: HPCC (SIGCOMM'19) section 3.1 and 4.1; PINT (SIGCOMM'20) section 4.3.

use serde::{Deserialize, Serialize};
/// Hop records a packet can carry (a four-level fat tree crosses seven switches).
pub const MAX_HOPS: usize = 8;

/// Width of the time field: nanoseconds modulo 2^24.
const TIME_BITS: u32 = 24;
/// Width of the transmitted-bytes field, in units of [`TelemetryUnits::tx_bytes`].
const BYTES_BITS: u32 = 20;
/// Width of the queue-length field, in units of [`TelemetryUnits::queue_bytes`].
const QUEUE_BITS: u32 = 17;

/// Scales that all switches and senders of a fabric share; set once, when the run is set up.
#[derive(Clone, PartialEq, Debug)]
pub struct TelemetryUnits {
    /// Bytes per unit of the transmitted-bytes counter (128 per 25 Gbit/s of NIC rate).
    pub tx_bytes: u64,
    /// Bytes per unit of the queue length (80 per 25 Gbit/s of NIC rate).
    pub queue_bytes: u64,
    /// Line rate in bit/s for each of the eight 3-bit codes; unused codes are 0.
    pub line_rates: [u64; 8],
}

impl TelemetryUnits {
    /// Units for hosts of `nic_rate` bit/s and a fabric whose distinct link rates are `line_rates` (at most eight).
    pub fn new(nic_rate: u64, line_rates: &[u64]) -> Option<Self> {
        let multiple = (nic_rate / 25_000_000_000).max(1);
        let mut codes = [0; 8];
        codes
            .get_mut(..line_rates.len())?
            .copy_from_slice(line_rates);
        Some(Self {
            tx_bytes: 128 * multiple,
            queue_bytes: 80 * multiple,
            line_rates: codes,
        })
    }

    /// The 3-bit code of a line rate, if the fabric has it.
    pub fn code(&self, rate: u64) -> Option<u8> {
        self.line_rates
            .iter()
            .position(|&known| known == rate && rate != 0)
            .map(|at| at as u8)
    }
}

/// What one switch egress says about itself, packed into 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HopRecord(pub u64);

impl HopRecord {
    /// Packs a record: line-rate `code`, time in whole ns, bytes sent before this packet, bytes queued.
    /// Each value is divided by its unit and cut to its width, as the hardware would.
    #[inline(always)]
    pub fn pack(
        code: u8,
        time_ns: u64,
        tx_bytes: u64,
        queue_bytes: u64,
        units: &TelemetryUnits,
    ) -> Self {
        let time = time_ns & ((1 << TIME_BITS) - 1);
        let bytes = (tx_bytes / units.tx_bytes) & ((1 << BYTES_BITS) - 1);
        let queue = (queue_bytes / units.queue_bytes) & ((1 << QUEUE_BITS) - 1);
        Self(u64::from(code) << 61 | time << 37 | bytes << 17 | queue)
    }

    /// Line-rate code, 0..8.
    #[inline]
    pub fn code(self) -> usize {
        (self.0 >> 61) as usize
    }

    /// Time between an earlier record of the same hop and this one, in ns (wraps once in 16.8 ms).
    #[inline]
    pub fn ns_since(self, earlier: Self) -> u64 {
        ((self.0 >> 37).wrapping_sub(earlier.0 >> 37)) & ((1 << TIME_BITS) - 1)
    }

    /// Units of bytes sent between an earlier record of the same hop and this one.
    #[inline]
    pub fn tx_units_since(self, earlier: Self) -> u64 {
        ((self.0 >> 17).wrapping_sub(earlier.0 >> 17)) & ((1 << BYTES_BITS) - 1)
    }

    /// Units of bytes queued.
    #[inline]
    pub fn queue_units(self) -> u64 {
        self.0 & ((1 << QUEUE_BITS) - 1)
    }
}

/// The telemetry that an acknowledgement echoes to the sender.
#[derive(Clone, Copy, Debug)]
pub enum Echo<'a> {
    /// Nothing.
    None,
    /// HPCC: one record per switch on the data path, in order.
    Hops(&'a [HopRecord]),
    /// PINT: the largest utilisation code on the path (0: nothing stamped).
    Digest(u16),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_survive_one_wrap_of_every_field() {
        let units = TelemetryUnits::new(100_000_000_000, &[100_000_000_000]).unwrap();
        let before = HopRecord::pack(0, (1 << 24) - 10, ((1 << 20) - 1) * 512, 640, &units);
        let after = HopRecord::pack(0, (1 << 24) + 90, ((1 << 20) + 4) * 512, 320, &units);
        assert_eq!(after.ns_since(before), 100);
        assert_eq!(after.tx_units_since(before), 5);
        assert_eq!((before.queue_units(), after.queue_units()), (2, 1));
    }

    #[test]
    fn a_ninth_line_rate_has_no_code() {
        let rates: Vec<u64> = (1..=9).map(|gbps| gbps * 1_000_000_000).collect();
        assert!(TelemetryUnits::new(100_000_000_000, &rates).is_none());
    }
}
