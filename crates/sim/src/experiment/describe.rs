//! Maps and flow files for the command line.
