//! Rows of tables, put together chunk by chunk; each different chunk and each different row is held once.

use rustc_hash::FxHashMap;

use crate::{
    RoutingError,
    stretch::{CHUNK, Stretch},
};

/// Most entries of all chunks together, and of all rows (16 GiB).
const MAX_ENTRIES: u64 = 1 << 31;

/// A chunk as its different stretches, each with the classes (bits) that have it.
type Content = Vec<(u64, Stretch)>;

/// Rows of tables in the making.
pub(crate) struct Rows {
    /// Chunks of a row.
    width: usize,
    /// For each row what the chunk in hand has so far.
    open: Vec<Content>,
    /// For each row its chunks' starts so far.
    starts: Vec<u32>,
    chunks: Vec<Stretch>,
    /// Where each chunk starts, by its content. Looked up, never walked.
    known: FxHashMap<Content, u32>,
}

impl Rows {
    /// # Errors
    /// More entries than we hold.
    pub(crate) fn new(rows: usize, width: usize) -> Result<Self, RoutingError> {
        let entries = rows as u64 * width as u64;
        check(entries)?;
        Ok(Self {
            width,
            open: vec![Content::new(); rows],
            starts: vec![0; entries as usize],
            chunks: Vec::new(),
            known: FxHashMap::default(),
        })
    }

    /// Classes (bits of the chunk in hand) that have a stretch in a row.
    pub(crate) fn add(&mut self, row: usize, classes: u64, stretch: Stretch) {
        let content = &mut self.open[row];
        match content.iter_mut().find(|known| known.1 == stretch) {
            Some(known) => known.0 |= classes,
            None => content.push((classes, stretch)),
        }
    }

    /// Ends the chunk in hand of all rows: it is the chunk `index` of each.
    ///
    /// # Errors
    /// More entries than we hold.
    pub(crate) fn close(&mut self, index: usize) -> Result<(), RoutingError> {
        let mut last: Option<(usize, u32)> = None;
        for row in 0..self.open.len() {
            self.open[row].sort_unstable_by_key(|entry| entry.0.trailing_zeros());
            // Neighbours are often alike.
            let like_last = last.filter(|&(other, _)| self.open[other] == self.open[row]);
            let start = match like_last {
                Some((_, start)) => start,
                None => self.start_of(row)?,
            };
            self.starts[row * self.width + index] = start;
            last = Some((row, start));
        }
        self.open.iter_mut().for_each(Vec::clear);
        Ok(())
    }

    fn start_of(&mut self, row: usize) -> Result<u32, RoutingError> {
        let content = &self.open[row];
        if let Some(&start) = self.known.get(content) {
            return Ok(start);
        }
        let start = self.chunks.len();
        check((start + CHUNK) as u64)?;
        self.chunks.resize(start + CHUNK, Stretch::default());
        for &(classes, stretch) in content {
            let mut left = classes;
            while left != 0 {
                self.chunks[start + left.trailing_zeros() as usize] = stretch;
                left &= left - 1;
            }
        }
        self.known.insert(content.clone(), start as u32);
        Ok(start as u32)
    }

    /// All different rows one after the other, where each row starts there, and the chunks.
    pub(crate) fn finish(self) -> (Vec<u32>, Vec<u32>, Vec<Stretch>) {
        let mut known: FxHashMap<&[u32], u32> = FxHashMap::default();
        let mut rows = Vec::new();
        let row_of = self
            .starts
            .chunks(self.width)
            .map(|row| {
                *known.entry(row).or_insert_with(|| {
                    rows.extend_from_slice(row);
                    (rows.len() - row.len()) as u32
                })
            })
            .collect();
        let mut chunks = self.chunks;
        rows.shrink_to_fit();
        chunks.shrink_to_fit();
        (rows, row_of, chunks)
    }
}

fn check(entries: u64) -> Result<(), RoutingError> {
    if entries > MAX_ENTRIES {
        return Err(RoutingError::TooLarge {
            entries,
            limit: MAX_ENTRIES,
        });
    }
    Ok(())
}
