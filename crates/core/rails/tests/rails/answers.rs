//! Short messages that answer short messages.

use raddle_rails::{Config, Connection, Policy};
use raddle_units::{BitRate, Span, Time};
use raddle_wire::{native::JobKey, rails::Body};

use crate::pair::settle;

/// The rail by which the first sends, and no other.
const ASKS: usize = 2;

/// Two nodes with four rails, of which the first node sends by one only; `rate` is that rail's, the others have 10 Gbit/s.
fn nodes(rate: BitRate) -> [Connection; 2] {
    [0, 1].map(|local| {
        let mut rails = vec![BitRate::from_gbps(10); 4];
        rails[ASKS] = rate;
        let key = JobKey::new([1; 16]);
        let mut config = Config::new(1, key, local, 1 - local, 50 + local, rails);
        if local == 0 {
            config.policy = Policy::Unidirectional { send: 1 << ASKS };
        }
        let mut node = Connection::new(Time::ZERO, config).unwrap();
        node.open_port(4, 100).unwrap();
        node.provide(4, 0).unwrap();
        node
    })
}

/// The rail by which the second node sends, so long after the first one's message came.
fn answers_by(rate: BitRate, after: Span) -> usize {
    let mut nodes = nodes(rate);
    settle(Time::ZERO, &mut nodes);
    let now = Time::ZERO + Span::from_ms(1);
    nodes[0].send(4, 4, 8, 0).unwrap();
    let [_, came] = settle(now, &mut nodes);
    assert_eq!(came.len(), 1, "the message");
    nodes[1].send(4, 4, 8, 0).unwrap();
    let sent = std::iter::from_fn(|| nodes[1].poll_transmit(now + after));
    let data = sent.filter(|sent| matches!(sent.packet.body, Body::Data(_)));
    let rails: Vec<usize> = data.map(|sent| sent.rail).collect();
    assert_eq!(rails.len(), 1);
    rails[0]
}

#[test]
fn a_short_answer_takes_the_rail_by_which_it_was_asked() {
    assert_eq!(answers_by(BitRate::from_gbps(10), Span::ZERO), ASKS);
}

#[test]
fn a_slow_rail_is_not_answered_by_and_an_old_message_is_not_answered() {
    assert_eq!(answers_by(BitRate::from_gbps(5), Span::ZERO), 0);
    assert_eq!(answers_by(BitRate::from_gbps(10), Span::from_us(10)), 0);
}
