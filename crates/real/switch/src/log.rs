//! The switch's log: to standard error, and never in the way of frames.
//!
//! Whoever reads it may be slow, stopped or gone. Lines go through a queue to a thread of their own; when the queue is full
//! they are left out, and counted.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};

use tracing_subscriber::{
    Registry,
    filter::LevelFilter,
    fmt::{self, MakeWriter},
    layer::{Layer, SubscriberExt},
    reload,
    util::SubscriberInitExt,
};

use crate::config::{LogFormat, LogLevel};

/// Lines that may wait.
const QUEUE: usize = 4096;
/// How long the last lines may take.
const FAREWELL: Duration = Duration::from_millis(500);

enum Entry {
    Line(Vec<u8>),
    /// Everything before this is written when it is answered.
    Flush(SyncSender<()>),
}

/// The log of this process.
pub struct Log {
    level: reload::Handle<LevelFilter, Registry>,
    entries: SyncSender<Entry>,
}

impl Log {
    /// Begins to log.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(format: LogFormat, level: LogLevel) -> io::Result<Self> {
        let (entries, receiver) = mpsc::sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let queue = Queue {
            entries: entries.clone(),
            lost: Arc::clone(&lost),
        };
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(&receiver, &lost, &mut io::stderr()))?;
        let (filter, level) = reload::Layer::new(filter(level));
        let lines = fmt::layer()
            .with_target(false)
            .with_writer(queue)
            .log_internal_errors(false);
        let lines = match format {
            LogFormat::Text => lines
                .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
                .boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry()
            .with(filter)
            .with(lines)
            .init();
        Ok(Self { level, entries })
    }

    /// Logs other lines from now on.
    pub fn set_level(&self, level: LogLevel) {
        // It fails only where nothing is logged at all.
        let _ = self.level.reload(filter(level));
    }

    /// Waits until the lines of this moment are written, but not for a reader who has stopped.
    pub fn flush(&self) {
        let (sender, receiver) = mpsc::sync_channel(1);
        if self.entries.try_send(Entry::Flush(sender)).is_ok() {
            let _ = receiver.recv_timeout(FAREWELL);
        }
    }
}

const fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}

/// Writes lines until nobody can send any more.
fn write(entries: &Receiver<Entry>, lost: &AtomicU64, to: &mut impl Write) {
    while let Some(entry) = next(entries, lost) {
        match entry {
            // Who does not want them any more does not keep the switch from its work.
            Entry::Line(line) => drop(to.write_all(&line)),
            Entry::Flush(done) => drop(done.try_send(())),
        }
    }
}

/// What is to be written next; says what is lost when there is room for that again.
fn next(entries: &Receiver<Entry>, lost: &AtomicU64) -> Option<Entry> {
    if let Ok(entry) = entries.try_recv() {
        return Some(entry);
    }
    match lost.swap(0, Ordering::Relaxed) {
        0 => {}
        lines => tracing::warn!(lines, "lines of this log are lost: its reader is too slow"),
    }
    entries.recv().ok()
}

/// Where the lines go.
struct Queue {
    entries: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &Queue {
    /// A whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.entries.try_send(Entry::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_loses_lines_and_does_not_wait() {
        let (entries, receiver) = mpsc::sync_channel(2);
        let lost = Arc::new(AtomicU64::new(0));
        let queue = Queue {
            entries,
            lost: Arc::clone(&lost),
        };
        for line in ["one\n", "two\n", "three\n"] {
            (&queue).write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(lost.load(Ordering::Relaxed), 1);
        drop(queue);
        let mut written = Vec::new();
        write(&receiver, &lost, &mut written);
        assert_eq!(written, b"one\ntwo\n");
    }

    #[test]
    fn a_reader_that_has_gone_harms_nobody() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (entries, receiver) = mpsc::sync_channel(2);
        entries.send(Entry::Line(b"line\n".to_vec())).unwrap();
        let (sender, done) = mpsc::sync_channel(1);
        entries.send(Entry::Flush(sender)).unwrap();
        drop(entries);
        write(&receiver, &AtomicU64::new(0), &mut Gone);
        done.try_recv().unwrap();
    }
}
