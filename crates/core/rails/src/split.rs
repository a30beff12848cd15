//! How the bytes of a message are shared out among rails.

use raddle_units::{BitRate, Bytes, Span};

use super::rail_set::RailSet;

pub use raddle_wire::rails::MAX_RAILS;

/// Bytes per rail.
pub type Shares = [u64; MAX_RAILS];

/// A rail as the split sees it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Path {
    /// Time that a bit takes to the other side when nothing is in its way (L).
    pub latency: Span,
    /// Rate at which the rail takes bytes (B); 0: it takes none.
    pub rate: BitRate,
    /// Bytes that are to go before (q).
    pub backlog: Bytes,
}

/// How much later a message of one segment may end on the favourite rail than on the first, as a part of the whole time.
const FAVOUR: f64 = 1.0 / 8.0;

/// Bits in a byte times picoseconds in a second: what bytes / (bit/s) is multiplied with.
const BYTE_PS: f64 = 8e12;

/// When bytes on a rail arrive, in ps from now: the line ready + bytes x per_byte, never on a rail without a rate.
#[derive(Clone, Copy)]
struct Line {
    /// L + q / B: when the first bit would arrive.
    ready: f64,
    /// 1 / B.
    per_byte: f64,
}

impl Line {
    fn of(path: &Path) -> Self {
        let per_byte = BYTE_PS / path.rate.0 as f64;
        Self {
            ready: path.latency.0 as f64 + path.backlog.0 as f64 * per_byte,
            per_byte,
        }
    }

    const NEVER: Self = Self {
        ready: f64::INFINITY,
        per_byte: f64::INFINITY,
    };

    fn end(&self, bytes: u64) -> f64 {
        self.ready + bytes as f64 * self.per_byte
    }

    fn bytes_until(&self, time: f64) -> f64 {
        if self.ready >= time {
            return 0.0;
        }
        (time - self.ready) / self.per_byte
    }
}

/// The lines of all rails, and their number.
fn lines(paths: &[Path]) -> ([Line; MAX_RAILS], usize) {
    assert!(paths.len() <= MAX_RAILS);
    let mut lines = [Line::NEVER; MAX_RAILS];
    for (line, path) in lines.iter_mut().zip(paths) {
        if path.rate.0 > 0 {
            *line = Line::of(path);
        }
    }
    (lines, paths.len())
}

/// Equal pieces of a message of `length` bytes, one for each of `rails` rails, in whole segments as far as they go: the first
/// rails have one more ([MNC, section 3]).
///
/// # Panics
/// When `segment` or `rails` is 0, or `rails` above [`MAX_RAILS`].
pub fn equal(length: u64, segment: u64, rails: usize) -> Shares {
    assert!((1..=MAX_RAILS).contains(&rails) && segment > 0);
    let mut shares = [0; MAX_RAILS];
    let (whole, count) = (length.div_ceil(segment), rails as u64);
    let mut left = length;
    for (index, share) in (0..).zip(&mut shares[..rails]) {
        let segments = whole / count + u64::from(index < whole % count);
        *share = left.min(segments * segment);
        left -= *share;
    }
    shares
}

/// The shares with which the last byte of `length` arrives earliest, in whole segments but for the message's last one.
///
/// In bytes that is water-filling: rails are filled up to the time T at which all end, s_i = B_i (T - L_i - q_i / B_i), and
/// those that would begin after T get nothing. In segments: shares rounded down, and the rest one by one to the rail that ends
/// first. That is optimal for equal segments, since the n that end first are those that end by T and then these. All shares
/// are 0 where no rail has a rate. O(K log K + K^2) for K rails.
///
/// # Panics
/// When `segment` is 0 or there are more than [`MAX_RAILS`] paths.
pub fn water_fill(length: u64, segment: u64, paths: &[Path]) -> Shares {
    assert!(segment > 0);
    let (lines, count) = lines(paths);
    let lines = &lines[..count];
    let segments = length.div_ceil(segment);
    let level = level(segments * segment, lines);
    let mut shares = [0; MAX_RAILS];
    if level.is_infinite() {
        return shares;
    }
    let mut left = segments;
    for (share, line) in shares.iter_mut().zip(lines) {
        *share = ((line.bytes_until(level) / segment as f64) as u64).min(left);
        left -= *share;
    }
    for _ in 0..left {
        let end = |index: usize| lines[index].end((shares[index] + 1) * segment);
        let earliest = (0..count).min_by(|a, b| end(*a).total_cmp(&end(*b)));
        shares[earliest.expect("some rail has a rate")] += 1;
    }
    for share in &mut shares {
        *share *= segment;
    }
    shorten(&mut shares, segments * segment - length, segment, lines);
    shares
}

