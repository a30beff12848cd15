//! The baselines (broadcast, opensm, mr4lms) against brute force; and the credit-loop check against all routes
//! enumerated.

mod common;
mod credit_loops;
mod merging;
mod roots;
mod state;
