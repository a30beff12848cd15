//! Queues and the steps of arrival and departure.

use std::collections::VecDeque;

use raddle_prefetch::{move_to_huge_pages, prefetch, prefetch_start};
use raddle_transport::telemetry::{HopRecord, TelemetryUnits};

use crate::{
    buffer::{BufferConfig, Share, SharedBuffer},
    pint::{ExactStamp, LogStamp, PintInput, PintStamp},
};

/// PFC frames: first of all, never paused, in no buffer's account.
pub const QUEUE_PFC: u8 = 0;
/// Acknowledgements where they travel apart from data: next, never paused, in no buffer's account.
pub const QUEUE_ACKS: u8 = 1;
/// The first data class; class `c` uses queue `QUEUE_DATA + c`.
pub const QUEUE_DATA: u8 = 2;

/// Queues of a port (IEEE 802.1Q has eight priorities).
const QUEUES: usize = 8;

/// What a frame is to the data plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// Passed on as it is.
    Plain,
    /// Marked by ECN and stamped with telemetry.
    Data,
    /// [`Self::Data`] of which there are copies in other ports: the ingress bytes are released with the last one. Made by
    /// [`Switch::enqueue_copies`].
    Copy,
    /// PFC: stop sending this data class.
    Pause(u8),
    /// PFC: send this data class again.
    Resume(u8),
}

/// A frame in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The driver's name for it. PFC frames are made here and have none (0).
    pub handle: u32,
    /// Bytes on the wire, at most 64 KiB.
    pub bytes: u32,
    /// Port it came in by (index, from 0).
    pub in_port: u16,
    /// Queue, [`QUEUE_PFC`] to the last data class.
    pub queue: u8,
    /// What is done with it.
    pub kind: FrameKind,
}

/// Access to the driver's frames, and its randomness.
pub trait Frames {
    /// Decides with `probability` (above 0, at most 1) whether the frame gets a congestion mark, and sets it. Asked about
    /// every frame of a data queue; what cannot carry a mark does not get one.
    fn mark(&mut self, handle: u32, probability: f64) -> bool;
    /// Appends a hop record.
    fn push_hop(&mut self, handle: u32, record: HopRecord);
    /// The frame's utilisation digest becomes at least `code`.
    fn raise_digest(&mut self, handle: u32, code: u16);
    /// 31 random bits.
    fn random(&mut self) -> u32;
    /// Keeps a word of the switch's with a frame that is one of several copies, for as long as it is in this switch.
    fn set_account(&mut self, handle: u32, account: u32);
    /// The word that [`Self::set_account`] kept.
    fn account(&self, handle: u32) -> u32;
}

/// A frame that is to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The frame.
    pub frame: Frame,
    /// A RESUME was queued on this port, which may be able to send it at once.
    pub resume: Option<u16>,
}

/// Copies of a frame that is replicated: for each its output port and the driver's name for it.
pub type Copies<'a> = &'a [(u16, u32)];

/// Settings of one port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortConfig {
    /// Line rate in bit/s.
    pub rate: u64,
    /// ECN (kmin, kmax in bytes, pmax); `None`: no marks.
    pub ecn: Option<(u64, u64, f64)>,
    /// What each of its data queues may hold of the buffer's shared part; an empty queue takes a frame whatever is free.
    pub egress: Share,
}

/// Settings of one switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Ports in order.
    pub ports: Vec<PortConfig>,
    /// The shared buffer.
    pub buffer: BufferConfig,
    /// Bytes of a PFC frame.
    pub pfc_frame_bytes: u32,
    /// Queue lengths for ECN and telemetry include the frame that is being taken.
    pub queue_view_with_departing: bool,
    /// Telemetry that data frames are stamped with.
    pub stamping: Stamping,
}

/// Telemetry of a run.
#[derive(Clone, Debug)]
pub enum Stamping {
    /// None.
    None,
    /// Hop records.
    Hops(TelemetryUnits),
    /// PINT's digest through rounded logarithms; filter span in ns.
    PintLogs(LogStamp, u64),
    /// PINT's digest in floating point; filter span in ns.
    PintExact(ExactStamp, u64),
}

