//! Which rails a message takes: the paper's three policies ([MNC, section 3]).

use super::rail_set::{RailSet, next_of, one_in_turn};

/// Which rails a message may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Each source port has a rail: its number modulo that of the rails. If that rail does not work, the next that does.
    Static,
    /// Some rails only send, the others only receive; among those that send as [`Self::Dynamic`]. If none of them works, any.
    Unidirectional {
        /// Rails on which this node sends. The other node's are the rest, as a rule.
        send: RailSet,
    },
    /// The rails that are FREE at both ends; if none is, one of the busy ones, in turn.
    #[default]
    Dynamic,
}

/// How a message is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Segmentation {
    /// One equal piece for each chosen rail, bound to it ([MNC, section 3]).
    Equal,
    /// Each segment when a rail can take it, by [`water_fill`](super::split::water_fill): by latency, bandwidth and backlog.
    #[default]
    WaterFill,
}

/// What is known of the rails when a message is to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    /// Rails of the connection, 1..=8.
    pub(super) count: usize,
    /// Those that work.
    pub(super) working: RailSet,
    /// Those busy at either end.
    pub(super) busy: RailSet,
}

impl Policy {
    /// Rails on which data may be sent at all; empty where none works.
    pub(super) fn candidates(self, working: RailSet) -> RailSet {
        match self {
            Self::Unidirectional { send } if working & send != 0 => working & send,
            _ => working,
        }
    }

    /// The rails among which a message of `source_port` is cut. `turn` is the rail used last where one is chosen in turn;
    /// it moves on. Empty where no rail works.
    pub(super) fn choose(self, choice: Choice, source_port: u16, turn: &mut usize) -> RailSet {
        let candidates = self.candidates(choice.working);
        if let Self::Static = self {
            return own_of(candidates, choice.count, source_port);
        }
        let free = candidates & !choice.busy;
        if free != 0 {
            free
        } else {
            one_in_turn(candidates, turn)
        }
    }

    /// The rail of a short message of `source_port` where pieces are equal: its port's own, as [`Self::Static`] has it, since
    /// choosing would take longer than it saves ([MNC, section 2.4]). Empty where no rail works.
    pub(super) fn unchosen(self, working: RailSet, count: usize, source_port: u16) -> RailSet {
        own_of(self.candidates(working), count, source_port)
    }
}

/// The rail of a port among `count`, or the next that is in the set.
fn own_of(set: RailSet, count: usize, source_port: u16) -> RailSet {
    next_of(set, usize::from(source_port) % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(working: RailSet, busy: RailSet) -> Choice {
        Choice {
            count: 4,
            working,
            busy,
        }
    }

    #[test]
    fn dynamic_takes_all_that_are_free_and_else_one_busy_rail_in_turn() {
        let mut turn = 0;
        let mut choose = |working, busy| Policy::Dynamic.choose(all(working, busy), 9, &mut turn);
        assert_eq!(choose(0b1111, 0b0101), 0b1010);
        assert_eq!(choose(0b0111, 0b1000), 0b0111);
        let taken: Vec<_> = (0..5).map(|_| choose(0b1101, 0b1111)).collect();
        assert_eq!(taken, [0b0100, 0b1000, 0b0001, 0b0100, 0b1000]);
        assert_eq!(choose(0, 0), 0);
    }

    #[test]
    fn a_static_port_keeps_its_rail_while_it_works() {
        let mut turn = 0;
        let mut choose = |port, working| Policy::Static.choose(all(working, 0), port, &mut turn);
        let rails: Vec<_> = (0..5).map(|port| choose(port, 0b1111)).collect();
        assert_eq!(rails, [1, 2, 4, 8, 1]);
        assert_eq!(choose(2, 0b1011), 0b1000);
        assert_eq!(choose(3, 0b0011), 0b0001);
        assert_eq!(choose(3, 0), 0);
    }

    #[test]
    fn a_short_message_takes_its_ports_rail_whatever_is_busy() {
        let rails: Vec<_> = (0..5)
            .map(|port| Policy::Dynamic.unchosen(0b1011, 4, port))
            .collect();
        assert_eq!(rails, [1, 2, 8, 8, 1]);
        let policy = Policy::Unidirectional { send: 0b1100 };
        assert_eq!(policy.unchosen(0b1111, 4, 0), 0b0100);
        assert_eq!(policy.unchosen(0b1111, 4, 3), 0b1000);
        assert_eq!(policy.unchosen(0, 4, 3), 0);
    }

    #[test]
    fn one_way_rails_send_only_there_until_none_of_them_works() {
        let policy = Policy::Unidirectional { send: 0b0011 };
        let mut turn = 0;
        assert_eq!(policy.choose(all(0b1111, 0b0001), 0, &mut turn), 0b0010);
        assert_eq!(policy.choose(all(0b1111, 0b0011), 0, &mut turn), 0b0010);
        assert_eq!(policy.choose(all(0b1111, 0b0011), 0, &mut turn), 0b0001);
        assert_eq!(policy.choose(all(0b1100, 0), 0, &mut turn), 0b1100);
    }
}
