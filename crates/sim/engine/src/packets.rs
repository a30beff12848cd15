//! The packets of a run, in memory that all its processes share.
//!
//! A packet stays in its slot from its sender to its receiver: where it passes from one process to another, only the slot does.
//! A slot belongs to one process at a time: to the one that took it, then to the one that finds it in its mail when the window
//! is over. Who has a slot has its packet to itself, so that packets need no lock.

use std::{
    alloc::{Layout, handle_alloc_error},
    ops::Range,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
};

use memmap2::{MmapMut, MmapOptions};

use crate::{
    index::PacketSlot,
    packet::{Packet, PacketKind},
};

/// Bits of a slot that are its place in a chunk.
const PLACE_BITS: u32 = 18;
/// Packets of a chunk: 32 MiB of them.
const CHUNK: usize = 1 << PLACE_BITS;
/// Chunks that slots can name.
const CHUNKS: usize = 1 << (u32::BITS - PLACE_BITS);

/// Slots that pass at once between a process and those that no process has.
const BLOCK: usize = 1 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct PacketMemory {
    /// Where slot 0 would be, if the memory of each chunk went on to both sides; null: there is no chunk yet.
    chunks: [AtomicPtr<Packet>; CHUNKS],
    spare: Mutex<Spare>,
}

/// What no process has.
#[derive(Debug, Default)]
struct Spare {
    /// The chunks.
    memory: Vec<MmapMut>,
    /// The first slot that was never given out.
    fresh: usize,
    /// Slots that were given back.
    blocks: Vec<Vec<PacketSlot>>,
}

impl PacketMemory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            spare: Mutex::default(),
        })
    }

    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a packet is.
    #[inline(always)]
    fn at(&self, slot: PacketSlot) -> *mut Packet {
        // Who has a slot has heard of it since its chunk was made.
        let chunk = self.chunks[(slot.0 >> PLACE_BITS) as usize].load(Ordering::Relaxed);
        debug_assert!(!chunk.is_null(), "{slot:?} was never given out");
        chunk.wrapping_add(slot.0 as usize)
    }

    /// Slots that were never given out.
    ///
    /// # Panics
    /// When there are 2^32 packets. Where the system has no memory the program ends, as with any list.
    fn take_fresh(&self, spare: &mut Spare) -> Range<u32> {
        let first = spare.fresh;
        assert!(first + BLOCK < CHUNKS * CHUNK, "no run has 2^32 packets");
        if first.is_multiple_of(CHUNK) {
            let mut memory = new_chunk();
            let packets = memory.as_mut_ptr().cast::<Packet>();
            self.chunks[first / CHUNK].store(packets.wrapping_sub(first), Ordering::Relaxed);
            spare.memory.push(memory);
        }
        spare.fresh += BLOCK;
        first as u32..(first + BLOCK) as u32
    }

    /// Looks at all packets on their way.
    ///
    /// # Safety
    /// Nobody else uses any packet meanwhile.
    #[expect(unsafe_code, reason = "packets lie in memory that processes share")]
    pub(crate) unsafe fn for_each(&self, mut each: impl FnMut(&mut Packet)) {
        for slot in (0..self.spare().fresh as u32).map(PacketSlot) {
            let packet = self.at(slot);
            // SAFETY: the slot was given out, so that it is in a chunk; what was never in use is zeros, which is free.
            let kind = unsafe { (&raw const (*packet).kind).read() };
            if kind != PacketKind::Free {
                // SAFETY: a packet is there, and the caller says that nobody else uses it.
                each(unsafe { &mut *packet });
            }
        }
    }
}

/// Memory for the packets of a chunk, all of them free: zeros.
fn new_chunk() -> MmapMut {
    const BYTES: usize = CHUNK * size_of::<Packet>();
    const { assert!(PacketKind::Free as u8 == 0) };
    let Ok(memory) = MmapOptions::new().len(BYTES).map_anon() else {
        handle_alloc_error(Layout::new::<[Packet; CHUNK]>());
    };
    // A system without huge pages refuses, and all stays as it is.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    memory
}

/// A process's packets.
#[derive(Debug)]
pub(crate) struct Packets {
    memory: Arc<PacketMemory>,
    /// Slots of packets that are gone: the last one is used first.
    free: Vec<PacketSlot>,
    /// Slots that were never in use.
    fresh: Range<u32>,
    /// Slots that it has, with or without a packet.
    slots: usize,
}

impl Packets {
    pub(crate) const fn new(memory: Arc<PacketMemory>) -> Self {
        Self {
            memory,
            free: Vec::new(),
            fresh: 0..0,
            slots: 0,
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> PacketSlot {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.take_more(),
        };
        self.put(slot, packet);
        slot
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "packets lie in memory that processes share")]
    fn put(&mut self, slot: PacketSlot, packet: Packet) {
        // SAFETY: this process has the slot: no other reads or writes what is there.
        unsafe { self.memory.at(slot).write(packet) }
    }

    /// A slot, where none is free.
    #[inline(never)]
    fn take_more(&mut self) -> PacketSlot {
        if self.fresh.is_empty() {
            let mut spare = self.memory.spare();
            if let Some(mut block) = spare.blocks.pop() {
                self.free.append(&mut block);
            } else {
                self.fresh = self.memory.take_fresh(&mut spare);
            }
            self.slots += BLOCK;
        }
        let fresh = || self.fresh.next().map(PacketSlot);
        let slot = self.free.pop().or_else(fresh);
        slot.expect("a block has slots")
    }

    /// The packet is gone.
    #[inline]
    pub(crate) fn remove(&mut self, packet: PacketSlot) {
        self.get_mut(packet).kind = PacketKind::Free;
        self.free.push(packet);
    }

