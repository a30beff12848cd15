//! One operation on two operands.
