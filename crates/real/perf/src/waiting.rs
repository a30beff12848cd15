//! Connections whose request has not come yet: few places, which nobody can hold against others.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Shutdown, TcpStream},
    sync::{Arc, Mutex, PoisonError},
};

/// Places for connections whose request has not come yet.
pub(crate) const PLACES: usize = 64;

/// Those that wait, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Vec<Place>>);

/// A connection that waits.
#[derive(Debug)]
struct Place {
    from: IpAddr,
    stream: Arc<TcpStream>,
}

impl Waiting {
    /// Gives a connection a place. If all are taken, another one gives way: what it sends next is not read.
    pub(crate) fn enter(&self, from: IpAddr, stream: &Arc<TcpStream>) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= PLACES {
            give_way(&mut places);
        }
        let stream = Arc::clone(stream);
        places.push(Place { from, stream });
    }

    /// Takes a connection's place back; false if it gave way.
    pub(crate) fn leave(&self, stream: &Arc<TcpStream>) -> bool {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = places
            .iter()
            .position(|place| Arc::ptr_eq(&place.stream, stream));
        held.map(|index| places.remove(index)).is_some()
    }

    /// Lets a connection give way, if there is one.
    pub(crate) fn make_room(&self) {
        give_way(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Ends the oldest connection of the host that has most of them.
fn give_way(places: &mut Vec<Place>) {
    let index = oldest_of_most(places.iter().map(|place| place.from));
    if let Some(index) = index {
        // Its reader finds the end.
        let _ = places.remove(index).stream.shutdown(Shutdown::Read);
    }
}

/// The first place of whoever has most places; of several, of whoever came first.
fn oldest_of_most(places: impl Iterator<Item = IpAddr> + Clone) -> Option<usize> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for from in places.clone() {
        *counts.entry(from).or_default() += 1;
    }
    let most = counts.values().max()?;
    places.into_iter().position(|from| counts[&from] == *most)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    fn host(number: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
    }

    fn streams(count: usize) -> Vec<Arc<TcpStream>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| Arc::new(TcpStream::connect(address).unwrap());
        (0..count).map(connect).collect()
    }

    #[test]
    fn who_has_most_places_gives_one_up() {
        let of = |hosts: &[u8]| oldest_of_most(hosts.iter().map(|number| host(*number)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[4]), Some(0));
        assert_eq!(of(&[1, 2, 3, 2, 1, 2]), Some(1));
        assert_eq!(of(&[3, 1, 1, 3]), Some(0));
    }

    #[test]
    fn a_host_with_many_connections_takes_no_place_of_another() {
        let (waiting, streams) = (Waiting::default(), streams(PLACES + 10));
        waiting.enter(host(1), &streams[0]);
        for stream in &streams[1..] {
            waiting.enter(host(2), stream);
        }
        assert!(waiting.leave(&streams[0]));
        let left = streams.iter().filter(|stream| waiting.leave(stream));
        assert_eq!(left.count(), PLACES - 1);
    }
}