/// The rails that have a part of the split that [`water_fill`] makes: most often told without making it.
///
/// Deviation: one segment goes by the rail `favourite`, if there is one, where it ends there no later than 9/8 of the time that
/// it takes on the best.
///
/// # Panics
/// As [`water_fill`].
pub fn takers(length: u64, segment: u64, paths: &[Path], favourite: Option<usize>) -> RailSet {
    let (lines, count) = lines(paths);
    let lines = &lines[..count];
    match length.div_ceil(segment) {
        0 => 0,
        1 => first_to_end(segment, lines, favourite),
        _ => {
            let level = level(length, lines);
            let whole = |line: &Line| line.bytes_until(level) >= segment as f64;
            let sure = set_of(lines, whole);
            if sure == set_of(lines, |line| line.ready.is_finite()) {
                return sure;
            }
            // Less than a segment in bytes may be one in segments.
            set_of(&water_fill(length, segment, paths), |share| *share > 0)
        }
    }
}

/// The rail on which `bytes` end first, or the favourite if they end there hardly later; empty where no rail has a rate.
fn first_to_end(bytes: u64, lines: &[Line], favourite: Option<usize>) -> RailSet {
    let end = |rail: usize| lines[rail].end(bytes);
    let first = (0..lines.len()).min_by(|a, b| end(*a).total_cmp(&end(*b)));
    let Some(first) = first.filter(|rail| end(*rail).is_finite()) else {
        return 0;
    };
    let favourite = favourite.filter(|rail| end(*rail) <= end(first) * (1.0 + FAVOUR));
    1 << favourite.unwrap_or(first)
}

/// The rails of which `holds` says yes.
fn set_of<T>(rails: &[T], holds: impl Fn(&T) -> bool) -> RailSet {
    let bits = rails.iter().enumerate();
    bits.fold(0, |set, (rail, of)| set | RailSet::from(holds(of)) << rail)
}

/// T: when all rails end that carry a part of `bytes`, in ps from now; infinite where no rail has a rate.
fn level(bytes: u64, lines: &[Line]) -> f64 {
    let mut order = [Line::NEVER; MAX_RAILS];
    let order = &mut order[..lines.len()];
    order.copy_from_slice(lines);
    order.sort_unstable_by(|a, b| a.ready.total_cmp(&b.ready));
    let (mut rates, mut weighted, mut level) = (0.0, 0.0, f64::INFINITY);
    for line in order {
        if line.ready >= level {
            break;
        }
        let rate = 1.0 / line.per_byte;
        rates += rate;
        weighted += rate * line.ready;
        level = (bytes as f64 + weighted) / rates;
    }
    level
}

