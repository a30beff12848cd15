//! Two carriers over rails that open, carry and fail when they like: every offered message comes once, the right one, and no
//! buffer is free before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::{collection::vec, prelude::*};
use raddle_matching::{Carrier, CarrierEvent};
use raddle_units::{Span, Time};

/// What goes from one process to the other on the shadow channel, in order.
#[derive(Debug)]
enum Word {
    Envelope(u32),
    Notice(Vec<u8>),
}

/// What rails have said and the driver has not seen.
#[derive(Debug)]
enum Event {
    Arrived(u32),
    Landed(usize, u32),
}

/// One end of the rails.
#[derive(Debug, Default)]
struct Node {
    sending: BTreeMap<u32, usize>,
    provided: BTreeMap<usize, u32>,
    events: VecDeque<Event>,
}

/// One process. Keys name messages: none is used twice.
#[derive(Debug, Default)]
struct Side {
    carrier: Carrier,
    node: Option<Node>,
    /// Came, and nobody has asked for them.
    unexpected: Vec<u32>,
    words: VecDeque<Word>,
    offered: BTreeSet<u32>,
    /// Of what it sends: on the channel; arrived by rails.
    plain: BTreeSet<u32>,
    arrived: BTreeSet<u32>,
    /// Of what it receives: asked for on the channel; came by rails.
    fetched: BTreeSet<u32>,
    landed: BTreeSet<u32>,
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Offer,
    Bring,
    Match,
    Carry,
    Look,
    Fail,
}

struct World {
    sides: [Side; 2],
    now: Time,
    next: u32,
}

impl World {
    fn new() -> Self {
        let mut sides = [Side::default(), Side::default()];
        for side in &mut sides {
            side.node = Some(Node::default());
            side.carrier.opened();
        }
        Self {
            sides,
            now: Time(0),
            next: 1,
        }
    }

    fn act(&mut self, at: usize, op: Op) {
        self.now += Span::from_us(1);
        match op {
            Op::Offer => {
                let key = self.next;
                self.next += 1;
                let side = &mut self.sides[at];
                side.carrier.offer(key);
                side.offered.insert(key);
                side.words.push_back(Word::Envelope(key));
            }
            Op::Bring => self.bring(at),
            Op::Match => {
                if let Some(key) = self.sides[at].unexpected.pop() {
                    self.sides[at].carrier.matched(self.now, key, 1 << 20);
                }
            }
            Op::Carry => self.carry(at),
            Op::Look => self.look(at),
            Op::Fail => {
                self.look(at);
                self.sides[at].carrier.fail();
            }
        }
        self.obey(at);
    }

    /// The next word for the other process arrives.
    fn bring(&mut self, from: usize) {
        let to = 1 - from;
        match self.sides[from].words.pop_front() {
            Some(Word::Envelope(key)) => self.sides[to].unexpected.push(key),
            Some(Word::Notice(bytes)) => {
                self.look(to);
                self.sides[to].carrier.handle_packet(&bytes).unwrap();
            }
            None => {}
        }
        self.obey(to);
    }

    /// A message crosses the rails; its acknowledgement comes back if the receiver has not closed by then.
    fn carry(&mut self, from: usize) {
        let [zero, one] = &mut self.sides;
        let (source, target) = if from == 0 { (zero, one) } else { (one, zero) };
        let (Some(source), Some(target)) = (&mut source.node, &mut target.node) else {
            return;
        };
        let ready = source.sending.iter().find_map(|(key, slot)| {
            let provided = target.provided.get(slot)?;
            assert_eq!(provided, key, "another message's buffer");
            Some((*key, *slot))
        });
        if let Some((key, slot)) = ready {
            source.sending.remove(&key);
            target.provided.remove(&slot);
            target.events.push_back(Event::Landed(slot, key));
            // Now and then the acknowledgement is lost for good.
            if key % 5 != 0 {
                source.events.push_back(Event::Arrived(key));
            }
        }
    }

    /// The driver hands in what the rails have said.
    fn look(&mut self, at: usize) {
        let side = &mut self.sides[at];
        while let Some(event) = side.node.as_mut().and_then(|node| node.events.pop_front()) {
            match event {
                Event::Arrived(key) => side.carrier.arrived(key),
                Event::Landed(slot, _) => side.carrier.landed(self.now, slot),
            }
        }
    }

