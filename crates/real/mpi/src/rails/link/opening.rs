//! How the rails of a pair are opened: each tells its ends, and takes the rails that both have.

use raddle_host::{
    clock::epoch,
    rails::{Node, RailAddress},
};
use raddle_matching::{Notice, SLOTS};
use raddle_rails::Config;
use raddle_units::{BitRate, Time};
use raddle_wire::rails::DATA_OVERHEAD;

use super::Link;
use crate::{
    log,
    rails::{
        Process,
        ends::{self, End},
    },
};

/// Upper bound for an interface whose driver names no rate.
const USUAL_RATE: BitRate = BitRate(10_000_000_000);
/// IPv4's and UDP's headers.
const HEADERS: u32 = 28;

impl Link {
    /// Tells the other process our ends.
    pub(super) fn greet(&mut self, process: &mut Process<'_>) {
        let held: Option<Vec<_>> = process
            .interfaces
            .iter()
            .map(|interface| {
                let (socket, address) = interface.hold().ok()?;
                let end = End {
                    address,
                    mask: interface.mask,
                    mtu: interface.mtu,
                    rate: interface.rate().unwrap_or(USUAL_RATE),
                };
                Some((socket, end))
            })
            .collect();
        let (sockets, ends): (Vec<_>, Vec<_>) = held.unwrap_or_default().into_iter().unzip();
        process.notify(self.peer, &Notice::Hello(ends::write(&ends)));
        self.ours = Some((sockets, ends));
    }

    /// The other process has told its ends: opens the rails. `None`: there are no two.
    pub(super) fn meet(
        &mut self,
        now: Time,
        bytes: &[u8],
        process: &mut Process<'_>,
    ) -> Option<()> {
        if self.carrier.is_off() || self.node.is_some() {
            return Some(());
        }
        if self.ours.is_none() {
            self.greet(process);
        }
        let theirs = ends::read(bytes)?;
        let (sockets, ours) = self.ours.take()?;
        let pairs = if process.rank < self.peer {
            ends::pair(&ours, &theirs)
        } else {
            let pairs = ends::pair(&theirs, &ours);
            pairs.iter().map(|&(theirs, ours)| (ours, theirs)).collect()
        };
        if pairs.len() < 2 {
            return None;
        }
        let both: Vec<(End, End)> = pairs.iter().map(|&(a, b)| (ours[a], theirs[b])).collect();
        let addresses: Vec<RailAddress> = both
            .iter()
            .map(|(local, peer)| RailAddress {
                local: local.address,
                peer: peer.address,
            })
            .collect();
        let config = self.config(&both, process)?;
        drop(sockets);
        match Node::open(config, &addresses) {
            Ok(node) => {
                self.node = Some(node);
                (self.stepped, self.heard) = (now, now);
                Some(())
            }
            Err(error) => {
                log::plain(&format!("rails to rank {}: {error}", self.peer));
                None
            }
        }
    }

    fn config(&self, both: &[(End, End)], process: &Process<'_>) -> Option<Config> {
        let rates = both.iter().map(|(local, peer)| local.rate.min(peer.rate));
        let mtus = both.iter().map(|(local, peer)| local.mtu.min(peer.mtu));
        let mtu = mtus.min()?.min(u32::from(u16::MAX));
        let mut config = Config::new(
            process.secret.job,
            process.secret.key(),
            process.rank,
            self.peer,
            epoch().ok()?,
            rates.collect(),
        );
        config.segment = u16::try_from(mtu.checked_sub(HEADERS + DATA_OVERHEAD as u32)?).ok()?;
        config.give_up = process.give_up;
        config.send_queue = SLOTS;
        Some(config)
    }
}
