//! The reader of recordings. Bytes may come from a program that crashed or a disk that was full, so all of it is checked.

use std::ops::Range;

use raddle_units::Bytes;
use thiserror::Error;

use super::{
    ANY_SOURCE, ANY_TAG, HAS_ROOT, MAGIC, Origin, RankRecording, VERSION, kind,
    varint::{self, VarintError, unzigzag},
};
use crate::model::{Action, Collective, CollectiveKind, Event, Interval, Message, Wildcards};

/// Why bytes are no recording.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} at byte {offset}: {problem}")]
pub struct DecodeError {
    /// What is wrong.
    pub field: &'static str,
    /// Where it begins.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The recording was cut.
    #[error("the recording ends inside it; was the file cut, or the disk full?")]
    Short,
    /// A number has more than 64 bits.
    #[error("the number has more than 64 bits")]
    Long,
    /// The value is not one that it may have.
    #[error("{found}, expected {right}")]
    Value {
        /// The value found.
        found: String,
        /// What it may be.
        right: String,
    },
    /// A text is not UTF-8.
    #[error("the text is not UTF-8")]
    Text,
}

impl RankRecording {
    /// Reads a rank's recording. One that ends after a whole record, but without an end record, is not
    /// [complete](Self::complete).
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader { bytes, at: 0 };
        let origin = reader.head()?;
        let mut records = Records {
            reader,
            size: origin.size,
            last_ns: 0,
            communicators: vec![vec![Range {
                start: 0,
                end: origin.size,
            }]],
            events: Vec::new(),
            requests: Vec::new(),
        };
        let mut complete = false;
        while !complete && records.reader.at < bytes.len() {
            complete = records.record()?;
        }
        let left = bytes.len() - records.reader.at;
        if left > 0 {
            let found = format!("{left} bytes");
            return Err(wrong(
                records.reader.at,
                "what follows the end",
                found,
                "nothing",
            ));
        }
        let (events, left_out) = records.finish();
        Ok(Self {
            origin,
            communicators: records.communicators,
            events,
            complete,
            left_out,
        })
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn number(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        match varint::read(&self.bytes[self.at..]) {
            Ok((value, length)) => {
                self.at += length;
                Ok(value)
            }
            Err(VarintError::Short) => Err(error(self.at, field, Problem::Short)),
            Err(VarintError::Long) => Err(error(self.at, field, Problem::Long)),
        }
    }

    /// A number below `limit`.
    fn below(&mut self, field: &'static str, limit: u32) -> Result<u32, DecodeError> {
        let offset = self.at;
        let value = self.number(field)?;
        match u32::try_from(value) {
            Ok(value) if value < limit => Ok(value),
            _ => Err(wrong(offset, field, value, format!("less than {limit}"))),
        }
    }

    fn tag(&mut self) -> Result<i32, DecodeError> {
        let offset = self.at;
        let value = unzigzag(self.number("tag")?);
        i32::try_from(value).map_err(|_| wrong(offset, "tag", value, "a number of 32 bits"))
    }

    fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some(taken) = self.bytes[self.at..].get(..length) else {
            return Err(error(self.at, field, Problem::Short));
        };
        self.at += length;
        Ok(taken)
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.take(field, 1)?[0])
    }

    fn text(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let length = usize::try_from(self.number(field)?).unwrap_or(usize::MAX);
        let offset = self.at;
        let text = self.take(field, length)?.to_vec();
        String::from_utf8(text).map_err(|_| error(offset, field, Problem::Text))
    }

    fn head(&mut self) -> Result<Origin, DecodeError> {
        if self.take("magic", MAGIC.len())? != MAGIC {
            return Err(wrong(0, "magic", "other bytes", "`RADDLREC`"));
        }
        let version = self.byte("version")?;
        if version != VERSION {
            return Err(wrong(MAGIC.len(), "version", version, VERSION));
        }
        let offset = self.at;
        let rank = self.below("rank", u32::MAX)?;
        let size = self.below("size", u32::MAX)?;
        if rank >= size {
            return Err(wrong(
                offset,
                "rank",
                rank,
                format!("less than the size {size}"),
            ));
        }
        Ok(Origin {
            rank,
            size,
            host: self.text("host")?,
            program: self.text("program")?,
            mpi: self.text("mpi")?,
        })
    }
}

