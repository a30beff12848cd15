//! Which CN, TN and place each switch has, and the tables that follow from it.
//!
//! Four connected components say it all: L0 and L1 switches alone make CNs, with the L2 switches blocks of w CNs;
//! L2 and L3 switches alone make TNs, with the L1 switches the m groups. Missing links may break a component: the pieces
//! are put together again where they do not collide, the larger ones first.

use std::collections::BTreeSet;

use raddle_units::NodeId;

use super::{
    CnTnMap, CnTnShape, MAX_SLOTS, NONE, NotCnTn, Role, Union, refuse,
    tiers::{L0, L1, L2, L3, Tier, neighbours},
};
use crate::map::Fabric;

/// Components by the tiers that they take in.
struct Components {
    cn: Union,
    block: Union,
    group: Union,
    tn: Union,
}

/// A TN or a piece of one.
struct TnPiece {
    l2: Vec<NodeId>,
    l3: Vec<NodeId>,
    /// Blocks of CNs below it, ascending.
    blocks: Vec<u32>,
}

/// A CN or a piece of one.
struct Piece {
    /// L0 switches; none: it has been joined to another piece, or is an L1 alone.
    l0: usize,
    /// One of its L1 switches.
    l1: NodeId,
    groups: BTreeSet<u32>,
    block: u32,
}

struct Numbering<'a> {
    fabric: &'a Fabric,
    tier: &'a [Tier],
    parts: Components,
    /// By node: CN of L0 and L1, group of L1 and L2 and L3, block of CN.
    cn: Vec<u32>,
    group: Vec<u32>,
    cn_block: Vec<u32>,
    cns: u32,
    blocks: u32,
    groups: u32,
}

pub(super) fn number(fabric: &Fabric, tier: &[Tier]) -> Result<CnTnMap, NotCnTn> {
    let nodes = fabric.node_count();
    let mut parts = Components {
        cn: Union::new(nodes),
        block: Union::new(nodes),
        group: Union::new(nodes),
        tn: Union::new(nodes),
    };
    for &switch in fabric.switches() {
        let own = tier[switch.index()];
        for peer in neighbours(fabric, switch) {
            let other = tier[peer.index()];
            if own == L0 {
                parts.cn.join(switch, peer);
            }
            if own <= L1 && other <= L2 {
                parts.block.join(switch, peer);
            }
            if own >= L1 && other >= L1 {
                parts.group.join(switch, peer);
            }
            if own == L3 {
                parts.tn.join(switch, peer);
            }
        }
    }
    let mut numbering = Numbering {
        fabric,
        tier,
        parts,
        cn: vec![NONE; nodes],
        group: vec![NONE; nodes],
        cn_block: Vec::new(),
        cns: 0,
        blocks: 0,
        groups: 0,
    };
    numbering.number_cns();
    numbering.number_groups()?;
    numbering.join_pieces();
    let tns = numbering.number_tns()?;
    numbering.finish(tns)
}

