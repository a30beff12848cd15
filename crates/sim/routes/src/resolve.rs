//! From a route file to what the engines need: fabric, groups with MGIDs, engines.

use std::{path::Path, sync::Arc};

use raddle_fabric::{CnTnMap, Fabric};
use raddle_fabric::{build_fabric, rebase_file};
use raddle_multicast::{
    Group, Mgid, TableMode,
    groups::{
        Grid, GroupError, GroupFormat, GroupSet, Hierarchy, Layering, RandomGroups, read_groups,
    },
    mgid::{
        Allocation, LayerColours, MgidError, Overlap, Places, SpanningTrees, allocate_general,
        allocate_layered, find_clash,
    },
};
use raddle_text::{Files, InputError, Location, Node, Problem, clip, read, tree};

use crate::{
    check::{check, item, value_error},
    fields::{GroupsTable, Layers, Pattern, RouteFile, TableKind},
    registry::{self, EngineKind, Setup},
};

/// Colours where a route file says nothing: the Sunway switch's.
pub const DEFAULT_COLOURS: u32 = 32;

/// A route file with everything in it made and checked.
pub struct Resolved {
    /// Its name.
    pub name: String,
    /// The file with its includes merged in.
    pub file: RouteFile,
    /// The map.
    pub fabric: Arc<Fabric>,
    /// Its parts, where it is a CN/TN fat tree.
    pub map: Option<Arc<CnTnMap>>,
    /// Communicators with names and layers.
    pub set: GroupSet,
    /// The same as the engines take them, in the order of `set`.
    pub groups: Vec<Group>,
    /// Colours of the layers, where MGIDs were chosen by layers.
    pub layers: Vec<LayerColours>,
    /// The spanning trees that MGIDs number, on a CN/TN fat tree.
    pub trees: Option<SpanningTrees>,
    /// Engines in the order of the file.
    pub engines: Vec<&'static EngineKind>,
    /// Table entries.
    pub colours: u32,
    /// Where tables are.
    pub mode: TableMode,
    /// Two trees for each group.
    pub fault_tolerant: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What a route file is read for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Routes,
    Numbers,
    Capacity,
}

impl Resolved {
    /// Reads and checks a route file; files that it names come from `files`.
    ///
    /// # Errors
    /// Text that is not TOML, unknown keys, values out of range, a map or groups that cannot be read, or an engine that cannot
    /// use the map; with place and cure.
    pub fn new(text: &str, path: &str, files: &dyn Files) -> Result<Self, InputError> {
        let (resolved, root) = Self::load(text, path, files, Purpose::Routes)?;
        resolved.try_engines(&root)?;
        Ok(resolved)
    }

    /// The same without engines, for the numbers of the groups alone; the map must be a CN/TN fat tree.
    ///
    /// # Errors
    /// As [`Self::new`]; also a map that is not a CN/TN fat tree.
    pub fn numbered(text: &str, path: &str, files: &dyn Files) -> Result<Self, InputError> {
        Ok(Self::load(text, path, files, Purpose::Numbers)?.0)
    }

    /// The same without numbers, which there may be too few colours for: the MGIDs of `groups` only count them. With the
    /// place of the groups in the file.
    ///
    /// # Errors
    /// As [`Self::numbered`].
    pub(crate) fn planned(
        text: &str,
        path: &str,
        files: &dyn Files,
    ) -> Result<(Self, Location), InputError> {
        let (resolved, root) = Self::load(text, path, files, Purpose::Capacity)?;
        Ok((resolved, root.locate(&["groups"]).clone()))
    }

