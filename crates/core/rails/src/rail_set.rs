//! Sets of a connection's rails.

use raddle_wire::rails::MAX_RAILS;

/// A set of rails, bit = rail.
pub type RailSet = u8;

/// One rail of `set`, the next after `turn`; `turn` becomes it. Empty for an empty set.
pub(super) fn one_in_turn(set: RailSet, turn: &mut usize) -> RailSet {
    let one = next_of(set, (*turn + 1) % MAX_RAILS);
    if one != 0 {
        *turn = one.trailing_zeros() as usize;
    }
    one
}

/// The first rail of `set` from `from` on, around; empty for an empty set.
pub(super) fn next_of(set: RailSet, from: usize) -> RailSet {
    let ahead = set & (u8::MAX << from);
    let from = if ahead != 0 { ahead } else { set };
    from & from.wrapping_neg()
}

/// The rails of a set, ascending.
pub(super) fn rails_of(set: RailSet) -> impl Iterator<Item = usize> {
    (0..MAX_RAILS).filter(move |rail| set >> rail & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_name_their_rails() {
        assert_eq!(rails_of(0b1000_0101).collect::<Vec<_>>(), [0, 2, 7]);
    }
}
