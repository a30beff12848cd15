//! GOAL, the text format of LogGOPSim and Schedgen (`LogGOPSim` in `docs/references.bib`): operations of every rank and what
//! each waits for.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 100
//! l2: send 8b to 1 tag 7
//! l2 requires l1
//! }
//! rank 1 {
//! recv 8b from 0 tag 7 cpu 0 nic 0
//! }
//! ```
//!
//! `requires`: after the other is done; `irequires`: after it has started. Times are nanoseconds. Comments are `// …` and
//! `/* … */`. An operation and a dependency end with their line.
//!
//! A trace is one sequence of calls per rank, a GOAL schedule a partial order, so [`read`] chooses a sequence: operations in
//! the order of the text, waits as late as possible. `cpu` and `nic` are read and forgotten: a rank has one of each.
//! [`write`](write()) gives the calls with their compute gaps; how long calls took is not told, nor are hosts and
//! communicators.
//!
//! ```
//! use raddle_trace::goal;
//! let text = "num_ranks 2\nrank 0 {\ncalc 100\nsend 8b to 1 tag 7\n}\nrank 1 {\nrecv 8b from 0 tag 7\n}\n";
//! let trace = goal::read(text).unwrap();
//! assert_eq!(goal::read(&goal::write(&trace).unwrap()).unwrap(), trace);
//! ```

mod order;
mod read;
mod tokens;
mod write;

pub use read::read;
pub use write::{WriteError, write};

use thiserror::Error;

/// Why a text is no GOAL schedule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct GoalError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what is right.
    pub problem: String,
}

/// Where something stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    line: usize,
    column: usize,
}

impl At {
    fn error(self, problem: impl Into<String>) -> GoalError {
        let Self { line, column } = self;
        GoalError {
            line,
            column,
            problem: problem.into(),
        }
    }
}
