//! The fat tree in flat arrays: where hosts sit, which port leads where, which links are dead.

use raddle_fabric::{CnTnMap, Fabric, NodeKind, Role};
use raddle_prefetch::prefetch;
use raddle_units::{LinkId, NodeId, PortId};

use crate::{MulticastError, PortSet, UpLink, check_ports};

/// No node, no place.
pub(super) const NONE: u32 = u32::MAX;
/// No L3 switch: the branch has no port above.
pub(super) const NO_UP: u16 = u16::MAX;

/// How far up the nearest common ancestor of some hosts is: 0 for an L0 switch, 3 for an L3 switch.
pub(super) type Height = u8;

/// What happens at one switch of a tree, as places: bit `n` of `down` is the n-th switch or host below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Class {
    pub(super) down: PortSet,
    /// The L3 switch above where the class stands at an L2, 0 where there is one way up, [`NO_UP`] at the root.
    pub(super) up: u16,
}

/// One spanning tree without its L3 switch: the L1 switches `g` of all CNs and the TN `tn` above them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plane {
    pub(super) g: u32,
    /// Which of the p uplinks of the L1 switches; the TN is `g*p + uplink`.
    pub(super) uplink: u32,
}

/// Coordinates, ports and dead links.
#[derive(Clone, Debug)]
pub(super) struct Wiring {
    pub(super) m: u32,
    pub(super) q: u32,
    pub(super) p: u32,
    pub(super) k: u32,
    pub(super) w: u32,
    pub(super) cns: u32,
    /// Most hosts of an L0 switch.
    pub(super) t: u32,
    pub(super) has_l3: bool,
    l0: Vec<u32>,
    l1: Vec<u32>,
    l2: Vec<u32>,
    l3: Vec<u32>,
    /// Place of each host by node: `l0 * t + n`; [`NONE`] for others.
    terminal_of: Vec<u32>,
    host_at: Vec<u32>,
    /// Port numbers; 0 where the link is missing.
    l0_down: Vec<u8>,
    l0_up: Vec<u8>,
    l1_down: Vec<u8>,
    l1_up: Vec<u8>,
    l2_down: Vec<u8>,
    l2_up: Vec<u8>,
    l3_down: Vec<u8>,
    /// By level and switch: the port of the first place below where the ports of all places follow one another, else 0.
    first_below: [Vec<u8>; 4],
    /// Links that failed, by link.
    failed: Vec<bool>,
    dead_host: Vec<bool>,
    dead_l0_up: Vec<bool>,
    dead_l1_up: Vec<bool>,
    dead_l2_up: Vec<bool>,
    /// Dead links: between L0 and the L1 switches `g`, by g; between L1 and L2 and between L2 and L3, by TN.
    dead_by_g: Vec<u32>,
    dead_below_tn: Vec<u32>,
    dead_in_tn: Vec<u32>,
    /// Dead uplinks of each L0.
    dead_of_l0: Vec<u32>,
    dead_links: u32,
}

/// A link between switches, as a place.
enum Place {
    Host(u32),
    L0Up(u32, u32),
    L1Up(u32, u32, u32),
    L2Up(u32, u32, u32),
}

