//! Who leads and who sends to whom.