    fn load(
        text: &str,
        path: &str,
        files: &dyn Files,
        purpose: Purpose,
    ) -> Result<(Self, Node), InputError> {
        let mut root = tree::load(text, path, files)?;
        rebase_file(&mut root, &["fabric", "file"], files);
        rebase_file(&mut root, &["groups", "file"], files);
        let file: RouteFile = read(&root)?;
        check(&file, &root)?;
        let name = file.name.clone().unwrap_or_else(|| {
            let stem = Path::new(path).file_stem();
            stem.map_or_else(
                || "routes".to_owned(),
                |stem| stem.to_string_lossy().into_owned(),
            )
        });
        let fabric = build_fabric(&file.fabric, &root, files)?;
        let routes = purpose == Purpose::Routes;
        let engines = if routes {
            engines(&file, &root)?
        } else {
            Vec::new()
        };
        let user = match engines.iter().find(|engine| engine.cn_tn_only) {
            Some(engine) => Some(engine.name),
            None => (!routes).then_some("the allocator of MGIDs"),
        };
        let map = recognise(&fabric, user, &root)?;
        let multicast = &file.multicast;
        let colours = multicast.colours.unwrap_or(DEFAULT_COLOURS);
        let fault_tolerant = multicast.fault_tolerant.unwrap_or(false);
        let mut warnings = Vec::new();
        let numbering = Numbering {
            fabric: &fabric,
            map: map.as_ref(),
            colours,
            fault_tolerant,
            root: &root,
        };
        let trees = numbering.trees()?;
        let numbered_by = trees.filter(|_| purpose != Purpose::Capacity);
        let (set, allocation) =
            numbering.groups(&file.groups, files, numbered_by, &mut warnings)?;
        let hosts = fabric.hosts();
        let nodes = |members: &[u32]| {
            members
                .iter()
                .map(|&member| hosts[member as usize])
                .collect()
        };
        let groups = set
            .communicators
            .iter()
            .zip(&allocation.mgids)
            .map(|(communicator, &mgid)| Group::new(mgid, nodes(&communicator.members)))
            .collect();
        let resolved = Self {
            name,
            fabric: Arc::new(fabric),
            map: map.map(Arc::new),
            set,
            groups,
            layers: allocation.layers,
            trees,
            engines,
            colours,
            mode: match multicast.table.unwrap_or_default() {
                TableKind::PerPort => TableMode::PerPort,
                TableKind::PerSwitch => TableMode::PerSwitch,
            },
            fault_tolerant,
            warnings,
            file,
        };
        Ok((resolved, root))
    }

    /// What engines are made from.
    pub fn setup(&self) -> Setup<'_> {
        Setup {
            fabric: &self.fabric,
            map: self.map.as_ref(),
            colours: self.colours,
            mode: self.mode,
            fault_tolerant: self.fault_tolerant,
        }
    }

    /// An engine that cannot be made at all is refused before anything is routed.
    fn try_engines(&self, root: &Node) -> Result<(), InputError> {
        let setup = self.setup();
        for (index, engine) in self.engines.iter().enumerate() {
            if let Err(error) = (engine.make)(&setup) {
                let at = item(root, &["multicast", "engines"], index);
                let message = format!("{}: {error}", engine.name);
                let problem = Problem::Value {
                    key: String::new(),
                    message: clip(&message),
                };
                return Err(InputError::at(&at, problem));
            }
        }
        Ok(())
    }
}

fn engines(file: &RouteFile, root: &Node) -> Result<Vec<&'static EngineKind>, InputError> {
    let named: Vec<&str> = match &file.multicast.engines {
        Some(engines) => engines.iter().map(String::as_str).collect(),
        None => registry::DEFAULT_ENGINES.to_vec(),
    };
    let mut engines = Vec::new();
    for name in named {
        match registry::find(name) {
            Some(engine) => engines.push(engine),
            None => {
                let message = format!("there is no engine {name}");
                return Err(value_error(root, &["multicast", "engines"], message));
            }
        }
    }
    Ok(engines)
}

