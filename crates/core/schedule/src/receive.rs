//! The receivers' side of a schedule: what arrives where, how it is taken apart, and in which order it is released.

use crate::{
    groups::Groups,
    schedule::{Parcel, Part, Schedule},
};

/// A message as its target gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Sending rank.
    pub source: u32,
    /// The message's number among those of its (source, target), from 0.
    pub sequence: u32,
    /// The message, by its index in the set.
    pub message: u32,
    /// The parcel that brings it, by its index in [`Schedule::parcels`].
    pub parcel: u32,
}

/// Parts of one parcel that a receiver hands to one rank of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover<'a> {
    /// The rank; may be the receiver.
    pub target: u32,
    /// The parts, in the order in which they lie in the parcel.
    pub parts: &'a [Part],
}

/// What every process receives.
///
/// A receiver takes parcel a apart while parcel a+1 of the same issuer arrives: [`Self::incoming`] has an issuer's parcels
/// in the order in which they were issued. Parts are handed on at once; it is the target that releases them to the program,
/// the messages of each source by ascending sequence, as [`Self::deliveries`] has them. Until the message with the next
/// sequence is there, later ones of the same source wait; this is all that MPI's order needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivePlan {
    /// Parcels by (receiver, issuer, issue).
    incoming: Vec<u32>,
    first_incoming: Vec<u32>,
    /// Parts by (parcel, target, place in the parcel): a parcel's have the same range as in the schedule.
    handed: Vec<Part>,
    /// By (target, source, sequence).
    deliveries: Vec<Delivery>,
    first_delivery: Vec<u32>,
}

impl Schedule {
    /// The receivers' side.
    #[must_use]
    pub fn receive_plan(&self) -> ReceivePlan {
        ReceivePlan::new(self, self.ranks())
    }
}

impl ReceivePlan {
    pub(crate) fn new(schedule: &Schedule, ranks: usize) -> Self {
        let parcels = schedule.parcels();
        let parts = schedule.all_parts();
        let incoming = Groups::new(0..parcels.len() as u32, ranks, |parcel| {
            parcels[parcel as usize].receiver as usize
        });

        let mut parcel_of = vec![0; parts.len()];
        for (index, parcel) in (0..).zip(parcels) {
            parcel_of[parcel.parts()].fill(index);
        }
        let part = |index: u32| &parts[index as usize];
        let all = 0..parts.len() as u32;
        let by_target = Groups::new(all, ranks, |index| part(index).target as usize);
        let by_parcel = Groups::new(by_target.items.iter().copied(), parcels.len(), |index| {
            parcel_of[index as usize] as usize
        });
        let handed = by_parcel.items.iter().map(|&index| *part(index));
        let handed = handed.collect();

        let mut deliveries: Vec<Delivery> = by_target
            .items
            .iter()
            .map(|&index| {
                let &Part {
                    message,
                    source,
                    sequence,
                    ..
                } = part(index);
                Delivery {
                    source,
                    sequence,
                    message,
                    parcel: parcel_of[index as usize],
                }
            })
            .collect();
        for rank in 0..ranks {
            let range = by_target.first[rank] as usize..by_target.first[rank + 1] as usize;
            deliveries[range].sort_unstable_by_key(|delivery| (delivery.source, delivery.sequence));
        }
        Self {
            incoming: incoming.items,
            first_incoming: incoming.first,
            handed,
            deliveries,
            first_delivery: by_target.first,
        }
    }

    /// The parcels that a rank receives, by their index in [`Schedule::parcels`]: by issuer, each issuer's in order.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn incoming(&self, rank: u32) -> &[u32] {
        of(&self.incoming, &self.first_incoming, rank)
    }

    /// How a parcel of the schedule is taken apart: what each rank of the receiver's node gets of it, by rank.
    ///
    /// # Panics
    /// If the parcel is another schedule's, perhaps.
    pub fn hand_on(&self, parcel: &Parcel) -> impl Iterator<Item = Handover<'_>> {
        self.handed[parcel.parts()]
            .chunk_by(|a, b| a.target == b.target)
            .map(|parts| Handover {
                target: parts[0].target,
                parts,
            })
    }

    /// The messages for a rank, by source and sequence: each source's in the order in which they are released.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn deliveries(&self, rank: u32) -> &[Delivery] {
        of(&self.deliveries, &self.first_delivery, rank)
    }
}

fn of<'a, T>(items: &'a [T], first: &[u32], rank: u32) -> &'a [T] {
    let rank = rank as usize;
    &items[first[rank] as usize..first[rank + 1] as usize]
}
