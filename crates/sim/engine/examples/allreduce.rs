//! Times of Allreduces on a machine, for `experiments/offload/model.py`: `Machine` and `Allreduce` of
//! `raddle_engine::collective` in, `{"mean_us": ..., "max_us": ...}` out, as `shared` says.

mod shared;

use std::process::ExitCode;

use raddle_engine::collective::{Allreduce, Machine};

fn main() -> ExitCode {
    shared::main(|machine: &Machine, cell: &Allreduce| cell.run(machine))
}
