//! Queues and the steps of arrival and departure.

use raddle_prefetch::prefetch;
use raddle_transport::telemetry::{HopRecord, TelemetryUnits};

use crate::{
    buffer::{BufferConfig, Ingress, Share, SharedBuffer},
    frame::{Frame, FrameKind, QUEUE_DATA, QUEUE_PFC},
    memory::{Port, PortConfig, PortRest, SwitchMemory, other_queues},
    pint::{ExactStamp, LogStamp, PintInput, PintStamp},
    queues::{FrameMemory, Queue},
};

/// Queues of a port (IEEE 802.1Q has eight priorities).
const QUEUES: usize = 8;

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
    /// The port has more frames that it may send.
    pub more: bool,
}

/// Copies of a frame that is replicated: for each its output port and the driver's name for it.
pub type Copies<'a> = &'a [(u16, u32)];

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

/// One switch. Its ports are in a [`SwitchMemory`], always the same one.
#[derive(Debug)]
pub struct Switch {
    /// Where its ports begin in the memory's table, and the queues that are not in it.
    first: usize,
    first_queue: usize,
    ports: u16,
    /// Of a port, beside that of the first data class.
    other_queues: u16,
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

/// See [`Switch::tables`].
struct Tables<'m> {
    port: &'m mut Port,
    /// Where the port is.
    at: usize,
    rest: &'m mut [PortRest],
    queues: &'m mut [Queue],
    accounts: &'m mut [Ingress],
    frames: &'m mut FrameMemory,
}

impl Switch {
    /// A switch with empty queues; it adds its ports to `memory`.
    ///
    /// # Panics
    /// When the buffer's limits are not one per port, there is no data class or more than six, or there are more than 65,535
    /// ports.
    pub fn new(config: SwitchConfig, memory: &mut SwitchMemory) -> Self {
        let SwitchConfig { ports, buffer, .. } = &config;
        assert_eq!(
            ports.len(),
            buffer.limits.len(),
            "one ingress limit per port"
        );
        assert!(
            buffer.classes > 0 && usize::from(QUEUE_DATA) + buffer.classes <= QUEUES,
            "a port has at most eight queues"
        );
        let (first, first_queue) = (memory.ports.len(), memory.queues.len());
        let other_queues = other_queues(buffer.classes);
        for settings in ports {
            let rate_code = match &config.stamping {
                Stamping::Hops(units) => units.code(settings.rate).unwrap_or(0),
                _ => 0,
            };
            memory.add_port(settings, rate_code, other_queues);
        }
        Self {
            first,
            first_queue,
            ports: u16::try_from(ports.len()).expect("ports are numbered by 16 bits"),
            other_queues: other_queues as u16,
            buffer: SharedBuffer::new(buffer, &mut memory.accounts),
            copies_left: Vec::new(),
            free_accounts: Vec::new(),
            pfc_frame_bytes: config.pfc_frame_bytes,
            view_with_departing: config.queue_view_with_departing,
            limits_queues: config.ports.iter().any(|port| port.egress != Share::ALL),
            stamping: config.stamping,
        }
    }

    /// Where a port is in the memory's tables.
    #[inline(always)]
    fn at(&self, port: u16) -> usize {
        self.first + usize::from(port)
    }

    /// Where a queue of a port is among those that are not in the port; not of the first data class.
    #[inline(always)]
    fn other(&self, port: u16, queue: u8) -> usize {
        let number = usize::from(queue) - usize::from(queue > QUEUE_DATA);
        self.first_queue + usize::from(port) * usize::from(self.other_queues) + number
    }

