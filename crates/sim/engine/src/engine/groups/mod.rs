//! Messages to groups: copies in switches, members, the sender's progress.
//!
//! A message to a group is a flow with a list of members. Its packets carry the colour of the group as their address;
//! switches look up (input port, colour) and send a copy by each port found. Every copy is a packet of its own (it meets
//! other queues and gets other marks and records), but they share one place in the buffer's account of the port by which
//! the packet came. Each member receives and acknowledges as the receiver of an ordinary flow does, by unicast.
//!
//! | file | what it drives |
//! |---|---|
//! | `session.rs` | the ways from a sender to its members |
//! | `members.rs` | members: what they receive and acknowledge |
//! | `sender.rs` | the sender: acknowledgements of all, members that are given up |
//! | `ledger.rs` | what became of messages at members |
//! | `foreign.rs` | what packets cost hosts outside their group |

mod foreign;
mod ledger;
mod members;
mod sender;
mod session;

use std::borrow::Cow;

use raddle_dataplane::{Frame, FrameKind, Refused};
use raddle_fabric::Fabric;
use raddle_multicast::{Colour, MulticastTables, PortSet};
use raddle_transport::group::{Acker, GroupProgress};
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, Time, many};
use raddle_workload::{GroupId, Message};
use rustc_hash::FxHashMap;

use self::{foreign::Foreign, session::Session};
pub(super) use self::{
    ledger::{Begun, Ledger, Report},
    members::GroupReception,
};
use super::{
    fault::Change,
    flow::{DPORT, FlowName, FlowTo, Opening, SourcePorts, address},
    process::Base,
    records::Record,
};
use crate::{
    index::{
        Arena, FlowSlot, List, PacketSlot, Place, PortIndex, ProcessIndex, SendSlot, SessionIndex,
        SwitchIndex,
    },
    multicast::{Multicast, MulticastGroup},
    setup::SetupError,
};

/// A message on its way to a group, at its sender.
#[derive(Debug)]
struct GroupSend {
    session: SessionIndex,
    progress: GroupProgress,
    acker: Acker,
    /// Marks of members that are not the acker, for the acker's next acknowledgement.
    marked: bool,
    digest: u16,
    /// When the sender last went back: what members missed before is on its way again.
    went_back: Option<Time>,
    /// Members that were given up.
    missed: u32,
}

/// All multicast state of a run.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    plan: Option<&'a Multicast>,
    tables: Option<Cow<'a, MulticastTables>>,
    /// By group.
    colours: Vec<Colour>,
    sends: Arena<SendSlot, GroupSend>,
    /// Messages whose packets may come to hosts of this process.
    pub(super) receptions: FxHashMap<FlowName, GroupReception>,
    /// What the ledger is to know at the window's end: when, by which event, of which node.
    pub(super) reports: Vec<(Time, u64, NodeId, FlowName, Report)>,
    /// The ledger itself, in a run of one process.
    pub(super) ledger: Ledger,
    /// Messages whose senders are through with them.
    pub(super) ended: Vec<FlowName>,
    sports: SourcePorts<GroupId>,
    sessions: FxHashMap<(GroupId, NodeId), SessionIndex>,
    known: List<SessionIndex, Session>,
    pub(super) foreign: Foreign,
    /// Scratch: the copies of one packet.
    copies: Vec<(u16, u32)>,
}

fn check(group: &MulticastGroup, fabric: &Fabric) -> Result<(), String> {
    let members = &group.members;
    if members.len() < 2 {
        return Err(format!(
            "{}: a message needs at least two",
            many(members.len(), "member")
        ));
    }
    if !members.is_sorted_by(|a, b| a < b) {
        return Err("the members must ascend and be distinct".to_owned());
    }
    for &member in members {
        if member.index() >= fabric.node_count() || !fabric.is_host(member) {
            return Err(format!("{member} is not a host of this fabric"));
        }
    }
    Ok(())
}