#[cold]
const fn error(offset: usize, field: &'static str, problem: Problem) -> DecodeError {
    DecodeError {
        field,
        offset,
        problem,
    }
}

#[cold]
fn wrong(
    offset: usize,
    field: &'static str,
    found: impl ToString,
    right: impl ToString,
) -> DecodeError {
    let (found, right) = (found.to_string(), right.to_string());
    error(offset, field, Problem::Value { found, right })
}

/// A request, by its number.
#[derive(Clone, Copy)]
enum Request {
    /// Started by this event.
    Open(usize),
    Complete,
    /// Cancelled: the event is left out.
    Void(usize),
}

struct Records<'a> {
    reader: Reader<'a>,
    size: u32,
    last_ns: u64,
    communicators: Vec<Vec<Range<u32>>>,
    events: Vec<Event>,
    requests: Vec<Request>,
}

impl Records<'_> {
    /// Reads a record; true: it is the end.
    fn record(&mut self) -> Result<bool, DecodeError> {
        let offset = self.reader.at;
        let first = self.reader.byte("record")?;
        let (code, flags) = (first & 0xf, first & 0xf0);
        let allowed = match code {
            kind::RECEIVE | kind::START_RECEIVE => ANY_SOURCE | ANY_TAG,
            kind::COLLECTIVE | kind::START_COLLECTIVE => HAS_ROOT,
            _ => 0,
        };
        if flags & !allowed != 0 || code > kind::START_COLLECTIVE {
            return Err(wrong(offset, "record", first, "a kind with its flags"));
        }
        if code == kind::COMMUNICATOR {
            self.communicator()?;
            return Ok(false);
        }
        let start_ns = self.time()?;
        let mut end_ns = start_ns;
        if code != kind::END {
            let offset = self.reader.at;
            let length = self.reader.number("duration")?;
            end_ns = start_ns
                .checked_add(length)
                .ok_or_else(|| error(offset, "duration", Problem::Long))?;
        }
        self.last_ns = end_ns;
        let starts = matches!(
            code,
            kind::START_SEND | kind::START_RECEIVE | kind::START_COLLECTIVE
        );
        let request = starts.then_some(self.requests.len() as u32);
        let action = self.action(code, flags, request)?;
        if starts {
            self.requests.push(Request::Open(self.events.len()));
        }
        let at = Interval::new(start_ns, end_ns);
        self.events.push(Event { at, action });
        Ok(code == kind::END)
    }

    fn time(&mut self) -> Result<u64, DecodeError> {
        let offset = self.reader.at;
        let gap = unzigzag(self.reader.number("start")?);
        self.last_ns
            .checked_add_signed(gap)
            .ok_or_else(|| wrong(offset, "start", gap, "a time after MPI_Init"))
    }

    fn action(&mut self, code: u8, flags: u8, request: Option<u32>) -> Result<Action, DecodeError> {
        let any = Wildcards {
            source: flags & ANY_SOURCE != 0,
            tag: flags & ANY_TAG != 0,
        };
        Ok(match code {
            kind::SEND | kind::START_SEND => {
                let message = self.message("target")?;
                Action::Send { message, request }
            }
            kind::RECEIVE => Action::Receive {
                message: self.message("source")?,
                request,
                any,
            },
            kind::START_RECEIVE => Action::Receive {
                // The wait says what it matched.
                message: Message {
                    peer: u32::MAX,
                    tag: 0,
                    comm: self.comm()?,
                    bytes: Bytes(0),
                },
                request,
                any,
            },
            kind::WAIT => self.wait()?,
            kind::COLLECTIVE | kind::START_COLLECTIVE => {
                let call = self.collective(flags & HAS_ROOT != 0)?;
                Action::Collective { call, request }
            }
            _ => Action::End,
        })
    }

    fn comm(&mut self) -> Result<u32, DecodeError> {
        let known = self.communicators.len() as u32;
        self.reader.below("communicator", known)
    }

    fn message(&mut self, peer: &'static str) -> Result<Message, DecodeError> {
        Ok(Message {
            peer: self.reader.below(peer, self.size)?,
            tag: self.reader.tag()?,
            comm: self.comm()?,
            bytes: Bytes(self.reader.number("bytes")?),
        })
    }

    fn collective(&mut self, has_root: bool) -> Result<Collective, DecodeError> {
        let offset = self.reader.at;
        let code = self.reader.byte("collective")?;
        let Some(&kind) = CollectiveKind::ALL.get(usize::from(code)) else {
            let right = format!("at most {}", CollectiveKind::ALL.len() - 1);
            return Err(wrong(offset, "collective", code, right));
        };
        let comm = self.comm()?;
        let bytes = Bytes(self.reader.number("bytes")?);
        let root = if has_root {
            Some(self.reader.below("root", self.size)?)
        } else {
            None
        };
        Ok(Collective {
            kind,
            comm,
            bytes,
            root,
        })
    }

    fn communicator(&mut self) -> Result<(), DecodeError> {
        let offset = self.reader.at;
        let count = self.reader.number("runs")?;
        let mut runs: Vec<Range<u32>> = Vec::new();
        for _ in 0..count {
            let offset = self.reader.at;
            let first = self.reader.below("first rank", self.size)?;
            let length = self.reader.below("ranks", self.size - first + 1)?;
            if length == 0 {
                return Err(wrong(offset, "ranks", 0, "at least 1"));
            }
            runs.push(first..first + length);
        }
        let mut sorted = runs.clone();
        sorted.sort_unstable_by_key(|run| run.start);
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].end > pair[1].start) {
            let found = format!("rank {} twice", pair[1].start);
            return Err(wrong(offset, "communicator", found, "each rank once"));
        }
        self.communicators.push(runs);
        Ok(())
    }

    fn wait(&mut self) -> Result<Action, DecodeError> {
        let count = self.reader.number("requests")?;
        let mut requests = Vec::new();
        for _ in 0..count {
            if let Some(request) = self.completion()? {
                requests.push(request);
            }
        }
        let requests = requests.into_boxed_slice();
        Ok(Action::Wait { requests })
    }

    /// The request that is complete; `None`: it was cancelled.
    fn completion(&mut self) -> Result<Option<u32>, DecodeError> {
        let offset = self.reader.at;
        let coded = self.reader.number("request")?;
        let (age, outcome) = (coded >> 2, coded & 3);
        let number = (self.requests.len() as u64)
            .checked_sub(1)
            .and_then(|newest| newest.checked_sub(age));
        let Some(number) = number else {
            let right = format!("less than the {} requests so far", self.requests.len());
            return Err(wrong(offset, "age of a request", age, right));
        };
        let Request::Open(event) = self.requests[number as usize] else {
            let found = format!("request {number}, which is complete");
            return Err(wrong(offset, "request", found, "an open one"));
        };
        let receives = matches!(self.events[event].action, Action::Receive { .. });
        match (outcome, receives) {
            (0, false) => {}
            (1, true) => {
                let peer = self.reader.below("source", self.size)?;
                let tag = self.reader.tag()?;
                let bytes = Bytes(self.reader.number("bytes")?);
                if let Action::Receive { message, .. } = &mut self.events[event].action {
                    let comm = message.comm;
                    *message = Message {
                        peer,
                        tag,
                        comm,
                        bytes,
                    };
                }
            }
            (2, _) => {
                self.requests[number as usize] = Request::Void(event);
                return Ok(None);
            }
            _ => {
                let right = if receives { "1 or 2" } else { "0 or 2" };
                return Err(wrong(offset, "outcome", outcome, right));
            }
        }
        self.requests[number as usize] = Request::Complete;
        Ok(Some(number as u32))
    }

    /// The events without those that are left out, and how many these are.
    fn finish(&mut self) -> (Vec<Event>, u64) {
        let mut events = std::mem::take(&mut self.events);
        let mut out = vec![false; events.len()];
        for &request in &self.requests {
            match request {
                Request::Void(event) => out[event] = true,
                Request::Open(event) => {
                    out[event] = matches!(events[event].action, Action::Receive { .. });
                }
                Request::Complete => {}
            }
        }
        let before = events.len();
        let mut index = 0;
        events.retain(|_| {
            index += 1;
            !out[index - 1]
        });
        let left_out = (before - events.len()) as u64;
        (events, left_out)
    }
}
