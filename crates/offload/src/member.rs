//! One member's data plane of one group.
