//! The MPI library below us: its plain calls and its progress behind the trait [`Mpi`], which tests fake (`fake`), and where
//! its functions are (`loaded`).

#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod loaded;

use std::{ffi::c_int, fmt};

use raddle_offload::order;

use crate::ffi::{self, RaddlePlain};

/// The MPI library that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    OpenMpi([i32; 3]),
    Mpich([i32; 3]),
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, [major, minor, patch]) = match self {
            Self::OpenMpi(version) => ("Open MPI", version),
            Self::Mpich(version) => ("MPICH", version),
        };
        write!(f, "{name} {major}.{minor}.{patch}")
    }
}

/// An MPI call of ours failed; its error handler has been called. The call goes the plain way.
#[derive(Debug)]
pub(crate) struct PlainFailed;

/// Plain MPI on one communicator of the program, or one that was split from it.
///
/// All ranks of the communicator make the same calls in the same order, but for [`send`](Self::send) and
/// [`receive`](Self::receive). A call fails with [`PlainFailed`] where MPI itself gives an error.
pub(crate) trait Mpi: Clone + PartialEq + fmt::Debug + Send + 'static {
    /// The bytes of every rank, in order of ranks; `mine` is as long on every rank.
    fn allgather(&self, mine: &[u8], size: usize) -> Result<Vec<u8>, PlainFailed>;

    /// At rank 0, the bytes of every rank in `all`, which is as long as all of them together; elsewhere it is not used.
    fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), PlainFailed>;

    /// At rank 0, the texts of all ranks.
    fn gather_texts(
        &self,
        mine: &str,
        rank: usize,
        size: usize,
    ) -> Result<Vec<String>, PlainFailed>;

    /// The bytes of `root` to all ranks; `bytes` is as long on every rank.
    fn bcast(&self, bytes: &mut [u8], root: usize) -> Result<(), PlainFailed>;

    /// Waits for all ranks.
    fn barrier(&self) -> Result<(), PlainFailed>;

    /// To another rank of a communicator that was split off by us.
    fn send(&self, bytes: &[u8], to: usize) -> Result<(), PlainFailed>;

    /// From another rank of a communicator that was split off by us.
    fn receive(&self, bytes: &mut [u8], from: usize) -> Result<(), PlainFailed>;

    /// The least of a number over all ranks.
    fn least(&self, mine: i32) -> Result<i32, PlainFailed>;

    /// Sums over all ranks, the same bits on all.
    fn sum<const COUNT: usize>(&self, mine: [f64; COUNT]) -> Result<[f64; COUNT], PlainFailed>;

    /// The communicator of those that give the same colour, ordered by `key`.
    fn split(&self, colour: usize, key: usize) -> Result<Self, PlainFailed>;

    /// Frees a communicator that [`split`](Self::split) made.
    fn free(&self);

    /// The library's own Allreduce or Reduce of `count` elements of the type with this handle. `mine` and the result are in the layout of C.
    fn reduce(
        &self,
        call: &order::Call,
        handle: usize,
        mine: &[u8],
    ) -> Result<Vec<u8>, PlainFailed>;

    /// The library's `MPI_Reduce_local` on `count` elements in the layout of C.
    fn reduce_local(
        call: &order::Call,
        handle: usize,
        left: &[u8],
        right: &mut [u8],
    ) -> Result<(), PlainFailed>;

    /// Lets the library move its messages while we wait: another rank may need them to get to where we are.
    fn progress();

    /// The MPI library that runs; `None`: one that is not known.
    fn library() -> Option<Library>;
}

/// One communicator of the program, or one that was split from it, in the MPI library that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plain {
    handle: usize,
}

impl Plain {
    /// The communicator with this handle.
    pub(crate) const fn new(handle: usize) -> Self {
        Self { handle }
    }

    fn calls(self) -> Result<&'static RaddlePlain, PlainFailed> {
        ffi::shim().map(|shim| &shim.plain).ok_or(PlainFailed)
    }

    /// A call that names a buffer and a rank.
    ///
    /// # Safety
    /// The buffer has so many bytes, for reading or writing as the call does.
    unsafe fn with_rank<Buffer>(
        self,
        call: unsafe extern "C" fn(usize, Buffer, c_int, c_int) -> c_int,
        buffer: Buffer,
        bytes: usize,
        rank: usize,
    ) -> Result<(), PlainFailed> {
        // SAFETY: as the caller says.
        check(unsafe { call(self.handle, buffer, length(bytes)?, length(rank)?) })
    }
}

impl Mpi for Plain {
    fn allgather(&self, mine: &[u8], size: usize) -> Result<Vec<u8>, PlainFailed> {
        let mut all = vec![0; mine.len() * size];
        let call = self.calls()?.allgather;
        // SAFETY: `all` has room for what `size` ranks send, which is the size of the communicator.
        check(unsafe {
            call(
                self.handle,
                mine.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                length(mine.len())?,
            )
        })?;
        Ok(all)
    }

    fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), PlainFailed> {
        let call = self.calls()?.gather;
        // SAFETY: the caller's `all` has room for every rank at rank 0, and only rank 0 writes to it.
        check(unsafe {
            call(
                self.handle,
                mine.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                length(mine.len())?,
                0,
            )
        })
    }

    fn gather_texts(
        &self,
        mine: &str,
        rank: usize,
        size: usize,
    ) -> Result<Vec<String>, PlainFailed> {
        let calls = self.calls()?;
        let mut lengths = vec![0_u8; if rank == 0 { 4 * size } else { 0 }];
        self.gather(&length(mine.len())?.to_ne_bytes(), &mut lengths)?;
        let lengths: Vec<c_int> = lengths
            .chunks_exact(4)
            .map(|bytes| c_int::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let mut offsets = Vec::with_capacity(lengths.len());
        let mut end: c_int = 0;
        for length in &lengths {
            offsets.push(end);
            end = end.checked_add(*length).ok_or(PlainFailed)?;
        }
        let mut all = vec![0_u8; usize::try_from(end).map_err(|_| PlainFailed)?];
        // SAFETY: `all` has room for the sum of the lengths; lengths and offsets are read at rank 0 only, which has them.
        check(unsafe {
            (calls.gatherv)(
                self.handle,
                mine.as_ptr().cast(),
                length(mine.len())?,
                all.as_mut_ptr().cast(),
                lengths.as_ptr(),
                offsets.as_ptr(),
                0,
            )
        })?;
        Ok(lengths
            .iter()
            .zip(&offsets)
            .map(|(length, offset)| {
                let from = usize::try_from(*offset).unwrap_or(0);
                let text = &all[from..from + usize::try_from(*length).unwrap_or(0)];
                String::from_utf8_lossy(text).into_owned()
            })
            .collect())
    }

    fn bcast(&self, bytes: &mut [u8], root: usize) -> Result<(), PlainFailed> {
        let (call, buffer) = (self.calls()?.bcast, bytes.as_mut_ptr().cast());
        // SAFETY: the buffer is as long as said.
        unsafe { self.with_rank(call, buffer, bytes.len(), root) }
    }

    fn barrier(&self) -> Result<(), PlainFailed> {
        // SAFETY: a call without buffers.
        check(unsafe { (self.calls()?.barrier)(self.handle) })
    }

    fn send(&self, bytes: &[u8], to: usize) -> Result<(), PlainFailed> {
        let (call, buffer) = (self.calls()?.send, bytes.as_ptr().cast());
        // SAFETY: the buffer is as long as said.
        unsafe { self.with_rank(call, buffer, bytes.len(), to) }
    }

    fn receive(&self, bytes: &mut [u8], from: usize) -> Result<(), PlainFailed> {
        let (call, buffer) = (self.calls()?.receive, bytes.as_mut_ptr().cast());
        // SAFETY: the buffer is as long as said.
        unsafe { self.with_rank(call, buffer, bytes.len(), from) }
    }

    fn least(&self, mine: i32) -> Result<i32, PlainFailed> {
        let mut least = mine;
        // SAFETY: both are one number.
        check(unsafe { (self.calls()?.least)(self.handle, mine, &raw mut least) })?;
        Ok(least)
    }

    fn sum<const COUNT: usize>(&self, mine: [f64; COUNT]) -> Result<[f64; COUNT], PlainFailed> {
        let mut sums = mine;
        let call = self.calls()?.sum;
        // SAFETY: both arrays have COUNT numbers.
        check(unsafe {
            call(
                self.handle,
                mine.as_ptr(),
                sums.as_mut_ptr(),
                length(COUNT)?,
            )
        })?;
        Ok(sums)
    }

    fn split(&self, colour: usize, key: usize) -> Result<Self, PlainFailed> {
        let mut handle = 0;
        let call = self.calls()?.split;
        // SAFETY: the new handle is one number.
        check(unsafe { call(self.handle, length(colour)?, length(key)?, &raw mut handle) })?;
        Ok(Self { handle })
    }

    fn free(&self) {
        if let Ok(calls) = self.calls() {
            // SAFETY: a communicator that `split` made; nobody uses it afterwards. An error was handled by MPI.
            unsafe { (calls.free)(self.handle) };
        }
    }

    fn reduce(
        &self,
        call: &order::Call,
        handle: usize,
        mine: &[u8],
    ) -> Result<Vec<u8>, PlainFailed> {
        let mut result = vec![0; mine.len()];
        let function = self.calls()?.reduce;
        // SAFETY: both buffers have `count` elements of the type, as the caller laid them out.
        check(unsafe {
            function(
                self.handle,
                call.collective.code(),
                call.operation.code(),
                handle,
                mine.as_ptr().cast(),
                result.as_mut_ptr().cast(),
                length(call.count)?,
                length(call.root as usize)?,
            )
        })?;
        Ok(result)
    }

    fn reduce_local(
        call: &order::Call,
        handle: usize,
        left: &[u8],
        right: &mut [u8],
    ) -> Result<(), PlainFailed> {
        let shim = ffi::shim().ok_or(PlainFailed)?;
        // SAFETY: both buffers have `count` elements of the type, as the caller laid them out.
        check(unsafe {
            (shim.plain.reduce_local)(
                call.operation.code(),
                handle,
                left.as_ptr().cast(),
                right.as_mut_ptr().cast(),
                length(call.count)?,
            )
        })
    }

    fn progress() {
        if let Some(shim) = ffi::shim() {
            // SAFETY: a call without buffers, from a thread of the program that is inside an MPI call.
            unsafe { (shim.plain.progress)() }
        }
    }

    fn library() -> Option<Library> {
        let shim = ffi::shim()?;
        match shim.library {
            ffi::RADDLE_OPEN_MPI => Some(Library::OpenMpi(shim.version)),
            ffi::RADDLE_MPICH => Some(Library::Mpich(shim.version)),
            _ => None,
        }
    }
}

fn length(number: usize) -> Result<c_int, PlainFailed> {
    c_int::try_from(number).map_err(|_| PlainFailed)
}

fn check(error: c_int) -> Result<(), PlainFailed> {
    if error == 0 { Ok(()) } else { Err(PlainFailed) }
}
