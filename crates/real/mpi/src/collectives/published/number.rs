//! Numbers of groups of the published protocol, of which a host may use each only once at a time: switches tell groups of one
//! host apart by nothing else.

use std::{
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr, unix::net::UnixListener},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use raddle_host::clock;
use raddle_wire::compat::DATA_GROUPS;

/// How long a number is not used again: no packet of its group is under way any more.
const REST: Duration = Duration::from_secs(10);

/// A number that this process has. What holds it is an abstract address of the host's network: the kernel gives it back when
/// the process ends, however that happens.
#[derive(Debug)]
pub(crate) struct Number {
    value: u8,
    holder: Option<UnixListener>,
}

/// Those that were given back.
static RESTING: Mutex<Vec<(Instant, UnixListener)>> = Mutex::new(Vec::new());

impl Number {
    /// A number that no process of this host has; `None`: all are taken.
    pub(crate) fn take() -> Option<Self> {
        let mut resting = RESTING.lock().unwrap_or_else(PoisonError::into_inner);
        resting.retain(|(since, _)| since.elapsed() < REST);
        drop(resting);
        let (first, last) = (*DATA_GROUPS.start(), *DATA_GROUPS.end());
        let count = u32::from(last - first) + 1;
        // Programs that begin at once take different ones.
        let begin = clock::epoch().unwrap_or_else(|_| clock::nanoseconds() as u32) % count;
        (0..count).find_map(|step| {
            #[expect(clippy::cast_possible_truncation, reason = "at most `last`")]
            let value = first + ((begin + step) % count) as u8;
            let name = format!("raddle-published-{value}");
            let address = SocketAddr::from_abstract_name(name).ok()?;
            let holder = UnixListener::bind_addr(&address).ok()?;
            Some(Self {
                value,
                holder: Some(holder),
            })
        })
    }

    pub(crate) const fn value(&self) -> u8 {
        self.value
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            let mut resting = RESTING.lock().unwrap_or_else(PoisonError::into_inner);
            resting.push((Instant::now(), holder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_once_and_rests_before_it_is_taken_again() {
        let one = Number::take().expect("some are free");
        let value = one.value();
        assert!(DATA_GROUPS.contains(&value));
        drop(one);
        let others: Vec<Number> = (0..20).filter_map(|_| Number::take()).collect();
        assert!(others.iter().all(|other| other.value() != value));
        let mut values: Vec<u8> = others.iter().map(Number::value).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), others.len());
    }
}
