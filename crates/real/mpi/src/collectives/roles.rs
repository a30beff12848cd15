//! Who speaks to the switch for whom.

use raddle_offload::{order::Placement, roles};

/// Who is where.
pub(crate) struct Roles {
    /// The ranks that each member speaks for.
    pub(crate) members: Vec<Vec<u32>>,
    /// The member that speaks for this rank.
    pub(crate) member: usize,
    /// This rank among those of its member; the leader is 0.
    pub(crate) local_rank: usize,
    pub(crate) placement: Placement,
    /// As the published protocol has them; `None` where it cannot.
    pub(crate) published: Option<roles::Roles>,
}

impl Roles {
    /// Of rank `rank`; `members` are the ranks that each member speaks for, `nodes` the node of each rank.
    pub(crate) fn new(
        members: Vec<Vec<u32>>,
        rank: u32,
        placement: Placement,
        nodes: &[u64],
    ) -> Self {
        let place = (0..).zip(&members).find_map(|(member, ranks)| {
            ranks
                .iter()
                .position(|known| *known == rank)
                .map(|local| (member, local))
        });
        let (member, local_rank) = place.unwrap_or((0, 0));
        let published = published(&members, nodes);
        Self {
            members,
            member,
            local_rank,
            placement,
            published,
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

/// Members as the equations of the paper number them: as many on each node, each with as many ranks, none left out between.
fn published(members: &[Vec<u32>], nodes: &[u64]) -> Option<roles::Roles> {
    let ranks = members.first()?.len();
    let node = |member: &Vec<u32>| nodes.get(*member.first()? as usize).copied();
    let first = node(members.first()?)?;
    let of_first = |member: &&Vec<u32>| node(member) == Some(first);
    let sockets = members.iter().take_while(of_first).count();
    let mut numbered = members.iter().flatten().zip(0..);
    let without_gaps = numbered.all(|(rank, number)| *rank == number);
    let alike = members.iter().all(|member| member.len() == ranks);
    let mut seen = Vec::new();
    let places = members.chunks(sockets).all(|part| {
        let Some(own) = node(&part[0]) else {
            return false;
        };
        let new = !seen.contains(&own);
        seen.push(own);
        new && part.len() == sockets && part.iter().all(|member| node(member) == Some(own))
    });
    if !(without_gaps && alike && places) {
        return None;
    }
    let number = |count: usize| u32::try_from(count).ok();
    roles::Roles::new(
        number(sockets)?,
        number(members.len() / sockets)?,
        number(ranks)?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(members: &[&[u32]], nodes: &[u64]) -> Option<(u32, u32)> {
        let members: Vec<Vec<u32>> = members.iter().map(|ranks| ranks.to_vec()).collect();
        published(&members, nodes).map(|roles| (roles.sockets(), roles.leaders()))
    }

    #[test]
    fn the_published_protocol_takes_nodes_that_are_alike() {
        assert_eq!(found(&[&[0], &[1], &[2]], &[7, 8, 9]), Some((1, 3)));
        assert_eq!(
            found(&[&[0, 1], &[2, 3]], &[7, 7, 8, 8]),
            Some((1, 2)),
            "node mode"
        );
        assert_eq!(
            found(&[&[0], &[1], &[2], &[3]], &[7, 7, 8, 8]),
            Some((2, 4)),
            "socket mode"
        );
    }

    #[test]
    fn it_takes_no_others() {
        assert_eq!(found(&[&[0, 2], &[1, 3]], &[7, 8, 7, 8]), None, "by turns");
        assert_eq!(found(&[&[0, 1], &[2]], &[7, 7, 8]), None, "unlike numbers");
        assert_eq!(found(&[&[0], &[1], &[2]], &[7, 7, 8]), None, "sockets");
        assert_eq!(found(&[&[0], &[1], &[2]], &[7, 8, 7]), None, "come back");
    }
}
