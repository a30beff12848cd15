//! The four-level fat tree of compute midplanes (CN) and top midplanes (TN).

use raddle_units::{BitRate, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{bad, check_limits, check_size, default_delay, default_rate, product};
use crate::{build::FabricBuilder, error::FabricError, limits, map::Fabric};

const NAME: &str = "cn-tn";

/// The four-level fat tree of compute midplanes (CN) and top midplanes (TN) with parameters (m, q, p, k, w).
///
/// A CN is q L0 and m L1 switches, a TN is k L2 and w L3 switches, each a full bipartite graph. L1 switch `i` of
/// every CN has p uplinks, to the TNs `i*p` to `i*p + p-1`, so there are m*p TNs. L2 switch `i` of every TN is joined
/// to the CNs `i*w` to `i*w + w-1`, so there may be up to k*w CNs; fewer may be populated.
///
/// Upper levels may be absent: `k = 1` needs no L3 switches (three levels), `p = 0` leaves a single CN (two levels).
/// Terminals come first (by CN, then L0), then L0 and L1 (by CN), L2 and L3 (by TN); links go from below to above.
///
/// The paper's: m = w = 16, q = k = 32, p = 6, 64 CNs: 32,768 terminals, 7,680 switches of 40 ports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CnTn {
    /// L1 switches in each CN.
    #[schemars(range(min = 1))]
    pub m: u32,
    /// L0 switches in each CN.
    #[schemars(range(min = 1))]
    pub q: u32,
    /// Uplinks of each L1 switch; 0 for a single CN without TNs.
    pub p: u32,
    /// L2 switches in each TN; 1 for TNs without L3 switches.
    #[schemars(range(min = 1))]
    pub k: u32,
    /// L3 switches in each TN, and the CNs below each L2 switch.
    #[schemars(range(min = 1))]
    pub w: u32,
    /// Terminals (hosts) on each L0 switch; `m` where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub terminals_per_l0: Option<u32>,
    /// Populated CNs, at most k*w (1 where `p = 0`), which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cns: Option<u32>,
    /// Rate of the terminals' links.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub host_rate: BitRate,
    /// Rate of the links between switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub fabric_rate: BitRate,
    /// Propagation delay of every link.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
    /// Ports of a switch (40 in the paper); a map that needs more is refused. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub radix: Option<u32>,
}

impl CnTn {
    /// A fully populated fabric with 100 Gbit/s and 1 us everywhere, and m terminals per L0 switch.
    pub fn new(m: u32, q: u32, p: u32, k: u32, w: u32) -> Self {
        Self {
            m,
            q,
            p,
            k,
            w,
            terminals_per_l0: None,
            cns: None,
            host_rate: default_rate(),
            fabric_rate: default_rate(),
            delay: default_delay(),
            radix: None,
        }
    }

    /// Makes the map.
    ///
    /// # Errors
    /// A number below 1, more CNs than k*w, too many nodes or links, rate 0, more links than ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        let terminals = self.terminals_per_l0.unwrap_or(self.m);
        check_limits(NAME, self)?;
        let cns = self.populated_cns()?;
        self.check_size(terminals, cns)?;

        let l3_per_tn = if self.k == 1 { 0 } else { self.w };
        let tn_count = self.m * self.p;
        let mut builder = FabricBuilder::new(NAME);
        builder.radix(self.radix);
        let hosts: Vec<_> = (0..cns * self.q * terminals)
            .map(|_| builder.host())
            .collect();
        let mut level = |count: u32, level| -> Vec<NodeId> {
            (0..count).map(|_| builder.switch(level)).collect()
        };
        let l0 = level(cns * self.q, 1);
        let l1 = level(cns * self.m, 2);
        let l2 = level(tn_count * self.k, 3);
        let l3 = level(tn_count * l3_per_tn, 4);

        for (hosts, &l0) in hosts.chunks(terminals as usize).zip(&l0) {
            for &host in hosts {
                builder.connect(host, l0, self.host_rate, self.delay);
            }
        }
        let mut up = |a, b| builder.connect(a, b, self.fabric_rate, self.delay);
        for (l0, l1) in l0.chunks(self.q as usize).zip(l1.chunks(self.m as usize)) {
            for &l0 in l0 {
                for &l1 in l1 {
                    up(l0, l1);
                }
            }
        }
        for (cn, l1) in (0..).zip(l1.chunks(self.m as usize)) {
            for (index, &l1) in (0..).zip(l1) {
                for tn in index * self.p..(index + 1) * self.p {
                    up(l1, l2[(tn * self.k + cn / self.w) as usize]);
                }
            }
        }
        if l3_per_tn > 0 {
            for (l2, l3) in l2
                .chunks(self.k as usize)
                .zip(l3.chunks(l3_per_tn as usize))
            {
                for &l2 in l2 {
                    for &l3 in l3 {
                        up(l2, l3);
                    }
                }
            }
        }
        builder.finish()
    }

    fn populated_cns(&self) -> Result<u32, FabricError> {
        let (most, rule) = match self.p {
            0 => (1, "p = 0 leaves a single CN"),
            _ => (product(&[self.k, self.w]), "there is room for k*w CNs"),
        };
        match self.cns {
            None => Ok(u32::try_from(most).unwrap_or(u32::MAX)),
            Some(cns) if cns >= 1 && u128::from(cns) <= most => Ok(cns),
            Some(cns) => Err(bad(
                NAME,
                "cns",
                format!("{cns} is out of range: {rule}, so it must be from 1 to {most}"),
            )),
        }
    }

    fn check_size(&self, terminals: u32, cns: u32) -> Result<(), FabricError> {
        let l0 = product(&[cns, self.q]);
        let l1 = product(&[cns, self.m]);
        let l2 = product(&[self.m, self.p, self.k]);
        let l3 = if self.k == 1 {
            0
        } else {
            product(&[self.m, self.p, self.w])
        };
        let hosts = l0.saturating_mul(terminals.into());
        let links = [
            hosts,
            l0.saturating_mul(self.m.into()),
            l1.saturating_mul(self.p.into()),
            if self.k == 1 {
                0
            } else {
                l2.saturating_mul(self.w.into())
            },
        ];
        let sum = |parts: &[u128]| {
            parts
                .iter()
                .fold(0u128, |all, &part| all.saturating_add(part))
        };
        let parameters = "`m`, `q`, `p`, `k`, `w`, `terminals_per_l0` or `cns`";
        check_size(NAME, sum(&[hosts, l0, l1, l2, l3]), sum(&links), parameters)
    }
}
