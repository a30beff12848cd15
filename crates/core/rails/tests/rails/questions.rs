//! Messages that wait for what the other node says of its rails.

use raddle_rails::{Ask, Config, Connection, Event, Reception, Segmentation, Transmit};
use raddle_units::{BitRate, Bytes, Span, Time};
use raddle_wire::{native::JobKey, rails::Body};

use crate::pair::settle;

fn node(local: u32) -> Connection {
    let rails = vec![BitRate::from_gbps(10); 3];
    let mut config = Config::new(1, JobKey::new([1; 16]), local, 1 - local, 50 + local, rails);
    config.segmentation = Segmentation::Equal;
    config.ask = Ask::Wait;
    config.stale = Span::ZERO;
    config.short = Bytes(1_999);
    Connection::new(Time::ZERO, config).unwrap()
}

/// A message asks at the first look, whichever rail has its turn then, and goes out with the answer.
#[test]
fn one_look_is_enough_to_ask() {
    let mut nodes = [node(0), node(1)];
    nodes[1].open_port(4, 1 << 20).unwrap();
    for token in 0..12 {
        nodes[1].provide(4, token).unwrap();
    }
    settle(Time::ZERO, &mut nodes);
    for token in 0..12 {
        let now = Time::ZERO + Span::from_us(100 * (token + 1));
        // Of one piece and of several, so that the turns of rails move on.
        let length = 2_000 + 3_000 * (token % 3);
        nodes[0].send(0, 4, length, token).unwrap();
        let look: Vec<_> = std::iter::from_fn(|| nodes[0].poll_transmit(now)).collect();
        let probes = look.iter().filter(|sent| sent.packet.body == Body::Probe);
        assert_eq!(probes.count(), 1, "it asks, once: {look:?}");
        let is_data = |sent: &Transmit| matches!(sent.packet.body, Body::Data(_));
        assert!(!look.iter().any(is_data), "it waits: {look:?}");
        for sent in look {
            let outcome =
                nodes[1].handle_packet(now, sent.rail, &sent.packet, Reception::default());
            outcome.unwrap();
        }
        let [at_once, _] = settle(now, &mut nodes);
        // Acknowledgements that wait for more are due.
        let [later, _] = settle(now + Span::from_us(50), &mut nodes);
        assert_eq!([at_once, later].concat(), [Event::Sent { token }]);
    }
}

/// What is short leaves at the first look, by the rail of its port, and asks nothing ([MNC, section 2.4]).
#[test]
fn a_short_message_asks_nothing() {
    let mut nodes = [node(0), node(1)];
    for port in 0..4 {
        nodes[1].open_port(port, 1 << 20).unwrap();
        (0..2).for_each(|token| nodes[1].provide(port, token).unwrap());
    }
    settle(Time::ZERO, &mut nodes);
    for (token, port) in (0..8).map(|token| (u64::from(token), token % 4)) {
        let now = Time::ZERO + Span::from_us(100 * (token + 1));
        nodes[0].send(port, port, 1_999, token).unwrap();
        let look: Vec<_> = std::iter::from_fn(|| nodes[0].poll_transmit(now)).collect();
        let is_data = |sent: &&Transmit| matches!(sent.packet.body, Body::Data(_));
        let rails: Vec<_> = look.iter().filter(is_data).map(|sent| sent.rail).collect();
        assert_eq!(
            rails,
            [usize::from(port) % 3, usize::from(port) % 3],
            "{look:?}"
        );
        let asks = look.iter().any(|sent| sent.packet.body == Body::Probe);
        assert!(!asks, "{look:?}");
        for sent in look {
            let how = Reception::default();
            nodes[1]
                .handle_packet(now, sent.rail, &sent.packet, how)
                .unwrap();
        }
        settle(now, &mut nodes);
        settle(now + Span::from_us(50), &mut nodes);
    }
    assert_eq!(nodes[0].sending(), 0);
}
