//! Fortran's entry points: everything by reference, handles as numbers, an error at the end.

use std::fmt::Write;

use crate::table::{Function, Kind, Matching};

impl Kind {
    /// How Fortran passes it, `None`: not at all.
    fn fortran(self, name: &str) -> Option<String> {
        match self {
            Self::Send | Self::Receive => Some(format!("char *{name}")),
            Self::Argc | Self::Argv => None,
            _ => Some(format!("MPI_Fint *{name}")),
        }
    }

    /// The C value of what Fortran passed. An `MPI_Fint` is an int: build.rs asks the library for that.
    fn c_value(self, name: &str) -> String {
        match self {
            Self::Send | Self::Receive => format!("raddle_buffer({name})"),
            Self::Count | Self::Int => format!("*{name}"),
            Self::Counts | Self::Displs | Self::Ints | Self::Indices => name.to_owned(),
            Self::Datatype => format!("PMPI_Type_f2c(*{name})"),
            Self::Op => format!("PMPI_Op_f2c(*{name})"),
            Self::Comm => format!("PMPI_Comm_f2c(*{name})"),
            Self::RequestHandle => format!("PMPI_Request_f2c(*{name})"),
            Self::Status => format!("raddle_status({name})"),
            Self::Statuses => format!("raddle_statuses({name})"),
            Self::OutInt => format!("{name} == NULL ? NULL : &c_{name}"),
            Self::Flag
            | Self::Index
            | Self::InoutComm
            | Self::OutComm
            | Self::Request
            | Self::OutRequest
            | Self::Message
            | Self::OutMessage => format!("&c_{name}"),
            Self::Requests => format!("c_{name}.all"),
            Self::Argc | Self::Argv => "NULL".to_owned(),
            Self::Aints | Self::Datatypes | Self::Info | Self::Group => {
                unreachable!("only in functions that Fortran does not convert")
            }
        }
    }

    /// What is declared before the call, and what is done after it.
    fn around(self, name: &str) -> (String, String) {
        let handle = |of: &str, read: bool| {
            let before = if read {
                format!("MPI_{of} c_{name} = PMPI_{of}_f2c(*{name});")
            } else {
                format!("MPI_{of} c_{name} = MPI_{}_NULL;", of.to_uppercase())
            };
            let set = format!("*{name} = PMPI_{of}_c2f(c_{name});");
            // A call that failed has made nothing.
            let after = if read {
                set
            } else {
                format!("if (result == MPI_SUCCESS)\n        {set}")
            };
            (before, after)
        };
        match self {
            Self::OutInt => (
                format!("int c_{name} = 0;"),
                format!("if ({name} != NULL)\n        *{name} = c_{name};"),
            ),
            Self::Flag => (
                format!("int c_{name} = 0;"),
                format!("*{name} = c_{name} ? raddle_true() : 0;"),
            ),
            Self::Index => (
                format!("int c_{name} = MPI_UNDEFINED;"),
                format!("*{name} = c_{name} == MPI_UNDEFINED ? MPI_UNDEFINED : c_{name} + 1;"),
            ),
            Self::Indices => (
                String::new(),
                format!("raddle_from_one(result, {name}, c_outcount);"),
            ),
            Self::InoutComm => handle("Comm", true),
            Self::OutComm => handle("Comm", false),
            Self::Request => handle("Request", true),
            Self::OutRequest => handle("Request", false),
            Self::Message => handle("Message", true),
            Self::OutMessage => handle("Message", false),
            Self::Requests => (
                format!(
                    "struct raddle_requests c_{name};\n    raddle_requests_in(&c_{name}, {name}, *count);"
                ),
                format!("raddle_requests_out(&c_{name}, {name}, *count);"),
            ),
            _ => (String::new(), String::new()),
        }
    }
}

fn parameters(function: &Function) -> String {
    let mut arguments: Vec<_> = function
        .arguments
        .iter()
        .filter_map(|(kind, name)| kind.fortran(name))
        .collect();
    arguments.push("MPI_Fint *error".to_owned());
    arguments.join(", ")
}

/// Puts the arguments into C's words and calls the highest layer.
pub(crate) fn converting(function: &Function, text: &mut String) {
    let values: Vec<_> = function
        .arguments
        .iter()
        .map(|(kind, name)| kind.c_value(name))
        .collect();
    let (mut before, mut after) = (String::new(), String::new());
    for (kind, name) in &function.arguments {
        for (text, part) in [&mut before, &mut after]
            .into_iter()
            .zip(Into::<[_; 2]>::into(kind.around(name)))
        {
            if !part.is_empty() {
                let _ = writeln!(text, "    {part}");
            }
        }
    }
    let name = &function.name;
    let layer = if function.offload || function.matching.is_some() {
        let below = function.below_record();
        format!("(raddle_recorder != NULL ? record_{name} : {below})")
    } else {
        format!("record_{name}")
    };
    let _ = writeln!(
        text,
        // mpi_f08 leaves the error out where the program does.
        "static void fortran_{name}({})\n{{\n{before}    int result = {layer}({});\n{after}    \
         if (error != NULL)\n        *error = result;\n}}\n",
        parameters(function),
        values.join(", "),
    );
}

/// Calls the library's own function; the communicator that it made is agreed on and noted.
pub(crate) fn own(function: &Function, text: &mut String) {
    let name = &function.name;
    let types = vec!["MPI_Fint *"; function.arguments.len() + 1].join(", ");
    let note = function.record.as_deref().unwrap_or("pass()");
    let agree = if function.matching == Some(Matching::Agree) {
        "        raddle_agree(made);\n"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "static void fortran_{name}({})\n{{\n    \
         static _Atomic(void (*)(void)) own;\n    \
         void (*function)(void) = raddle_own(&own, \"mpi_{lower}_\", \"{f08}\");\n    \
         uint64_t begun = raddle_recorder == NULL ? 0 : raddle_recorder->clock();\n    \
         MPI_Fint result = MPI_SUCCESS;\n    raddle_flush();\n    \
         ((void (*)({types}))function)({}, &result);\n    \
         if (result == MPI_SUCCESS) {{\n        MPI_Comm made = PMPI_Comm_f2c(*newcomm);\n{agree}        \
         if (raddle_recorder != NULL) {{\n            const MPI_Comm *newcomm = &made;\n            note_{note};\n        }}\n    }}\n    \
         if (error != NULL)\n        *error = result;\n}}\n",
        parameters(function),
        function.names(),
        lower = name.to_lowercase(),
        f08 = function.mpi_f08_symbol(),
    );
}
