//! Any map as a net file of the InfiniBand simulator ibsim, which reads what `ibnetdiscover` prints.

use std::{borrow::Cow, fmt::Write as _};

use raddle_units::NodeId;

use super::speed;
use crate::{
    error::{FabricError, Place},
    map::Fabric,
};

/// Most ports of an InfiniBand node (IBTA 1.4, 14.2.5.3: `NumPorts` has 8 bits, 255 is permissive).
pub(super) const MOST_PORTS: usize = 254;
/// Longest name that ibsim keeps apart from others, in bytes; it cuts longer ones off.
const LONGEST_NAME: usize = 63;

/// GUID of a node in net files that we write: hosts begin with 1, switches with 2, then the node's number, then 00.
///
/// The GUID of port n of a host is n more.
pub fn ibsim_guid(fabric: &Fabric, node: NodeId) -> u64 {
    let kind = if fabric.is_host(node) { 1 } else { 2 };
    (kind << 48) | (u64::from(node.0) << 8)
}

/// Writes a map as a net file of ibsim 0.10 and later, every link from both ends.
///
/// Switches come first, then hosts, each in the order of their numbers, named as [`Fabric::node_name`] says and with
/// the GUIDs of [`ibsim_guid`]. Ports keep their numbers. A switch has as many ports as the map's radix, or as links.
/// Rates become the nearest 4x or 1x speed from below that ibsim knows (SDR to NDR); delays are lost. Characters with
/// a meaning in net files (quotation mark, `#`, `@`, `=`) and others outside ASCII become `_`, followed by the node's number.
///
/// # Errors
/// A node with more than 254 ports: InfiniBand has no more.
pub fn write_ibsim(fabric: &Fabric) -> Result<String, FabricError> {
    let names: Vec<Cow<'_, str>> = (0..fabric.node_count() as u32)
        .map(|node| safe_name(fabric, NodeId(node)))
        .collect();
    let mut text = String::with_capacity(fabric.port_count() * 48 + fabric.node_count() * 72);
    text.push_str("# InfiniBand net file for ibsim, written by Raddle\n");
    for &node in fabric.switches().iter().chain(fabric.hosts()) {
        let ports = fabric.ports_of(node);
        let host = fabric.is_host(node);
        let most = match fabric.radix() {
            Some(radix) if !host => ports.len().max(radix as usize),
            _ => ports.len(),
        };
        if most > MOST_PORTS {
            let message = format!(
                "{} has {most} ports: an InfiniBand node has at most {MOST_PORTS}; take a map with fewer or set its radix",
                fabric.node_name(node)
            );
            let at = Place {
                source: fabric.name().to_owned(),
                line: None,
            };
            return Err(FabricError::Malformed { at, message });
        }
        let (name, guid) = (&names[node.index()], ibsim_guid(fabric, node));
        let (word, record) = if host {
            ("caguid", "Ca")
        } else {
            ("switchguid", "Switch")
        };
        let port_zero = if host {
            ""
        } else {
            " enhanced port 0 lid 0 lmc 0"
        };
        let most = most.max(1);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{word}=0x{guid:x}\n{record}\t{most} \"{name}\"\t\t# \"{name}\"{port_zero}\n"
        );
        for port in ports {
            let peer = fabric.port(port.peer);
            let remote = &names[peer.node.index()];
            let speed = speed::write(fabric.link(port.link).rate);
            let own_lid = if host { "lid 0 lmc 0 " } else { "" };
            let _ = writeln!(
                text,
                "[{}]\t\"{remote}\"[{}]\t\t# {own_lid}\"{remote}\" lid 0 {speed}",
                port.number, peer.number
            );
        }
    }
    Ok(text)
}

fn safe_name(fabric: &Fabric, node: NodeId) -> Cow<'_, str> {
    let name = fabric.node_name(node);
    let safe = |c: char| (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '#' | '@' | '=');
    if name.len() <= LONGEST_NAME && !name.is_empty() && name.chars().all(safe) {
        return name;
    }
    let number = format!("-{}", node.0);
    let plain = name.chars().map(|c| if safe(c) { c } else { '_' });
    let mut plain: String = plain.take(LONGEST_NAME - number.len()).collect();
    plain.push_str(&number);
    Cow::Owned(plain)
}
