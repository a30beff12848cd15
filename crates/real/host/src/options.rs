//! Options of sockets (socket(7), packet(7), udp(7)).
//!
//! [`set`] is for those that `nix` does not have: `SO_NO_CHECK` and most of packet(7).
#![expect(unsafe_code, reason = "setsockopt(2) takes any structure")]

use std::{
    io,
    mem::size_of,
    net::UdpSocket,
    os::fd::{AsFd, AsRawFd},
    ptr,
};

use nix::sys::socket::{setsockopt, sockopt};

/// What switches an option on.
pub const YES: libc::c_int = 1;

/// Sets an option, whose value the kernel takes as a plain structure or integer of this type.
///
/// # Errors
/// The kernel does not have the option, or refuses the value or the caller.
pub fn set<T>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value lives through the call and is as long as said; the kernel only reads it.
    let outcome = unsafe {
        let descriptor = socket.as_fd().as_raw_fd();
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(
            descriptor,
            level,
            option,
            ptr::from_ref(value).cast(),
            length,
        )
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Lets so many bytes wait in the kernel in each direction: beyond the system's limit with `CAP_NET_ADMIN`, otherwise what
/// that limit gives.
///
/// # Errors
/// The kernel has no memory left.
pub fn reserve(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    setsockopt(socket, sockopt::RcvBufForce, &bytes)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &bytes))?;
    setsockopt(socket, sockopt::SndBufForce, &bytes)
        .or_else(|_| setsockopt(socket, sockopt::SndBuf, &bytes))?;
    Ok(())
}

/// Lets a socket send datagrams without checksum, for messages that carry a tag: nobody has to complete it on the way.
///
/// # Errors
/// The kernel does not have the option.
pub fn omit_checksums(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, &YES)
}

/// Whether an error of accept(2) means that the system has no room for one more connection. Others are of the connection
/// that was to be accepted.
#[must_use]
pub fn lacks_room(error: &io::Error) -> bool {
    let room = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS];
    error
        .raw_os_error()
        .is_some_and(|code| room.contains(&code))
}