impl Numbering<'_> {
    fn of_tier(&self, tier: Tier) -> Vec<NodeId> {
        let all = self.fabric.switches().iter().copied();
        all.filter(|node| self.tier[node.index()] == tier).collect()
    }

    /// Numbers CNs and blocks in the order of their first L0, then those without L0 of their first L1.
    fn number_cns(&mut self) {
        let mut of_part = vec![NONE; self.tier.len()];
        let mut of_block = vec![NONE; self.tier.len()];
        for switch in [self.of_tier(L0), self.of_tier(L1)].concat() {
            let part = self.parts.cn.find(switch);
            if of_part[part.index()] == NONE {
                of_part[part.index()] = self.cns;
                self.cns += 1;
                let block = self.parts.block.find(switch);
                if of_block[block.index()] == NONE {
                    of_block[block.index()] = self.blocks;
                    self.blocks += 1;
                }
                self.cn_block.push(of_block[block.index()]);
            }
            self.cn[switch.index()] = of_part[part.index()];
        }
    }

    /// Numbers groups; an L1 of each CN belongs to each, so that two of one CN are never in one group.
    fn number_groups(&mut self) -> Result<(), NotCnTn> {
        let mut members: Vec<(NodeId, u32, NodeId)> = Vec::new();
        for l1 in self.of_tier(L1) {
            members.push((self.parts.group.find(l1), self.cn[l1.index()], l1));
        }
        members.sort_unstable();
        if let Some(pair) = members
            .windows(2)
            .find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1))
        {
            let (first, second) = (pair[0].2, pair[1].2);
            let found = format!(
                "the switches above it also lead to {}, an L1 of the same CN",
                self.fabric.node_name(first)
            );
            let expected = "TNs above an L1 that lead to no other L1 of its CN";
            return Err(refuse(self.fabric, second, expected, found));
        }
        // The largest first: pieces that broke off fill gaps.
        let mut rows: Vec<&[(NodeId, u32, NodeId)]> = members.chunk_by(|a, b| a.0 == b.0).collect();
        rows.sort_by_key(|row| {
            (
                usize::MAX - row.len(),
                row.iter().map(|entry| entry.2).min(),
            )
        });
        let mut taken: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut first_free = vec![0u32; self.cns as usize];
        let mut least: Vec<NodeId> = Vec::new();
        let mut place_of = vec![NONE; self.tier.len()];
        for row in rows {
            let mut group = row
                .iter()
                .map(|entry| first_free[entry.1 as usize])
                .max()
                .unwrap_or(0);
            while row.iter().any(|entry| taken.contains(&(entry.1, group))) {
                group += 1;
            }
            for &(_, cn, l1) in row {
                taken.insert((cn, group));
                let free = &mut first_free[cn as usize];
                while taken.contains(&(cn, *free)) {
                    *free += 1;
                }
                if group as usize == least.len() {
                    least.push(l1);
                }
                least[group as usize] = least[group as usize].min(l1);
            }
            place_of[row[0].0.index()] = group;
        }
        let mut order: Vec<u32> = (0..least.len() as u32).collect();
        order.sort_by_key(|&group| least[group as usize]);
        let mut rank = vec![0; order.len()];
        for (index, &group) in (0..).zip(&order) {
            rank[group as usize] = index;
        }
        for tier in [L1, L2, L3] {
            for switch in self.of_tier(tier) {
                let place = place_of[self.parts.group.find(switch).index()];
                self.group[switch.index()] = rank[place as usize];
            }
        }
        self.groups = rank.len() as u32;
        Ok(())
    }

    /// Puts the pieces of a CN that missing links have split together again: an L1 that lost all its L0, or L0 and L1
    /// switches apart from the others.
    ///
    /// Two pieces are one CN where no group has an L1 in both, their L0 are no more than another CN has, they hang on
    /// one block of CNs or on two that share no TN, and fewer gaps are left so: as many links would be missing at most as
    /// switches, if they were two CNs.
    fn join_pieces(&mut self) {
        let mut pieces: Vec<Piece> = (0..self.cns)
            .map(|cn| Piece {
                l0: 0,
                l1: NodeId(NONE),
                groups: BTreeSet::new(),
                block: self.cn_block[cn as usize],
            })
            .collect();
        for l0 in self.of_tier(L0) {
            pieces[self.cn[l0.index()] as usize].l0 += 1;
        }
        let mut block_groups = vec![BTreeSet::new(); self.blocks as usize];
        for l1 in self.of_tier(L1) {
            let piece = &mut pieces[self.cn[l1.index()] as usize];
            let group = self.group[l1.index()];
            piece.l1 = l1;
            piece.groups.insert(group);
            block_groups[piece.block as usize].insert(group);
        }
        let (m, q) = (
            self.groups as usize,
            pieces.iter().map(|piece| piece.l0).max().unwrap_or(0),
        );
        let mut parts: Vec<usize> = (0..pieces.len())
            .filter(|&cn| pieces[cn].groups.len() < m)
            .collect();
        let in_order = parts.clone();
        parts.sort_by_key(|&cn| pieces[cn].l0 + pieces[cn].groups.len());
        let mut joined = false;
        for part in parts {
            let piece = &pieces[part];
            let fits = |home: &Piece| {
                let one_block = home.block == piece.block
                    || block_groups[home.block as usize]
                        .is_disjoint(&block_groups[piece.block as usize]);
                let links = home.l0 * piece.groups.len() + piece.l0 * home.groups.len();
                let switches =
                    2 * (m + q) - (home.l0 + piece.l0 + home.groups.len() + piece.groups.len());
                home.l0 > 0
                    && home.l0 + piece.l0 <= q
                    && links <= switches
                    && one_block
                    && home.groups.is_disjoint(&piece.groups)
            };
            let home = (in_order.iter().copied())
                .filter(|&home| home != part && fits(&pieces[home]))
                .min_by_key(|&home| (pieces[home].block != piece.block, home));
            let Some(home) = home else { continue };
            self.parts.cn.join(pieces[home].l1, piece.l1);
            self.parts.block.join(pieces[home].l1, piece.l1);
            joined = true;
            let (from, to) = (piece.block, pieces[home].block);
            let l0 = std::mem::take(&mut pieces[part].l0);
            let groups = std::mem::take(&mut pieces[part].groups);
            pieces[home].l0 += l0;
            pieces[home].groups.extend(groups);
            if from != to {
                let groups = std::mem::take(&mut block_groups[from as usize]);
                block_groups[to as usize].extend(groups);
                for piece in &mut pieces {
                    if piece.block == from {
                        piece.block = to;
                    }
                }
            }
        }
        if joined {
            self.cn_block.clear();
            (self.cns, self.blocks) = (0, 0);
            self.number_cns();
        }
    }

    /// The TNs of each group, in the order of their first L2.
    fn number_tns(&mut self) -> Result<Vec<Vec<TnPiece>>, NotCnTn> {
        let mut block_of_part = vec![NONE; self.tier.len()];
        for l1 in self.of_tier(L1) {
            let block = self.parts.block.find(l1);
            block_of_part[block.index()] = self.cn_block[self.cn[l1.index()] as usize];
        }
        let mut index_of = vec![NONE; self.tier.len()];
        let mut pieces: Vec<(u32, TnPiece)> = Vec::new();
        for tier in [L2, L3] {
            for switch in self.of_tier(tier) {
                let part = self.parts.tn.find(switch).index();
                if index_of[part] == NONE {
                    index_of[part] = pieces.len() as u32;
                    let piece = TnPiece {
                        l2: Vec::new(),
                        l3: Vec::new(),
                        blocks: Vec::new(),
                    };
                    pieces.push((self.group[switch.index()], piece));
                }
                let piece = &mut pieces[index_of[part] as usize].1;
                if tier == L3 {
                    piece.l3.push(switch);
                    continue;
                }
                piece.l2.push(switch);
                let block = block_of_part[self.parts.block.find(switch).index()];
                if block == NONE {
                    continue;
                }
                if piece.blocks.contains(&block) {
                    let expected = "L2 switches of one TN above different CNs";
                    let found =
                        "another L2, joined to it through L3 switches, has CNs in common with it";
                    return Err(refuse(self.fabric, switch, expected, found));
                }
                piece.blocks.push(block);
            }
        }
        let mut tns: Vec<Vec<TnPiece>> = (0..self.groups).map(|_| Vec::new()).collect();
        let uplinks = self.most_uplinks();
        let w = self.most_cns_of_a_block().max(
            pieces
                .iter()
                .map(|(_, piece)| piece.l3.len())
                .max()
                .unwrap_or(0),
        );
        pieces.sort_by_key(|(_, piece)| usize::MAX - piece.l2.len() - piece.l3.len());
        for (group, piece) in pieces {
            let row = &mut tns[group as usize];
            let fits = |tn: &&mut TnPiece| {
                tn.l3.len() + piece.l3.len() <= w
                    && !piece.blocks.iter().any(|block| tn.blocks.contains(block))
            };
            let broken = row.len() >= uplinks;
            match row.iter_mut().find(|tn| broken && fits(tn)) {
                Some(tn) => {
                    tn.l2.extend(piece.l2);
                    tn.l3.extend(piece.l3);
                    tn.blocks.extend(piece.blocks);
                    tn.l2.sort_unstable();
                    tn.l3.sort_unstable();
                }
                None => row.push(piece),
            }
        }
        for row in &mut tns {
            row.sort_by_key(|tn| tn.l2.first().copied());
        }
        Ok(tns)
    }

    fn most_uplinks(&self) -> usize {
        let uplinks = |l1: NodeId| {
            let mut peers: Vec<NodeId> = neighbours(self.fabric, l1)
                .filter(|peer| self.tier[peer.index()] == L2)
                .collect();
            peers.sort_unstable();
            peers.dedup();
            peers.len()
        };
        self.of_tier(L1).into_iter().map(uplinks).max().unwrap_or(0)
    }

    fn most_cns_of_a_block(&self) -> usize {
        let mut sizes = vec![0; self.blocks as usize];
        for &block in &self.cn_block {
            sizes[block as usize] += 1;
        }
        sizes.into_iter().max().unwrap_or(0)
    }

    fn finish(mut self, tns: Vec<Vec<TnPiece>>) -> Result<CnTnMap, NotCnTn> {
        let fabric = self.fabric;
        let longest = |count: usize| count.max(1) as u32;
        let all = || tns.iter().flatten();
        let p = tns.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let l3_most = all().map(|tn| tn.l3.len()).max().unwrap_or(0);
        let l2_most = all().map(|tn| tn.l2.len()).max().unwrap_or(0);
        let (k, w) = if p == 0 {
            (1, 1)
        } else {
            (
                longest(l2_most.max(self.blocks as usize)),
                longest(l3_most.max(self.most_cns_of_a_block())),
            )
        };
        let place = self.cn_places(w);
        for cn in &mut self.cn {
            if *cn != NONE {
                *cn = place[*cn as usize];
            }
        }
        let cns = place.iter().max().map_or(0, |&last| last + 1);
        let m = self.groups.max(1);
        let (l0s, l1s) = (self.of_tier(L0), self.of_tier(L1));
        let mut in_cn = vec![0u32; cns as usize];
        let mut roles = vec![Role::Host { l0: NodeId(0) }; fabric.node_count()];
        for &switch in &l0s {
            let cn = self.cn[switch.index()];
            let i = in_cn[cn as usize];
            in_cn[cn as usize] += 1;
            roles[switch.index()] = Role::L0 { cn, i };
        }
        for &switch in &l1s {
            let (cn, g) = (self.cn[switch.index()], self.group[switch.index()]);
            roles[switch.index()] = Role::L1 { cn, g };
        }
        let q = in_cn.into_iter().max().unwrap_or(1).max(1);
        let shape = CnTnShape {
            m,
            q,
            p,
            k,
            w,
            cns,
            terminals_per_l0: 0,
            levels: 1 + u8::from(!l1s.is_empty()) + u8::from(p > 0) + u8::from(l3_most > 0),
        };
        check_size(fabric, &shape, l0s[0])?;
        for (group, row) in (0..).zip(&tns) {
            for (offset, tn) in (0..).zip(row) {
                self.place_tn(group * p + offset, tn, (k, w), &mut roles);
            }
        }
        tables(fabric, shape, roles)
    }

    /// The final number of each CN. Blocks with fewer than w leave gaps: they come last, so that there are few.
    fn cn_places(&self, w: u32) -> Vec<u32> {
        let mut sizes = vec![0u32; self.blocks as usize];
        for &block in &self.cn_block {
            sizes[block as usize] += 1;
        }
        let mut order: Vec<u32> = (0..self.blocks).collect();
        order.sort_by_key(|&block| u32::MAX - sizes[block as usize]);
        let mut next = vec![0; self.blocks as usize];
        for (rank, &block) in (0..).zip(&order) {
            next[block as usize] = rank * w;
        }
        let place = |&block: &u32| {
            next[block as usize] += 1;
            next[block as usize] - 1
        };
        self.cn_block.iter().map(place).collect()
    }

    fn place_tn(&self, tn: u32, piece: &TnPiece, (k, w): (u32, u32), roles: &mut [Role]) {
        let mut block_of = Vec::with_capacity(piece.l2.len());
        for &l2 in &piece.l2 {
            let l1 = neighbours(self.fabric, l2).find(|peer| self.tier[peer.index()] == L1);
            block_of.push(l1.map(|l1| self.cn[l1.index()]));
        }
        let mut used = vec![false; k as usize];
        for cn in block_of.iter().flatten() {
            used[(cn / w) as usize] = true;
        }
        let mut free = (0..k).filter(|&i| !used[i as usize]);
        for (&l2, cn) in piece.l2.iter().zip(&block_of) {
            let i = match cn {
                Some(cn) => cn / w,
                None => free.next().unwrap_or(0),
            };
            roles[l2.index()] = Role::L2 { tn, i };
        }
        for (j, &l3) in (0..).zip(&piece.l3) {
            roles[l3.index()] = Role::L3 { tn, j };
        }
    }
}