    /// The packet is another process's from now on.
    #[inline]
    pub(crate) const fn give_away(&mut self) {
        self.slots -= 1;
    }

    /// So many packets are this process's from now on.
    pub(crate) const fn take_over(&mut self, packets: usize) {
        self.slots += packets;
    }

    /// At the end of a window: gives back what it is not likely to need. Where more packets end than begin, slots would pile up.
    pub(crate) fn level(&mut self) {
        let kept = self.count() + BLOCK;
        if self.free.len() < 2 * kept {
            return;
        }
        let left = (self.free.len() - kept) / BLOCK * BLOCK;
        self.slots -= left;
        // Those that were in use last, which are more likely to be in the cache, stay.
        let slots: Vec<_> = self.free.drain(..left).collect();
        let blocks = slots.chunks(BLOCK).map(<[_]>::to_vec);
        self.memory.spare().blocks.extend(blocks);
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "packets lie in memory that processes share")]
    pub(crate) fn get(&self, packet: PacketSlot) -> &Packet {
        // SAFETY: this process has the slot, so that no other writes what is there, and it has put a packet there, or who gave
        // it the slot has.
        let packet = unsafe { &*self.memory.at(packet) };
        debug_assert!(packet.kind != PacketKind::Free);
        packet
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "packets lie in memory that processes share")]
    pub(crate) fn get_mut(&mut self, packet: PacketSlot) -> &mut Packet {
        // SAFETY: as for `get`, and this process is borrowed as long as the packet is.
        unsafe { &mut *self.memory.at(packet) }
    }

    /// Hints that a switch will need a packet soon.
    #[inline]
    pub(crate) fn prefetch(&self, packet: PacketSlot) {
        self.get(packet).prefetch();
    }

    /// Hints that a host will need what [`Self::prefetch`] leaves out.
    #[inline]
    pub(crate) fn prefetch_rest(&self, packet: PacketSlot) {
        self.get(packet).prefetch_rest();
    }

    /// How many are on their way.
    pub(crate) fn count(&self) -> usize {
        self.slots - self.free.len() - self.fresh.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use raddle_unicast::FlowHash;
    use raddle_units::{NodeId, Time};

    use super::*;
    use crate::{
        index::FlowSlot,
        packet::{Bytestream, Envelope},
    };

    /// A packet that knows its number.
    fn packet(number: u64) -> Packet {
        let bytes = Bytestream {
            flow: FlowSlot(0),
            generation: 0,
            seq: number,
        };
        let envelope = Envelope {
            src: NodeId(0),
            hash: FlowHash::new(0, 0, 0),
            queue: 0,
            sent_at: Time::ZERO,
            bytes: 64,
            payload: 0,
        };
        Packet::data(NodeId(1), &bytes, envelope)
    }

    #[expect(unsafe_code, reason = "nobody else uses them")]
    fn all(memory: &PacketMemory) -> Vec<u64> {
        let mut all = Vec::new();
        // SAFETY: the test has one thread.
        unsafe { memory.for_each(|packet| all.push(packet.seq())) };
        all
    }

    #[test]
    fn a_packet_stays_where_it_is_when_it_passes_to_another_process() {
        let memory = PacketMemory::new();
        let mut one = Packets::new(Arc::clone(&memory));
        let mut other = Packets::new(Arc::clone(&memory));
        let [first, second, third] = [1, 2, 3].map(|number| one.insert(packet(number)));
        let fourth = other.insert(packet(4));
        one.give_away();
        other.take_over(1);
        assert_eq!((one.count(), other.count()), (2, 2));
        assert_eq!((other.get(second).seq(), other.get(fourth).seq()), (2, 4));
        assert_eq!(all(&memory), [1, 2, 3, 4]);
        other.remove(second);
        one.remove(first);
        assert_eq!((one.count(), other.count()), (1, 1));
        assert_eq!((one.get(third).seq(), all(&memory)), (3, vec![3, 4]));
        // Each uses its own again.
        assert_eq!(
            (one.insert(packet(5)), other.insert(packet(6))),
            (first, second)
        );
    }

    /// One process sends, another takes in, on a thread each, for far more windows than there are slots.
    #[test]
    fn one_way_traffic_takes_no_more_slots_than_are_under_way() {
        const WINDOW: u64 = 3 * BLOCK as u64;
        const WINDOWS: u64 = 100;
        let memory = PacketMemory::new();
        let (mut from, mut to) = (
            Packets::new(Arc::clone(&memory)),
            Packets::new(Arc::clone(&memory)),
        );
        let (mail, inbox) = mpsc::sync_channel::<Vec<PacketSlot>>(0);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for window in 0..WINDOWS {
                    let sent =
                        (0..WINDOW).map(|number| from.insert(packet(window * WINDOW + number)));
                    let sent: Vec<_> = sent.collect();
                    for _ in &sent {
                        from.give_away();
                    }
                    from.level();
                    assert_eq!(from.count(), 0);
                    mail.send(sent).unwrap();
                }
            });
            let mut expected = 0..;
            for arrived in inbox {
                to.take_over(arrived.len());
                for slot in arrived {
                    assert_eq!(Some(to.get(slot).seq()), expected.next());
                    to.remove(slot);
                }
                to.level();
                assert_eq!(to.count(), 0);
            }
            assert_eq!(expected.next(), Some(WINDOWS * WINDOW));
        });
        assert!(all(&memory).is_empty());
        let given_out = memory.spare().fresh as u64;
        assert!(given_out <= 4 * WINDOW, "{given_out} slots");
    }
}
