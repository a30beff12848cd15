use proptest::prelude::*;

use super::*;
use crate::buffer::IngressLimit;

/// Frames without contents; accounts by handle.
#[derive(Default)]
struct NoFrames(std::collections::BTreeMap<u32, u32>);

impl Frames for NoFrames {
    fn mark(&mut self, _handle: u32, probability: f64) -> bool {
        probability >= 1.0
    }
    fn push_hop(&mut self, _handle: u32, _record: HopRecord) {}
    fn raise_digest(&mut self, _handle: u32, _code: u16) {}
    fn random(&mut self) -> u32 {
        0
    }
    fn set_account(&mut self, handle: u32, account: u32) {
        self.0.insert(handle, account);
    }
    fn account(&self, handle: u32) -> u32 {
        self.0[&handle]
    }
}

fn switch(ports: usize, total: u64, lossless: bool) -> Switch {
    let headroom = if lossless { 37_500 } else { 0 };
    Switch::new(SwitchConfig {
        ports: vec![
            PortConfig {
                rate: 100_000_000_000,
                ecn: None
            };
            ports
        ],
        buffer: BufferConfig {
            total,
            classes: 1,
            limits: vec![IngressLimit { headroom, shift: 3 }; ports],
            lossless,
            headroom_once_per_port: true,
        },
        pfc_frame_bytes: 64,
        queue_view_with_departing: true,
        stamping: Stamping::None,
    })
}

fn data(handle: u32, in_port: u16) -> Frame {
    Frame {
        handle,
        bytes: 1048,
        in_port,
        queue: QUEUE_DATA,
        kind: FrameKind::Data,
    }
}

#[test]
fn pause_comes_when_the_dynamic_threshold_is_reached_and_resume_when_it_is_left() {
    let mut switch = switch(2, 2 << 20, true);
    // Free shared bytes F = 2 MiB - 2 x (37500 + 4096); shared use s pauses when s >= (F - s) / 8: s >= F / 9.
    let free = (2u64 << 20) - 2 * (37_500 + 4096);
    let mut sent = 0u64;
    loop {
        let pause = switch.enqueue(1, data(sent as u32, 0)).unwrap();
        sent += 1;
        if pause {
            break;
        }
        assert!(sent * 1048 < free, "no pause before the buffer is full");
    }
    let shared = sent * 1048 - 4096;
    assert!(
        shared >= free / 9 && shared - 1048 < free / 9 + 1,
        "{shared} of {free}"
    );
    let pause = switch.dequeue(0, 0, &mut NoFrames::default()).unwrap();
    assert_eq!(pause.frame.kind, FrameKind::Pause(0));
    let mut resumed = None;
    while let Some(departure) = switch.dequeue(0, 1, &mut NoFrames::default()) {
        if departure.resume.is_some() {
            resumed = Some(switch.buffered_bytes());
            break;
        }
    }
    let left = resumed.expect("a resume comes before the queue is empty");
    assert!(left - 4096 + 3072 <= (free - (left - 4096)) / 8);
    assert_eq!(
        switch
            .dequeue(0, 0, &mut NoFrames::default())
            .unwrap()
            .frame
            .kind,
        FrameKind::Resume(0)
    );
}

#[test]
fn headroom_takes_what_is_in_flight_and_then_refuses() {
    let mut switch = switch(2, 2 << 20, true);
    let mut handle = 0;
    while !switch.enqueue(1, data(handle, 0)).unwrap() {
        handle += 1;
    }
    let mut after_pause = 0u64;
    while switch.enqueue(1, data(handle, 0)).is_ok() {
        after_pause += 1048;
    }
    assert!(
        after_pause >= 37_500 - 2 * 1048,
        "only {after_pause} B after the pause"
    );
    assert_eq!(switch.counters(0).drops, 1);
}

#[test]
fn control_queues_go_first_and_are_never_paused() {
    let mut switch = switch(2, 32 << 20, true);
    switch.enqueue(1, data(7, 0)).unwrap();
    let ack = Frame {
        handle: 8,
        bytes: 60,
        in_port: 0,
        queue: QUEUE_ACKS,
        kind: FrameKind::Plain,
    };
    switch.enqueue(1, ack).unwrap();
    switch.set_paused(1, 0, true);
    assert_eq!(
        switch
            .dequeue(0, 1, &mut NoFrames::default())
            .unwrap()
            .frame
            .handle,
        8
    );
    assert!(switch.dequeue(0, 1, &mut NoFrames::default()).is_none());
    switch.set_paused(1, 0, false);
    assert_eq!(
        switch
            .dequeue(0, 1, &mut NoFrames::default())
            .unwrap()
            .frame
            .handle,
        7
    );
}

#[test]
fn data_classes_take_turns_after_the_one_served_last() {
    assert_eq!(Switch::choose(0b1_1100, 2), 3);
    assert_eq!(Switch::choose(0b1_1100, 4), 2);
    assert_eq!(Switch::choose(0b0_0100, 2), 2);
    assert_eq!(Switch::choose(0b1000_0100, 7), 2);
    assert_eq!(Switch::choose(0b1_1110, 2), 1);
}