/// Refuses shapes that only a small part of would be there, before tables are made for them.
fn check_size(fabric: &Fabric, shape: &CnTnShape, l0: NodeId) -> Result<(), NotCnTn> {
    let product = |factors: &[u32]| {
        let factors = factors.iter().map(|&factor| u64::from(factor));
        factors.fold(1u64, u64::saturating_mul)
    };
    let CnTnShape {
        m, q, p, k, w, cns, ..
    } = *shape;
    let l3 = if shape.levels == 4 { w } else { 1 };
    let slots = product(&[cns, q, m])
        .saturating_add(product(&[cns, m, p]))
        .saturating_add(product(&[m, p, k, l3]));
    // A fabric with every second link, CN and TN has about an eighth of them.
    let most = (fabric.links().len() as u64)
        .saturating_mul(16)
        .saturating_add(4096)
        .min(MAX_SLOTS);
    if slots <= most {
        return Ok(());
    }
    let found = format!("that would be {shape} with {slots} links between switches");
    let expected = format!(
        "CNs and TNs of about the same size (the map has {} links)",
        fabric.links().len()
    );
    Err(refuse(fabric, l0, expected, found))
}

/// Fills the tables and checks that they account for every link, and that half of each level is there.
fn tables(fabric: &Fabric, mut shape: CnTnShape, mut roles: Vec<Role>) -> Result<CnTnMap, NotCnTn> {
    let CnTnShape {
        m, q, p, k, w, cns, ..
    } = shape;
    let l3_per_tn = if shape.levels == 4 { w } else { 0 };
    let places = |a: u32, b: u32| vec![NONE; a as usize * b as usize];
    let mut map = CnTnMap {
        shape,
        roles: Vec::new(),
        l0: places(cns, q),
        l1: places(cns, m),
        l2: places(m * p, k),
        l3: places(m * p, l3_per_tn),
        hosts: Vec::with_capacity(fabric.hosts().len()),
        host_starts: vec![0; (cns * q) as usize + 1],
        host_ports: Vec::new(),
        host_position: vec![NONE; fabric.node_count()],
        l0_l1: vec![[NONE; 2]; (cns * q) as usize * m as usize],
        l1_l2: vec![[NONE; 2]; (cns * m) as usize * p as usize],
        l2_l3: vec![[NONE; 2]; (m * p * k) as usize * l3_per_tn as usize],
    };
    for &switch in fabric.switches() {
        let slot = match roles[switch.index()] {
            Role::L0 { cn, i } => &mut map.l0[(cn * q + i) as usize],
            Role::L1 { cn, g } => &mut map.l1[(cn * m + g) as usize],
            Role::L2 { tn, i } => &mut map.l2[(tn * k + i) as usize],
            Role::L3 { tn, j } => &mut map.l3[(tn * w + j) as usize],
            Role::Host { .. } => continue,
        };
        if *slot != NONE {
            let other = fabric.node_name(NodeId(*slot)).into_owned();
            let expected = "a place of its own";
            let found = format!("{other} has the same one");
            return Err(refuse(fabric, switch, expected, found));
        }
        *slot = switch.0;
    }
    place_hosts(fabric, &mut map, &mut roles);
    for link in fabric.links() {
        let ends = link.ports.map(|port| fabric.port(port).node);
        let slot = match ends.map(|node| roles[node.index()]) {
            [Role::Host { .. }, _] | [_, Role::Host { .. }] => continue,
            [Role::L0 { cn, i }, Role::L1 { cn: other, g }]
            | [Role::L1 { cn: other, g }, Role::L0 { cn, i }]
                if cn == other =>
            {
                map.l0_l1.get_mut(((cn * q + i) * m + g) as usize)
            }
            [Role::L1 { cn, g }, Role::L2 { tn, i }] | [Role::L2 { tn, i }, Role::L1 { cn, g }]
                if tn / p == g && cn / w == i =>
            {
                map.l1_l2.get_mut(((cn * m + g) * p + tn % p) as usize)
            }
            [Role::L2 { tn, i }, Role::L3 { tn: other, j }]
            | [Role::L3 { tn: other, j }, Role::L2 { tn, i }]
                if tn == other =>
            {
                map.l2_l3.get_mut(((tn * k + i) * w + j) as usize)
            }
            _ => None,
        };
        let Some(slot) = slot else {
            let other = fabric.node_name(ends[1]).into_owned();
            let [a, b] = ends.map(|node| roles[node.index()]);
            let found = format!("the link to {other} joins {a:?} and {b:?}");
            let expected = "links where a CN/TN fat tree has them";
            return Err(refuse(fabric, ends[0], expected, found));
        };
        let up = usize::from(tier(roles[ends[0].index()]) > tier(roles[ends[1].index()]));
        let entry = [link.ports[up].0, link.ports[1 - up].0];
        *slot = (*slot).min(entry);
    }
    shape.terminals_per_l0 = map
        .host_starts
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or(0);
    map.shape = shape;
    map.roles = roles;
    check_density(fabric, &map)?;
    Ok(map)
}

