//! Stable grouping by dense numbers (a counting sort): one pass to count, one to place, two vectors.

/// Items in groups: those of group 0, then those of group 1, and so on, each in the order in which they came.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    pub(crate) items: Vec<u32>,
    /// Where each group begins in `items`, and the end of the last one.
    pub(crate) first: Vec<u32>,
}

impl Groups {
    pub(crate) fn new(
        items: impl Iterator<Item = u32> + Clone,
        groups: usize,
        group_of: impl Fn(u32) -> usize,
    ) -> Self {
        let mut first = vec![0_u32; groups + 1];
        for item in items.clone() {
            first[group_of(item) + 1] += 1;
        }
        for group in 0..groups {
            first[group + 1] += first[group];
        }
        let mut next = first.clone();
        let mut sorted = vec![0; first[groups] as usize];
        for item in items {
            let at = &mut next[group_of(item)];
            sorted[*at as usize] = item;
            *at += 1;
        }
        Self {
            items: sorted,
            first,
        }
    }

    pub(crate) fn of(&self, group: usize) -> &[u32] {
        &self.items[self.first[group] as usize..self.first[group + 1] as usize]
    }
}
