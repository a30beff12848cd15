//! Messages over several rails for programs in C: `libraddle_rails.so`, whose interface is `include/raddle_rails.h`.
//!
//! This is `raddle_host::rails` behind C's types and holds no logic of its own. Nothing panics across it.

#![warn(clippy::unwrap_used)]
#![expect(unsafe_code, reason = "a C ABI is what this crate is for")]

mod options;

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
};

use options::{Options, Rail};
use raddle_host::rails::{Buffer, BufferError, Node, NodeEvent, UseError};
use raddle_rails::{PortError, SendError};
use raddle_units::Span;

/// Why a call fails, by the numbers of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Error {
    Invalid = 1,
    Buffer = 2,
    Full = 3,
    Length = 4,
    Failed = 5,
    System = 6,
    Internal = 7,
}

impl Error {
    /// Words for each number, from 0 on.
    const WORDS: [&CStr; 8] = [
        c"no error",
        c"a pointer is null, a text or number makes no sense, or the port is not open",
        c"the buffer is lent, unknown or too short",
        c"no send token or port is left: wait for events",
        c"the message is longer than the target port takes",
        c"the connection has failed",
        c"the system refuses something",
        c"an error in the library; the node is not usable any more",
    ];
}

impl From<BufferError> for Error {
    fn from(_: BufferError) -> Self {
        Self::Buffer
    }
}

impl From<io::Error> for Error {
    fn from(_: io::Error) -> Self {
        Self::System
    }
}

impl From<PortError> for Error {
    fn from(error: PortError) -> Self {
        match error {
            PortError::TooMany => Self::Full,
            _ => Self::Invalid,
        }
    }
}

impl From<UseError> for Error {
    fn from(error: UseError) -> Self {
        match error {
            UseError::Buffer(error) => error.into(),
            UseError::Port(error) => error.into(),
            UseError::Send(SendError::QueueFull { .. } | SendError::Ports { .. }) => Self::Full,
            UseError::Send(SendError::TooLong { .. }) => Self::Length,
            UseError::Send(SendError::Closed) => Self::Failed,
            _ => Self::Internal,
        }
    }
}

/// An event as the header has it.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Event {
    kind: u32,
    buffer: u32,
    rail: u32,
    source_port: u16,
    target_port: u16,
    length: u64,
}

impl Event {
    fn of(event: &NodeEvent) -> Self {
        let about = |kind, buffer: &Buffer| Self {
            kind,
            buffer: buffer.number(),
            ..Self::default()
        };
        let rail = |kind, rail: usize| Self {
            kind,
            rail: rail as u32,
            ..Self::default()
        };
        match event {
            NodeEvent::Established => Self {
                kind: 1,
                ..Self::default()
            },
            NodeEvent::RailUp { rail: index } => rail(2, *index),
            NodeEvent::RailDown { rail: index } => rail(3, *index),
            NodeEvent::Sent { token: buffer } => about(4, buffer),
            NodeEvent::SendFailed { token: buffer, .. } => about(5, buffer),
            NodeEvent::Received {
                token: buffer,
                source_port,
                target_port,
                length,
            } => Self {
                source_port: *source_port,
                target_port: *target_port,
                length: *length,
                ..about(6, buffer)
            },
            NodeEvent::Returned { token: buffer } => about(7, buffer),
            NodeEvent::Failed(_) => Self {
                kind: 8,
                ..Self::default()
            },
        }
    }
}

/// Does something with a node; no panic passes.
///
/// # Safety
/// `node` is null or comes from [`raddle_rails_open`], was not closed, and no other call on it runs.
unsafe fn with<T>(
    node: *mut Node,
    what: impl FnOnce(&mut Node) -> Result<T, Error>,
) -> Result<T, Error> {
    // SAFETY: the caller says so.
    let node = unsafe { node.as_mut() }.ok_or(Error::Invalid)?;
    catch_unwind(AssertUnwindSafe(|| what(node))).unwrap_or(Err(Error::Internal))
}

fn status(outcome: Result<(), Error>) -> c_int {
    outcome.map_or_else(|error| error as c_int, |()| 0)
}