/// The message's last segment is shorter by `missing`: the rail that ends last has it.
fn shorten(shares: &mut Shares, missing: u64, segment: u64, lines: &[Line]) {
    let end = |index: usize| lines[index].end(shares[index]);
    let last = (0..lines.len())
        .filter(|index| shares[*index] >= segment)
        .max_by(|a, b| end(*a).total_cmp(&end(*b)));
    if let Some(last) = last {
        shares[last] -= missing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(latency_us: u64, gbps: u64, backlog: u64) -> Path {
        Path {
            latency: Span::from_us(latency_us),
            rate: BitRate::from_gbps(gbps),
            backlog: Bytes(backlog),
        }
    }

    /// When the last byte arrives, in ps, by the definition: the latest of L + (q + s) / B.
    fn makespan(shares: &[u64], paths: &[Path]) -> f64 {
        let ends = shares.iter().zip(paths).filter(|(share, _)| **share > 0);
        ends.map(|(share, path)| {
            let bytes = Bytes(path.backlog.0 + share);
            (path.latency + path.rate.transmission_time(bytes)).0 as f64
        })
        .fold(0.0, f64::max)
    }

    /// The least makespan over all ways to give `segments` to the paths.
    fn best(segments: u64, segment: u64, paths: &[Path], given: &mut Vec<u64>) -> f64 {
        if given.len() + 1 == paths.len() {
            given.push(segments * segment);
            let end = makespan(given, paths);
            given.pop();
            return end;
        }
        let mut least = f64::INFINITY;
        for here in 0..=segments {
            given.push(here * segment);
            least = least.min(best(segments - here, segment, paths, given));
            given.pop();
        }
        least
    }

    #[test]
    fn water_filling_is_as_good_as_the_best_of_all_splits() {
        // A counter in mixed radix takes every combination of these.
        let (rates, latencies, backlogs) = ([1, 4, 25, 100], [0, 3, 11, 80], [0, 1500, 40_000]);
        for case in 0..4_000_u64 {
            let mut digits = case.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut pick = |n: usize| {
                digits = digits.rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (digits >> 40) as usize % n
            };
            let paths: Vec<Path> = (0..1 + pick(3))
                .map(|_| path(latencies[pick(4)], rates[pick(4)], backlogs[pick(3)]))
                .collect();
            let (segments, segment) = (pick(24) as u64, [64, 1400, 9000][pick(3)]);
            let shares = water_fill(segments * segment, segment, &paths);
            assert_eq!(shares.iter().sum::<u64>(), segments * segment);
            assert!(shares.iter().all(|share| share % segment == 0));
            let told = takers(segments * segment, segment, &paths, None);
            let have = set_of(&shares, |share| *share > 0);
            assert_eq!(told, have, "{shares:?} of {paths:?}");
            let (ours, least) = (
                makespan(&shares, &paths),
                best(segments, segment, &paths, &mut Vec::new()),
            );
            // Two splits may tie in exact numbers and differ by a rounded picosecond.
            assert!(
                ours <= least + 2.0,
                "{ours} > {least}: {shares:?} of {paths:?}"
            );
        }
    }

    #[test]
    fn two_rails_share_by_the_closed_form() {
        // B1 = 8, B2 = 2 Gbit/s, L1 = 1, L2 = 3 us, q = 0: T = (S + B1 L1 + B2 L2) / (B1 + B2), in bytes 1000 and 750.
        let paths = [path(1, 8, 0), path(3, 2, 0)];
        let shares = water_fill(1_000_000, 1, &paths);
        let level_us = (1_000_000.0 + 1000.0 + 750.0) / 1250.0;
        let first = 1000.0 * (level_us - 1.0);
        assert!(
            (shares[0] as f64 - first).abs() <= 1.0,
            "{shares:?} {first}"
        );
        // Rail 2 pays once S > B1 (L2 - L1) + the time of its own byte.
        assert_eq!(water_fill(1990, 1, &paths)[1], 0);
        assert!(water_fill(2100, 1, &paths)[1] > 0);
    }

    #[test]
    fn a_message_of_one_segment_takes_the_rail_that_delivers_it_first() {
        // 1400 B: 112 us + 1 on the slow rail, 1.1 us + 9 on the fast one.
        let paths = [
            path(1, 0, 0),
            Path {
                rate: BitRate(100_000_000),
                ..path(1, 1, 0)
            },
            path(9, 10, 0),
        ];
        assert_eq!(water_fill(1400, 1400, &paths), [0, 0, 1400, 0, 0, 0, 0, 0]);
        assert_eq!(water_fill(1, 1400, &paths), [0, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(takers(1, 1400, &paths, None), 0b100);
        assert_eq!(water_fill(0, 1400, &paths), [0; MAX_RAILS]);
        let none = &paths[..1];
        assert_eq!(water_fill(1, 1400, none), [0; MAX_RAILS], "it has no rate");
        for favourite in [None, Some(0)] {
            let told = [1, 9999].map(|length| takers(length, 1400, none, favourite));
            assert_eq!(told, [0, 0]);
        }
    }

    #[test]
    fn a_favourite_takes_one_segment_where_it_is_nearly_the_best() {
        // 1250 B at 10 Gbit/s take 1 us: they end after 9, 10, 11 and, behind 11 us of others, 20 us.
        let paths = [
            path(9, 10, 0),
            path(8, 10, 0),
            path(10, 10, 0),
            path(8, 10, 13_750),
        ];
        let rail = |length, favourite| takers(length, 1250, &paths, favourite);
        assert_eq!(rail(1, None), 0b0010);
        assert_eq!(
            rail(1, Some(0)),
            0b0001,
            "10 us: 9/8 of the least are 10.125"
        );
        assert_eq!(rail(1, Some(2)), 0b0010, "11 us are too long");
        assert_eq!(rail(1250, Some(3)), 0b0010, "it is busy");
        assert_eq!(
            rail(1251, Some(0)),
            rail(1251, None),
            "of two segments each has its rail"
        );
    }

    #[test]
    fn equal_rails_get_equal_shares() {
        for rails in 1..=MAX_RAILS {
            let paths = vec![path(5, 100, 0); rails];
            for length in [0, 1, 1399, 1400, 99_999, 1_000_000] {
                let (water, cut) = (water_fill(length, 1400, &paths), equal(length, 1400, rails));
                for shares in [water, cut] {
                    assert_eq!(shares.iter().sum::<u64>(), length);
                    let segments = |share: &u64| share.div_ceil(1400);
                    let used = shares[..rails].iter().map(segments);
                    let (least, most) = (used.clone().min(), used.max());
                    assert!(most.unwrap() - least.unwrap() <= 1, "{shares:?}");
                }
            }
        }
    }
}
