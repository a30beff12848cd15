//! Two nodes over real sockets on this machine: every message whole, in order, once, also while one rail is closed.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::atomic::{AtomicU8, Ordering},
    thread,
};

use raddle_host::rails::{Node, NodeEvent, OpenError, RailAddress, UseError};
use raddle_rails::{Config, Failure, PortError};
use raddle_units::{BitRate, Span};
use raddle_wire::{PORT_ROCE, native::JobKey};

const LONGEST: usize = 300_000;

fn config(local: u32, rails: usize) -> Config {
    let key = JobKey::new([5; 16]);
    let mut config = Config::new(
        1,
        key,
        local,
        1 - local,
        10 + local,
        vec![BitRate::from_gbps(10); rails],
    );
    config.give_up = Span::from_ms(2_000);
    config
}

/// Addresses of two nodes with so many rails, which no other test has, of this or another process.
fn addresses(rails: u8) -> [Vec<RailAddress>; 2] {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let ends: Vec<[SocketAddrV4; 2]> = (0..rails)
        .map(|_| {
            [(); 2].map(|()| {
                let end = NEXT.fetch_add(1, Ordering::Relaxed);
                SocketAddrV4::new(Ipv4Addr::new(127, high, low, end), PORT_ROCE)
            })
        })
        .collect();
    [0, 1].map(|side| {
        ends.iter()
            .map(|ends| RailAddress {
                local: ends[side],
                peer: ends[1 - side],
            })
            .collect()
    })
}

/// Bytes of the message of this number.
fn message(number: usize) -> Vec<u8> {
    let length = (number * 7919) % LONGEST;
    (0..length).map(|at| (at * 31 + number) as u8).collect()
}

fn receive(node: &mut Node, count: usize) {
    node.open_port(3, LONGEST as u64).unwrap();
    for _ in 0..8 {
        let buffer = node.register(vec![0; LONGEST]);
        node.provide(3, buffer).unwrap();
    }
    let mut received = 0;
    while received < count {
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Received {
                    token: buffer,
                    source_port: 9,
                    target_port: 3,
                    length,
                } => {
                    let expected = message(received);
                    assert_eq!(length as usize, expected.len());
                    assert!(node.bytes(buffer).unwrap()[..length as usize] == expected);
                    received += 1;
                    node.provide(3, buffer).unwrap();
                }
                NodeEvent::Failed(failure) => panic!("{failure}"),
                _ => {}
            }
        }
        node.wait(Span::from_us(50)).unwrap();
    }
    // The last acknowledgements are still to go.
    for _ in 0..50 {
        node.step().unwrap();
        thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn messages_come_whole_and_in_order_over_sockets() {
    const COUNT: usize = 200;
    let [first, second] = addresses(2);
    let receiver =
        thread::spawn(move || receive(&mut Node::open(config(1, 2), &second).unwrap(), COUNT));
    let mut node = Node::open(config(0, 2), &first).unwrap();
    let (mut sent, mut done) = (0, 0);
    while done < COUNT {
        while sent < COUNT && sent - done < 16 {
            let bytes = message(sent);
            let length = bytes.len() as u64;
            let buffer = node.register(bytes);
            node.send(9, 3, buffer, length).unwrap();
            let in_use = node.bytes_mut(buffer).is_err();
            assert!(in_use, "what is on its way cannot be changed");
            sent += 1;
        }
        while let Some(event) = node.poll_event() {
            match event {
                NodeEvent::Sent { token: buffer } => {
                    node.release(buffer).unwrap();
                    done += 1;
                }
                NodeEvent::Failed(failure) => panic!("{failure}"),
                _ => {}
            }
        }
        node.wait(Span::from_us(50)).unwrap();
    }
    receiver.join().unwrap();
    let rails: Vec<u64> = node.connection().rails().map(|rail| rail.sent).collect();
    assert!(
        rails.iter().all(|sent| *sent > 1 << 20),
        "both rails were used: {rails:?}"
    );
}

#[test]
fn without_a_peer_it_fails_after_the_set_time_and_gives_buffers_back() {
    let [first, _] = addresses(2);
    let mut config = config(0, 2);
    config.give_up = Span::from_ms(100);
    let mut node = Node::open(config, &first).unwrap();
    let unopened = node.register(vec![0; 10]);
    let not_open = UseError::Port(PortError::NotOpen { port: 1 });
    assert_eq!(node.provide(1, unopened), Err(not_open));
    node.open_port(1, 10).unwrap();
    let (sends, receives) = (node.register(vec![0; 10]), unopened);
    node.provide(1, receives).unwrap();
    node.send(0, 1, sends, 10).unwrap();
    let mut events = Vec::new();
    while !events
        .iter()
        .any(|event| matches!(event, NodeEvent::Failed(Failure::AllRailsDown { .. })))
    {
        node.wait(Span::ZERO).unwrap();
        events.extend(std::iter::from_fn(|| node.poll_event()));
    }
    assert!(
        node.now().0 < Span::from_ms(1_000).0,
        "it took {:?}",
        node.now()
    );
    assert!(events.contains(&NodeEvent::Returned { token: receives }));
    assert!(node.release(sends).is_ok() && node.release(receives).is_ok());
}

#[test]
fn wrong_openings_are_refused() {
    let [first, _] = addresses(2);
    let error = Node::open(config(0, 1), &first).unwrap_err();
    assert_eq!(error.to_string(), "1 rates for 2 rails");
    let mut foreign = first;
    foreign[1].local = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9);
    let error = Node::open(config(0, 2), &foreign).unwrap_err();
    assert!(
        matches!(error, OpenError::Socket { rail: 1, .. }),
        "{error}"
    );
}
