//! functions.toml: its rows, and how C and Fortran declare what is in them.

use serde::{Deserialize, de::IntoDeserializer};

/// functions.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    function: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    names: Vec<String>,
    arguments: Arguments,
    #[serde(default)]
    large: bool,
    #[serde(default)]
    nonblocking: bool,
    #[serde(default)]
    fortran: Fortran,
    #[serde(default)]
    offload: bool,
    matching: Option<Matching>,
    record: String,
}

#[derive(Deserialize, Clone)]
#[serde(try_from = "String")]
struct Arguments(Vec<(Kind, String)>);

impl TryFrom<String> for Arguments {
    type Error = serde::de::value::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let words = text.split(',').filter(|words| !words.trim().is_empty());
        let argument = |words: &str| {
            let (kind, name) = words.trim().split_once(' ').unwrap_or((words, ""));
            Ok((
                Kind::deserialize(kind.into_deserializer())?,
                name.to_owned(),
            ))
        };
        words.map(argument).collect::<Result<_, _>>().map(Self)
    }
}

/// How Fortran's entry points are made.
#[derive(Deserialize, Clone, Copy, PartialEq, Default)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fortran {
    #[default]
    Convert,
    Own,
    None,
}

/// What the layer of message scheduling does.
#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Matching {
    Own,
    Agree,
    Flush,
    Collective,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Send,
    Receive,
    Count,
    Int,
    Counts,
    Displs,
    Ints,
    Aints,
    Datatype,
    Datatypes,
    Op,
    Comm,
    Info,
    Group,
    RequestHandle,
    OutInt,
    Flag,
    Index,
    Indices,
    InoutComm,
    OutComm,
    Request,
    OutRequest,
    Requests,
    Message,
    OutMessage,
    Status,
    Statuses,
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
            Self::Counts if large => format!("const MPI_Count {name}[]"),
            Self::Displs if large => format!("const MPI_Aint {name}[]"),
            Self::Counts | Self::Displs | Self::Ints => format!("const int {name}[]"),
            Self::Aints => format!("const MPI_Aint {name}[]"),
            Self::Datatype => format!("MPI_Datatype {name}"),
            Self::Datatypes => format!("const MPI_Datatype {name}[]"),
            Self::Op => format!("MPI_Op {name}"),
            Self::Comm => format!("MPI_Comm {name}"),
            Self::Info => format!("MPI_Info {name}"),
            Self::Group => format!("MPI_Group {name}"),
            Self::RequestHandle => format!("MPI_Request {name}"),
            Self::InoutComm | Self::OutComm => format!("MPI_Comm *{name}"),
            Self::Request | Self::OutRequest => format!("MPI_Request *{name}"),
            Self::Requests => format!("MPI_Request {name}[]"),
            Self::Message | Self::OutMessage => format!("MPI_Message *{name}"),
            Self::Status => format!("MPI_Status *{name}"),
            Self::Statuses => format!("MPI_Status {name}[]"),
            Self::OutInt | Self::Flag | Self::Index | Self::Argc => format!("int *{name}"),
            Self::Indices => format!("int {name}[]"),
            Self::Argv => format!("char ***{name}"),
        }
    }
}

/// A function of MPI.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) arguments: Vec<(Kind, String)>,
    pub(crate) large: bool,
    pub(crate) fortran: Fortran,
    pub(crate) offload: bool,
    pub(crate) matching: Option<Matching>,
    /// What is recorded; `None`: by hand.
    pub(crate) record: Option<String>,
    /// It has a nonblocking sister that is recorded alike.
    pub(crate) blocks: bool,
}

/// All functions of the table.
pub(crate) fn read(text: &str) -> Result<Vec<Function>, toml::de::Error> {
    let file: File = toml::from_str(text)?;
    let mut functions = Vec::new();
    for row in file.function {
        for name in &row.names {
            functions.push(row.function(name.clone()));
            if row.nonblocking {
                functions.push(row.nonblocking_function(name));
            }
        }
    }
    Ok(functions)
}

impl Row {
    fn function(&self, name: String) -> Function {
        Function {
            name,
            arguments: self.arguments.0.clone(),
            large: self.large,
            fortran: self.fortran,
            offload: self.offload,
            matching: self.matching,
            record: (self.record != "by hand").then(|| self.record.clone()),
            blocks: self.nonblocking,
        }
    }

    fn nonblocking_function(&self, name: &str) -> Function {
        let mut function = self.function(format!("I{}", name.to_lowercase()));
        let request = (Kind::OutRequest, "request".to_owned());
        function.arguments.push(request);
        function.offload = false;
        function.matching = self.matching.map(|_| Matching::Flush);
        function.blocks = false;
        function
    }
}

impl Function {
    /// What stands between the parentheses of its declaration in C.
    pub(crate) fn declaration(&self, large: bool) -> String {
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

    /// The names of its arguments, for a call with the same.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self
            .arguments
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        names.join(", ")
    }

    /// What the layers above offload call: its function there, or the library's.
    pub(crate) fn lowest(&self) -> String {
        let layer = if self.offload { "raddle" } else { "PMPI" };
        format!("{layer}_{}", self.name)
    }

    /// What the recorder's layer calls.
    pub(crate) fn below_record(&self) -> String {
        self.layer_or(&self.lowest())
    }

    /// The function of the layer of message scheduling where that is wanted and has one, else `other`.
    pub(crate) fn layer_or(&self, other: &str) -> String {
        match self.matching {
            Some(_) => format!(
                "(raddle_messages != NULL ? matching_{} : {other})",
                self.name
            ),
            None => other.to_owned(),
        }
    }

    pub(crate) fn has(&self, wanted: impl Fn(Kind) -> bool) -> bool {
        self.arguments.iter().any(|(kind, _)| wanted(*kind))
    }

    pub(crate) fn has_buffers(&self) -> bool {
        self.has(|kind| matches!(kind, Kind::Send | Kind::Receive))
    }

    /// Its symbol in mpi_f08 where no buffer is passed.
    pub(crate) fn mpi_f08_symbol(&self) -> String {
        format!("mpi_{}_f08_", self.name.to_lowercase())
    }

    /// Fortran's symbols: `use mpi` and mpif.h in the ways that compilers write names, and mpi_f08 of Open MPI.
    pub(crate) fn fortran_symbols(&self) -> Vec<String> {
        if self.fortran == Fortran::None {
            return Vec::new();
        }
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
