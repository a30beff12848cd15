//! Who speaks to the switch for whom.

use raddle_offload::order::Placement;

/// Who is where.
pub(crate) struct Roles {
    /// The ranks that each member speaks for.
    pub(crate) members: Vec<Vec<u32>>,
    /// The member that speaks for this rank.
    pub(crate) member: usize,
    /// This rank among those of its member; the leader is 0.
    pub(crate) local_rank: usize,
    pub(crate) placement: Placement,
}

impl Roles {
    /// Of rank `rank`; `members` are the ranks that each member speaks for.
    pub(crate) fn new(members: Vec<Vec<u32>>, rank: u32, placement: Placement) -> Self {
        let place = (0..).zip(&members).find_map(|(member, ranks)| {
            ranks
                .iter()
                .position(|known| *known == rank)
                .map(|local| (member, local))
        });
        let (member, local_rank) = place.unwrap_or((0, 0));
        Self {
            members,
            member,
            local_rank,
            placement,
        }
    }

    /// Whether this rank speaks for its member.
    pub(crate) const fn leads(&self) -> bool {
        self.local_rank == 0
    }

    pub(crate) fn local_size(&self) -> usize {
        self.members[self.member].len()
    }

    /// The member that speaks for a rank.
    pub(crate) fn member_of(&self, rank: u32) -> usize {
        self.members
            .iter()
            .position(|ranks| ranks.contains(&rank))
            .unwrap_or(0)
    }
}
