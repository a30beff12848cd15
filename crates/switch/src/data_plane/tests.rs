use proptest::prelude::*;

use super::*;
use crate::buffer::IngressLimit;

#[derive(Default)]
struct NoFrames;

impl Frames for NoFrames {
    fn mark(&mut self, _handle: u32, probability: f64) -> bool {
        probability >= 1.0
    }
    fn push_hop(&mut self, _handle: u32, _record: HopRecord) {}
    fn raise_digest(&mut self, _handle: u32, _code: u16) {}
    fn random(&mut self) -> u32 {
        0
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
    let pause = switch.dequeue(0, 0, &mut NoFrames).unwrap();
    assert_eq!(pause.frame.kind, FrameKind::Pause(0));
    let mut resumed = None;
    while let Some(departure) = switch.dequeue(0, 1, &mut NoFrames) {
        if departure.resume.is_some() {
            resumed = Some(switch.buffered_bytes());
            break;
        }
    }
    let left = resumed.expect("a resume comes before the queue is empty");
    assert!(left - 4096 + 3072 <= (free - (left - 4096)) / 8);
    assert_eq!(
        switch.dequeue(0, 0, &mut NoFrames).unwrap().frame.kind,
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
    assert_eq!(switch.dequeue(0, 1, &mut NoFrames).unwrap().frame.handle, 8);
    assert!(switch.dequeue(0, 1, &mut NoFrames).is_none());
    switch.set_paused(1, 0, false);
    assert_eq!(switch.dequeue(0, 1, &mut NoFrames).unwrap().frame.handle, 7);
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
    let mut switch = switch(4, 32 << 20, true);
    switch.enqueue_copies(&[1, 2, 3], data(5, 0)).unwrap();
    for (out, left) in [(1, 1048), (3, 1048), (2, 0)] {
        switch.dequeue(0, out, &mut NoFrames).unwrap();
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
    switch.flush(1, |frame| lost.push(frame.handle));
    assert_eq!(lost, (0..10).collect::<Vec<_>>());
    assert_eq!((switch.buffered_bytes(), switch.queued_bytes(1)), (0, 0));
}

proptest! {
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
            } else if let Some(departure) = switch.dequeue(0, out, &mut NoFrames)
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