impl Wiring {
    pub(super) fn new(fabric: &Fabric, map: &CnTnMap) -> Result<Self, MulticastError> {
        check_ports(fabric)?;
        let shape = map.shape();
        let (m, q, p, k, w, cns) = (shape.m, shape.q, shape.p, shape.k, shape.w, shape.cns);
        let (t, tns) = (shape.terminals_per_l0.max(1), shape.tns());
        let (nl0, nl1) = ((cns * q) as usize, (cns * m) as usize);
        let (nl2, nl3) = ((tns * k) as usize, (tns * w) as usize);
        let has_l3 = shape.levels > 3;
        let id = |node: Option<NodeId>| node.map_or(NONE, |node| node.0);
        let pairs = |a: u32, b: u32| (0..a).flat_map(move |x| (0..b).map(move |y| (x, y)));
        let mut wiring = Self {
            m,
            q,
            p,
            k,
            w,
            cns,
            t,
            has_l3,
            l0: pairs(cns, q).map(|(cn, i)| id(map.l0(cn, i))).collect(),
            l1: pairs(cns, m).map(|(cn, g)| id(map.l1(cn, g))).collect(),
            l2: pairs(tns, k).map(|(tn, i)| id(map.l2(tn, i))).collect(),
            l3: pairs(tns, w).map(|(tn, j)| id(map.l3(tn, j))).collect(),
            terminal_of: vec![NONE; fabric.node_count()],
            host_at: vec![NONE; nl0 * t as usize],
            l0_down: vec![0; nl0 * t as usize],
            l0_up: vec![0; nl0 * m as usize],
            l1_down: vec![0; nl1 * q as usize],
            l1_up: vec![0; nl1 * p as usize],
            l2_down: vec![0; nl2 * w as usize],
            l2_up: vec![0; nl2 * w as usize],
            l3_down: vec![0; nl3 * k as usize],
            first_below: Default::default(),
            failed: vec![false; fabric.links().len()],
            dead_host: vec![false; nl0 * t as usize],
            dead_l0_up: vec![false; nl0 * m as usize],
            dead_l1_up: vec![false; nl1 * p as usize],
            dead_l2_up: vec![false; nl2 * w as usize],
            dead_by_g: vec![0; m as usize],
            dead_below_tn: vec![0; tns as usize],
            dead_in_tn: vec![0; tns as usize],
            dead_of_l0: vec![0; nl0],
            dead_links: 0,
        };
        let port = |a: u32, b: u32| {
            if a == NONE || b == NONE {
                return 0;
            }
            let port = map.port_between(NodeId(a), NodeId(b));
            port.map_or(0, |port| fabric.port(port).number as u8)
        };
        for (cn, i) in pairs(cns, q) {
            let l0 = cn * q + i;
            for (n, &host) in (0..t).zip(map.hosts_of_l0(cn, i)) {
                let terminal = (l0 * t + n) as usize;
                wiring.terminal_of[host.index()] = terminal as u32;
                wiring.host_at[terminal] = host.0;
                wiring.l0_down[terminal] = port(wiring.l0[l0 as usize], host.0);
            }
            for g in 0..m {
                let (below, above) = (wiring.l0[l0 as usize], wiring.l1[(cn * m + g) as usize]);
                wiring.l0_up[(l0 * m + g) as usize] = port(below, above);
                wiring.l1_down[((cn * m + g) * q + i) as usize] = port(above, below);
                if below != NONE && port(below, above) == 0 {
                    wiring.kill(&Place::L0Up(l0, g), true);
                }
            }
        }
        for (cn, g) in pairs(cns, m) {
            for uplink in 0..p {
                let tn = g * p + uplink;
                let place = tn * k + cn / w;
                let (below, above) = (
                    wiring.l1[(cn * m + g) as usize],
                    wiring.l2.get(place as usize).copied().unwrap_or(NONE),
                );
                wiring.l1_up[((cn * m + g) * p + uplink) as usize] = port(below, above);
                if above != NONE {
                    wiring.l2_down[(place * w + cn % w) as usize] = port(above, below);
                }
                if below != NONE && port(below, above) == 0 {
                    wiring.kill(&Place::L1Up(cn, g, uplink), true);
                }
            }
        }
        if has_l3 {
            for (tn, i) in pairs(tns, k) {
                for j in 0..w {
                    let below = wiring.l2[(tn * k + i) as usize];
                    let above = wiring.l3[(tn * w + j) as usize];
                    wiring.l2_up[((tn * k + i) * w + j) as usize] = port(below, above);
                    wiring.l3_down[((tn * w + j) * k + i) as usize] = port(above, below);
                    if below != NONE && port(below, above) == 0 {
                        wiring.kill(&Place::L2Up(tn, i, j), true);
                    }
                }
            }
        }
        let first = |row: &[u8]| {
            let follow = row
                .windows(2)
                .all(|pair| pair[1] == pair[0].wrapping_add(1));
            if follow && !row.contains(&0) {
                row[0]
            } else {
                0
            }
        };
        let firsts =
            |ports: &[u8], width: u32| ports.chunks(width.max(1) as usize).map(first).collect();
        wiring.first_below = [
            firsts(&wiring.l0_down, t),
            firsts(&wiring.l1_down, q),
            firsts(&wiring.l2_down, w),
            firsts(&wiring.l3_down, k),
        ];
        Ok(wiring)
    }