#[test]
fn ingress_bytes_of_a_replicated_frame_are_released_with_its_last_copy() {
    let (mut switch, mut frames) = (switch(4, 32 << 20, true), NoFrames::default());
    let copies = [(1, 5), (2, 6), (3, 7)];
    switch
        .enqueue_copies(&copies, data(5, 0), &mut frames)
        .unwrap();
    for (out, handle, left) in [(1, 5, 1048), (3, 7, 1048), (2, 6, 0)] {
        let departure = switch.dequeue(0, out, &mut frames).unwrap();
        assert_eq!(departure.frame.handle, handle);
        assert_eq!(switch.buffered_bytes(), left);
    }
}

#[test]
fn copies_on_a_failed_port_are_given_back_and_the_others_hold_the_account() {
    let (mut switch, mut frames) = (switch(4, 32 << 20, true), NoFrames::default());
    for first in [0, 10] {
        let copies = [(1, first), (2, first + 1)];
        switch
            .enqueue_copies(&copies, data(first, 0), &mut frames)
            .unwrap();
    }
    let mut lost = Vec::new();
    switch.flush(1, &frames, |frame| lost.push(frame.handle));
    assert_eq!((lost, switch.buffered_bytes()), (vec![0, 10], 2 * 1048));
    for left in [1048, 0] {
        switch.dequeue(0, 2, &mut frames).unwrap();
        assert_eq!(switch.buffered_bytes(), left);
    }
}

#[test]
fn a_failed_port_gives_back_what_it_held() {
    let mut switch = switch(3, 32 << 20, true);
    for handle in 0..10 {
        switch.enqueue(1, data(handle, 0)).unwrap();
    }
    let mut lost = Vec::new();
    switch.flush(1, &NoFrames::default(), |frame| lost.push(frame.handle));
    assert_eq!(lost, (0..10).collect::<Vec<_>>());
    assert_eq!((switch.buffered_bytes(), switch.queued_bytes(1)), (0, 0));
}

proptest! {
    /// The account of a frame is open from its first copy's arrival to its last copy's departure, whatever the order.
    #[test]
    fn replicated_bytes_count_once_until_the_last_copy_is_gone(
        steps in prop::collection::vec((0u16..4, 0u8..16, 64u32..1100, 0u8..8), 1..600),
        lossless in any::<bool>(),
    ) {
        let (mut switch, mut frames) = (switch(4, 400_000, lossless), NoFrames::default());
        // Bytes and copies left of each frame.
        let mut model: Vec<(u64, u32)> = Vec::new();
        let mut origin = std::collections::BTreeMap::new();
        let mut handle = 0;
        for (port, outs, bytes, action) in steps {
            if action < 3 {
                let copies: Vec<(u16, u32)> = (0..4u16)
                    .filter(|out| outs >> out & 1 == 1)
                    .map(|out| (out, handle + u32::from(out)))
                    .collect();
                handle += 4;
                let frame = Frame { bytes, ..data(0, port) };
                if switch.enqueue_copies(&copies, frame, &mut frames).is_ok() {
                    for &(_, copy) in &copies {
                        origin.insert(copy, model.len());
                    }
                    model.push((u64::from(bytes), copies.len() as u32));
                }
            } else if action == 7 {
                let mut lost = Vec::new();
                switch.flush(port, &frames, |frame| lost.push(frame.handle));
                for copy in lost {
                    model[origin[&copy]].1 -= 1;
                }
            } else if let Some(departure) = switch.dequeue(0, port, &mut frames)
                && departure.frame.queue == QUEUE_DATA
            {
                model[origin[&departure.frame.handle]].1 -= 1;
            }
            let inside: u64 = model.iter().filter(|frame| frame.1 > 0).map(|frame| frame.0).sum();
            prop_assert_eq!(switch.buffered_bytes(), inside);
        }
    }

    #[test]
    fn bytes_are_conserved_and_never_negative(
        steps in prop::collection::vec((0u16..4, 0u16..4, 64u32..1100, any::<bool>()), 1..600),
        lossless in any::<bool>(),
    ) {
        let mut switch = switch(4, 400_000, lossless);
        let (mut inside, mut handle) = (0u64, 0);
        for (in_port, out, bytes, arrive) in steps {
            if arrive {
                let frame = Frame { bytes, ..data(handle, in_port) };
                handle += 1;
                if switch.enqueue(out, frame).is_ok() {
                    inside += u64::from(bytes);
                }
            } else if let Some(departure) = switch.dequeue(0, out, &mut NoFrames::default())
                && departure.frame.queue == QUEUE_DATA
            {
                inside -= u64::from(departure.frame.bytes);
            }
            prop_assert_eq!(switch.buffered_bytes(), inside);
            prop_assert!(switch.shared_bytes() <= inside);
            prop_assert!(inside <= 400_000);
        }
    }
}
