//! What the published in-network Allreduce promises about any packets, used by the fuzz target and by
//! `crates/core/offload/tests/published`: no panic, and no more memory than its quota of groups.
//!
//! The bytes are commands: which of some packets to take, which byte of it to change, whether to make its ICRC anew (there is no
//! key in this protocol: anybody can), and how much time passes. Every packet goes to a TOR, a SPINE and two leaders.

use std::net::Ipv4Addr;

use raddle_offload::{
    published::{
        FRAME_ROOM, Leader, LeaderConfig, Stage, Switch, SwitchConfig, Tier, Transport, Verdict,
    },
    roles::Roles,
};
use raddle_units::{Span, Time};
use raddle_wire::{DataType, Edit, Operation};

const GROUPS: usize = 4;

/// What is attacked, and what attacks it.
struct Attack {
    now: Time,
    switches: [Switch; 2],
    leaders: Vec<Leader>,
    packets: Vec<Vec<u8>>,
}

/// Runs commands of eight bytes.
pub(crate) fn packets(bytes: &[u8]) {
    let mut attack = Attack::new();
    for command in bytes.chunks_exact(8) {
        attack.command(command);
    }
}

impl Attack {
    /// Two leaders below one TOR, whose group stands; all packets of its set-up and of a round are kept.
    fn new() -> Self {
        let switch = |last, tier| {
            let mut config = SwitchConfig::new(Ipv4Addr::new(10, 255, 0, last), tier);
            config.groups = GROUPS;
            Switch::new(config)
        };
        let leader = |rank| {
            let config = LeaderConfig {
                roles: Roles::new(1, 2, 2).expect("none is 0"),
                rank,
                group: 7,
                transport: Transport::Ud,
                nodes: [1, 2].map(|host| Ipv4Addr::new(10, 0, 0, host)).into(),
                give_up: Span::from_ms(20),
                overdue: Span::from_ms(2),
            };
            Leader::new(Time::ZERO, config).expect("it leads its node")
        };
        let mut attack = Self {
            now: Time::ZERO,
            switches: [switch(1, Tier::Tor), switch(2, Tier::Spine)],
            leaders: [0, 2].map(leader).into(),
            packets: Vec::new(),
        };
        attack.exchange();
        attack.leaders[0].notify(None, 0);
        attack.exchange();
        for leader in &mut attack.leaders {
            if let Stage::Set(terms) = leader.stage() {
                leader.open(terms);
            }
            let one = 1_i64.to_be_bytes();
            assert!(
                leader
                    .start(Time::ZERO, Operation::Sum, DataType::Int64, &one)
                    .is_some()
            );
        }
        attack.exchange();
        attack
    }

    /// What leaders have to send goes through the TOR.
    fn exchange(&mut self) {
        let mut buffer = [0; FRAME_ROOM];
        for leader in 0..self.leaders.len() {
            while let Some((_, length)) = self.leaders[leader].poll_transmit(&mut buffer) {
                self.packets.push(buffer[..length].to_vec());
                self.give(&buffer[..length]);
            }
        }
    }

    fn give(&mut self, packet: &[u8]) {
        let mut buffer = [0; FRAME_ROOM];
        for switch in &mut self.switches {
            let mut frame = packet.to_vec();
            let verdict = switch.handle_frame(self.now, &mut frame);
            let mut out = Vec::new();
            if let Verdict::Forward | Verdict::Rewritten(_) = verdict {
                out.push(frame);
            }
            while let Some((_, length)) = switch.poll_transmit(&mut buffer) {
                out.push(buffer[..length].to_vec());
            }
            for frame in &out {
                for leader in &mut self.leaders {
                    leader.handle_frame(self.now, frame);
                }
            }
            assert!(switch.group_count() <= GROUPS);
        }
    }

    fn command(&mut self, command: &[u8]) {
        let [which, flags, at, high, value, more, second, time] = *command else {
            return;
        };
        let mut packet = self.packets[usize::from(which) % self.packets.len()].clone();
        let places = [u16::from_be_bytes([high & 1, at]), u16::from(more)];
        for (place, value) in places.into_iter().zip([value, second]) {
            let place = usize::from(place) % packet.len();
            packet[place] = value;
        }
        if flags & 1 == 1
            && let Ok(Some(edit)) = Edit::begin(&mut packet)
        {
            // Of a packet whose lengths are wrong there is nothing to mend.
            let _ = edit.finish();
        }
        if flags & 2 == 2 {
            packet.truncate(usize::from(more).max(1));
        }
        self.now += Span::from_ms(u64::from(time) * 100);
        if self.packets.len() < 64 && flags & 4 == 4 {
            self.packets.push(packet.clone());
        }
        self.give(&packet);
        for switch in &mut self.switches {
            switch.handle_timeout(self.now);
        }
        for leader in &mut self.leaders {
            leader.handle_timeout(self.now);
            if flags & 8 == 8 {
                leader.start(self.now, Operation::Max, DataType::Int8, &[value]);
            }
        }
        self.exchange();
    }
}