fn tier(role: Role) -> Tier {
    match role {
        Role::Host { .. } | Role::L0 { .. } => L0,
        Role::L1 { .. } => L1,
        Role::L2 { .. } => L2,
        Role::L3 { .. } => L3,
    }
}

/// Sorts the hosts by their L0 and notes their ports.
fn place_hosts(fabric: &Fabric, map: &mut CnTnMap, roles: &mut [Role]) {
    let q = map.shape.q;
    let mut placed = Vec::with_capacity(fabric.hosts().len());
    for &host in fabric.hosts() {
        let Some(port) = fabric.ports_of(host).first() else {
            continue;
        };
        let l0 = fabric.port(port.peer).node;
        if let Role::L0 { cn, i } = roles[l0.index()] {
            roles[host.index()] = Role::Host { l0 };
            let ports = [fabric.first_port(host).0, port.peer.0];
            placed.push((cn * q + i, host, ports));
        }
    }
    placed.sort_unstable();
    for (index, (place, host, ports)) in (0u32..).zip(placed) {
        map.host_starts[place as usize + 1] = index + 1;
        map.host_position[host.index()] = index;
        map.hosts.push(host);
        map.host_ports.push(ports);
    }
    for place in 1..map.host_starts.len() {
        map.host_starts[place] = map.host_starts[place].max(map.host_starts[place - 1]);
    }
}

/// With fewer than half of the links of a level the tree would be read into the graph, not found in it.
fn check_density(fabric: &Fabric, map: &CnTnMap) -> Result<(), NotCnTn> {
    let count = |table: &[[u32; 2]]| table.iter().filter(|entry| entry[0] != NONE).count();
    let present = [count(&map.l0_l1), count(&map.l1_l2), count(&map.l2_l3)];
    let mut missing = [(0, None); 3];
    for (lower, upper) in map.missing_links() {
        let level = usize::from(tier(map.role(lower)));
        missing[level].0 += 1;
        missing[level].1.get_or_insert((lower, upper));
    }
    for (level, (present, (missing, example))) in present.into_iter().zip(missing).enumerate() {
        if let Some((lower, upper)) = example
            && present < missing
        {
            let expected = format!(
                "a link to {}, as at least half of the links from L{level} to L{} are there",
                fabric.node_name(upper),
                level + 1
            );
            let found = format!(
                "that one and {} more are not, and {present} are",
                missing - 1
            );
            return Err(refuse(fabric, lower, expected, found));
        }
    }
    Ok(())
}
