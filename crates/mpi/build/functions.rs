//! What is made from functions.toml: trampolines for the library, entry points and symbol tables for the shims.

use std::fmt::Write;

use serde::Deserialize;

/// functions.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    function: Vec<Function>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function {
    name: String,
    arguments: Vec<(Kind, String)>,
    #[serde(default)]
    large: bool,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Send,
    Receive,
    Count,
    Int,
    Datatype,
    Op,
    Comm,
    OutInt,
    InoutComm,
    Argc,
    Argv,
}

impl Kind {
    /// How C declares an argument of this kind.
    fn c(self, name: &str, large: bool) -> String {
        match self {
            Self::Send => format!("const void *{name}"),
            Self::Receive => format!("void *{name}"),
            Self::Count if large => format!("MPI_Count {name}"),
            Self::Count | Self::Int => format!("int {name}"),
            Self::Datatype => format!("MPI_Datatype {name}"),
            Self::Op => format!("MPI_Op {name}"),
            Self::Comm => format!("MPI_Comm {name}"),
            Self::InoutComm => format!("MPI_Comm *{name}"),
            Self::OutInt | Self::Argc => format!("int *{name}"),
            Self::Argv => format!("char ***{name}"),
        }
    }

    /// How Fortran passes it, `None`: not at all.
    fn fortran(self, name: &str) -> Option<String> {
        match self {
            Self::Send | Self::Receive => Some(format!("char *{name}")),
            Self::Argc | Self::Argv => None,
            _ => Some(format!("MPI_Fint *{name}")),
        }
    }

    /// The C value of what Fortran passed.
    fn c_value(self, name: &str) -> String {
        match self {
            Self::Send | Self::Receive => format!("raddle_buffer({name})"),
            Self::Count | Self::Int => format!("(int)*{name}"),
            Self::Datatype => format!("PMPI_Type_f2c(*{name})"),
            Self::Op => format!("PMPI_Op_f2c(*{name})"),
            Self::Comm => format!("PMPI_Comm_f2c(*{name})"),
            Self::OutInt => format!("{name} == NULL ? NULL : &out_{name}"),
            Self::InoutComm => format!("&inout_{name}"),
            Self::Argc | Self::Argv => "NULL".to_owned(),
        }
    }
}

impl Function {
    fn declaration(&self, large: bool) -> String {
        let arguments: Vec<_> = self
            .arguments
            .iter()
            .map(|(kind, name)| kind.c(name, large))
            .collect();
        match arguments.as_slice() {
            [] => "void".to_owned(),
            all => all.join(", "),
        }
    }

    fn has_buffers(&self) -> bool {
        self.arguments
            .iter()
            .any(|(kind, _)| matches!(kind, Kind::Send | Kind::Receive))
    }

    fn mpi_f08_symbol(&self) -> String {
        format!("mpi_{}_f08_", self.name.to_lowercase())
    }

    /// Fortran's symbols: `use mpi` and mpif.h in the ways that compilers write names, and mpi_f08 of Open MPI.
    fn fortran_symbols(&self) -> Vec<String> {
        let lower = format!("mpi_{}", self.name.to_lowercase());
        vec![
            format!("{lower}_"),
            self.mpi_f08_symbol(),
            lower.clone(),
            format!("{lower}__"),
            lower.to_uppercase(),
        ]
    }
}

/// The trampolines, in Rust.
pub(crate) fn trampolines(table: &Table) -> String {
    let mut symbols = Vec::new();
    for function in &table.function {
        symbols.push(format!("MPI_{}", function.name));
        if function.large {
            symbols.push(format!("MPI_{}_c", function.name));
        }
        symbols.extend(function.fortran_symbols());
    }
    let mut text = String::from("trampolines! {\n");
    for (index, symbol) in symbols.iter().enumerate() {
        let _ = writeln!(
            text,
            "    {index} {symbol:?} enter_{index} resolve_{index},"
        );
    }
    text.push_str("}\n");
    text
}

/// functions.h: what the shim defines for each function.
pub(crate) fn header(table: &Table) -> String {
    let mut text = String::from("/* Made from functions.toml. */\n");
    for function in &table.function {
        let _ = writeln!(
            text,
            "int raddle_{}({});",
            function.name,
            function.declaration(false)
        );
    }
    text.push_str(
        "extern const struct raddle_entry raddle_entries[];\nextern const size_t raddle_entry_count;\n",
    );
    text
}

