//! MRG32k3a with streams, as ns-3 draws its uniform numbers: L'Ecuyer, Operations Research 47(1), 1999; streams 2^127
//! and substreams 2^76 numbers apart: L'Ecuyer, Simard, Chen and Kelton, Operations Research 50(6), 2002.

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;
const NORM: f64 = 1.0 / (M1 + 1) as f64;
/// Log of the distance of two streams, and of two substreams.
const STREAM: u32 = 127;
const SUBSTREAM: u32 = 76;

type Row = [u64; 3];
type Matrix = [Row; 3];

/// One step of each component as a matrix: x(n) = 1403580 x(n-2) - 810728 x(n-3), y(n) = 527612 y(n-1) - 1370589 y(n-3).
const STEP1: Matrix = [[0, 1, 0], [0, 0, 1], [M1 - 810_728, 1_403_580, 0]];
const STEP2: Matrix = [[0, 1, 0], [0, 0, 1], [M2 - 1_370_589, 0, 527_612]];

/// The first number of one stream after another: HPCC's simulator takes a fresh stream for every decision.
#[derive(Clone, Debug)]
pub(crate) struct StreamHeads {
    state1: Row,
    state2: Row,
    jump1: Matrix,
    jump2: Matrix,
}

impl StreamHeads {
    /// The streams of `seed` from number `first` on, each in substream `run`.
    pub(crate) fn new(seed: u32, run: u64, first: u64) -> Self {
        let seed = u64::from(seed.max(1));
        let start = |step: Matrix, jump: Matrix, modulus: u64| {
            let substream = power(doubled(step, SUBSTREAM, modulus), run, modulus);
            let stream = power(jump, first, modulus);
            apply(
                &stream,
                apply(&substream, [seed % modulus; 3], modulus),
                modulus,
            )
        };
        let jump1 = doubled(STEP1, STREAM, M1);
        let jump2 = doubled(STEP2, STREAM, M2);
        Self {
            state1: start(STEP1, jump1, M1),
            state2: start(STEP2, jump2, M2),
            jump1,
            jump2,
        }
    }

    /// The first number of the next stream, 0..1.
    pub(crate) fn next(&mut self) -> f64 {
        let first = first_number(self.state1, self.state2);
        self.skip();
        first
    }

    /// Leaves the next stream out.
    pub(crate) fn skip(&mut self) {
        self.state1 = apply(&self.jump1, self.state1, M1);
        self.state2 = apply(&self.jump2, self.state2, M2);
    }
}

fn first_number(state1: Row, state2: Row) -> f64 {
    let one = apply(&STEP1, state1, M1)[2];
    let two = apply(&STEP2, state2, M2)[2];
    let difference = if one > two { one - two } else { one + M1 - two };
    difference as f64 * NORM
}

fn apply(matrix: &Matrix, vector: Row, modulus: u64) -> Row {
    matrix.map(|row| {
        // Each product is below 2^64, their sum need not be.
        let product = |index: usize| row[index] * vector[index] % modulus;
        (product(0) + product(1) + product(2)) % modulus
    })
}

fn multiplied(left: &Matrix, right: &Matrix, modulus: u64) -> Matrix {
    let column = |at: usize| apply(left, [right[0][at], right[1][at], right[2][at]], modulus);
    let columns = [column(0), column(1), column(2)];
    [0, 1, 2].map(|row| [columns[0][row], columns[1][row], columns[2][row]])
}

/// `matrix` to the power of 2^`times`.
fn doubled(matrix: Matrix, times: u32, modulus: u64) -> Matrix {
    (0..times).fold(matrix, |power, _| multiplied(&power, &power, modulus))
}

fn power(mut base: Matrix, mut exponent: u64, modulus: u64) -> Matrix {
    let mut result = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiplied(&result, &base, modulus);
        }
        base = multiplied(&base, &base, modulus);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_its_published_first_numbers() {
        // MRG32k3a started with 12345 throughout.
        let (mut one, mut two) = ([12_345; 3], [12_345; 3]);
        let mut next = || {
            let number = first_number(one, two);
            one = apply(&STEP1, one, M1);
            two = apply(&STEP2, two, M2);
            number
        };
        for expected in [0.127_011_122, 0.318_527_565, 0.309_186_015] {
            assert!((next() - expected).abs() < 1e-8);
        }
    }

    #[test]
    fn skipping_streams_is_the_same_as_starting_later() {
        let mut walked = StreamHeads::new(1, 3, 0);
        for _ in 0..17 {
            walked.skip();
        }
        let mut started = StreamHeads::new(1, 3, 17);
        for _ in 0..5 {
            assert_eq!(walked.next(), started.next());
        }
    }
}