impl<'a> Groups<'a> {
    /// `nodes`: how many the process has.
    pub(super) fn new(
        plan: Option<&'a Multicast>,
        fabric: &Fabric,
        nodes: usize,
    ) -> Result<Self, SetupError> {
        let groups = plan.map_or(&[][..], |plan| &plan.groups);
        for (index, group) in (0..).zip(groups) {
            check(group, fabric).map_err(|problem| SetupError::Group {
                group: index,
                problem,
            })?;
        }
        let updates = plan.map_or(&[][..], |plan| &plan.updates);
        for (group, _) in updates.iter().flat_map(|update| &update.colours) {
            if group.0 as usize >= groups.len() {
                let problem = "an update names it, but the list is shorter".to_owned();
                let group = group.0;
                return Err(SetupError::Group { group, problem });
            }
        }
        Ok(Self {
            plan,
            tables: plan.map(|plan| Cow::Borrowed(&plan.tables)),
            colours: groups.iter().map(|group| group.colour).collect(),
            sends: Arena::default(),
            receptions: FxHashMap::default(),
            reports: Vec::new(),
            ledger: Ledger::default(),
            ended: Vec::new(),
            sports: SourcePorts::default(),
            sessions: FxHashMap::default(),
            known: List::default(),
            foreign: Foreign::new(plan, nodes),
            copies: Vec::new(),
        })
    }

    /// Updates of the tables as changes of the run.
    pub(super) fn changes(plan: Option<&'a Multicast>) -> impl Iterator<Item = Change> + use<'a> {
        let updates = plan.map_or(&[][..], |plan| &plan.updates);
        (0..)
            .zip(updates)
            .map(|(index, update)| Change::Multicast(update.at, index))
    }

    /// Update `index` takes place.
    pub(super) fn update(&mut self, base: &mut Base<'_>, index: usize) {
        let Some((plan, tables)) = self.plan.zip(self.tables.as_mut()) else {
            return;
        };
        let update = &plan.updates[index];
        let tables = tables.to_mut();
        for write in &update.writes {
            tables.write(write);
        }
        for &(group, colour) in &update.colours {
            self.colours[group.0 as usize] = colour;
        }
        for flow in base.hosts.flows.iter_mut() {
            if let FlowTo::Group { colour, group, .. } = &mut flow.to {
                *colour = self.colours[group.0 as usize];
            }
        }
        // Ways have changed.
        self.sessions.clear();
    }

    /// The colour that a group's packets carry.
    pub(super) fn colour(&self, group: GroupId) -> Colour {
        self.colours[group.0 as usize]
    }

    /// The ports by which a switch sends on what comes in by `in_port` (from 1).
    pub(super) fn out_ports(&self, switch: NodeId, in_port: u16, colour: Colour) -> PortSet {
        match (&self.tables, u8::try_from(in_port)) {
            (Some(tables), Ok(in_port)) => tables.out_ports(switch, in_port, colour),
            _ => PortSet::EMPTY,
        }
    }

    /// Says what has become of a message. In a run of one process what follows from it does so at once.
    fn report(&mut self, base: &mut Base<'_>, node: NodeId, name: FlowName, report: Report) {
        let cx = &mut base.cx;
        if !cx.serial {
            return self.reports.push((cx.now, cx.key, node, name, report));
        }
        let Some(closed) = self.ledger.enter(cx.now, name, report) else {
            return;
        };
        let record = closed.record;
        cx.record(record.src, Record::Member(record));
        cx.summary.count_member(&record);
        if record.delivered.is_some() {
            base.traffic.all_delivered(cx, record.tag, closed.all);
        }
    }

    fn group(&self, group: GroupId) -> Option<&'a MulticastGroup> {
        self.plan?.groups.get(group.0 as usize)
    }

