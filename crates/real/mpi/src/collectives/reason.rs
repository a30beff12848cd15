//! Why a call took the plain way. `docs/reference/mpi.md` has the same table, which a test compares.

macro_rules! reasons {
    ($($name:ident $key:literal $meaning:literal,)*) => {
        /// Why a call took the plain way.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $meaning] $name,)*
        }

        impl Reason {
            /// All of them, by number.
            pub const ALL: [Self; [$($key),*].len()] = [$(Self::$name),*];

            /// The reason of a number, [`Reason::Refused`] for others.
            #[must_use]
            pub fn from_number(number: i32) -> Self {
                let at = usize::try_from(number).unwrap_or(usize::MAX);
                Self::ALL.get(at).copied().unwrap_or(Self::Refused)
            }

            /// Its name in reports.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)* }
            }

            /// What a user should know about it.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

reasons! {
    // The first ones are known to the shims by number: enum raddle_reason in shim/border.h.
    Eligible "eligible" "the call can be offloaded",
    NoElements "no_elements" "no elements: nothing to send",
    Arguments "arguments" "a buffer, count or root that MPI itself must judge",
    Type "type" "a derived type, or a predefined one that switches do not compute",
    Operation "operation" "a user's operation, or one that is not defined for the type",
    Early "early" "the first calls of a communicator are always plain",
    Intercommunicator "intercommunicator" "an intercommunicator",
    Alone "alone" "one rank only",
    OneNode "one_node" "all ranks share one node: nothing crosses a switch",
    Never "never" "RADDLE_OFFLOAD=never",
    NoJob "no_job" "RADDLE_JOB or RADDLE_JOB_KEY is not set on every rank",
    Settings "settings" "ranks have different RADDLE_* settings",
    Session "session" "MPI was started by a session, so there is no common end",
    NoInterface "no_interface" "a node has no usable network interface or socket",
    NoSwitch "no_switch" "no switch answered when a group was set up",
    Refused "refused" "a switch refused: no room, quota, or it drains",
    Unsupported "unsupported" "a switch on the way, or the published protocol, does not do this collective, operation or type",
    Places "places" "published protocol: nodes and sockets have unlike numbers of ranks, or numbers with gaps",
    Tree "tree" "published protocol: not two or more leaders below each TOR, equally many, and one SPINE above",
    NoRawSocket "no_raw_socket" "published protocol: a leader may not open raw sockets (CAP_NET_RAW)",
    Size "size" "longer than RADDLE_MAX_BYTES, or than the 256 B of the published protocol",
    Order "order" "the order of additions of this MPI library is not known for this call, or the published protocol adds in another one",
    Arithmetic "arithmetic" "this MPI library computes the operation on this type in its own way, such as sums that saturate",
    Slower "slower" "measured: the plain call is faster",
    Measuring "measuring" "the plain half of a measurement",
    Failed "failed" "a switch or path failed: all ranks went back to plain MPI",
}
