//! Routes the groups with each engine and writes the results folder.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use raddle_disk::DiskError;
use raddle_fabric::{Fabric, NodeKind};
use raddle_multicast::{Measures, Mgid, MulticastTables, TableMode, Tree};
use raddle_tables::{Cell, TableWriter};
use raddle_text::InputError;
use raddle_units::NodeId;
use serde_json::{Map, Value as Json, json};

use crate::{loops, registry::EngineKind, resolve::Resolved, tables::Table};

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The route file, or a file that it names, is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The system refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The run was asked to stop.
    #[error("routing was stopped before its end")]
    Cancelled,
}

/// How far a run is, to be read from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    phase: Mutex<String>,
    engines_done: AtomicUsize,
    cancelled: AtomicBool,
}

impl Progress {
    /// What is at work: an engine's name, or words.
    pub fn phase(&self) -> String {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        phase.clone()
    }

    /// Engines that are done.
    pub fn engines_done(&self) -> usize {
        self.engines_done.load(Ordering::Relaxed)
    }

    /// Asks the run to stop; it does after the engine at work, and writes nothing.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn enter(&self, phase: &str) -> Result<(), PlanError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(PlanError::Cancelled);
        }
        phase.clone_into(&mut self.phase.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

/// What a route file asks for, without routing: name, engines, fabric, groups, tables, warnings.
pub fn describe(resolved: &Resolved) -> Json {
    let fabric = &resolved.fabric;
    let sizes = || resolved.groups.iter().map(|group| group.members.len());
    let shape = resolved.map.as_ref().map(|map| {
        let shape = map.shape();
        json!({
            "m": shape.m, "q": shape.q, "p": shape.p, "k": shape.k, "w": shape.w, "cns": shape.cns,
        })
    });
    json!({
        "name": resolved.name,
        "engines": resolved.engines.iter().map(|engine| engine.name).collect::<Vec<_>>(),
        "fabric": {
            "name": fabric.name(),
            "hosts": fabric.hosts().len(),
            "switches": fabric.switches().len(),
            "links": fabric.links().len(),
            "cn_tn": shape,
        },
        "groups": {
            "pattern": resolved.file.groups.pattern,
            "count": resolved.groups.len(),
            "layers": resolved.set.layers,
            "memberships": resolved.set.memberships(),
            "smallest": sizes().min().unwrap_or(0),
            "largest": sizes().max().unwrap_or(0),
        },
        "multicast": {
            "colours": resolved.colours,
            "table": resolved.mode,
            "fault_tolerant": resolved.fault_tolerant,
        },
        "warnings": resolved.warnings,
    })
}

/// Routes with all engines, one after the other, and writes `out`: tables, `drawn.json` and at last `summary.json`,
/// which is also given back. An engine that cannot route these groups has an `error` in it and no figures.
///
/// # Errors
/// The results cannot be written, or the run was stopped; then `out` is as it was.
pub fn run(resolved: &Resolved, out: &Path, progress: &Progress) -> Result<Json, PlanError> {
    let open = Unfinished::create(out)?;
    let mut writers = Writers::create(&open.folder)?;
    let mut engines = Map::new();
    let mut drawn = Map::new();
    let unicast = if resolved.file.multicast.credit_check == Some(true) {
        progress.enter("unicast routes")?;
        Some(loops::Unicast::new(&resolved.fabric))
    } else {
        None
    };
    for (done, kind) in resolved.engines.iter().enumerate() {
        progress.enter(kind.name)?;
        let (row, tree) = route_one(resolved, kind, unicast.as_ref(), &mut writers);
        engines.insert(kind.name.to_owned(), row);
        if let Some(tree) = tree {
            drawn.insert(kind.name.to_owned(), tree);
        }
        progress.engines_done.store(done + 1, Ordering::Relaxed);
    }
    progress.enter("writing")?;
    writers.nodes(&resolved.fabric);
    writers.finish()?;
    let described = describe(resolved);
    let summary = json!({
        "schema": 1,
        "kind": "route",
        "name": resolved.name,
        "fabric": described["fabric"],
        "groups": described["groups"],
        "multicast": described["multicast"],
        "engines": engines,
        "warnings": resolved.warnings,
        "file": toml_text(resolved),
    });
    open.write_json("drawn.json", &Json::Object(drawn))?;
    open.write_json("summary.json", &summary)?;
    open.move_to(out)?;
    Ok(summary)
}

/// One engine's row of the summary, and the tree that is drawn.
fn route_one(
    resolved: &Resolved,
    kind: &EngineKind,
    unicast: Option<&loops::Unicast<'_>>,
    writers: &mut Writers,
) -> (Json, Option<Json>) {
    let setup = resolved.setup();
    let mut row = json!({
        "groups": null, "max_efi": null, "mean_efi": null, "max_tfi": null, "mean_tfi": null,
        "used_links": null, "trees_left": null, "merges": null, "table_entries_max": null,
        "table_entries": null, "route_s": null,
        "process_growth_bytes": null, "fault_tolerant": null, "cut_off": null,
        "efi_distribution": [], "tfi_distribution": [], "entries_distribution": [],
        "credit_loop": null, "credit_check_s": null, "credit_check_error": null,
        "error": null,
    });
    let before = memory::reset_peak();
    let mut engine = match (kind.make)(&setup) {
        Ok(engine) => engine,
        Err(error) => {
            row["error"] = error.to_string().into();
            return (row, None);
        }
    };
    let start = Instant::now();
    let routed = engine.route(&resolved.groups);
    let route_s = start.elapsed().as_secs_f64();
    let peak = memory::peak();
    row["route_s"] = route_s.into();
    row["process_growth_bytes"] = before
        .zip(peak)
        .map(|(before, peak)| peak.saturating_sub(before))
        .into();
    if let Err(error) = routed {
        row["error"] = error.to_string().into();
        return (row, None);
    }
    let trees = engine.trees();
    let fabric = &resolved.fabric;
    let tables = MulticastTables::of_trees(fabric, resolved.mode, &trees);
    let measures = Measures::of(fabric, &trees, &tables);
    if let (Some(row), Ok(Json::Object(measures))) =
        (row.as_object_mut(), serde_json::to_value(&measures))
    {
        row.extend(measures);
    }
    row["groups"] = resolved.groups.len().into();
    row["fault_tolerant"] = (kind.fault_tolerant && resolved.fault_tolerant).into();
    row["cut_off"] = engine.cut_off().len().into();
    drop(engine);
    if let Some(unicast) = unicast {
        let check = unicast.with(&trees);
        row["credit_loop"] = check.found.into();
        row["credit_check_s"] = (unicast.seconds + check.seconds).into();
        row["credit_check_error"] = check.error.into();
    }
    let index = Index::new(resolved);
    writers.trees(kind.name, resolved, &trees, &index);
    writers.tables(kind.name, fabric, &tables);
    writers.links(kind.name, fabric, &measures.efi);
    writers.merges(kind.name, resolved, &trees, &index);
    (row, drawn_tree(resolved, &trees, &index))
}

/// Numbers of the groups by MGID.
struct Index(BTreeMap<Mgid, u32>);

impl Index {
    fn new(resolved: &Resolved) -> Self {
        let groups = (0..).zip(&resolved.groups);
        Self(groups.map(|(number, group)| (group.mgid, number)).collect())
    }

    fn of(&self, mgid: Mgid) -> u32 {
        self.0.get(&mgid).copied().unwrap_or(u32::MAX)
    }
}

/// The tree with the highest TFI, among those the largest, for the report's map.
fn drawn_tree(resolved: &Resolved, trees: &[Tree], index: &Index) -> Option<Json> {
    let fabric = &resolved.fabric;
    let mut best: Option<&Tree> = None;
    for tree in trees {
        let size = |tree: &Tree| (tree.groups.len(), tree.up.len());
        if best.is_none_or(|best| size(tree) > size(best)) {
            best = Some(tree);
        }
    }
    let tree = best?;
    let hosts: Vec<u32> = tree.hosts(fabric).map(|host| host.0).collect();
    let names: Vec<&str> = tree
        .groups
        .iter()
        .filter_map(|&mgid| resolved.set.communicators.get(index.of(mgid) as usize))
        .map(|communicator| communicator.name.as_str())
        .take(SHOWN_NAMES)
        .collect();
    Some(json!({
        "tfi": tree.groups.len(),
        "groups": names,
        "colour": tree.colour,
        "root": tree.root.0,
        "root_name": fabric.node_name(tree.root),
        "members": hosts.len(),
        "member_nodes": hosts,
        "links": tree.links(fabric).map(|link| link.0).collect::<Vec<_>>(),
    }))
}

/// Names of groups that the report shows of a tree.
const SHOWN_NAMES: usize = 8;

struct Writers {
    trees: TableWriter,
    tables: TableWriter,
    links: TableWriter,
    merges: TableWriter,
    nodes: TableWriter,
}

impl Writers {
    fn create(folder: &Path) -> Result<Self, DiskError> {
        let table = |table: Table| TableWriter::create(folder.join(table.file()), table.schema());
        Ok(Self {
            trees: table(Table::Trees)?,
            tables: table(Table::Tables)?,
            links: table(Table::Links)?,
            merges: table(Table::Merges)?,
            nodes: table(Table::Nodes)?,
        })
    }

    fn trees(&mut self, engine: &str, resolved: &Resolved, trees: &[Tree], index: &Index) {
        let mut rows: Vec<(u32, u8, u32)> = Vec::new();
        for (number, tree) in (0..).zip(trees) {
            rows.extend(
                tree.groups
                    .iter()
                    .map(|&mgid| (index.of(mgid), tree.copy, number)),
            );
        }
        rows.sort_unstable();
        let mut members = Vec::new();
        for (group, copy, tree) in rows {
            let Some(routed) = resolved.groups.get(group as usize) else {
                continue;
            };
            members.clear();
            members.extend(routed.members.iter().map(|member| member.0));
            let Tree { colour, root, .. } = &trees[tree as usize];
            self.trees.row(&[
                Cell::Text(engine),
                Cell::U32(group),
                Cell::Text(&resolved.set.communicators[group as usize].name),
                Cell::U64(routed.mgid.0),
                Cell::U32(tree),
                Cell::U8(copy),
                Cell::U16(colour.0),
                Cell::U32(root.0),
                Cell::U32s(&members),
            ]);
        }
    }

    fn tables(&mut self, engine: &str, fabric: &Fabric, tables: &MulticastTables) {
        let mut ports = Vec::new();
        for &switch in fabric.switches() {
            for entry in tables.entries(switch) {
                ports.clear();
                ports.extend(entry.out_ports.iter().map(u16::from));
                self.tables.row(&[
                    Cell::Text(engine),
                    Cell::U32(switch.0),
                    entry
                        .in_port
                        .map_or(Cell::Null, |port| Cell::U16(port.into())),
                    Cell::U16(entry.colour.0),
                    Cell::U16s(&ports),
                ]);
            }
        }
    }

    fn links(&mut self, engine: &str, fabric: &Fabric, efi: &[u32]) {
        for ((number, link), &efi) in (0..).zip(fabric.links()).zip(efi) {
            let [a, b] = link.ports.map(|port| fabric.port(port));
            self.links.row(&[
                Cell::Text(engine),
                Cell::U32(number),
                Cell::U32(a.node.0),
                Cell::U16(a.number),
                Cell::U32(b.node.0),
                Cell::U16(b.number),
                Cell::U32(efi),
            ]);
        }
    }

    fn merges(&mut self, engine: &str, resolved: &Resolved, trees: &[Tree], index: &Index) {
        let mut groups = Vec::new();
        for (number, tree) in (0..).zip(trees) {
            if tree.groups.len() < 2 || tree.copy > 0 {
                continue;
            }
            groups.clear();
            groups.extend(tree.groups.iter().map(|&mgid| index.of(mgid)));
            let reason = crate::reason::of_merge(resolved, tree, &groups);
            self.merges.row(&[
                Cell::Text(engine),
                Cell::U32(number),
                Cell::U32s(&groups),
                Cell::Text(&reason),
            ]);
        }
    }

    fn nodes(&mut self, fabric: &Fabric) {
        for node in (0..fabric.node_count() as u32).map(NodeId) {
            let kind = match fabric.kind(node) {
                NodeKind::Host => "host",
                NodeKind::Switch => "switch",
            };
            self.nodes.row(&[
                Cell::U32(node.0),
                Cell::Text(kind),
                Cell::U8(fabric.level(node)),
                Cell::Text(&fabric.node_name(node)),
            ]);
        }
    }

    fn finish(self) -> Result<(), DiskError> {
        for writer in [self.trees, self.tables, self.links, self.merges, self.nodes] {
            writer.finish()?;
        }
        Ok(())
    }
}

/// A folder for files that are not whole yet; it goes away in the end.
struct Unfinished {
    folder: PathBuf,
}

impl Unfinished {
    fn create(out: &Path) -> Result<Self, DiskError> {
        let parent = out.join(".runs");
        fs::create_dir_all(&parent).map_err(DiskError::at("make the folder", &parent))?;
        // What a process that was killed left; a results folder has one writer at a time.
        let left = fs::read_dir(&parent).map_err(DiskError::at("read", &parent))?;
        for entry in left.filter_map(Result::ok) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(".route.") && name.ends_with(".tmp") {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(DiskError::at("remove", &path))?;
            }
        }
        let folder = parent.join(format!(".route.{}.tmp", std::process::id()));
        fs::create_dir(&folder).map_err(DiskError::at("make the folder", &folder))?;
        Ok(Self { folder })
    }

    fn write_json(&self, name: &str, value: &Json) -> Result<(), DiskError> {
        let path = self.folder.join(name);
        let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        fs::write(&path, text).map_err(DiskError::at("write", &path))
    }

    /// Moves all files to the results folder. The summary goes first and comes last: without it nothing counts as done.
    fn move_to(self, out: &Path) -> Result<(), DiskError> {
        let summary = out.join("summary.json");
        if summary.exists() {
            fs::remove_file(&summary).map_err(DiskError::at("remove", &summary))?;
        }
        let tables = Table::ALL.iter().map(|table| table.file());
        for name in tables.chain(["drawn.json", "summary.json"]) {
            let to = out.join(name);
            fs::rename(self.folder.join(name), &to).map_err(DiskError::at("rename to", &to))?;
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Resident memory of the whole process, where the system tells (Linux). Its growth is no account of an engine's heap:
/// memory that was freed before and is used again does not show, and what the allocator keeps in reserve does.
mod memory {
    /// Forgets the peak so far; gives the resident bytes of now.
    pub(super) fn reset_peak() -> Option<u64> {
        std::fs::write("/proc/self/clear_refs", "5").ok()?;
        status("VmRSS:")
    }

    /// The most resident bytes since then.
    pub(super) fn peak() -> Option<u64> {
        status("VmHWM:")
    }

    fn status(key: &str) -> Option<u64> {
        let text = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    }
}

/// The route file with its includes merged in and defaults written out.
fn toml_text(resolved: &Resolved) -> String {
    let mut file = resolved.file.clone();
    file.include.clear();
    file.name = Some(resolved.name.clone());
    let multicast = &mut file.multicast;
    multicast.engines = Some(resolved.engines.iter().map(|e| e.name.to_owned()).collect());
    multicast.colours = Some(resolved.colours);
    multicast.table = Some(match resolved.mode {
        TableMode::PerPort => crate::TableKind::PerPort,
        TableMode::PerSwitch => crate::TableKind::PerSwitch,
    });
    multicast.fault_tolerant = Some(resolved.fault_tolerant);
    multicast.credit_check.get_or_insert(false);
    toml::to_string(&file).unwrap_or_default()
}