    fn obey(&mut self, at: usize) {
        let now = self.now;
        let side = &mut self.sides[at];
        let once = |new: bool| assert!(new, "twice");
        while let Some(event) = side.carrier.poll_event() {
            match event {
                CarrierEvent::SendPlain { key } => {
                    assert!(
                        side.node
                            .as_ref()
                            .is_none_or(|node| !node.sending.contains_key(&key))
                    );
                    once(side.plain.insert(key));
                }
                CarrierEvent::SendOnRails { key, slot } => {
                    let node = side.node.as_mut().expect("rails are open");
                    once(node.sending.insert(key, slot).is_none());
                }
                CarrierEvent::Arrived { key } => once(side.arrived.insert(key)),
                CarrierEvent::FetchPlain { key } => {
                    assert!(!side.landed.contains(&key));
                    once(side.fetched.insert(key));
                    side.carrier.message_came(now, key);
                }
                CarrierEvent::Provide { key, slot } => {
                    let node = side.node.as_mut().expect("rails are open");
                    once(node.provided.insert(slot, key).is_none());
                }
                CarrierEvent::Landed { key } => once(side.landed.insert(key)),
                CarrierEvent::Close => {
                    let node = side.node.take().expect("closed once");
                    assert!(node.events.is_empty(), "events were handed in before");
                }
                CarrierEvent::Hello(_) | CarrierEvent::Nudge => unreachable!(),
            }
        }
        while let Some(notice) = side.carrier.poll_transmit() {
            side.words.push_back(Word::Notice(notice.bytes()));
        }
        let other = &self.sides[1 - at];
        for key in &self.sides[at].arrived {
            let came = other.landed.contains(key)
                || other.node.as_ref().is_some_and(|node| {
                    let mut events = node.events.iter();
                    events.any(|event| matches!(event, Event::Landed(_, landed) if landed == key))
                });
            assert!(came, "{key} is free, and did not come");
        }
    }

    /// Until nothing moves any more; rails that have something left fail in the end.
    fn finish(&mut self) {
        for round in 0_u32.. {
            assert!(round < 1000, "it does not end");
            for at in 0..2 {
                while !self.sides[at].words.is_empty() {
                    self.act(at, Op::Bring);
                }
                while !self.sides[at].unexpected.is_empty() {
                    self.act(at, Op::Match);
                }
                (0..70).for_each(|_| self.act(at, Op::Carry));
            }
            (0..2).for_each(|at| self.act(at, Op::Look));
            if self.sides.iter().all(|side| side.words.is_empty()) {
                if self
                    .sides
                    .iter()
                    .all(|side| side.carrier.open_offers() == 0)
                {
                    return;
                }
                self.act(0, Op::Fail);
            }
        }
    }

    fn check(&self) {
        for at in 0..2 {
            let (source, target) = (&self.sides[at], &self.sides[1 - at]);
            assert_eq!(source.plain, target.fetched);
            assert_eq!(source.arrived, target.landed);
            assert!(source.plain.is_disjoint(&source.arrived));
            let both: BTreeSet<u32> = source.plain.union(&source.arrived).copied().collect();
            assert_eq!(both, source.offered);
        }
    }
}

fn op() -> impl Strategy<Value = (usize, Op)> {
    let op = prop_oneof![
        20 => Just(Op::Offer),
        30 => Just(Op::Bring),
        20 => Just(Op::Match),
        30 => Just(Op::Carry),
        10 => Just(Op::Look),
        1 => Just(Op::Fail),
    ];
    (0_usize..2, op)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_message_comes_once(ops in vec(op(), 0..300)) {
        let mut world = World::new();
        for (at, op) in ops {
            world.act(at, op);
        }
        world.finish();
        world.check();
    }
}

/// What names no message that waits is refused.
#[test]
fn notices_about_nothing_are_refused() {
    use raddle_matching::{BadNotice, Notice};

    let mut carrier = Carrier::default();
    let answer = |slot| Notice::Answer {
        key: 3,
        slot,
        worth: 0,
    };
    let key = Err(BadNotice::Key(3));
    assert_eq!(carrier.handle_packet(&answer(None).bytes()), key);
    carrier.offer(3);
    assert_eq!(carrier.handle_packet(&answer(Some(0)).bytes()), Ok(()));
    assert_eq!(carrier.handle_packet(&answer(Some(1)).bytes()), key);
    assert!(
        !carrier.wants(1 << 30),
        "the receiver wants nothing offered"
    );
    assert_eq!(
        carrier.handle_packet(&Notice::Again { key: 3 }.bytes()),
        Ok(())
    );
    assert_eq!(
        carrier.handle_packet(&Notice::Again { key: 3 }.bytes()),
        key
    );
}
