//! Trees that several libraries use.

use super::expression::{Builder, Expression};

/// Recursive doubling: neighbours first, pairs of blocks after that, the lower block left. When the ranks are no power of
/// two, the first `2 * (size - power)` ranks are paired before (Thakur et al., `THAKUR05`).
///
/// Recursive halving of the vector (Rabenseifner) makes the same tree for every element, up to left and right.
pub(crate) fn doubling(size: u32) -> Option<Expression> {
    let power = 1 << size.checked_ilog2()?;
    let extra = size - power;
    let mut tree = Builder::default();
    let mut blocks = Vec::new();
    for block in 0..power {
        blocks.push(if block < extra {
            let (even, odd) = (tree.rank(2 * block), tree.rank(2 * block + 1));
            tree.combine(even, odd)
        } else {
            tree.rank(block + extra)
        });
    }
    while blocks.len() > 1 {
        let (pairs, _) = blocks.as_chunks::<2>();
        blocks = pairs
            .iter()
            .map(|&[left, right]| tree.combine(left, right))
            .collect();
    }
    tree.finish()
}

/// The last rank first: `0 op (1 op (... op (size - 1)))`.
pub(super) fn linear(size: u32) -> Option<Expression> {
    let mut tree = Builder::default();
    let mut whole = tree.rank(size.checked_sub(1)?);
    for rank in (0..size - 1).rev() {
        let next = tree.rank(rank);
        whole = tree.combine(next, whole);
    }
    tree.finish()
}

/// A tree of ranks numbered from the root: `children` gives the children of a rank, all of them greater. Each rank
/// begins with `own op first child`, or `first child op own`, and puts further children to the left.
pub(super) fn down(
    size: u32,
    root: u32,
    own_first: bool,
    children: impl Fn(u32) -> Vec<u32>,
) -> Option<Expression> {
    let mut tree = Builder::default();
    let mut value = vec![0; size as usize];
    for relative in (0..size).rev() {
        let rank = (u64::from(relative) + u64::from(root)) % u64::from(size);
        let mut whole = tree.rank(u32::try_from(rank).ok()?);
        for (number, child) in children(relative).into_iter().enumerate() {
            let child = *value.get(child as usize)?;
            whole = if number == 0 && own_first {
                tree.combine(whole, child)
            } else {
                tree.combine(child, whole)
            };
        }
        value[relative as usize] = whole;
    }
    tree.finish()
}

/// Children in a binomial tree: one, two, four, ... further.
pub(super) fn binomial(size: u32, relative: u32) -> Vec<u32> {
    (0..u32::BITS - 1)
        .map(|bit| 1 << bit)
        .take_while(|bit| relative & bit == 0)
        .map(|bit| relative + bit)
        .take_while(|&child| child < size)
        .collect()
}