/// entries.c: functions with large counts, Fortran's entry points, and the symbols of all.
pub(crate) fn entries(table: &Table) -> String {
    let mut text = String::from(
        "/* Made from functions.toml. */\n\
         #include <limits.h>\n\
         #include \"shim.h\"\n\n",
    );
    let mut large = String::new();
    let (mut fortran, mut direct) = (String::new(), String::new());
    let mut direct_rows = String::new();
    let (mut c_rows, mut large_rows, mut fortran_rows) =
        (String::new(), String::new(), String::new());
    for function in &table.function {
        let name = &function.name;
        let _ = writeln!(
            c_rows,
            "    {{\"MPI_{name}\", (void (*)(void))raddle_{name}}},"
        );
        if function.large {
            large_entry(function, &mut large);
            let _ = writeln!(
                large_rows,
                "    {{\"MPI_{name}_c\", (void (*)(void))large_{name}}},"
            );
        }
        if function.has_buffers() {
            fortran_entry(function, &mut fortran);
        } else {
            fortran_entry(function, &mut direct);
            let symbol = function.mpi_f08_symbol();
            let _ = writeln!(
                direct_rows,
                "    {{\"{symbol}\", (void (*)(void))fortran_{name}}},"
            );
        }
        for symbol in function.fortran_symbols() {
            let _ = writeln!(
                fortran_rows,
                "    {{\"{symbol}\", (void (*)(void))fortran_{name}}},"
            );
        }
    }
    let _ = write!(
        text,
        "/* Counts of type MPI_Count: those that fit into an int are as good as the others. */\n\
         #if defined(MPICH_VERSION) && MPI_VERSION >= 4\n#define RADDLE_LARGE\n{large}#endif\n\n\
         /* Functions without buffers: those of MPICH's mpi_f08 call PMPI. */\n{direct}\
         /* MPICH's other Fortran functions call the C ones by name, Open MPI's call PMPI. */\n\
         #if defined(OPEN_MPI)\n#define RADDLE_FORTRAN\n\
         extern int mpi_fortran_in_place_, mpi_fortran_bottom_;\n\n\
         static void *raddle_buffer(char *address)\n{{\n    \
         if (address == (char *)&mpi_fortran_in_place_)\n        return MPI_IN_PLACE;\n    \
         return address == (char *)&mpi_fortran_bottom_ ? MPI_BOTTOM : address;\n}}\n\n{fortran}#endif\n\n\
         const struct raddle_entry raddle_entries[] = {{\n{c_rows}\
         #ifdef RADDLE_LARGE\n{large_rows}#endif\n#ifdef RADDLE_FORTRAN\n{fortran_rows}#else\n{direct_rows}#endif\n}};\n\
         const size_t raddle_entry_count = sizeof raddle_entries / sizeof raddle_entries[0];\n",
    );
    text
}

fn large_entry(function: &Function, text: &mut String) {
    let name = &function.name;
    let names: Vec<_> = function
        .arguments
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    let small: Vec<_> = function
        .arguments
        .iter()
        .map(|(kind, name)| match kind {
            Kind::Count => format!("(int){name}"),
            _ => name.clone(),
        })
        .collect();
    let _ = write!(
        text,
        "static int large_{name}({})\n{{\n    if (count < 0 || count > INT_MAX)\n        \
         return PMPI_{name}_c({});\n    return raddle_{name}({});\n}}\n",
        function.declaration(true),
        names.join(", "),
        small.join(", "),
    );
}

fn fortran_entry(function: &Function, text: &mut String) {
    let mut arguments: Vec<_> = function
        .arguments
        .iter()
        .filter_map(|(kind, name)| kind.fortran(name))
        .collect();
    arguments.push("MPI_Fint *error".to_owned());
    let values: Vec<_> = function
        .arguments
        .iter()
        .map(|(kind, name)| kind.c_value(name))
        .collect();
    let (mut before, mut after) = (String::new(), String::new());
    for (kind, name) in &function.arguments {
        match kind {
            Kind::OutInt => {
                let _ = writeln!(before, "    int out_{name} = 0;");
                let _ = writeln!(
                    after,
                    "    if ({name} != NULL)\n        *{name} = (MPI_Fint)out_{name};"
                );
            }
            Kind::InoutComm => {
                let _ = writeln!(
                    before,
                    "    MPI_Comm inout_{name} = PMPI_Comm_f2c(*{name});"
                );
                let _ = writeln!(after, "    *{name} = PMPI_Comm_c2f(inout_{name});");
            }
            _ => {}
        }
    }
    let name = &function.name;
    let _ = writeln!(
        text,
        "static void fortran_{name}({})\n{{",
        arguments.join(", ")
    );
    let _ = writeln!(
        text,
        "{before}    int result = raddle_{name}({});\n{after}",
        values.join(", ")
    );
    // mpi_f08 leaves the error out where the program does.
    text.push_str("    if (error != NULL)\n        *error = (MPI_Fint)result;\n}\n\n");
}
