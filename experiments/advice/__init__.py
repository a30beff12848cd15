"""Advice beside measurements: programs that nobody tuned Raddle for, in labs."""
