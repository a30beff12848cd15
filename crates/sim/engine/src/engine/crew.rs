//! Threads that run processes through windows together.
//!
//! Between windows the leading thread has everything to itself. For a window it gives out the processes that have something to
//! do, the costliest first, and each thread takes the next one when it is through with the last. Who runs a process changes no
//! result. Threads that wait spin for some microseconds, then sleep.

use std::{
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::Thread,
};

/// Turns of a wait before a thread gives its core to others: some tens of microseconds.
const SPINS: u32 = 1 << 13;

/// How one helper is called.
#[derive(Debug, Default)]
struct Helper {
    /// Windows that it was called to.
    called: AtomicUsize,
    asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Crew {
    helpers: Vec<Helper>,
    /// What is to be run in this window, in order.
    order: RwLock<Vec<usize>>,
    /// The next place in it.
    next: AtomicUsize,
    /// Helpers that are not through with this window.
    busy: AtomicUsize,
    dismissed: AtomicBool,
    broken: AtomicBool,
}

/// Counts a helper as through, even if it panics.
struct Through<'a>(&'a Crew);

impl Drop for Through<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
        self.0.busy.fetch_sub(1, Ordering::Release);
    }
}

impl Crew {
    /// The leading thread and so many helpers.
    pub(super) fn new(helpers: usize) -> Self {
        Self {
            helpers: (0..helpers).map(|_| Helper::default()).collect(),
            order: RwLock::default(),
            next: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            dismissed: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        }
    }

    /// A helper's life: it runs what it is called to until it is dismissed.
    pub(super) fn help(&self, number: usize, run: impl Fn(usize)) {
        let own = &self.helpers[number];
        *own.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
        let mut seen = 0;
        loop {
            let mut turns = 0;
            while own.called.load(Ordering::Acquire) == seen {
                turns += 1;
                if turns < SPINS {
                    std::hint::spin_loop();
                    continue;
                }
                own.asleep.store(true, Ordering::SeqCst);
                if own.called.load(Ordering::SeqCst) == seen {
                    std::thread::park();
                }
                own.asleep.store(false, Ordering::Relaxed);
            }
            seen += 1;
            if self.dismissed.load(Ordering::Relaxed) {
                return;
            }
            let through = Through(self);
            self.take_turns(&run);
            drop(through);
        }
    }

    fn take_turns(&self, run: &impl Fn(usize)) {
        let order = self.order.read().unwrap_or_else(PoisonError::into_inner);
        while let Some(&process) = order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            run(process);
        }
    }

    /// Has all of `order` run by this thread and so many helpers; it is done when this returns.
    ///
    /// # Panics
    /// If a helper has panicked.
    pub(super) fn run(&self, order: &[usize], helpers: usize, run: impl Fn(usize)) {
        {
            let mut all = self.order.write().unwrap_or_else(PoisonError::into_inner);
            all.clear();
            all.extend_from_slice(order);
        }
        self.next.store(0, Ordering::Relaxed);
        self.busy.store(helpers, Ordering::Relaxed);
        for helper in &self.helpers[..helpers] {
            helper.call();
        }
        self.take_turns(&run);
        let mut turns = 0u32;
        while self.busy.load(Ordering::Acquire) > 0 {
            turns += 1;
            if turns < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        assert!(
            !self.broken.load(Ordering::Relaxed),
            "a thread of the simulation has failed"
        );
    }

    /// Lets all helpers go.
    pub(super) fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
        for helper in &self.helpers {
            helper.call();
        }
    }
}

impl Helper {
    fn call(&self) {
        self.called.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst)
            && let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner)
        {
            thread.unpark();
        }
    }
}

/// Dismisses a crew at the end of the run, however it ends.
pub(super) struct Dismissal<'a>(pub(super) &'a Crew);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}
