//! The ways from a sender to the members of its group, and back.

use raddle_units::{BitRate, Bytes, NodeId, PortId, Span};
use raddle_workload::GroupId;
use rustc_hash::FxHashSet;

use super::{super::process::Base, Groups};
use crate::{index::SessionIndex, paths::Path};

/// A way to a member and back.
type RoundTrip = (Path, Vec<(BitRate, Span)>);

/// What is known of a group as one sender sees it, from its first message on.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The distinct ways to members, and per member which one it is (and its idle round trip); a member that no tree
    /// reaches has none.
    round_trips: Vec<RoundTrip>,
    /// Idle round trip of one full packet, by member.
    pub(super) base: Vec<Span>,
}

fn ideal(base: &Base<'_>, (there, back): &RoundTrip, size: Bytes) -> Span {
    let cx = &base.cx;
    there.ideal_round(
        back,
        &cx.semantics,
        size,
        Bytes(cx.layout.mtu),
        u64::from(cx.layout.header_bytes),
        u64::from(cx.layout.ack_bytes),
    )
}

impl Session {
    /// How long a message would take alone, until the last member has acknowledged it.
    pub(super) fn ideal(&self, base: &Base<'_>, size: Bytes) -> Span {
        let times = self.round_trips.iter();
        let longest = times.map(|round_trip| ideal(base, round_trip, size)).max();
        longest.unwrap_or_default()
    }
}

impl Groups<'_> {
    /// The ways from a sender to the members of its group; `None` where the tables lead to a switch's port twice.
    pub(super) fn session(
        &mut self,
        base: &Base<'_>,
        group: GroupId,
        src: NodeId,
        members: &[NodeId],
    ) -> Option<SessionIndex> {
        if let Some(&known) = self.sessions.get(&(group, src)) {
            return Some(known);
        }
        let (fabric, colour) = (base.cx.fabric, self.colour(group));
        let hop = |port: PortId| (fabric.rate(port), fabric.delay(port));
        let mut session = Session {
            round_trips: Vec::new(),
            base: vec![Span::ZERO; members.len()],
        };
        let mut shortest: Vec<Option<usize>> = vec![None; members.len()];
        let first = fabric.first_port(src);
        let mut passed = FxHashSet::default();
        // Ports that packets leave by, with the hops before.
        let mut open = vec![(first, Vec::new())];
        while let Some((leaving, mut hops)) = open.pop() {
            hops.push(hop(leaving));
            let arriving = fabric.port(leaving).peer;
            let end = fabric.port(arriving);
            if fabric.is_host(end.node) {
                let Ok(member) = members.binary_search(&end.node) else {
                    continue;
                };
                let path = Path { hops };
                let back: Vec<_> = base
                    .wires
                    .idle_tables
                    .first_path(fabric, end.node, src)
                    .map(hop)
                    .collect();
                let round_trip = (path, back);
                let known = session
                    .round_trips
                    .iter()
                    .position(|other| *other == round_trip);
                let place = known.unwrap_or(session.round_trips.len());
                let round = ideal(base, &round_trip, Bytes(base.cx.layout.mtu));
                if known.is_none() {
                    session.round_trips.push(round_trip);
                }
                let least = &mut session.base[member];
                if shortest[member].is_none() || round < *least {
                    (*least, shortest[member]) = (round, Some(place));
                }
                continue;
            }
            if !passed.insert(arriving) {
                return None;
            }
            for number in self.out_ports(end.node, end.number, colour).iter() {
                let out = PortId(fabric.first_port(end.node).0 + u32::from(number) - 1);
                open.push((out, hops.clone()));
            }
        }
        // Of two trees the shorter way counts.
        let mut used = vec![false; session.round_trips.len()];
        for place in shortest.into_iter().flatten() {
            used[place] = true;
        }
        let mut used = used.into_iter();
        session.round_trips.retain(|_| used.next() == Some(true));
        let place = self.known.push(session);
        self.sessions.insert((group, src), place);
        Some(place)
    }
}