/// Counters of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames marked.
    pub ecn_marks: u64,
    /// Most bytes queued at once.
    pub max_queue_bytes: u64,
    /// Frames that came in here and were refused by the buffer, that were to leave here and found the queue full, or that
    /// were flushed when this port's link failed.
    pub drops: u64,
}

/// One queue, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: u64,
}

/// One port; the first cache line holds what every frame touches.
#[derive(Debug)]
#[repr(C, align(64))]
struct Port {
    queued_bytes: u64,
    tx_bytes: u64,
    tx_packets: u64,
    max_queue_bytes: u64,
    kmin: u64,
    last_tx_ns: u64,
    last_bytes: u32,
    /// Bit per queue: not empty, and paused.
    backlog: u8,
    paused: u8,
    /// The queue served last, for the round robin of data classes.
    served: u8,
    rate_code: u8,
    kmax: u64,
    pmax: f64,
    ecn_marks: u64,
    drops: u64,
    utilisation: f64,
    bytes_per_s: u64,
    egress: Share,
}

const _: () = assert!(std::mem::offset_of!(Port, rate_code) < 64 && size_of::<Queue>() == 64);

/// One switch.
#[derive(Debug)]
pub struct Switch {
    ports: Box<[Port]>,
    /// Port by port, in each by number: PFC frames, acknowledgements, data classes.
    queues: Box<[Queue]>,
    queues_of_port: usize,
    buffer: SharedBuffer,
    /// Copies left of replicated frames, by account: the ingress bytes are released with the last.
    copies_left: Vec<u16>,
    free_accounts: Vec<u32>,
    pfc_frame_bytes: u32,
    view_with_departing: bool,
    /// Some queue has a limit of its own.
    limits_queues: bool,
    stamping: Stamping,
}

impl Switch {
    /// A switch with empty queues.
    ///
    /// # Panics
    /// When the buffer's limits are not one per port, or there are more than six data classes.
    pub fn new(config: SwitchConfig) -> Self {
        let SwitchConfig { ports, buffer, .. } = &config;
        assert_eq!(
            ports.len(),
            buffer.limits.len(),
            "one ingress limit per port"
        );
        assert!(
            usize::from(QUEUE_DATA) + buffer.classes <= QUEUES,
            "a port has at most eight queues"
        );
        let port = |settings: &PortConfig| {
            let (kmin, kmax, pmax) = settings.ecn.unwrap_or((u64::MAX, u64::MAX, 0.0));
            Port {
                queued_bytes: 0,
                backlog: 0,
                paused: 0,
                served: QUEUE_DATA,
                rate_code: match &config.stamping {
                    Stamping::Hops(units) => units.code(settings.rate).unwrap_or(0),
                    _ => 0,
                },
                last_bytes: 0,
                last_tx_ns: 0,
                utilisation: 0.0,
                kmin,
                kmax,
                pmax,
                bytes_per_s: settings.rate / 8,
                egress: settings.egress,
                tx_bytes: 0,
                tx_packets: 0,
                max_queue_bytes: 0,
                ecn_marks: 0,
                drops: 0,
            }
        };
        let queues_of_port = usize::from(QUEUE_DATA) + buffer.classes;
        let queues = ports.len() * queues_of_port;
        Self {
            ports: ports.iter().map(port).collect(),
            queues: (0..queues).map(|_| Queue::default()).collect(),
            queues_of_port,
            buffer: SharedBuffer::new(buffer),
            copies_left: Vec::new(),
            free_accounts: Vec::new(),
            pfc_frame_bytes: config.pfc_frame_bytes,
            view_with_departing: config.queue_view_with_departing,
            limits_queues: config.ports.iter().any(|port| port.egress != Share::ALL),
            stamping: config.stamping,
        }
    }

    /// Memory that a port takes before anything is queued, in bytes.
    pub const fn port_bytes(classes: usize) -> usize {
        let queues = QUEUE_DATA as usize + classes;
        size_of::<Port>() + queues * size_of::<Queue>() + classes * SharedBuffer::ACCOUNT_BYTES
    }

