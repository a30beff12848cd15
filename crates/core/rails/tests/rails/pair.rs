//! Two connections whose packets arrive at once.

use raddle_rails::{Connection, Event, Reception};
use raddle_units::Time;

/// Passes packets until there are none; gives the events of both.
pub(crate) fn settle(now: Time, nodes: &mut [Connection; 2]) -> [Vec<Event>; 2] {
    loop {
        let mut moved = false;
        for from in [0, 1] {
            nodes[from].handle_timeout(now);
            while let Some(transmit) = nodes[from].poll_transmit(now) {
                let how = Reception::default();
                let _ = nodes[1 - from].handle_packet(now, transmit.rail, &transmit.packet, how);
                moved = true;
            }
        }
        if !moved {
            return [0, 1].map(|node| std::iter::from_fn(|| nodes[node].poll_event()).collect());
        }
    }
}
