//! Layers of a grid's groups: window colourings of cycles.
//!
//! P consecutive vertices of a cycle (the columns that a terminal's processes touch) must have different colours: the
//! (P-1)-th power of the cycle is coloured.

/// Colours that the cycle of `length` vertices needs so that any `window` consecutive ones differ: with
/// `length = blocks * window + rest`, `window + ceil(rest / blocks)`, which is the optimum; `length` itself where the
/// window is longer. At least 1.
pub fn cycle_colours(length: u64, window: u64) -> u64 {
    let window = window.max(1);
    if length <= window {
        return length.max(1);
    }
    let (blocks, rest) = (length / window, length % window);
    window + rest.div_ceil(blocks)
}

/// Colour of vertex `at` (below `length`) in a colouring with [`cycle_colours`] colours: the cycle is cut into
/// `length div window` blocks, the longer ones first, each numbered 0, 1, ... inside.
pub fn cycle_colour(at: u64, length: u64, window: u64) -> u64 {
    let window = window.max(1);
    if length <= window {
        return at;
    }
    let blocks = length / window;
    let (short, longer) = (length / blocks, length % blocks);
    let in_longer = longer * (short + 1);
    if at < in_longer {
        at % (short + 1)
    } else {
        (at - in_longer) % short
    }
}

/// Layers of one direction in the proof of Theorem 3, from 0 to 2P-2; on a short cycle some of them stay empty.
pub(super) fn literal_colours(per_terminal: u64) -> u64 {
    2 * per_terminal - 1
}

/// f(v) = v if v < P-1, else (P-1) + (v mod P): the colour of coordinate v (proof of Theorem 3, equation (5)).
pub(super) fn literal_colour(at: u64, per_terminal: u64) -> u64 {
    let head = per_terminal - 1;
    if at < head {
        at
    } else {
        head + at % per_terminal
    }
}
