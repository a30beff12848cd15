use proptest::prelude::*;

use super::*;
use crate::{IngressLimit, QUEUE_ACKS, RESERVE_BYTES, RESUME_OFFSET_BYTES};

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

/// A switch with its memory.
fn switch(ports: usize, total: u64, lossless: bool) -> (Switch, SwitchMemory) {
    let limit = IngressLimit {
        reserve: RESERVE_BYTES,
        share: Share::of_free(0.125),
        headroom: if lossless { 37_500 } else { 0 },
        resume_offset: RESUME_OFFSET_BYTES,
    };
    switch_with(ports, total, lossless, limit, Share::ALL)
}

fn switch_with(
    ports: usize,
    total: u64,
    lossless: bool,
    limit: IngressLimit,
    egress: Share,
) -> (Switch, SwitchMemory) {
    let mut memory = SwitchMemory::with_room(ports, 1);
    let config = SwitchConfig {
        ports: vec![
            PortConfig {
                rate: 100_000_000_000,
                ecn: None,
                egress,
            };
            ports
        ],
        buffer: BufferConfig {
            total,
            classes: 1,
            limits: vec![limit; ports],
            lossless,
            as_reference: false,
        },
        pfc_frame_bytes: 64,
        queue_view_with_departing: true,
        stamping: Stamping::None,
    };
    (Switch::new(config, &mut memory), memory)
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
    let (mut switch, mut memory) = switch(2, 2 << 20, true);
    // Free shared bytes F = 2 MiB - 2 x (37500 + 4096); shared use s pauses when s >= (F - s) / 8: s >= F / 9.
    let free = (2u64 << 20) - 2 * (37_500 + 4096);
    let mut sent = 0u64;
    loop {
        let pause = switch
            .enqueue(&mut memory, 1, data(sent as u32, 0))
            .unwrap();
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
    let pause = switch
        .dequeue(&mut memory, 0, 0, &mut NoFrames::default())
        .unwrap();
    assert_eq!(
        (pause.frame.kind, pause.frame.handle),
        (FrameKind::Pause, 0)
    );
    let mut resumed = None;
    while let Some(departure) = switch.dequeue(&mut memory, 0, 1, &mut NoFrames::default()) {
        if departure.resume.is_some() {
            resumed = Some(switch.buffered_bytes());
            break;
        }
    }
    let left = resumed.expect("a resume comes before the queue is empty");
    assert!(left - 4096 + 3072 <= (free - (left - 4096)) / 8);
    assert_eq!(
        switch
            .dequeue(&mut memory, 0, 0, &mut NoFrames::default())
            .unwrap()
            .frame
            .kind,
        FrameKind::Resume
    );
}

#[test]
fn headroom_takes_what_is_in_flight_and_then_refuses() {
    let (mut switch, mut memory) = switch(2, 2 << 20, true);
    let mut handle = 0;
    while !switch.enqueue(&mut memory, 1, data(handle, 0)).unwrap() {
        handle += 1;
    }
    let mut after_pause = 0u64;
    while switch.enqueue(&mut memory, 1, data(handle, 0)).is_ok() {
        after_pause += 1048;
    }
    assert!(
        after_pause >= 37_500 - 2 * 1048,
        "only {after_pause} B after the pause"
    );
    assert_eq!(switch.counters(&memory, 0).drops, 1);
}

/// A port of a switch with a buffer that is large enough, whose frames all wait in port 1: bytes that were taken until the
/// peer was told to pause, and after that until a frame was refused.
fn fill(
    (switch, memory): (&mut Switch, &mut SwitchMemory),
    in_port: u16,
    bytes: u32,
) -> (u64, u64) {
    let (mut before, mut after, mut paused) = (0, 0, false);
    for handle in 0..100_000 {
        let frame = Frame {
            bytes,
            ..data(handle, in_port)
        };
        match switch.enqueue(memory, 1, frame) {
            Ok(pause) => {
                *(if paused { &mut after } else { &mut before }) += u64::from(bytes);
                paused |= pause;
            }
            Err(Refused) => return (before, after),
        }
    }
    panic!("nothing was refused");
}

#[test]
fn a_static_threshold_pauses_at_its_byte_and_headroom_takes_what_follows() {
    for (reserve, threshold, headroom) in [(4096, 100_000, 30_000), (0, 64, 64), (0, 6400, 0)] {
        let limit = IngressLimit {
            reserve,
            share: Share::fixed(threshold),
            headroom,
            resume_offset: 640,
        };
        let (mut switch, mut memory) = switch_with(2, 32 << 20, true, limit, Share::ALL);
        // Frames of 64 B reach any threshold here exactly: 4096 and 6400 are multiples of it.
        let (before, after) = fill((&mut switch, &mut memory), 0, 64);
        let line = u64::from(reserve + threshold).div_ceil(64) * 64;
        assert_eq!(before, line, "{limit:?}");
        let over = u64::from(reserve + threshold) % 64 != 0;
        let room = u64::from(headroom) / 64 * 64 - u64::from(over) * 64;
        assert_eq!(after, room, "{limit:?}");
        assert!(switch.ingress_bytes(&memory, 0) <= u64::from(reserve + threshold + headroom));
        assert_eq!(switch.counters(&memory, 0).drops, 1);
        // It resumes `resume_offset` below the threshold.
        let mut frames = NoFrames::default();
        while switch
            .dequeue(&mut memory, 0, 1, &mut frames)
            .unwrap()
            .resume
            .is_none()
        {}
        let left = switch.ingress_bytes(&memory, 0);
        let resumes = u64::from(reserve + threshold.saturating_sub(640)).max(u64::from(reserve));
        assert!(
            left <= resumes && left + 64 > resumes,
            "{left} B of {limit:?}"
        );
    }
}

#[test]
fn a_larger_alpha_pauses_later_and_complete_sharing_when_nothing_is_free() {
    let with = |share| {
        let limit = IngressLimit {
            reserve: 0,
            share,
            headroom: 10_000,
            resume_offset: 0,
        };
        let (mut switch, mut memory) = switch_with(4, 1_040_000, true, limit, Share::ALL);
        fill((&mut switch, &mut memory), 0, 100).0
    };
    // Alone, a port that may hold alpha times what is free holds alpha / (1 + alpha) of all: 1 MB here.
    let mut last = 0;
    for alpha in [1.0 / 128.0, 1.0 / 8.0, 0.5, 1.0, 2.0, 8.0] {
        let bytes = with(Share::of_free(alpha));
        let expected = 1e6 * alpha / (1.0 + alpha);
        assert!(
            (bytes as f64 - expected).abs() <= 100.0,
            "alpha {alpha}: {bytes}"
        );
        assert!(bytes > last);
        last = bytes;
    }
    assert_eq!(with(Share::ALL), 1_000_000);
    // A threshold above what there is pauses when there is no more, as complete sharing does.
    assert_eq!(with(Share::fixed(5_000_000)), 1_000_000);
}

#[test]
fn complete_sharing_gives_the_last_byte_to_whoever_comes_first() {
    let limit = IngressLimit {
        reserve: 1000,
        share: Share::ALL,
        headroom: 0,
        resume_offset: 0,
    };
    let (mut switch, mut memory) = switch_with(3, 103_000, false, limit, Share::ALL);
    let (before, after) = fill((&mut switch, &mut memory), 0, 1000);
    assert_eq!((before, after), (101_000, 0));
    // Its reserve is left to the other port.
    let of_other = |handle| Frame {
        bytes: 1000,
        ..data(handle, 2)
    };
    assert_eq!(switch.enqueue(&mut memory, 1, of_other(0)), Ok(false));
    assert_eq!(switch.enqueue(&mut memory, 1, of_other(1)), Err(Refused));
}

#[test]
fn a_queue_holds_no_more_than_its_egress_limit() {
    let limit = IngressLimit {
        reserve: 0,
        share: Share::ALL,
        headroom: 0,
        resume_offset: 0,
    };
    let full = |egress| {
        let (mut switch, mut memory) = switch_with(3, 1_000_000, false, limit, egress);
        let (queued, _) = fill((&mut switch, &mut memory), 0, 1000);
        assert_eq!(
            (
                switch.counters(&memory, 1).drops,
                switch.counters(&memory, 0).drops
            ),
            (1, 0),
            "counted where it was to leave"
        );
        // The other queue is none the worse, but for what is free.
        assert!(switch.enqueue(&mut memory, 2, data(1, 0)).is_ok());
        queued
    };
    assert_eq!(full(Share::fixed(50_000)), 50_000);
    // Choudhury and Hahne: one queue holds alpha / (1 + alpha) of the buffer.
    assert_eq!(full(Share::of_free(1.0)), 500_000);
    assert_eq!(full(Share::of_free(0.25)), 200_000);
    // A frame longer than the limit goes through an empty queue.
    assert_eq!(full(Share::fixed(10)), 1000);
}

#[test]
fn control_queues_go_first_and_are_never_paused() {
    let (mut switch, mut memory) = switch(2, 32 << 20, true);
    switch.enqueue(&mut memory, 1, data(7, 0)).unwrap();
    let ack = Frame {
        handle: 8,
        bytes: 60,
        in_port: 0,
        queue: QUEUE_ACKS,
        kind: FrameKind::Plain,
    };
    switch.enqueue(&mut memory, 1, ack).unwrap();
    switch.set_paused(&mut memory, 1, 0, true);
    assert_eq!(
        switch
            .dequeue(&mut memory, 0, 1, &mut NoFrames::default())
            .unwrap()
            .frame
            .handle,
        8
    );
    assert!(
        switch
            .dequeue(&mut memory, 0, 1, &mut NoFrames::default())
            .is_none()
    );
    switch.set_paused(&mut memory, 1, 0, false);
    assert_eq!(
        switch
            .dequeue(&mut memory, 0, 1, &mut NoFrames::default())
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
    let (mut switch, mut memory) = switch(4, 32 << 20, true);
    let mut frames = NoFrames::default();
    let copies = [(1, 5), (2, 6), (3, 7)];
    switch
        .enqueue_copies(&mut memory, &copies, data(5, 0), &mut frames)
        .unwrap();
    for (out, handle, left) in [(1, 5, 1048), (3, 7, 1048), (2, 6, 0)] {
        let departure = switch.dequeue(&mut memory, 0, out, &mut frames).unwrap();
        assert_eq!(departure.frame.handle, handle);
        assert_eq!(switch.buffered_bytes(), left);
    }
}

#[test]
fn copies_on_a_failed_port_are_given_back_and_the_others_hold_the_account() {
    let (mut switch, mut memory) = switch(4, 32 << 20, true);
    let mut frames = NoFrames::default();
    for first in [0, 10] {
        let copies = [(1, first), (2, first + 1)];
        switch
            .enqueue_copies(&mut memory, &copies, data(first, 0), &mut frames)
            .unwrap();
    }
    let mut lost = Vec::new();
    switch.flush(&mut memory, 1, &frames, |frame| lost.push(frame.handle));
    assert_eq!((lost, switch.buffered_bytes()), (vec![0, 10], 2 * 1048));
    for left in [1048, 0] {
        switch.dequeue(&mut memory, 0, 2, &mut frames).unwrap();
        assert_eq!(switch.buffered_bytes(), left);
    }
}

#[test]
fn a_failed_port_gives_back_what_it_held() {
    let (mut switch, mut memory) = switch(3, 32 << 20, true);
    for handle in 0..10 {
        switch.enqueue(&mut memory, 1, data(handle, 0)).unwrap();
    }
    let mut lost = Vec::new();
    switch.flush(&mut memory, 1, &NoFrames::default(), |frame| {
        lost.push(frame.handle)
    });
    assert_eq!(lost, (0..10).collect::<Vec<_>>());
    assert_eq!(
        (switch.buffered_bytes(), switch.queued_bytes(&memory, 1)),
        (0, 0)
    );
}

fn any_share() -> impl Strategy<Value = Share> {
    prop_oneof![
        Just(Share::ALL),
        (0u32..500_000).prop_map(Share::fixed),
        (0.0..20.0).prop_map(Share::of_free),
    ]
}

fn any_limit() -> impl Strategy<Value = IngressLimit> {
    (0u32..10_000, any_share(), 0u32..80_000, 0u32..10_000).prop_map(
        |(reserve, share, headroom, resume_offset)| IngressLimit {
            reserve,
            share,
            headroom,
            resume_offset,
        },
    )
}

proptest! {
    /// The account of a frame is open from its first copy's arrival to its last copy's departure, whatever the order.
    #[test]
    fn replicated_bytes_count_once_until_the_last_copy_is_gone(
        steps in prop::collection::vec((0u16..4, 0u8..16, 64u32..1100, 0u8..8), 1..600),
        lossless in any::<bool>(),
    ) {
        let (mut switch, mut memory) = switch(4, 400_000, lossless);
        let mut frames = NoFrames::default();
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
                if switch.enqueue_copies(&mut memory, &copies, frame, &mut frames).is_ok() {
                    for &(_, copy) in &copies {
                        origin.insert(copy, model.len());
                    }
                    model.push((u64::from(bytes), copies.len() as u32));
                }
            } else if action == 7 {
                let mut lost = Vec::new();
                switch.flush(&mut memory, port, &frames, |frame| lost.push(frame.handle));
                for copy in lost {
                    model[origin[&copy]].1 -= 1;
                }
            } else if let Some(departure) = switch.dequeue(&mut memory, 0, port, &mut frames)
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
        ingress in any_limit(),
        egress in any_share(),
    ) {
        let limit = IngressLimit { headroom: u32::from(lossless) * ingress.headroom, ..ingress };
        let (mut switch, mut memory) = switch_with(4, 400_000, lossless, limit, egress);
        let (mut inside, mut handle) = (0u64, 0);
        for (in_port, out, bytes, arrive) in steps {
            if arrive {
                let frame = Frame { bytes, ..data(handle, in_port) };
                handle += 1;
                if switch.enqueue(&mut memory, out, frame).is_ok() {
                    inside += u64::from(bytes);
                }
            } else if let Some(departure) = switch.dequeue(&mut memory, 0, out, &mut NoFrames::default())
                && departure.frame.queue == QUEUE_DATA
            {
                inside -= u64::from(departure.frame.bytes);
            }
            prop_assert_eq!(switch.buffered_bytes(), inside);
            prop_assert!(switch.shared_bytes() <= inside);
            let reserved = 4 * u64::from(limit.reserve + limit.headroom);
            prop_assert!(switch.shared_bytes() + reserved <= 400_000);
            let of_ports: u64 = (0..4).map(|port| switch.ingress_bytes(&memory, port)).sum();
            prop_assert_eq!(of_ports, inside);
        }
    }
}
