//! Which of a few descriptors can be read: watched for long (epoll(7)), or waited for once (poll(2)).

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
};

/// Descriptors that can be watched at once.
pub const MOST: usize = 8;

/// Watches descriptors.
#[derive(Debug)]
pub struct Readiness(Epoll);

impl Readiness {
    /// Watches `descriptors`, up to [`MOST`]; those that are closed are watched no longer.
    ///
    /// # Errors
    /// The process or the system has no descriptor or memory left, or one of `descriptors` is a regular file.
    ///
    /// # Panics
    /// When there are too many.
    pub fn new(descriptors: &[BorrowedFd<'_>]) -> io::Result<Self> {
        assert!(descriptors.len() <= MOST);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (place, descriptor) in (0..).zip(descriptors) {
            epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, place))?;
        }
        Ok(Self(epoll))
    }

    /// The descriptors that can be read, or have an error to report, now: bit = place in the list.
    ///
    /// # Errors
    /// None that is known: an interrupted call counts as one that found nothing.
    pub fn look(&self) -> io::Result<u8> {
        let mut events = [EpollEvent::empty(); MOST];
        let count = match self.0.wait(&mut events, EpollTimeout::ZERO) {
            Err(Errno::EINTR) => 0,
            outcome => outcome?,
        };
        let places = events[..count].iter().map(EpollEvent::data);
        Ok(places.fold(0, |set, place| set | 1 << place))
    }

    /// Sleeps until one can be read, for `limit` at most.
    ///
    /// # Errors
    /// As [`wait_readable`].
    pub fn sleep(&self, limit: Duration) -> io::Result<()> {
        wait_readable([self.0.0.as_fd()], Some(limit))
    }
}

/// Waits until one of the descriptors can be read, or the time is over.
///
/// # Errors
/// The kernel has no memory left; an interrupted call is no error, it comes back early.
pub fn wait_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    limit: Option<Duration>,
) -> io::Result<()> {
    let mut asked = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
    match ppoll(&mut asked, limit.map(Into::into), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write, net::UdpSocket, time::Instant};

    use super::*;

    #[test]
    fn it_names_those_that_can_be_read() {
        let pipes: Vec<_> = (0..MOST).map(|_| io::pipe().unwrap()).collect();
        let descriptors: Vec<_> = pipes.iter().map(|(end, _)| end.as_fd()).collect();
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
        let readiness = Readiness::new(&[socket.as_fd()]).unwrap();
        let begun = Instant::now();
        readiness.sleep(Duration::from_millis(20)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20));
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        readiness.sleep(Duration::from_secs(100)).unwrap();
        assert_eq!(readiness.look().unwrap(), 1);
    }

    #[test]
    fn a_regular_file_cannot_be_watched() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(Readiness::new(&[file.as_fd()]).is_err());
    }
}
