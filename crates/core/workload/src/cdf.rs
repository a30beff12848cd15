//! Size distributions: a cumulative table with straight lines between its points.

use std::io::BufRead;

use raddle_units::Bytes;

use crate::TrafficError;
use crate::error::{MAX_SIZE_BYTES, PlaceUnit, Problem};
use crate::format::{Lines, parse_decimal};
use raddle_random::Random;

/// A distribution of message sizes. Between two points sizes are uniform (the reading that the HPCC repository's
/// `traffic_gen` gives to such tables); a first point above 0 and two points of one size are single sizes with weight.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeCdf {
    /// Sizes ascending, cumulative ascending and ending at 1.
    points: Vec<(u64, f64)>,
}

impl SizeCdf {
    /// From `(size, cumulative share)`: neither may fall, the last share is 1 (or 100, then all are percent).
    ///
    /// # Errors
    /// No points, a share or size that falls, a share or size out of range, or a last share other than 1; with the number of
    /// the point, from 1.
    pub fn new(points: &[(Bytes, f64)]) -> Result<Self, Problem> {
        let wrong = |problem: String| Err(Problem::Distribution { problem });
        let Some(&(Bytes(largest), last)) = points.last() else {
            return wrong("it has no points; give lines of `bytes cumulative`".to_owned());
        };
        if largest == 0 {
            return wrong("its largest size is 0; a message has at least one byte".to_owned());
        }
        let full = match last {
            1.0 => 1.0,
            100.0 => 100.0,
            _ => {
                return wrong(format!(
                    "it ends at {last}; the last share must be 1 (or 100, in percent)"
                ));
            }
        };
        let mut before = (0, 0.0);
        let mut checked = Vec::with_capacity(points.len());
        for (index, &(Bytes(size), share)) in points.iter().enumerate() {
            let number = index + 1;
            let share = share / full;
            if !(0.0..=1.0).contains(&share) {
                return wrong(format!("point {number} has a share outside 0 to {full}"));
            }
            if share < before.1 {
                return wrong(format!("the share falls at point {number}; it must not"));
            }
            if size < before.0 {
                return wrong(format!("the size falls at point {number}; sort the points"));
            }
            if size > MAX_SIZE_BYTES {
                return wrong(format!(
                    "point {number} is larger than 1 TiB; check the unit"
                ));
            }
            before = (size, share);
            checked.push(before);
        }
        Ok(Self { points: checked })
    }

    /// Reads lines of `bytes cumulative` (shares up to 1, or percent up to 100; `#` starts a comment), as in the HPCC
    /// repository's `*_distribution.txt`.
    ///
    /// # Errors
    /// A line that is not two numbers, and the errors of [`Self::new`].
    pub fn parse(reader: impl BufRead, source_name: &str) -> Result<Self, TrafficError> {
        const SHARE_DIGITS: i32 = 15;
        let mut lines = Lines::new(reader, "a size distribution");
        let mut points = Vec::new();
        while let Some(line) = lines.next_line(source_name)? {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let fields: Vec<&str> = line.split_ascii_whitespace().take(3).collect();
            let point = match fields.as_slice() {
                &[size, share] => parse_decimal(size, 0, "bytes").and_then(|size| {
                    let share = parse_decimal(share, SHARE_DIGITS, "cumulative")?;
                    Ok((Bytes(size), share as f64 / 1e15))
                }),
                other => Err(Problem::FieldCount {
                    got: other.len(),
                    expected: 2,
                    layout: "bytes cumulative",
                }),
            };
            match point {
                Ok(point) => points.push(point),
                Err(problem) => {
                    let place = PlaceUnit::Line(lines.number);
                    return Err(TrafficError::at(source_name, place, problem));
                }
            }
        }
        Self::new(&points)
            .map_err(|problem| TrafficError::at(source_name, PlaceUnit::File, problem))
    }

    /// `(bytes, cumulative share up to 1)`, ascending.
    pub fn points(&self) -> impl Iterator<Item = (Bytes, f64)> + '_ {
        self.points
            .iter()
            .map(|&(size, share)| (Bytes(size), share))
    }

    /// Mean size in bytes: each segment's middle, weighted by its share.
    pub fn mean_bytes(&self) -> f64 {
        let mut before = (self.points[0].0, 0.0);
        let mut mean = 0.0;
        for &(size, share) in &self.points {
            mean += (share - before.1) * (before.0 as f64 + size as f64) / 2.0;
            before = (size, share);
        }
        mean
    }

    /// Share of messages of at most this size.
    pub fn share_up_to(&self, size: Bytes) -> f64 {
        let mut before = (self.points[0].0, 0.0);
        for &(at, share) in &self.points {
            if size.0 < at {
                if size.0 < before.0 || at == before.0 {
                    return before.1;
                }
                let part = (size.0 - before.0) as f64 / (at - before.0) as f64;
                return before.1 + part * (share - before.1);
            }
            before = (at, share);
        }
        1.0
    }

    pub(crate) fn sample(&self, random: &mut Random) -> Bytes {
        let u = random.unit();
        let above = self
            .points
            .partition_point(|&(_, share)| share <= u)
            .min(self.points.len() - 1);
        let (size, share) = self.points[above];
        let (low, low_share) = above
            .checked_sub(1)
            .map_or((self.points[0].0, 0.0), |index| self.points[index]);
        let part = if share > low_share {
            (u - low_share) / (share - low_share)
        } else {
            1.0
        };
        let drawn = low as f64 + part * (size - low) as f64;
        Bytes((libm::round(drawn) as u64).max(1))
    }
}