    /// Place of a host.
    pub(super) fn terminal(&self, node: NodeId) -> Option<u32> {
        let terminal = *self.terminal_of.get(node.index())?;
        (terminal != NONE).then_some(terminal)
    }

    pub(super) fn terminals(&self) -> usize {
        self.host_at.len()
    }

    pub(super) fn host(&self, terminal: u32) -> NodeId {
        NodeId(self.host_at[terminal as usize])
    }

    pub(super) fn tn(&self, plane: Plane) -> u32 {
        plane.g * self.p + plane.uplink
    }

    /// Which L2 switch of a TN a CN hangs on.
    #[inline]
    pub(super) fn l2_index(&self, cn: u32) -> u32 {
        cn / self.w
    }

    /// How far up the nearest common ancestor is; the places must ascend and not be empty.
    #[inline]
    pub(super) fn height(&self, terminals: &[u32]) -> Height {
        let (first, last) = (
            terminals[0] / self.t,
            terminals[terminals.len() - 1] / self.t,
        );
        if first == last {
            return 0;
        }
        let (first, last) = (first / self.q, last / self.q);
        if first == last {
            1
        } else if !self.has_l3 || first / self.w == last / self.w {
            2
        } else {
            3
        }
    }

    fn place(&self, fabric: &Fabric, map: &CnTnMap, link: LinkId) -> Option<Place> {
        let [a, b] = fabric.link(link).ports.map(|port| fabric.port(port).node);
        let (a, b) = if self.rank(map, a) <= self.rank(map, b) {
            (a, b)
        } else {
            (b, a)
        };
        if fabric.kind(a) == NodeKind::Host {
            return self.terminal(a).map(Place::Host);
        }
        match (map.role(a), map.role(b)) {
            (Role::L0 { cn, i }, Role::L1 { g, .. }) => Some(Place::L0Up(cn * self.q + i, g)),
            (Role::L1 { cn, g }, Role::L2 { tn, .. }) => Some(Place::L1Up(cn, g, tn % self.p)),
            (Role::L2 { tn, i }, Role::L3 { j, .. }) => Some(Place::L2Up(tn, i, j)),
            _ => None,
        }
    }

    fn rank(&self, map: &CnTnMap, node: NodeId) -> u8 {
        match map.role(node) {
            Role::Host { .. } => 0,
            Role::L0 { .. } => 1,
            Role::L1 { .. } => 2,
            Role::L2 { .. } => 3,
            Role::L3 { .. } => 4,
        }
    }

    fn kill(&mut self, place: &Place, dead: bool) {
        let (flag, counter) = match *place {
            Place::Host(terminal) => {
                self.dead_host[terminal as usize] = dead;
                return;
            }
            Place::L0Up(l0, g) => {
                let of_l0 = &mut self.dead_of_l0[l0 as usize];
                *of_l0 = if dead { *of_l0 + 1 } else { *of_l0 - 1 };
                (
                    &mut self.dead_l0_up[(l0 * self.m + g) as usize],
                    &mut self.dead_by_g[g as usize],
                )
            }
            Place::L1Up(cn, g, uplink) => (
                &mut self.dead_l1_up[((cn * self.m + g) * self.p + uplink) as usize],
                &mut self.dead_below_tn[(g * self.p + uplink) as usize],
            ),
            Place::L2Up(tn, i, j) => (
                &mut self.dead_l2_up[((tn * self.k + i) * self.w + j) as usize],
                &mut self.dead_in_tn[tn as usize],
            ),
        };
        *flag = dead;
        let step = |n: &mut u32| *n = if dead { *n + 1 } else { *n - 1 };
        step(counter);
        step(&mut self.dead_links);
    }