    /// Moves the state of the ports of many switches that were made one after the other into huge pages.
    pub fn move_to_huge_pages<'a>(switches: impl Iterator<Item = &'a Self>) {
        move_to_huge_pages(switches.map(|switch| &*switch.ports));
    }

    /// Where a port's queue is among all queues.
    #[inline(always)]
    fn place(&self, out: u16, queue: u8) -> usize {
        usize::from(out) * self.queues_of_port + usize::from(queue)
    }

    /// The first queue of port `out` that is not empty.
    #[inline]
    fn first_queue(&self, out: u16) -> Option<&Queue> {
        let backlog = self.ports[usize::from(out)].backlog;
        let queue = backlog.trailing_zeros() as u8;
        (backlog != 0).then(|| &self.queues[self.place(out, queue)])
    }

    /// A frame came in by `frame.in_port` and leaves by `out`. `Err`: refused, the driver drops it. `Ok(true)`: a PAUSE was
    /// queued on `frame.in_port`; the driver tries to send there first, then on `out`.
    #[inline(always)]
    pub fn enqueue(&mut self, out: u16, frame: Frame) -> Result<bool, Refused> {
        if !self.has_room(out, frame.queue, frame.bytes) {
            self.ports[usize::from(out)].drops += 1;
            return Err(Refused);
        }
        let pause = self.admit(&frame)?;
        self.append(out, frame);
        Ok(pause)
    }

    /// Like [`Self::enqueue`] for a data frame that leaves by several ports; its bytes count once, until the last copy leaves.
    /// Each copy has a handle of its own (marks and telemetry differ); the handle in `frame` does not matter. An empty list
    /// of copies takes nothing. Leave out copies whose queue has no room ([`Self::has_room`]): nothing asks here.
    pub fn enqueue_copies(
        &mut self,
        copies: Copies<'_>,
        frame: Frame,
        frames: &mut impl Frames,
    ) -> Result<bool, Refused> {
        if copies.is_empty() {
            return Ok(false);
        }
        let pause = self.admit(&frame)?;
        if let &[(out, handle)] = copies {
            self.append(out, Frame { handle, ..frame });
            return Ok(pause);
        }
        let kind = if frame.queue >= QUEUE_DATA {
            FrameKind::Copy
        } else {
            frame.kind
        };
        let account = self.open_account(copies.len());
        for &(out, handle) in copies {
            frames.set_account(handle, account);
            let copy = Frame {
                handle,
                kind,
                ..frame
            };
            self.append(out, copy);
        }
        Ok(pause)
    }

    /// Takes the next frame that port `out` may send at `now_ns`, if any.
    #[inline(always)]
    pub fn dequeue(
        &mut self,
        now_ns: u64,
        out: u16,
        frames: &mut impl Frames,
    ) -> Option<Departure> {
        let port = &mut self.ports[usize::from(out)];
        let ready = port.backlog & !port.paused;
        if ready == 0 {
            return None;
        }
        let queue = Self::choose(ready, port.served);
        let place = usize::from(out) * self.queues_of_port + usize::from(queue);
        let waiting = &mut self.queues[place];
        let frame = waiting.frames.pop_front()?;
        waiting.bytes -= u64::from(frame.bytes);
        let queue_bytes_after = waiting.bytes;
        if waiting.frames.is_empty() {
            // The next frame goes to the start of the memory again, which is likely to be in the cache.
            waiting.frames.clear();
            port.backlog &= !(1 << queue);
        }
        port.queued_bytes -= u64::from(frame.bytes);
        Some(self.depart(now_ns, out, frame, queue_bytes_after, frames))
    }

    /// [`Self::enqueue`] and [`Self::dequeue`] at once, for a port that is free and idle ([`Self::is_idle`]): the frame does
    /// not pass through the queue. `Ok(None)`: a PAUSE has to be sent first; the frame was queued.
    #[inline(always)]
    pub fn forward(
        &mut self,
        now_ns: u64,
        out: u16,
        frame: Frame,
        frames: &mut impl Frames,
    ) -> Result<Option<Departure>, Refused> {
        if self.admit(&frame)? {
            self.append(out, frame);
            return Ok(None);
        }
        let port = &mut self.ports[usize::from(out)];
        port.max_queue_bytes = port.max_queue_bytes.max(u64::from(frame.bytes));
        Ok(Some(self.depart(now_ns, out, frame, 0, frames)))
    }

    /// Whether `queue` of port `out` may take a frame of so many bytes; the account of the port that it comes in by is asked
    /// when it is queued.
    #[inline]
    pub fn has_room(&self, out: u16, queue: u8, bytes: u32) -> bool {
        if !self.limits_queues || queue < QUEUE_DATA {
            return true;
        }
        let port = &self.ports[usize::from(out)];
        let held = self.queues[self.place(out, queue)].bytes;
        held == 0 || held + u64::from(bytes) <= port.egress.threshold(self.buffer.free())
    }

    /// Whether port `out` holds nothing and may send frames of `queue`.
    #[inline]
    pub fn is_idle(&self, out: u16, queue: u8) -> bool {
        let port = &self.ports[usize::from(out)];
        port.backlog == 0 && port.paused >> queue & 1 == 0
    }

    /// Port `out` received a PAUSE or RESUME for data class `class`.
    pub fn set_paused(&mut self, out: u16, class: u8, paused: bool) {
        let bit = 1u8.checked_shl(u32::from(QUEUE_DATA + class)).unwrap_or(0);
        let port = &mut self.ports[usize::from(out)];
        if paused {
            port.paused |= bit;
        } else {
            port.paused &= !bit;
        }
    }

    /// Port `out` lost its link: all it holds is taken out (and its ingress bytes released), pauses in both directions
    /// are forgotten. `lost` receives each frame; the ports on which a RESUME was queued are returned.
    pub fn flush(
        &mut self,
        out: u16,
        frames: &impl Frames,
        mut lost: impl FnMut(Frame),
    ) -> Vec<u16> {
        let mut resumed = Vec::new();
        let first = self.place(out, 0);
        for place in first..first + self.queues_of_port {
            let held = std::mem::take(&mut self.queues[place]);
            for frame in held.frames {
                if frame.queue >= QUEUE_DATA {
                    let class = usize::from(frame.queue - QUEUE_DATA);
                    if frame.kind != FrameKind::Copy || self.is_last_copy(frame.handle, frames) {
                        self.buffer.release(frame.in_port, class, frame.bytes);
                    }
                    if frame.in_port != out {
                        resumed.extend(self.resume(frame.in_port, class));
                    }
                }
                if !matches!(frame.kind, FrameKind::Pause(_) | FrameKind::Resume(_)) {
                    self.ports[usize::from(out)].drops += 1;
                    lost(frame);
                }
            }
        }
        let port = &mut self.ports[usize::from(out)];
        (port.backlog, port.paused, port.queued_bytes) = (0, 0, 0);
        self.buffer.forget_pauses(out);
        resumed
    }

    /// Whether port `out` has a frame that it may send.
    #[inline]
    pub fn is_ready(&self, out: u16) -> bool {
        let port = &self.ports[usize::from(out)];
        port.backlog & !port.paused != 0
    }

    /// The handle of the frame at the head of port `out`'s first queue that is not empty: what [`Self::dequeue`] is likely to
    /// take. Hints that its ingress account will be needed soon.
    #[inline]
    pub fn peek(&self, out: u16) -> Option<u32> {
        let frame = self.first_queue(out)?.frames.front()?;
        self.buffer.prefetch(frame.in_port);
        Some(frame.handle)
    }

    /// Hints that a frame will go from `in_port` to `queue` of `out` soon; [`Self::prefetch_frames`] follows when this has had
    /// time to arrive.
    #[inline]
    pub fn prefetch_ports(&self, in_port: u16, out: u16, queue: u8) {
        let port = &self.ports[usize::from(out)];
        prefetch(&port.queued_bytes);
        prefetch(&self.queues[self.place(out, queue)]);
        self.buffer.prefetch(in_port);
    }

    /// Hints that a frame will join `queue` of `out` soon.
    #[inline]
    pub fn prefetch_frames(&self, out: u16, queue: u8) {
        let frames = &self.queues[self.place(out, queue)].frames;
        match frames.back() {
            Some(back) => prefetch(back),
            None => prefetch_start(frames.as_slices().0),
        }
    }

    /// Hints that port `out` will look for a frame soon.
    #[inline]
    pub fn prefetch_port(&self, out: u16) {
        let port = &self.ports[usize::from(out)];
        prefetch(&port.queued_bytes);
        prefetch(&self.queues[self.place(out, QUEUE_DATA)]);
    }

    /// Whether any data class of port `out` is paused.
    pub fn is_paused(&self, out: u16) -> bool {
        self.ports[usize::from(out)].paused != 0
    }

    /// Bytes queued in port `out`.
    pub fn queued_bytes(&self, out: u16) -> u64 {
        self.ports[usize::from(out)].queued_bytes
    }

    /// Bytes queued in the port that has most.
    pub fn longest_queue(&self) -> u64 {
        let queued = self.ports.iter().map(|port| port.queued_bytes);
        queued.max().unwrap_or(0)
    }

    /// Bytes that came in by `port` and are still here (data classes).
    pub fn ingress_bytes(&self, port: u16) -> u64 {
        self.buffer.held(port)
    }

    /// Bytes accounted in the buffer (data classes).
    pub const fn buffered_bytes(&self) -> u64 {
        self.buffer.occupied()
    }

    /// Bytes accounted in the buffer's shared part.
    pub const fn shared_bytes(&self) -> u64 {
        self.buffer.shared()
    }

    /// Counters of port `out`.
    pub fn counters(&self, out: u16) -> PortCounters {
        let port = &self.ports[usize::from(out)];
        PortCounters {
            tx_bytes: port.tx_bytes,
            tx_packets: port.tx_packets,
            ecn_marks: port.ecn_marks,
            max_queue_bytes: port.max_queue_bytes,
            drops: port.drops,
        }
    }

    /// The frames that wait at a port, of all its queues.
    pub fn waiting(&self, out: u16) -> impl Iterator<Item = &Frame> {
        let first = usize::from(out) * self.queues_of_port;
        let queues = &self.queues[first..first + self.queues_of_port];
        queues.iter().flat_map(|queue| &queue.frames)
    }

    /// All frames in all queues, for accounting at the end of a run.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.queues.iter().flat_map(|queue| &queue.frames)
    }

    /// The steps of a departure, once the frame is out of its queue, which still holds `queue_bytes`. (Inlined: a frame that
    /// is handed on through memory waits for every store before it.)
    #[inline(always)]
    fn depart(
        &mut self,
        now_ns: u64,
        out: u16,
        frame: Frame,
        queue_bytes: u64,
        frames: &mut impl Frames,
    ) -> Departure {
        let departing = if self.view_with_departing {
            u64::from(frame.bytes)
        } else {
            0
        };
        let mut resume = None;
        let port = if frame.queue >= QUEUE_DATA {
            let class = usize::from(frame.queue - QUEUE_DATA);
            let may_resume =
                if frame.kind != FrameKind::Copy || self.is_last_copy(frame.handle, frames) {
                    self.buffer.release(frame.in_port, class, frame.bytes)
                } else {
                    true
                };
            let mut port = &mut self.ports[usize::from(out)];
            port.served = frame.queue;
            // Whatever shares the data queue: the driver knows what cannot carry a mark.
            let length = queue_bytes + departing;
            if length > port.kmin && Self::marks(port, length, frame.handle, frames) {
                port.ecn_marks += 1;
            }
            if may_resume {
                resume = self.resume(frame.in_port, class);
                port = &mut self.ports[usize::from(out)];
            }
            port
        } else {
            &mut self.ports[usize::from(out)]
        };
        if matches!(frame.kind, FrameKind::Data | FrameKind::Copy) {
            let length = port.queued_bytes + departing;
            if let Stamping::Hops(units) = &self.stamping {
                let sent = port.tx_bytes;
                let record = HopRecord::pack(port.rate_code, now_ns, sent, length, units);
                frames.push_hop(frame.handle, record);
            } else {
                Self::digest(port, &self.stamping, now_ns, length, frame.handle, frames);
            }
        }
        port.tx_bytes += u64::from(frame.bytes);
        port.tx_packets += 1;
        port.last_bytes = frame.bytes;
        port.last_tx_ns = now_ns;
        Departure { frame, resume }
    }

    #[inline(always)]
    fn admit(&mut self, frame: &Frame) -> Result<bool, Refused> {
        if frame.queue < QUEUE_DATA {
            return Ok(false);
        }
        let class = usize::from(frame.queue - QUEUE_DATA);
        match self.buffer.admit(frame.in_port, class, frame.bytes) {
            Some(false) => Ok(false),
            Some(true) => {
                self.append_pfc(frame.in_port, FrameKind::Pause(class as u8));
                Ok(true)
            }
            None => {
                self.ports[usize::from(frame.in_port)].drops += 1;
                Err(Refused)
            }
        }
    }

    #[inline(always)]
    fn append(&mut self, out: u16, frame: Frame) {
        let place = self.place(out, frame.queue);
        let port = &mut self.ports[usize::from(out)];
        let queue = &mut self.queues[place];
        queue.bytes += u64::from(frame.bytes);
        queue.frames.push_back(frame);
        port.backlog |= 1 << frame.queue;
        port.queued_bytes += u64::from(frame.bytes);
        port.max_queue_bytes = port.max_queue_bytes.max(port.queued_bytes);
    }

    #[cold]
    fn append_pfc(&mut self, out: u16, kind: FrameKind) {
        let bytes = self.pfc_frame_bytes;
        self.append(
            out,
            Frame {
                handle: 0,
                bytes,
                in_port: out,
                queue: QUEUE_PFC,
                kind,
            },
        );
    }

    /// Queues a RESUME on `port` if its peer may go on: the port then.
    #[inline(never)]
    fn resume(&mut self, port: u16, class: usize) -> Option<u16> {
        let resumes = self.buffer.take_resume(port, class);
        if resumes {
            self.append_pfc(port, FrameKind::Resume(class as u8));
        }
        resumes.then_some(port)
    }

    /// Strict priority for the control queues, round robin over the data classes after the one served last.
    #[inline]
    fn choose(ready: u8, served: u8) -> u8 {
        if ready & 0b11 != 0 {
            return ready.trailing_zeros() as u8;
        }
        let after = ready & !((2u16 << served) - 1) as u8;
        if after != 0 {
            after.trailing_zeros() as u8
        } else {
            ready.trailing_zeros() as u8
        }
    }

    fn open_account(&mut self, copies: usize) -> u32 {
        // A frame has at most one copy per port, and ports are numbered by 16 bits.
        let copies = u16::try_from(copies).unwrap_or(u16::MAX);
        if let Some(account) = self.free_accounts.pop() {
            self.copies_left[account as usize] = copies;
            return account;
        }
        self.copies_left.push(copies);
        (self.copies_left.len() - 1) as u32
    }

    /// A copy leaves: whether it is the last of its frame.
    #[cold]
    fn is_last_copy(&mut self, handle: u32, frames: &impl Frames) -> bool {
        let account = frames.account(handle);
        let Some(left) = self.copies_left.get_mut(account as usize) else {
            debug_assert!(
                false,
                "frame {handle} names account {account}, which there is not"
            );
            return true;
        };
        *left -= 1;
        let last = *left == 0;
        if last {
            self.free_accounts.push(account);
        }
        last
    }

    #[cold]
    fn marks(port: &Port, length: u64, handle: u32, frames: &mut impl Frames) -> bool {
        let probability = if length > port.kmax {
            1.0
        } else {
            port.pmax * (length - port.kmin) as f64 / (port.kmax - port.kmin) as f64
        };
        probability > 0.0 && frames.mark(handle, probability)
    }

    /// Stamps PINT's digest, where that is what a run has.
    #[inline(never)]
    fn digest(
        port: &mut Port,
        stamping: &Stamping,
        now_ns: u64,
        queue_bytes: u64,
        handle: u32,
        frames: &mut impl Frames,
    ) {
        let rtt_ns = match stamping {
            Stamping::None | Stamping::Hops(_) => return,
            Stamping::PintLogs(_, rtt_ns) | Stamping::PintExact(_, rtt_ns) => *rtt_ns,
        };
        let input = PintInput {
            since_ns: (now_ns - port.last_tx_ns).min(rtt_ns),
            queue_bytes,
            last_bytes: port.last_bytes,
            utilisation: port.utilisation,
            bytes_per_s: port.bytes_per_s,
        };
        let random = || frames.random();
        let (utilisation, code) = match stamping {
            Stamping::None | Stamping::Hops(_) => return,
            Stamping::PintLogs(stamp, _) => stamp.stamp(&input, random),
            Stamping::PintExact(stamp, _) => stamp.stamp(&input, random),
        };
        port.utilisation = utilisation;
        frames.raise_digest(handle, code);
    }
}

/// The buffer has no room for the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

#[cfg(test)]
mod tests;
