//! What hosts carry over rails, for `experiments/rails/machine.py`: `Machine` and `Case` of `raddle_engine::rails` in,
//! `Figures` out, as `shared` says.

mod shared;

use std::process::ExitCode;

use raddle_engine::rails::{Case, Machine};

fn main() -> ExitCode {
    shared::main(|machine: &Machine, case: &Case| case.run(machine))
}