    /// Marks a link as failed or working; whether that is news about a link between switches.
    pub(super) fn set_failed(
        &mut self,
        fabric: &Fabric,
        map: &CnTnMap,
        link: LinkId,
        failed: bool,
    ) -> Result<bool, MulticastError> {
        let links = fabric.links().len();
        let flag = self.failed.get_mut(link.index());
        let flag = flag.ok_or(MulticastError::UnknownLink { link, links })?;
        if *flag == failed {
            return Ok(false);
        }
        *flag = failed;
        match self.place(fabric, map, link) {
            Some(place) => {
                self.kill(&place, failed);
                Ok(!matches!(place, Place::Host(_)))
            }
            None => Ok(false),
        }
    }

    /// Whether every link between switches works and none is missing.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.dead_links == 0
    }

    pub(super) fn is_cut(&self, terminal: u32) -> bool {
        self.dead_host[terminal as usize]
    }

    /// Whether some member's L0 switch has no way up at all.
    pub(super) fn has_no_way_up(&self, terminals: &[u32]) -> bool {
        self.height(terminals) > 0
            && terminals
                .iter()
                .any(|terminal| self.dead_of_l0[(terminal / self.t) as usize] == self.m)
    }

    /// Whether the way of a place up to the height is broken on a plane; `j` is the L3 switch.
    #[inline]
    pub(super) fn is_broken(&self, terminal: u32, height: Height, plane: Plane, j: u16) -> bool {
        let l0 = terminal / self.t;
        if height == 0 {
            return false;
        }
        if self.dead_l0_up[(l0 * self.m + plane.g) as usize] {
            return true;
        }
        if height == 1 {
            return false;
        }
        let cn = l0 / self.q;
        if self.dead_l1_up[((cn * self.m + plane.g) * self.p + plane.uplink) as usize] {
            return true;
        }
        height == 3
            && self.dead_l2_up
                [((self.tn(plane) * self.k + cn / self.w) * self.w + u32::from(j)) as usize]
    }

    /// Whether nothing of a spanning tree is dead below L3, and inside the TN.
    pub(super) fn plane_is_whole(&self, plane: Plane) -> bool {
        if self.dead_by_g[plane.g as usize] > 0 {
            return false;
        }
        if self.p == 0 {
            return true;
        }
        let tn = self.tn(plane) as usize;
        self.dead_below_tn[tn] == 0 && self.dead_in_tn[tn] == 0
    }

    /// Whether the link between an L2 switch and an L3 switch is dead.
    pub(super) fn l3_link_is_dead(&self, plane: Plane, i: u32, j: u16) -> bool {
        self.dead_l2_up[((self.tn(plane) * self.k + i) * self.w + u32::from(j)) as usize]
    }

    pub(super) fn l3_links_are_whole(&self, plane: Plane) -> bool {
        self.dead_in_tn[self.tn(plane) as usize] == 0
    }

    /// The switch at a place of a tree, by level (0 to 3).
    pub(super) fn switch(&self, level: usize, index: u32, plane: Plane) -> Option<NodeId> {
        let nodes = [&self.l0, &self.l1, &self.l2, &self.l3][level];
        let node = nodes[self.row(level, index, plane)];
        (node != NONE).then_some(NodeId(node))
    }

    /// The number of a switch among those of its level.
    fn row(&self, level: usize, index: u32, plane: Plane) -> usize {
        let row = match level {
            0 => index,
            1 => index * self.m + plane.g,
            2 => self.tn(plane) * self.k + index,
            _ => self.tn(plane) * self.w + index,
        };
        row as usize
    }

    fn up_port(&self, level: usize, index: u32, plane: Plane, j: u16) -> u8 {
        match level {
            0 => self.l0_up[(index * self.m + plane.g) as usize],
            1 => self.l1_up[((index * self.m + plane.g) * self.p + plane.uplink) as usize],
            2 => self.l2_up[((self.tn(plane) * self.k + index) * self.w + u32::from(j)) as usize],
            _ => 0,
        }
    }

    /// The port at the switch of a level and place towards the root.
    pub(super) fn port_above(
        &self,
        fabric: &Fabric,
        level: usize,
        index: u32,
        plane: Plane,
        j: u16,
    ) -> Option<PortId> {
        let switch = self.switch(level, index, plane)?;
        let number = self.up_port(level, index, plane, j);
        (number != 0).then(|| PortId(fabric.first_port(switch).0 + u32::from(number) - 1))
    }

    /// Fetches the port of an L0 or L1 switch towards the root.
    pub(super) fn prefetch(&self, level: usize, index: u32, plane: Plane) {
        let row = index * self.m + plane.g;
        match level {
            0 => prefetch(&self.l0_up[row as usize]),
            1 if self.p > 0 => prefetch(&self.l1_up[(row * self.p + plane.uplink) as usize]),
            _ => {}
        }
    }

    /// The ports of a switch towards these places below it. Missing links have no port.
    pub(super) fn ports_below(
        &self,
        level: usize,
        index: u32,
        plane: Plane,
        places: &PortSet,
    ) -> PortSet {
        let row = self.row(level, index, plane);
        let first = self.first_below[level][row];
        if first != 0 {
            return places.raised(first);
        }
        let (ports, width) = match level {
            0 => (&self.l0_down, self.t),
            1 => (&self.l1_down, self.q),
            2 => (&self.l2_down, self.w),
            _ => (&self.l3_down, self.k),
        };
        let ports = &ports[row * width as usize..];
        PortSet::from_iter(places.iter().map(|place| ports[usize::from(place)])).without(0)
    }

    /// The ports of a switch towards the root on these planes; none where `up` is [`NO_UP`] or the link is missing.
    pub(super) fn ports_above(
        &self,
        level: usize,
        index: u32,
        planes: &[Plane],
        up: u16,
    ) -> PortSet {
        if up == NO_UP {
            return PortSet::EMPTY;
        }
        let planes = planes.iter();
        let ports = planes.map(|plane| self.up_port(level, index, *plane, up));
        PortSet::from_iter(ports).without(0)
    }

    /// Root and links of the tree of these places (ascending, distinct): Algorithm 1. Missing links are left out.
    pub(super) fn tree(
        &self,
        fabric: &Fabric,
        terminals: &[u32],
        plane: Plane,
        j: u16,
    ) -> (Option<NodeId>, Vec<UpLink>) {
        let height = self.height(terminals);
        let mut up = Vec::with_capacity(terminals.len() * 2);
        let mut last = [NONE; 3];
        let mut root = None;
        for &terminal in terminals {
            let l0 = terminal / self.t;
            if let Some(switch) = self.switch(0, l0, plane) {
                let number = self.l0_down[terminal as usize];
                if number != 0 {
                    let below = fabric.first_port(switch).0 + u32::from(number) - 1;
                    up.push(UpLink {
                        node: self.host(terminal),
                        port: fabric.port(PortId(below)).peer,
                    });
                }
            }
            let cn = l0 / self.q;
            let way = [l0, cn, self.l2_index(cn), u32::from(j)];
            for level in 0..usize::from(height) {
                if last[level] == way[level] {
                    break;
                }
                last[level] = way[level];
                if let Some(port) = self.port_above(fabric, level, way[level], plane, j) {
                    let node = fabric.port(port).node;
                    up.push(UpLink { node, port });
                }
            }
            root =
                root.or_else(|| self.switch(usize::from(height), way[usize::from(height)], plane));
        }
        up.sort_unstable();
        (root, up)
    }
}
