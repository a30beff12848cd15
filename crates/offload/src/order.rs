//! Which tree of additions an MPI library makes.

mod expression;

pub use expression::{Expression, ExpressionError, Node};