    /// A packet to a group is wholly received at a switch: it leaves by all ports of its table entry.
    #[inline(never)]
    pub(super) fn replicate(
        &mut self,
        base: &mut Base<'_>,
        port: PortIndex,
        switch: SwitchIndex,
        handle: PacketSlot,
    ) {
        let (cx, wires) = (&mut base.cx, &mut base.wires);
        let end = &wires.ends[port];
        let (index, node) = (end.index, end.node);
        let template = *wires.packets.get(handle);
        let outs = self.out_ports(node, index + 1, template.colour());
        let payload = u64::from(template.payload);
        self.copies.clear();
        let mut original = Some(handle);
        for number in outs.iter() {
            let out = u16::from(number) - 1;
            let copy = original.take().unwrap_or_else(|| {
                cx.summary.payload_copied += payload;
                wires.packets.insert(template)
            });
            let out_port = wires.port_on(port, out);
            let room =
                wires.switches[switch].has_room(&wires.memory, out, template.queue, template.bytes);
            if wires.ends[out_port].up && room {
                self.copies.push((out, copy.0));
            } else {
                wires.lose(cx, out_port, copy);
            }
        }
        if let Some(handle) = original {
            cx.summary.dead_ends += 1;
            wires.discard(cx, handle);
        }
        let frame = Frame {
            handle: handle.0,
            bytes: template.bytes,
            in_port: index,
            queue: template.queue,
            kind: FrameKind::Data,
        };
        if let Err(Refused) = wires.send_copies(cx, port, switch, frame, &self.copies) {
            // One packet was refused; the copies were never made.
            for &(_, copy) in &self.copies[1..] {
                wires.packets.remove(PacketSlot(copy));
                cx.summary.payload_copied -= payload;
            }
            wires.drop_packet(cx, PacketSlot(self.copies[0].1));
        }
    }

    /// What a flow to a group starts with; `None`: the run ends, for the message does not fit the groups.
    pub(super) fn opening(
        &mut self,
        base: &mut Base<'_>,
        message: &Message,
        group: GroupId,
    ) -> Option<Opening> {
        let Message { src, size, tag, .. } = *message;
        let refuse = |problem| SetupError::GroupMessage {
            tag,
            src,
            group: group.0,
            problem,
        };
        let Some(members) = self.group(group).map(|group| &group.members) else {
            base.cx.stop(refuse("which is not among the run's groups"));
            return None;
        };
        let Ok(sender) = members.binary_search(&src) else {
            base.cx.stop(refuse("of which it is not a member"));
            return None;
        };
        let Some(session) = self.session(base, group, src, members) else {
            base.cx.stop(refuse(
                "whose tables lead a packet to the same port twice (a loop, or two trees on one link)",
            ));
            return None;
        };
        let sport = self.sports.next(src, group);
        let ports = u32::from(sport) | DPORT << 16;
        // Packets to groups find their way by their colour.
        let hash = FlowHash::new(address(src), address(src), ports);
        let ideal_fct = self.known[session].ideal(base, size);
        let mut progress = GroupProgress::new(members.len());
        progress.on_ack(sender, u64::MAX);
        for send in base.hosts.freed_sends.drain(..) {
            self.sends.free(send);
        }
        let send = self.sends.insert(GroupSend {
            session,
            progress,
            acker: Acker::default(),
            marked: false,
            digest: 0,
            went_back: None,
            missed: 0,
        });
        Some(Opening {
            sport,
            hash,
            reverse: hash,
            nic: base.nic_of(src)?,
            ideal_fct,
            to: FlowTo::Group {
                colour: self.colour(group),
                group,
                send,
            },
        })
    }
}

impl Groups<'_> {
    /// A flow to a group has begun: all processes are to know it, and the ledger.
    pub(super) fn begin(&mut self, base: &mut Base<'_>, index: FlowSlot, message: &Message) {
        let flow = &base.hosts.flows[index];
        let FlowTo::Group { group, .. } = flow.to else {
            return;
        };
        let name = flow.name(index);
        let members = self.group(group).map_or(0, |group| group.members.len());
        let begun = Begun {
            tag: message.tag,
            src: message.src,
            group,
            sport: flow.sport,
            members: members as u32 - 1,
        };
        let reception = GroupReception::new(begun, message, flow.watched);
        for process in (0..base.cx.cut.processes()).map(ProcessIndex::from_index) {
            if process != base.cx.own {
                let mail = base.cx.post.to(process);
                mail.groups_begun.push((name, reception.clone()));
            }
        }
        self.receptions.insert(name, reception);
        self.report(base, message.src, name, Report::Begun(begun));
    }
}
