//! What a host knows of the flows that it receives.

use indexmap::IndexMap;
use raddle_prefetch::prefetch;
use raddle_transport::reliability::Receiver;
use raddle_unicast::FlowHash;
use raddle_units::Time;
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};

use super::flow::FlowName;

/// The receiver's side. A receiver knows nothing else of its flow: its host may be far from the sender's.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reception {
    pub(super) receiver: Receiver,
    /// No congestion mark is echoed before.
    pub(super) echo_after: Time,
    /// Hash of the flow's acknowledgements.
    pub(super) hash: FlowHash,
    pub(super) size: u64,
    pub(super) tag: u64,
    /// Place in the sampler's list of watched flows.
    pub(super) watched: Option<u16>,
    pub(super) class: u8,
}

/// The receiving sides of flows, by name. A card remembers where the flow is of which it heard last, so that most look-ups
/// need no hash, and know beforehand what they will touch.
#[derive(Debug, Default)]
pub(super) struct Receptions {
    by_name: IndexMap<FlowName, Reception, FxBuildHasher>,
}

impl Receptions {
    /// That of a flow; `likely`: where it may be, then where it is.
    #[inline(always)]
    pub(super) fn find(&mut self, name: &FlowName, likely: &mut usize) -> Option<&mut Reception> {
        let found = self.by_name.get_index(*likely);
        if found.is_none_or(|(other, _)| other != name) {
            *likely = self.by_name.get_index_of(name)?;
        }
        let (_, reception) = self.by_name.get_index_mut(*likely)?;
        Some(reception)
    }

    pub(super) fn get_mut(&mut self, name: &FlowName) -> Option<&mut Reception> {
        self.by_name.get_mut(name)
    }

    pub(super) fn insert(&mut self, name: FlowName, reception: Reception) {
        self.by_name.insert(name, reception);
    }

    pub(super) fn extend(&mut self, begun: impl Iterator<Item = (FlowName, Reception)>) {
        self.by_name.extend(begun);
    }

    /// Whether there was one.
    pub(super) fn remove(&mut self, name: &FlowName) -> bool {
        self.by_name.swap_remove(name).is_some()
    }

    /// Hints that what is there will be needed soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, place: usize) {
        if let Some((name, reception)) = self.by_name.get_index(place) {
            prefetch(name);
            prefetch(reception);
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_units::NodeId;

    use super::*;
    use crate::{
        index::FlowSlot,
        packet::{Bytestream, Envelope, Packet},
    };

    /// A host, and its first flow: a packet of it, and what its receiver knows.
    fn flow(host: u32) -> (FlowName, Reception) {
        let (src, hash) = (NodeId(host), FlowHash::new(0, 0, 0));
        let bytes = Bytestream {
            flow: FlowSlot(0),
            generation: 0,
            seq: 0,
        };
        let envelope = Envelope {
            src,
            hash,
            queue: 0,
            sent_at: Time::ZERO,
            bytes: 64,
            payload: 1,
        };
        let reception = Reception {
            receiver: Receiver::default(),
            echo_after: Time::ZERO,
            hash,
            size: 1,
            tag: u64::from(host),
            watched: None,
            class: 0,
        };
        let packet = Packet::data(NodeId(host + 1), &bytes, envelope);
        (FlowName::of(&packet), reception)
    }

    #[test]
    fn a_flow_is_found_by_its_name_wherever_it_is_looked_for_first() {
        const FLOWS: u32 = 8;
        let mut receptions = Receptions::default();
        receptions.extend((0..FLOWS).map(flow));
        let mut left: Vec<u32> = (0..FLOWS).collect();
        // What is left takes the places of what is gone.
        for gone in [0, 7, 3, 4] {
            let (name, _) = flow(gone);
            assert!(receptions.remove(&name));
            assert!(!receptions.remove(&name));
            left.retain(|host| *host != gone);
            for start in [0, 3, 7, usize::MAX] {
                receptions.prefetch(start);
                let mut likely = start;
                assert!(receptions.find(&name, &mut likely).is_none());
                for &host in &left {
                    let (name, known) = flow(host);
                    let found = receptions.find(&name, &mut likely).unwrap();
                    assert_eq!(found.tag, known.tag);
                }
            }
        }
    }
}
