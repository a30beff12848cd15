//! A switch that combines.