/// See the header.
///
/// # Safety
/// As the header says: `options` and `count` rails can be read, `error` has room for `error_size` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_open(
    options: *const Options,
    rails: *const Rail,
    count: usize,
    error: *mut c_char,
    error_size: usize,
) -> *mut Node {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller says so.
        let options = unsafe { options.as_ref() }.ok_or("options is NULL")?;
        if rails.is_null() || count > raddle_wire::rails::MAX_RAILS {
            return Err("1 to 8 rails are possible".to_owned());
        }
        // SAFETY: the caller says so, and the pointer is not null.
        let rails = unsafe { slice::from_raw_parts(rails, count) };
        // SAFETY: the texts of the rails can be read, says the caller.
        unsafe { options::open(options, rails) }
    }));
    let text = match opened {
        Ok(Ok(node)) => return Box::into_raw(Box::new(node)),
        Ok(Err(text)) => text,
        Err(_) => "an error in the library".to_owned(),
    };
    if !error.is_null() && error_size > 0 {
        let length = text.len().min(error_size - 1);
        // SAFETY: the caller says that there is room for `error_size` bytes.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), error, length);
            error.add(length).write(0);
        }
    }
    ptr::null_mut()
}

/// See the header.
///
/// # Safety
/// `node` is null or comes from [`raddle_rails_open`], was not closed, and no other call on it runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_close(node: *mut Node) {
    if !node.is_null() {
        // SAFETY: it was made by `Box::into_raw`, says the caller.
        let node = unsafe { Box::from_raw(node) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(node)));
    }
}

/// See the header.
///
/// # Safety
/// As [`raddle_rails_close`]; `buffer` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_alloc(
    node: *mut Node,
    bytes: usize,
    buffer: *mut u32,
) -> *mut c_void {
    // SAFETY: the caller says so.
    let Some(number) = (unsafe { buffer.as_mut() }) else {
        return ptr::null_mut();
    };
    let made = |node: &mut Node| {
        let mut memory: Vec<u8> = Vec::new();
        memory
            .try_reserve_exact(bytes.max(1))
            .map_err(|_| Error::System)?;
        memory.resize(bytes.max(1), 0);
        let buffer = node.register(memory);
        // The memory of a vector that never grows does not move.
        Ok((buffer.number(), node.bytes_mut(buffer)?.as_mut_ptr()))
    };
    // SAFETY: the caller says so.
    match unsafe { with(node, made) } {
        Ok((made, address)) => {
            *number = made;
            address.cast()
        }
        Err(_) => ptr::null_mut(),
    }
}

/// See the header.
///
/// # Safety
/// As [`raddle_rails_close`]; the memory is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_free(node: *mut Node, buffer: u32) -> c_int {
    // SAFETY: the caller says so.
    status(unsafe {
        with(node, |node| {
            Ok(node.release(Buffer::from_number(buffer)).map(drop)?)
        })
    })
}

/// See the header.
///
/// # Safety
/// As [`raddle_rails_close`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_open_port(node: *mut Node, port: u16, longest: u64) -> c_int {
    // SAFETY: the caller says so.
    status(unsafe { with(node, |node| Ok(node.open_port(port, longest)?)) })
}

/// See the header.
///
/// # Safety
/// As [`raddle_rails_close`]; the memory is not used until it is given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_provide(node: *mut Node, port: u16, buffer: u32) -> c_int {
    // SAFETY: the caller says so.
    status(unsafe {
        with(node, |node| {
            Ok(node.provide(port, Buffer::from_number(buffer))?)
        })
    })
}

/// See the header.
///
/// # Safety
/// As [`raddle_rails_close`]; the memory is not changed until it is given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_send(
    node: *mut Node,
    source_port: u16,
    target_port: u16,
    buffer: u32,
    length: u64,
) -> c_int {
    let send = |node: &mut Node| {
        let buffer = Buffer::from_number(buffer);
        Ok(node.send(source_port, target_port, buffer, length)?)
    };
    // SAFETY: the caller says so.
    status(unsafe { with(node, send) })
}

/// See the header.
///
/// # Safety
/// As [`raddle_rails_close`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_wait(node: *mut Node, spin_us: u32) -> c_int {
    // SAFETY: the caller says so.
    status(unsafe { with(node, |node| Ok(node.wait(Span::from_us(spin_us.into()))?)) })
}

/// See the header.
///
/// # Safety
/// As [`raddle_rails_close`]; `event` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raddle_rails_poll(node: *mut Node, event: *mut Event) -> c_int {
    // SAFETY: the caller says so.
    let Some(event) = (unsafe { event.as_mut() }) else {
        return -(Error::Invalid as c_int);
    };
    // SAFETY: the caller says so.
    match unsafe { with(node, |node| Ok(node.poll_event())) } {
        Ok(Some(happened)) => {
            *event = Event::of(&happened);
            1
        }
        Ok(None) => 0,
        Err(error) => -(error as c_int),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn raddle_rails_error(error: c_int) -> *const c_char {
    let words = Error::WORDS.get(error.unsigned_abs() as usize);
    words.unwrap_or(&c"an unknown error").as_ptr()
}
