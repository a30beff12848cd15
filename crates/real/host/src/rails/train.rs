//! A rail's socket, and the datagrams that leave by it with one system call.

use crate::datagrams::{DatagramSocket, MAX_TRAIN, MAX_TRAIN_BYTES};

/// A rail's socket, and the train that is being made up for it.
#[derive(Debug)]
pub(super) struct Rail {
    pub(super) socket: DatagramSocket,
    train: Vec<u8>,
    /// Bytes of each datagram of the train.
    size: usize,
    datagrams: usize,
    /// A datagram that leaves last; empty: there is none.
    last: Vec<u8>,
}

impl Rail {
    pub(super) fn new(socket: DatagramSocket) -> Self {
        Self {
            socket,
            train: Vec::with_capacity(MAX_TRAIN_BYTES),
            size: 0,
            datagrams: 0,
            last: Vec::new(),
        }
    }

    /// Adds a datagram that others may overtake: it leaves behind those that are added later, and with them where it is no
    /// longer than they are. Gives the packets that were refused.
    pub(super) fn add_last(&mut self, length: usize, write: impl FnOnce(&mut [u8]) -> bool) -> u64 {
        let refused = self.take_last();
        self.last.resize(length, 0);
        if write(&mut self.last) {
            return refused;
        }
        self.last.clear();
        refused + 1
    }

    /// Adds a datagram of `length` bytes, which `write` writes; gives the packets that were refused.
    pub(super) fn add(&mut self, length: usize, write: impl FnOnce(&mut [u8]) -> bool) -> u64 {
        let is_full = self.datagrams == MAX_TRAIN || self.train.len() + length > MAX_TRAIN_BYTES;
        // A shorter one ends a train, a longer one begins another.
        let mut refused = if is_full || length > self.size {
            self.leave()
        } else {
            0
        };
        if self.datagrams == 0 {
            self.size = length;
        }
        let at = self.train.len();
        self.train.resize(at + length, 0);
        if !write(&mut self.train[at..]) {
            self.train.truncate(at);
            return refused + 1;
        }
        self.datagrams += 1;
        if length < self.size {
            refused += self.leave();
        }
        refused
    }

    /// Sends what there is; gives the packets that were refused.
    pub(super) fn flush(&mut self) -> u64 {
        self.take_last() + self.leave()
    }

    /// Puts the datagram that leaves last behind the others.
    fn take_last(&mut self) -> u64 {
        if self.last.is_empty() {
            return 0;
        }
        let mut last = std::mem::take(&mut self.last);
        let copy = |room: &mut [u8]| {
            room.copy_from_slice(&last);
            true
        };
        let refused = self.add(last.len(), copy);
        last.clear();
        self.last = last;
        refused
    }

    /// Sends the train.
    fn leave(&mut self) -> u64 {
        let datagrams = std::mem::take(&mut self.datagrams) as u64;
        if datagrams == 0 {
            return 0;
        }
        let outcome = self.socket.send_train(&self.train, self.size);
        self.train.clear();
        self.size = 0;
        if outcome.is_err() { datagrams } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::datagrams::{next, pair};

    use super::*;

    /// Adds datagrams of these lengths, of which those below 100 may be overtaken; gives the first byte of each as it comes.
    fn come(lengths: &[usize]) -> Vec<(u8, usize)> {
        let [sender, mut receiver] = pair();
        let mut rail = Rail::new(sender);
        for (length, name) in lengths.iter().zip(1..) {
            let write = |room: &mut [u8]| {
                room.fill(name);
                true
            };
            let refused = if *length < 100 {
                rail.add_last(*length, write)
            } else {
                rail.add(*length, write)
            };
            assert_eq!(refused, 0);
        }
        assert_eq!(rail.flush(), 0);
        assert_eq!(rail.flush(), 0, "nothing is left");
        let (mut buffer, mut came) = (vec![0; MAX_TRAIN_BYTES], Vec::new());
        while came.len() < lengths.len() {
            let train = next(&mut receiver, &mut buffer);
            let datagrams = buffer[..train.bytes].chunks(train.size);
            came.extend(datagrams.map(|one| (one[0], one.len())));
        }
        assert_eq!(receiver.receive(&mut buffer).unwrap(), None);
        came
    }

    #[test]
    fn what_may_be_overtaken_comes_behind_the_others_whole() {
        assert_eq!(come(&[64, 200]), [(2, 200), (1, 64)]);
        assert_eq!(come(&[200, 64]), [(1, 200), (2, 64)]);
        assert_eq!(come(&[64]), [(1, 64)]);
        assert_eq!(
            come(&[64, 200, 200, 300]),
            [(2, 200), (3, 200), (4, 300), (1, 64)]
        );
        assert_eq!(
            come(&[64, 200, 70, 200]),
            [(2, 200), (1, 64), (4, 200), (3, 70)]
        );
        let many = [vec![64], vec![1000; MAX_TRAIN + 1]].concat();
        let last = *come(&many).last().unwrap();
        assert_eq!(last, (1, 64));
    }

    /// A datagram and a shorter one behind it are one train.
    #[test]
    fn both_leave_with_one_call() {
        let [sender, mut receiver] = pair();
        let mut rail = Rail::new(sender);
        rail.add_last(64, |_| true);
        rail.add(100, |_| true);
        rail.flush();
        let mut buffer = vec![0; MAX_TRAIN_BYTES];
        let train = next(&mut receiver, &mut buffer);
        assert_eq!((train.bytes, train.size), (164, 100));
    }

    #[test]
    fn what_cannot_be_written_is_refused_and_leaves_nothing() {
        let [sender, mut receiver] = pair();
        let mut rail = Rail::new(sender);
        assert_eq!(rail.add_last(64, |_| false), 1);
        assert_eq!(rail.add(64, |_| false), 1);
        assert_eq!(rail.flush(), 0);
        let mut buffer = vec![0; MAX_TRAIN_BYTES];
        assert_eq!(receiver.receive(&mut buffer).unwrap(), None);
    }
}
