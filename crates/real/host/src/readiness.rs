//! Which of a few descriptors can be read: watched for long (epoll(7)), or asked about once (poll(2)).
#![expect(unsafe_code, reason = "the standard library has no epoll")]

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    time::Duration,
};

/// Descriptors that can be watched at once.
pub const MOST: usize = 8;

/// Watches descriptors.
#[derive(Debug)]
pub struct Readiness {
    epoll: OwnedFd,
}

impl Readiness {
    /// Watches `descriptors`, up to [`MOST`]; those that are closed are watched no longer.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// When there are too many.
    pub fn new(descriptors: &[RawFd]) -> io::Result<Self> {
        assert!(descriptors.len() <= MOST);
        // SAFETY: no pointer is given.
        let made = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made it, for us alone.
        let epoll = unsafe { OwnedFd::from_raw_fd(made) };
        for (place, descriptor) in (0..).zip(descriptors) {
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN as u32,
                u64: place,
            };
            // SAFETY: the event lives through the call.
            let added =
                unsafe { libc::epoll_ctl(made, libc::EPOLL_CTL_ADD, *descriptor, &raw mut event) };
            if added < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self { epoll })
    }

    /// The descriptors that can be read, or have an error to tell, now: bit = place in the list.
    ///
    /// # Errors
    /// What the system says, "interrupted" excepted.
    pub fn look(&self) -> io::Result<u8> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST];
        let (room, most) = (events.as_mut_ptr(), MOST as libc::c_int);
        // SAFETY: `events` lives through the call and has room for so many.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), room, most, 0) };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        };
        let places = events[..count].iter().map(|event| event.u64);
        Ok(places.fold(0, |set, place| set | 1 << place))
    }

    /// Sleeps until one can be read, for `limit` at most.
    ///
    /// # Errors
    /// What the system says, "interrupted" excepted.
    pub fn sleep(&self, limit: Duration) -> io::Result<()> {
        wait_readable(&[self.epoll.as_raw_fd()], Some(limit))
    }
}

/// Waits until one of at most 8 descriptors can be read, or the time is over.
///
/// # Errors
/// What the system says, "interrupted" excepted.
pub fn wait_readable(descriptors: &[RawFd], limit: Option<Duration>) -> io::Result<()> {
    let mut events = [libc::pollfd {
        fd: -1,
        events: libc::POLLIN,
        revents: 0,
    }; 8];
    for (event, fd) in events.iter_mut().zip(descriptors) {
        event.fd = *fd;
    }
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = events.len() as libc::nfds_t;
    // SAFETY: `events` and `limit` live through the call; no signal mask is given; negative descriptors are skipped.
    if unsafe { libc::ppoll(events.as_mut_ptr(), count, limit, ptr::null()) } >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::UdpSocket, time::Instant};

    use super::*;

    #[test]
    fn it_names_those_that_can_be_read() {
        let pipes: Vec<_> = (0..MOST).map(|_| io::pipe().unwrap()).collect();
        let descriptors: Vec<RawFd> = pipes.iter().map(|(end, _)| end.as_raw_fd()).collect();
        let readiness = Readiness::new(&descriptors).unwrap();
        assert_eq!(readiness.look().unwrap(), 0);
        for place in [7, 0, 3] {
            (&pipes[place].1).write_all(b"x").unwrap();
        }
        // It is level-triggered: what was not read is still there.
        for _ in 0..2 {
            assert_eq!(readiness.look().unwrap(), 0b1000_1001);
        }
    }

    #[test]
    fn it_sleeps_until_something_comes() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let readiness = Readiness::new(&[socket.as_raw_fd()]).unwrap();
        let begun = Instant::now();
        readiness.sleep(Duration::from_millis(20)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20));
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        readiness.sleep(Duration::from_secs(100)).unwrap();
        assert_eq!(readiness.look().unwrap(), 1);
        assert!(Readiness::new(&[-1]).is_err());
    }
}
