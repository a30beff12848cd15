//! Trees that several libraries use.

use super::expression::{Builder, Expression};

/// Recursive doubling: neighbours first, pairs of blocks after that, the lower block left. When the ranks are no power of
/// two, the first `2 * (size - power)` ranks are paired before (Thakur et al., `THAKUR05`).
///
/// Recursive halving of the vector (Rabenseifner) makes the same tree for every element, up to left and right.
pub(crate) fn doubling(size: u32) -> Option<Expression> {
    nested_doubling(&[size])
}

/// Recursive doubling inside blocks of `sizes[0]` ranks, then of `sizes[1]` of these blocks, and so on: what switches make
/// of ranks below TORs below a SPINE. `None` if a size is 0 or all together have too many ranks.
pub(crate) fn nested_doubling(sizes: &[u32]) -> Option<Expression> {
    let ranks = sizes
        .iter()
        .try_fold(1_u32, |product, size| product.checked_mul(*size))?;
    let mut tree = Builder::default();
    let mut blocks: Vec<u32> = (0..ranks).map(|rank| tree.rank(rank)).collect();
    for &size in sizes {
        let parts = blocks.chunks_exact(size as usize);
        blocks = parts
            .map(|part| double(&mut tree, part))
            .collect::<Option<_>>()?;
    }
    tree.finish()
}

/// Doubles blocks until one is left.
fn double(tree: &mut Builder, parts: &[u32]) -> Option<u32> {
    let power = 1 << parts.len().checked_ilog2()?;
    let (paired, single) = parts.split_at(2 * (parts.len() - power));
    let mut blocks: Vec<u32> = pairs(tree, paired);
    blocks.extend(single);
    while blocks.len() > 1 {
        blocks = pairs(tree, &blocks);
    }
    blocks.first().copied()
}

/// Combines neighbours.
fn pairs(tree: &mut Builder, blocks: &[u32]) -> Vec<u32> {
    let (pairs, _) = blocks.as_chunks::<2>();
    pairs
        .iter()
        .map(|&[left, right]| tree.combine(left, right))
        .collect()
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
