//! How a group comes to be.
