//! The end of a run: what has not ended is told, and ports say what they counted.

use raddle_units::NodeId;
use raddle_workload::Destination;

use super::{
    exchange::Rest,
    windows::{Processes, Run, locked},
};
use crate::{
    record::{FlowRecord, PortRecord, Recorder},
    setup::{RunSummary, SetupError},
};

/// Keeps the ports' counters for rank 0.
#[derive(Default)]
struct Ports(Vec<PortRecord>);

impl Recorder for Ports {
    fn port(&mut self, port: &PortRecord) {
        self.0.push(*port);
    }
}

impl<'a> Run<'a> {
    /// The last, partial interval; pauses and flows that have not ended; port counters. At rank 0 the summary is the run's, at
    /// others what they counted themselves.
    ///
    /// # Errors
    /// Another rank cannot be reached.
    pub(super) fn finish(mut self, processes: Processes<'_, 'a>) -> Result<RunSummary, SetupError> {
        for process in processes {
            locked(process).take_in_mail();
        }
        if self.sampling.next != raddle_units::Time::NEVER && self.now.0 > 0 {
            for process in processes {
                locked(process).base.sample();
            }
            self.tell_sample(processes, self.now);
        }
        let mut rest = Rest::default();
        for process in processes {
            let process = &mut *locked(process);
            process.base.end_pauses(self.now, &mut rest.pauses);
            process.base.open_flows(&mut rest.flows);
            if self.serial {
                std::mem::swap(&mut self.ledger, &mut process.groups.ledger);
            }
            process
                .rails
                .undelivered(&process.base, &mut rest.undelivered);
        }
        let others = if self.exchange.leads() {
            self.exchange.rest(&Rest::default())
        } else {
            let mut ports = Ports::default();
            for node in self
                .exchange
                .own()
                .flat_map(|process| self.cut.nodes_of(process))
            {
                self.record_ports(processes, *node, &mut ports);
            }
            rest.ports = ports.0;
            rest.ports.sort_by_key(|port| (port.node, port.port));
            for process in processes {
                rest.totals.add(&locked(process).totals());
            }
            rest.totals.payload_in_flight = self.payload_in_flight(processes);
            self.exchange.rest(&rest)
        };
        let mut others = others.map_err(|problem| SetupError::Rank { problem })?;
        if !self.exchange.leads() {
            return Ok(rest.totals);
        }
        for other in &mut others {
            rest.pauses.append(&mut other.pauses);
            rest.flows.append(&mut other.flows);
            rest.undelivered.append(&mut other.undelivered);
        }
        self.tell_rest(rest);
        self.tell_ports(processes, &others);
        let mut summary = self.summary;
        for process in processes {
            summary.add(&locked(process).totals());
        }
        summary.payload_in_flight = self.payload_in_flight(processes);
        for other in &others {
            summary.add(&other.totals);
        }
        summary.end_ps = self.now.0;
        Ok(summary)
    }

    /// Payload on its way in this rank, in bytes.
    fn payload_in_flight(&self, processes: Processes<'_, 'a>) -> u64 {
        let mut payload = 0;
        self.for_each_packet(processes, |packet| {
            if packet.kind.is_data() {
                payload += u64::from(packet.payload);
            }
        });
        payload
    }

    /// Pauses and flows that have not ended.
    fn tell_rest(&mut self, rest: Rest) {
        let Rest {
            mut pauses,
            mut flows,
            mut undelivered,
            ..
        } = rest;
        pauses.sort_by_key(|pause| (pause.node, pause.port));
        for pause in &pauses {
            self.recorder.pause(pause);
        }
        flows.sort_by_key(|(_, flow): &(_, FlowRecord)| {
            (flow.start, flow.src, flow.dst, flow.sport)
        });
        for (name, flow) in &flows {
            if let (Destination::Group(group), Some(plan)) = (flow.dst, &self.config.multicast) {
                let members = &plan.groups[group.0 as usize].members;
                for record in self.ledger.missing(*name, members) {
                    self.recorder.member(&record);
                    self.summary.count_member(&record);
                }
            }
            self.recorder.flow(flow);
        }
        undelivered.sort_by_key(|flow| (flow.start, flow.src, flow.dst, flow.tag));
        for flow in &undelivered {
            self.recorder.flow(flow);
        }
    }

    /// The counters of all ports, in order of node and port.
    fn tell_ports(&mut self, processes: Processes<'_, 'a>, others: &[Rest]) {
        let mut elsewhere: Vec<_> = others
            .iter()
            .map(|rest| rest.ports.iter().peekable())
            .collect();
        for node in (0..self.network.fabric.node_count() as u32).map(NodeId) {
            if let Some(place) = self.exchange.place(self.cut.process(node)) {
                locked(&processes[place])
                    .base
                    .record_ports(node, self.recorder);
                continue;
            }
            for ports in &mut elsewhere {
                while let Some(port) = ports.next_if(|port| port.node == node) {
                    self.recorder.port(port);
                }
            }
        }
    }

    fn record_ports(&self, processes: Processes<'_, 'a>, node: NodeId, recorder: &mut Ports) {
        if let Some(place) = self.exchange.place(self.cut.process(node)) {
            locked(&processes[place]).base.record_ports(node, recorder);
        }
    }
}