    #[inline(always)]
    fn queue<'m>(&self, memory: &'m SwitchMemory, port: u16, queue: u8) -> &'m Queue {
        if queue == QUEUE_DATA {
            &memory.ports[self.at(port)].data
        } else {
            &memory.queues[self.other(port, queue)]
        }
    }

    /// The queues of a port, by number.
    fn queues<'m>(
        &self,
        memory: &'m SwitchMemory,
        port: u16,
    ) -> impl Iterator<Item = &'m Queue> + use<'m> {
        let first = self.other(port, 0);
        let others = &memory.queues[first..first + usize::from(self.other_queues)];
        let (control, classes) = others.split_at(usize::from(QUEUE_DATA));
        let data = std::iter::once(&memory.ports[self.at(port)].data);
        control.iter().chain(data).chain(classes)
    }

    /// A frame came in by `frame.in_port` and leaves by `out`. `Err`: refused, the driver drops it. `Ok(true)`: a PAUSE was
    /// queued on `frame.in_port`; the driver tries to send there first, then on `out`.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        memory: &mut SwitchMemory,
        out: u16,
        frame: Frame,
    ) -> Result<bool, Refused> {
        if !self.has_room(memory, out, frame.queue, frame.bytes) {
            memory.rest[self.at(out)].drops += 1;
            return Err(Refused);
        }
        let pause = self.admit(memory, &frame)?;
        self.append(memory, out, frame);
        Ok(pause)
    }

    /// Like [`Self::enqueue`] for a data frame that leaves by several ports; its bytes count once, until the last copy leaves.
    /// Each copy has a handle of its own (marks and telemetry differ); the handle in `frame` does not matter. An empty list
    /// of copies takes nothing. Leave out copies whose queue has no room ([`Self::has_room`]): nothing asks here.
    pub fn enqueue_copies(
        &mut self,
        memory: &mut SwitchMemory,
        copies: Copies<'_>,
        frame: Frame,
        frames: &mut impl Frames,
    ) -> Result<bool, Refused> {
        if copies.is_empty() {
            return Ok(false);
        }
        let pause = self.admit(memory, &frame)?;
        if let &[(out, handle)] = copies {
            self.append(memory, out, Frame { handle, ..frame });
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
            self.append(memory, out, copy);
        }
        Ok(pause)
    }

    /// Takes the next frame that port `out` may send at `now_ns`, if any.
    #[inline(always)]
    pub fn dequeue(
        &mut self,
        memory: &mut SwitchMemory,
        now_ns: u64,
        out: u16,
        frames: &mut impl Frames,
    ) -> Option<Departure> {
        let mut tables = self.tables(memory, out);
        let ready = tables.port.backlog & !tables.port.paused;
        if ready == 0 {
            return None;
        }
        let queue = Self::choose(ready, tables.port.served);
        let (frame, left) = self.pop(&mut tables, out, queue)?;
        let more = tables.port.backlog & !tables.port.paused != 0;
        let may_resume = self.depart(tables, now_ns, (frame, left), frames);
        let resume = self.resume_after(memory, &frame, may_resume);
        Some(Departure {
            frame,
            resume,
            more: more || resume == Some(out),
        })
    }

    /// A port, and where what belongs to it is.
    #[inline(always)]
    fn tables<'m>(&self, memory: &'m mut SwitchMemory, port: u16) -> Tables<'m> {
        let at = self.at(port);
        Tables {
            port: &mut memory.ports[at],
            at,
            rest: &mut memory.rest,
            queues: &mut memory.queues,
            accounts: &mut memory.accounts,
            frames: &mut memory.frames,
        }
    }

    /// Takes the first frame of a queue; the bytes that are left there.
    #[inline(always)]
    fn pop(&self, tables: &mut Tables<'_>, out: u16, queue: u8) -> Option<(Frame, u64)> {
        let port = &mut *tables.port;
        let waiting = if queue == QUEUE_DATA {
            &mut port.data
        } else {
            &mut tables.queues[self.other(out, queue)]
        };
        let frame = tables.frames.pop(waiting)?;
        let left = waiting.bytes();
        if waiting.is_empty() {
            port.backlog &= !(1 << queue);
        }
        port.queued_bytes -= u64::from(frame.bytes);
        Some((frame, left))
    }

    /// [`Self::enqueue`] and [`Self::dequeue`] at once, for a port that is free and idle ([`Self::is_idle`]): the frame does
    /// not pass through the queue. `Ok(None)`: a PAUSE has to be sent first; the frame was queued.
    #[inline(always)]
    pub fn forward(
        &mut self,
        memory: &mut SwitchMemory,
        now_ns: u64,
        out: u16,
        frame: Frame,
        frames: &mut impl Frames,
    ) -> Result<Option<Departure>, Refused> {
        if self.admit(memory, &frame)? {
            self.append(memory, out, frame);
            return Ok(None);
        }
        let tables = self.tables(memory, out);
        let port = &mut *tables.port;
        port.max_queue_bytes = port.max_queue_bytes.max(u64::from(frame.bytes));
        let may_resume = self.depart(tables, now_ns, (frame, 0), frames);
        let resume = self.resume_after(memory, &frame, may_resume);
        Ok(Some(Departure {
            frame,
            resume,
            more: resume == Some(out),
        }))
    }

    /// Whether `queue` of port `out` may take a frame of so many bytes; the account of the port that it comes in by is asked
    /// when it is queued.
    #[inline]
    pub fn has_room(&self, memory: &SwitchMemory, out: u16, queue: u8, bytes: u32) -> bool {
        if !self.limits_queues || queue < QUEUE_DATA {
            return true;
        }
        let egress = memory.rest[self.at(out)].egress;
        let held = self.queue(memory, out, queue).bytes();
        held == 0 || held + u64::from(bytes) <= egress.threshold(self.buffer.free())
    }

    /// Whether port `out` holds nothing and may send frames of `queue`.
    #[inline]
    pub fn is_idle(&self, memory: &SwitchMemory, out: u16, queue: u8) -> bool {
        let port = &memory.ports[self.at(out)];
        port.backlog == 0 && port.paused >> queue & 1 == 0
    }

    /// Port `out` received a PAUSE or RESUME for data class `class`.
    pub fn set_paused(&self, memory: &mut SwitchMemory, out: u16, class: u8, paused: bool) {
        let bit = 1u8.checked_shl(u32::from(QUEUE_DATA + class)).unwrap_or(0);
        let port = &mut memory.ports[self.at(out)];
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
        memory: &mut SwitchMemory,
        out: u16,
        frames: &impl Frames,
        mut lost: impl FnMut(Frame),
    ) -> Vec<u16> {
        let mut resumed = Vec::new();
        let at = self.at(out);
        // The other queues, and that of the first data class.
        for queue in 0..=self.other_queues as u8 {
            while let Some((frame, _)) = self.pop(&mut self.tables(memory, out), out, queue) {
                if queue >= QUEUE_DATA {
                    let class = usize::from(queue - QUEUE_DATA);
                    if frame.kind != FrameKind::Copy || self.is_last_copy(frame.handle, frames) {
                        let account = (frame.in_port, class);
                        self.buffer
                            .release(&mut memory.accounts, account, frame.bytes);
                    }
                    if frame.in_port != out {
                        resumed.extend(self.resume(memory, frame.in_port, class));
                    }
                }
                if !matches!(frame.kind, FrameKind::Pause | FrameKind::Resume) {
                    memory.rest[at].drops += 1;
                    lost(frame);
                }
            }
        }
        memory.ports[at].paused = 0;
        self.buffer.forget_pauses(&mut memory.accounts, out);
        resumed
    }

    /// Whether port `out` has a frame that it may send.
    #[inline]
    pub fn is_ready(&self, memory: &SwitchMemory, out: u16) -> bool {
        let port = &memory.ports[self.at(out)];
        port.backlog & !port.paused != 0
    }

    /// The handle of the frame at the head of port `out`'s first queue that is not empty: what [`Self::dequeue`] is likely to
    /// take. Hints that its ingress account will be needed soon.
    #[inline]
    pub fn peek(&self, memory: &SwitchMemory, out: u16) -> Option<u32> {
        let backlog = memory.ports[self.at(out)].backlog;
        let queue = backlog.trailing_zeros() as u8;
        if backlog == 0 {
            return None;
        }
        let frame = memory.frames.first(self.queue(memory, out, queue))?;
        self.buffer.prefetch(&memory.accounts, frame.in_port);
        Some(frame.handle)
    }

    /// Hints that a frame will go from `in_port` to `queue` of `out` soon.
    #[inline]
    pub fn prefetch_ports(&self, memory: &SwitchMemory, in_port: u16, out: u16, queue: u8) {
        prefetch(&memory.ports[self.at(out)]);
        if queue != QUEUE_DATA {
            prefetch(&memory.queues[self.other(out, queue)]);
        }
        self.buffer.prefetch(&memory.accounts, in_port);
    }

    /// Hints that port `out` will look for a frame soon.
    #[inline]
    pub fn prefetch_port(&self, memory: &SwitchMemory, out: u16) {
        prefetch(&memory.ports[self.at(out)]);
    }

    /// Bytes queued in port `out`.
    pub fn queued_bytes(&self, memory: &SwitchMemory, out: u16) -> u64 {
        memory.ports[self.at(out)].queued_bytes
    }

    /// Bytes queued in the port that has most.
    pub fn longest_queue(&self, memory: &SwitchMemory) -> u64 {
        let ports = &memory.ports[self.first..self.at(self.ports)];
        let queued = ports.iter().map(|port| port.queued_bytes);
        queued.max().unwrap_or(0)
    }

    /// Bytes that came in by `port` and are still here (data classes).
    pub fn ingress_bytes(&self, memory: &SwitchMemory, port: u16) -> u64 {
        self.buffer.held(&memory.accounts, port)
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
    pub fn counters(&self, memory: &SwitchMemory, out: u16) -> PortCounters {
        let at = self.at(out);
        let (port, rest) = (&memory.ports[at], &memory.rest[at]);
        PortCounters {
            tx_bytes: port.tx_bytes,
            tx_packets: port.tx_packets,
            ecn_marks: rest.ecn_marks,
            max_queue_bytes: port.max_queue_bytes,
            drops: rest.drops,
        }
    }

    /// The frames that wait at a port, of all its queues.
    pub fn waiting<'m>(
        &self,
        memory: &'m SwitchMemory,
        out: u16,
    ) -> impl Iterator<Item = &'m Frame> + use<'m> {
        let queues = self.queues(memory, out);
        queues.flat_map(|queue| memory.frames.iter(queue))
    }

    /// The steps of a departure, once the frame is out of its queue, which still holds so many bytes: whether the port that it
    /// came in by may have its peer go on. (Inlined: a frame that is handed on through memory waits for every store before it.)
    #[inline(always)]
    fn depart(
        &mut self,
        tables: Tables<'_>,
        now_ns: u64,
        (frame, left): (Frame, u64),
        frames: &mut impl Frames,
    ) -> bool {
        let Tables {
            port,
            at,
            rest,
            accounts,
            ..
        } = tables;
        let departing = if self.view_with_departing {
            u64::from(frame.bytes)
        } else {
            0
        };
        let mut may_resume = false;
        if frame.queue >= QUEUE_DATA {
            let account = (frame.in_port, usize::from(frame.queue - QUEUE_DATA));
            may_resume = if frame.kind != FrameKind::Copy || self.is_last_copy(frame.handle, frames)
            {
                self.buffer.release(accounts, account, frame.bytes)
            } else {
                true
            };
            port.served = frame.queue;
            // Whatever shares the data queue: the driver knows what cannot carry a mark.
            let length = left + departing;
            if length > port.kmin {
                Self::mark(&mut rest[at], port.kmin, length, frame.handle, frames);
            }
        }
        let is_data = matches!(frame.kind, FrameKind::Data | FrameKind::Copy);
        let length = port.queued_bytes + departing;
        match &self.stamping {
            Stamping::None => {}
            Stamping::Hops(units) => {
                if is_data {
                    let sent = port.tx_bytes;
                    let record = HopRecord::pack(port.rate_code, now_ns, sent, length, units);
                    frames.push_hop(frame.handle, record);
                }
            }
            Stamping::PintLogs(..) | Stamping::PintExact(..) => {
                let rest = &mut rest[at];
                if is_data {
                    Self::digest(rest, &self.stamping, now_ns, length, frame.handle, frames);
                }
                (rest.last_bytes, rest.last_tx_ns) = (frame.bytes, now_ns);
            }
        }
        port.tx_bytes += u64::from(frame.bytes);
        port.tx_packets += 1;
        may_resume
    }

    /// [`Self::resume`] on the port by which a frame that has left came in.
    #[inline(always)]
    fn resume_after(
        &self,
        memory: &mut SwitchMemory,
        frame: &Frame,
        may_resume: bool,
    ) -> Option<u16> {
        if !may_resume {
            return None;
        }
        self.resume(memory, frame.in_port, usize::from(frame.queue - QUEUE_DATA))
    }

    #[inline(always)]
    fn admit(&mut self, memory: &mut SwitchMemory, frame: &Frame) -> Result<bool, Refused> {
        if frame.queue < QUEUE_DATA {
            return Ok(false);
        }
        let class = usize::from(frame.queue - QUEUE_DATA);
        let account = (frame.in_port, class);
        match self
            .buffer
            .admit(&mut memory.accounts, account, frame.bytes)
        {
            Some(false) => Ok(false),
            Some(true) => {
                self.append_pfc(memory, frame.in_port, FrameKind::Pause, class);
                Ok(true)
            }
            None => {
                memory.rest[self.at(frame.in_port)].drops += 1;
                Err(Refused)
            }
        }
    }

    #[inline(always)]
    fn append(&self, memory: &mut SwitchMemory, out: u16, frame: Frame) {
        let port = &mut memory.ports[self.at(out)];
        let queue = if frame.queue == QUEUE_DATA {
            &mut port.data
        } else {
            &mut memory.queues[self.other(out, frame.queue)]
        };
        memory.frames.push(queue, frame);
        port.backlog |= 1 << frame.queue;
        port.queued_bytes += u64::from(frame.bytes);
        port.max_queue_bytes = port.max_queue_bytes.max(port.queued_bytes);
    }

    #[cold]
    fn append_pfc(&self, memory: &mut SwitchMemory, out: u16, kind: FrameKind, class: usize) {
        let frame = Frame {
            handle: class as u32,
            bytes: self.pfc_frame_bytes,
            in_port: out,
            queue: QUEUE_PFC,
            kind,
        };
        self.append(memory, out, frame);
    }

    /// Queues a RESUME on `port` if its peer may go on: the port then.
    #[inline(never)]
    fn resume(&self, memory: &mut SwitchMemory, port: u16, class: usize) -> Option<u16> {
        let resumes = self.buffer.take_resume(&mut memory.accounts, (port, class));
        if resumes {
            self.append_pfc(memory, port, FrameKind::Resume, class);
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

    /// Marks a frame that leaves a queue of so many bytes, more than `kmin`, or does not.
    #[cold]
    fn mark(port: &mut PortRest, kmin: u64, length: u64, handle: u32, frames: &mut impl Frames) {
        let probability = if length > port.kmax {
            1.0
        } else {
            port.pmax * (length - kmin) as f64 / (port.kmax - kmin) as f64
        };
        if probability > 0.0 && frames.mark(handle, probability) {
            port.ecn_marks += 1;
        }
    }

    /// Stamps PINT's digest.
    #[inline(never)]
    fn digest(
        port: &mut PortRest,
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
