//! Plain MPI among threads of a test, a thread for each rank.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use raddle_offload::order;

use super::{Library, Mpi, PlainFailed};

/// Who waits longer for other ranks waits in vain.
const PATIENCE: Duration = Duration::from_secs(60);

/// One rank's end of a communicator.
#[derive(Clone)]
pub(crate) struct FakeMpi {
    shared: Arc<Shared>,
    rank: usize,
}

struct Shared {
    size: usize,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    /// What ranks bring to the call that is under way.
    brought: BTreeMap<usize, Vec<u8>>,
    /// What all brought, until all have it.
    all: Option<Arc<Vec<Vec<u8>>>>,
    has_it: usize,
    /// Messages by sender and receiver.
    messages: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
    /// Communicators that were split off, by the number of the split and colour.
    parts: BTreeMap<(usize, usize), Arc<Shared>>,
    splits: BTreeMap<usize, usize>,
    /// Every call fails from here on.
    broken: bool,
}

impl Shared {
    fn new(size: usize) -> Arc<Self> {
        Arc::new(Self {
            size,
            inner: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` gives something.
    fn wait_for<T>(&self, mut done: impl FnMut(&mut Inner) -> Option<T>) -> Result<T, PlainFailed> {
        let mut inner = self.lock();
        loop {
            if inner.broken {
                return Err(PlainFailed);
            }
            if let Some(found) = done(&mut inner) {
                self.changed.notify_all();
                return Ok(found);
            }
            let (next, waited) = self
                .changed
                .wait_timeout(inner, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            assert!(!waited.timed_out(), "a rank does not come to a call");
            inner = next;
        }
    }
}

impl FakeMpi {
    /// A world of so many ranks, by rank.
    pub(crate) fn world(size: usize) -> Vec<Self> {
        let shared = Shared::new(size);
        (0..size)
            .map(|rank| Self {
                shared: Arc::clone(&shared),
                rank,
            })
            .collect()
    }

    /// Every call of every rank fails from here on.
    pub(crate) fn break_off(&self) {
        self.shared.lock().broken = true;
        self.shared.changed.notify_all();
    }

    /// What all ranks bring, in order of ranks.
    fn exchange(&self, mine: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, PlainFailed> {
        let size = self.shared.size;
        // The call before has come to its end everywhere.
        self.shared
            .wait_for(|inner| inner.all.is_none().then_some(()))?;
        let mut mine = Some(mine);
        self.shared.wait_for(|inner| {
            if let Some(mine) = mine.take() {
                inner.brought.insert(self.rank, mine);
            }
            if inner.all.is_none() && inner.brought.len() == size {
                let all = std::mem::take(&mut inner.brought);
                inner.all = Some(Arc::new(all.into_values().collect()));
            }
            let all = inner.all.clone()?;
            inner.has_it += 1;
            if inner.has_it == size {
                inner.has_it = 0;
                inner.all = None;
            }
            Some(all)
        })
    }
}

impl fmt::Debug for FakeMpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank, self.shared.size)
    }
}

impl PartialEq for FakeMpi {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank && Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Mpi for FakeMpi {
    fn allgather(&self, mine: &[u8], size: usize) -> Result<Vec<u8>, PlainFailed> {
        let all = self.exchange(mine.to_vec())?;
        assert_eq!(all.len(), size);
        Ok(all.concat())
    }

    fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), PlainFailed> {
        let brought = self.exchange(mine.to_vec())?.concat();
        if self.rank == 0 {
            all.copy_from_slice(&brought);
        }
        Ok(())
    }

    fn gather_texts(
        &self,
        mine: &str,
        rank: usize,
        _size: usize,
    ) -> Result<Vec<String>, PlainFailed> {
        let all = self.exchange(mine.as_bytes().to_vec())?;
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Ok(all.iter().filter(|_| rank == 0).map(text).collect())
    }

    fn bcast(&self, bytes: &mut [u8], root: usize) -> Result<(), PlainFailed> {
        let all = self.exchange(bytes.to_vec())?;
        bytes.copy_from_slice(&all[root]);
        Ok(())
    }

    fn barrier(&self) -> Result<(), PlainFailed> {
        self.exchange(Vec::new()).map(|_| ())
    }

    fn send(&self, bytes: &[u8], to: usize) -> Result<(), PlainFailed> {
        self.shared.wait_for(|inner| {
            let messages = inner.messages.entry((self.rank, to)).or_default();
            messages.push_back(bytes.to_vec());
            Some(())
        })
    }

    fn receive(&self, bytes: &mut [u8], from: usize) -> Result<(), PlainFailed> {
        let came = self
            .shared
            .wait_for(|inner| inner.messages.get_mut(&(from, self.rank))?.pop_front())?;
        bytes.copy_from_slice(&came);
        Ok(())
    }

    fn least(&self, mine: i32) -> Result<i32, PlainFailed> {
        let all = self.exchange(mine.to_ne_bytes().to_vec())?;
        let numbers = all
            .iter()
            .filter_map(|bytes| bytes.as_slice().try_into().ok());
        numbers.map(i32::from_ne_bytes).min().ok_or(PlainFailed)
    }

    fn sum<const COUNT: usize>(&self, mine: [f64; COUNT]) -> Result<[f64; COUNT], PlainFailed> {
        let all = self.exchange(mine.iter().flat_map(|one| one.to_ne_bytes()).collect())?;
        let mut sums = [0.0; COUNT];
        for bytes in all.iter() {
            for (sum, one) in sums.iter_mut().zip(bytes.as_chunks().0) {
                *sum += f64::from_ne_bytes(*one);
            }
        }
        Ok(sums)
    }

    fn split(&self, colour: usize, key: usize) -> Result<Self, PlainFailed> {
        let mine = [colour, key, self.rank].map(usize::to_ne_bytes).concat();
        let all = self.exchange(mine)?;
        let numbers = all.iter().map(|bytes| {
            let words = bytes.as_chunks().0;
            [words[1], words[2], words[0]].map(usize::from_ne_bytes)
        });
        let mut part: Vec<_> = numbers.filter(|[_, _, its]| *its == colour).collect();
        part.sort_unstable();
        let rank = part.iter().position(|[_, rank, _]| *rank == self.rank);
        let mut inner = self.shared.lock();
        let split = inner.splits.entry(self.rank).or_default();
        *split += 1;
        let split = *split;
        let shared = inner
            .parts
            .entry((split, colour))
            .or_insert_with(|| Shared::new(part.len()));
        Ok(Self {
            shared: Arc::clone(shared),
            rank: rank.ok_or(PlainFailed)?,
        })
    }

    fn free(&self) {}

    fn reduce(
        &self,
        _call: &order::Call,
        _handle: usize,
        _mine: &[u8],
    ) -> Result<Vec<u8>, PlainFailed> {
        Err(PlainFailed)
    }

    fn reduce_local(
        _call: &order::Call,
        _handle: usize,
        _left: &[u8],
        _right: &mut [u8],
    ) -> Result<(), PlainFailed> {
        Err(PlainFailed)
    }

    fn progress() {
        thread::yield_now();
    }

    fn library() -> Option<Library> {
        Some(Library::Mpich([4, 0, 2]))
    }
}

/// Runs `body` as each rank of a world.
pub(crate) fn run<T: Send>(size: usize, body: impl Fn(usize, FakeMpi) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..)
            .zip(FakeMpi::world(size))
            .map(|(rank, mpi)| scope.spawn(move || body(rank, mpi)))
            .collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().expect("a rank that does not fail"))
            .collect()
    })
}

#[test]
fn ranks_of_threads_do_what_those_of_mpi_do() {
    run(3, |rank, mpi| {
        for round in 0..20_u8 {
            let mine = [round, u8::try_from(rank).expect("few ranks")];
            let all = mpi.allgather(&mine, 3).expect("it works");
            assert_eq!(all, [round, 0, round, 1, round, 2]);
            assert_eq!(mpi.least(5 - i32::from(mine[1])).expect("it works"), 3);
            assert_eq!(mpi.sum([1.0, 0.5]).expect("it works"), [3.0, 1.5]);
        }
        // Ranks 0 and 2, the latter first.
        let part = mpi.split(rank % 2, 10 - rank).expect("it works");
        let mut told = [u8::try_from(rank).expect("few ranks")];
        part.bcast(&mut told, 0).expect("it works");
        assert_eq!(told, [if rank == 1 { 1 } else { 2 }]);
        match rank {
            0 => part.send(&[7], 0).expect("it works"),
            2 => {
                part.receive(&mut told, 1).expect("it works");
                assert_eq!(told, [7]);
            }
            _ => {}
        }
    });
}
