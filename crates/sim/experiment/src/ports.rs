//! Ports of a fabric by the names that an experiment gives them.

use raddle_fabric::Fabric;
use raddle_text::{InputError as ExperimentError, Node, Problem, clip};
use raddle_units::{NodeId, PortId};

/// The ports that `name` means, in order: "NODE:3" the port with that number, "NODE->PEER" all that lead to a neighbour,
/// "NODE" all of a node. `at` is where the name stands.
pub(super) fn find_ports(
    fabric: &Fabric,
    name: &str,
    at: &Node,
) -> Result<Vec<PortId>, ExperimentError> {
    let error = |message: String| {
        let problem = Problem::Value {
            key: "`ports`: ".to_owned(),
            message: clip(&message),
        };
        let hint =
            "write \"NODE:3\", \"NODE->PEER\" or \"NODE\"; `raddle fabric show` lists the nodes";
        ExperimentError::at(&at.at, problem).with_hint(hint)
    };
    let node = |name: &str| {
        fabric
            .find_node(name.trim())
            .ok_or_else(|| error(format!("there is no node `{name}` in {}", fabric.name())))
    };
    let all = |node: NodeId| {
        let first = fabric.first_port(node).0;
        (first..)
            .map(PortId)
            .take(fabric.ports_of(node).len())
            .collect::<Vec<_>>()
    };
    // Names of nodes may have colons in them.
    if let Some(node) = fabric.find_node(name) {
        return Ok(all(node));
    }
    if let Some((from, to)) = name.split_once("->") {
        let (from, to) = (node(from)?, node(to)?);
        let mut ports = all(from);
        ports.retain(|&port| fabric.peer_node(port) == to);
        if ports.is_empty() {
            let (from, to) = (fabric.node_name(from), fabric.node_name(to));
            return Err(error(format!("{from} and {to} are not joined")));
        }
        return Ok(ports);
    }
    let Some((owner, number)) = name.rsplit_once(':') else {
        return Err(error(format!("there is no port `{name}`")));
    };
    let owner = node(owner)?;
    let ports = all(owner);
    let number: usize = number.trim().parse().unwrap_or(0);
    match number.checked_sub(1).and_then(|index| ports.get(index)) {
        Some(&port) => Ok(vec![port]),
        None => Err(error(format!(
            "there is no port `{name}`: {} has ports 1 to {}",
            fabric.node_name(owner),
            ports.len()
        ))),
    }
}
