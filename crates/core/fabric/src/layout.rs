//! Where nodes stand in a drawing: levels from below to above, little crossing, always the same.

use raddle_units::NodeId;

use crate::map::Fabric;

/// A node's place in a drawing of the map.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NodePlace {
    /// The node.
    pub node: NodeId,
    /// Row: 0 for hosts, higher numbers further up.
    pub level: u8,
    /// Left to right, 0 to 1; the nodes of a row are evenly spaced.
    pub x: f64,
}

impl Fabric {
    /// The place of every node, by id. Hosts stand beside those of the same switch, a switch above the middle of what
    /// hangs below it as far as the row has room. The same map gives the same places.
    pub fn layout(&self) -> Vec<NodePlace> {
        let mut places: Vec<NodePlace> = (0..self.node_count() as u32)
            .map(NodeId)
            .map(|node| NodePlace {
                node,
                level: self.level(node),
                x: 0.5,
            })
            .collect();
        let mut hosts = self.hosts().to_vec();
        hosts.sort_by_key(|&host| (self.peer_node(self.first_port(host)), host));
        spread(&mut places, &hosts);

        let mut switches = self.switches().to_vec();
        switches.sort_by_key(|&switch| (self.level(switch), switch));
        for row in switches.chunk_by(|&a, &b| self.level(a) == self.level(b)) {
            let mut row: Vec<(f64, NodeId)> = row
                .iter()
                .map(|&switch| (self.middle_below(switch, &places), switch))
                .collect();
            row.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let row: Vec<NodeId> = row.into_iter().map(|(_, switch)| switch).collect();
            spread(&mut places, &row);
        }
        places
    }

    fn middle_below(&self, switch: NodeId, places: &[NodePlace]) -> f64 {
        let (mut sum, mut count) = (0.0, 0u32);
        for port in self.ports_of(switch) {
            let below = self.port(port.peer).node;
            if self.level(below) < self.level(switch) {
                sum += places[below.index()].x;
                count += 1;
            }
        }
        if count == 0 {
            0.5
        } else {
            sum / f64::from(count)
        }
    }
}

fn spread(places: &mut [NodePlace], row: &[NodeId]) {
    for (index, node) in row.iter().enumerate() {
        places[node.index()].x = (index as f64 + 0.5) / row.len() as f64;
    }
}