/// The parts of a CN/TN fat tree; another map is refused where `user` needs one.
fn recognise(
    fabric: &Fabric,
    user: Option<&str>,
    root: &Node,
) -> Result<Option<CnTnMap>, InputError> {
    match (CnTnMap::recognise(fabric), user) {
        (Ok(map), _) => Ok(Some(map)),
        (Err(_), None) => Ok(None),
        (Err(error), Some(user)) => {
            let message = format!("{user} cannot use this map: {error}");
            let problem = Problem::refused(&message);
            let free: Vec<&str> = registry::ENGINES
                .iter()
                .filter(|engine| !engine.cn_tn_only)
                .map(|engine| engine.name)
                .collect();
            Err(
                InputError::at(root.locate(&["fabric"]), problem).with_hint(format!(
                    "describe a fat tree with kind = \"cn-tn\"; engines for any map are {}",
                    free.join(", ")
                )),
            )
        }
    }
}

/// Makes the groups of a file and gives them MGIDs.
struct Numbering<'a> {
    fabric: &'a Fabric,
    map: Option<&'a CnTnMap>,
    colours: u32,
    fault_tolerant: bool,
    root: &'a Node,
}

impl Numbering<'_> {
    fn groups(
        &self,
        table: &GroupsTable,
        files: &dyn Files,
        trees: Option<SpanningTrees>,
        warnings: &mut Vec<String>,
    ) -> Result<(GroupSet, Allocation), InputError> {
        let terminals = self.fabric.hosts().len() as u32;
        let (set, mgids) = match table.pattern {
            Pattern::File => self.file(table, files)?,
            _ => (self.pattern(table, terminals)?, None),
        };
        let allocation = match (mgids, trees) {
            (Some(mgids), trees) => {
                if let Some(trees) = trees {
                    self.warn_of_clash(&set, &mgids, &trees, warnings);
                }
                Allocation {
                    mgids,
                    layers: Vec::new(),
                }
            }
            (None, Some(trees)) => self.allocate(&set, &trees)?,
            // Engines for any map do not look at the number.
            (None, None) => Allocation {
                mgids: (0..set.communicators.len() as u64).map(Mgid).collect(),
                layers: Vec::new(),
            },
        };
        Ok((set, allocation))
    }

    fn pattern(&self, table: &GroupsTable, terminals: u32) -> Result<GroupSet, InputError> {
        let processes_per_terminal = table.processes_per_terminal.unwrap_or(1);
        let dims = || table.dims.clone().unwrap_or_default();
        let made = match table.pattern {
            Pattern::Grid => Grid {
                dims: dims(),
                processes_per_terminal,
                layering: match table.layers.unwrap_or_default() {
                    Layers::Tight => Layering::Tight,
                    Layers::Literal => Layering::Literal,
                    Layers::General => Layering::None,
                },
            }
            .groups(terminals),
            Pattern::Hierarchy => Hierarchy {
                sizes: dims().into_iter().map(u64::from).collect(),
                processes: None,
                processes_per_terminal,
                leaders_only: table.leaders_only.unwrap_or(false),
            }
            .groups(terminals),
            Pattern::Random | Pattern::File => RandomGroups {
                count: table.count.unwrap_or(0),
                seed: table.seed.unwrap_or(1),
                processes_per_terminal,
                members_per_group: table.members_per_group,
            }
            .groups(terminals),
        };
        made.map_err(|error| self.group_error(&error))
    }

    fn group_error(&self, error: &GroupError) -> InputError {
        let key = match error {
            GroupError::BadParameter { key, .. } => key,
            GroupError::NoRoom { .. } | GroupError::TooLarge { .. } => "dims",
            GroupError::NotLayered { .. } => "processes_per_terminal",
            _ => "pattern",
        };
        let at = self.root.locate(&["groups", key]);
        let error_at = InputError::at(at, Problem::refused(&error));
        match error {
            GroupError::NotLayered { .. } => {
                error_at.with_hint("the general allocator is layers = \"general\"")
            }
            _ => error_at,
        }
    }

    /// Groups from a file, with their MGIDs where it gives them.
    fn file(
        &self,
        table: &GroupsTable,
        files: &dyn Files,
    ) -> Result<(GroupSet, Option<Vec<Mgid>>), InputError> {
        let at = self.root.locate(&["groups", "file"]);
        let name = table.file.as_deref().unwrap_or_default();
        let format = group_format(name).ok_or_else(|| {
            let message = format!("cannot tell the format of {}", clip(name));
            value_error(self.root, &["groups", "file"], message)
                .with_hint("the file's name ends in .toml or .csv")
        })?;
        let text = tree::read_text(files, name, at)?;
        let file = read_groups(&text, format, name, self.fabric)
            .map_err(|error| InputError::in_named_file(at, Problem::refused(&error)))?;
        let set = file.group_set(self.fabric.hosts().len() as u32);
        let set = set.map_err(|error| self.group_error(&error))?;
        Ok((
            set,
            file.mgids()
                .map(|mgids| mgids.into_iter().map(Mgid).collect()),
        ))
    }

    /// MGIDs by layers where there are any, else by the general allocator.
    fn allocate(&self, set: &GroupSet, trees: &SpanningTrees) -> Result<Allocation, InputError> {
        let allocation = if set.layered {
            allocate_layered(set, trees)
        } else {
            let places = self.map.and_then(|map| places_of(self.fabric, map));
            allocate_general(set, trees, places.as_ref(), Overlap::Refuse)
        };
        allocation.map_err(|error| self.mgid_error(&error))
    }

    fn trees(&self) -> Result<Option<SpanningTrees>, InputError> {
        let Some(map) = self.map else { return Ok(None) };
        let shape = map.shape();
        SpanningTrees::new(self.colours, shape.m, shape.p, self.fault_tolerant)
            .map(Some)
            .map_err(|error| self.mgid_error(&error))
    }

    fn mgid_error(&self, error: &MgidError) -> InputError {
        let path: &[&str] = match error {
            MgidError::NoPairs => &["multicast", "fault_tolerant"],
            MgidError::NoColours
            | MgidError::TooFewColours { .. }
            | MgidError::TooManyTrees { .. } => &["multicast", "colours"],
            _ => &["groups"],
        };
        InputError::at(self.root.locate(path), Problem::refused(&error))
    }

    /// MGIDs of the user's own may break the precondition of Theorem 2: then groups share trees that need not.
    fn warn_of_clash(
        &self,
        set: &GroupSet,
        mgids: &[Mgid],
        trees: &SpanningTrees,
        warnings: &mut Vec<String>,
    ) {
        if let Some(clash) = find_clash(set, mgids, trees) {
            let host = self.fabric.hosts()[clash.terminal as usize];
            let [a, b] = clash.groups.map(|group| &set.communicators[group].name);
            warnings.push(format!(
                "host {} is in {a} and {b}, whose MGIDs give them colour {} on different trees: they will share one \
                 tree; leave out `mgid` to have numbers chosen",
                self.fabric.node_name(host),
                clash.colour
            ));
        }
    }
}

/// The format of a file with groups, by its ending.
pub fn group_format(name: &str) -> Option<GroupFormat> {
    let ending = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "toml" => Some(GroupFormat::Toml),
        "csv" => Some(GroupFormat::Csv),
        _ => None,
    }
}

/// Where the terminals of a complete fat tree are; `None` where switches are missing or hosts are numbered otherwise
/// than by CN and L0 switch.
pub(crate) fn places_of(fabric: &Fabric, map: &CnTnMap) -> Option<Places> {
    let shape = map.shape();
    let hosts = fabric.hosts();
    let l0s = shape.cns * shape.q;
    let per_l0 = hosts.len() / l0s.max(1) as usize;
    let l0 = |place: u32| map.hosts_of_l0(place / shape.q, place % shape.q);
    let regular = per_l0 > 0
        && hosts.len() == per_l0 * l0s as usize
        && (0..l0s).all(|place| l0(place) == &hosts[place as usize * per_l0..][..per_l0]);
    regular.then(|| Places::regular(shape.cns, shape.q, per_l0 as u32, shape.w))
}
