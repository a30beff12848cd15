//! `raddle place`: a queue of jobs onto a machine, by the seven rules.

use raddle_fabric::{CnTnMap, Fabric, FabricSource};
use raddle_fabric::{build_fabric, rebase_file};
use raddle_multicast::placement::{JobRequest, Machine, Outcome, Placement};
use raddle_text::{
    Files, InputError, Location, Node, Problem, clip, one_line, read, schema::check_version, tree,
};
use raddle_units::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::check::item;

/// A machine, the jobs that run on it, and the jobs that wait.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "raddle job file")]
pub struct JobFile {
    /// Version of this format: 1.
    #[schemars(extend("const" = 1))]
    pub schema: u32,
    /// Job files to start from. Tables are merged key by key, later files and this one win; lists are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// The machine: a CN/TN fat tree, as in a route file.
    pub fabric: FabricSource,
    /// Jobs that run already.
    #[serde(default)]
    pub running: Vec<RunningJob>,
    /// Jobs that wait, first come first.
    #[serde(default)]
    pub job: Vec<WaitingJob>,
    /// How the queue is worked off.
    #[serde(default)]
    pub placement: PlacementTable,
}

/// A job that runs already.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunningJob {
    /// Its name.
    #[schemars(transform = one_line(120))]
    pub name: String,
    /// Its hosts, by name or number.
    pub hosts: Vec<HostName>,
}

/// A job that waits.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitingJob {
    /// Its name.
    #[schemars(transform = one_line(120))]
    pub name: String,
    /// Terminals (hosts) that it needs.
    #[schemars(range(min = 1))]
    pub terminals: u32,
}

/// How the queue is worked off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlacementTable {
    /// Later jobs that fit run before one that has to wait. Default: false.
    pub backfill: bool,
    /// A job that finds no place in its class may spread further, as a larger one. Default: false.
    pub widen: bool,
}

/// A host by its name or its number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum HostName {
    /// Its number.
    Number(u32),
    /// Its name, or its number as text.
    Name(String),
}

/// Places the jobs of a job file; `backfill` and `widen` add to what the file says. A job that cannot run now has the
/// rule against it in its `reason`.
///
/// # Errors
/// Text that is not TOML, unknown keys, values out of range, a map that is not a CN/TN fat tree, a job with a name that is taken
/// or hosts that do not exist; with place and cure.
pub fn place_jobs(
    text: &str,
    path: &str,
    files: &dyn Files,
    backfill: bool,
    widen: bool,
) -> Result<Json, InputError> {
    let mut root = tree::load(text, path, files)?;
    rebase_file(&mut root, &["fabric", "file"], files);
    let file: JobFile = read(&root)?;
    check_version(&root)?;
    let fabric = build_fabric(&file.fabric, &root, files)?;
    let map = CnTnMap::recognise(&fabric).map_err(|error| {
        let message = format!("the seven rules are for CN/TN fat trees: {error}");
        InputError::at(root.locate(&["fabric"]), Problem::refused(&message))
            .with_hint("describe the machine with kind = \"cn-tn\"")
    })?;
    let mut machine = Machine::of_map(&map);
    machine.widen(widen || file.placement.widen);
    let mut warnings = Vec::new();
    for (index, job) in file.running.iter().enumerate() {
        let at = item(&root, &["running"], index);
        let hosts = job.hosts.iter().map(|host| find(&fabric, host, &at));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        let mut seen = std::collections::BTreeSet::new();
        if let Some(&twice) = hosts.iter().find(|host| !seen.insert(**host)) {
            let message = format!(
                "job `{}` names {} twice",
                clip(&job.name),
                fabric.node_name(twice)
            );
            return Err(job_error(&at, &message).with_hint("remove one of them"));
        }
        let broken = machine
            .occupy(&job.name, &hosts)
            .map_err(|error| job_error(&at, &error))?;
        warnings.extend(broken.iter().map(ToString::to_string));
    }
    let queue: Vec<JobRequest> = file
        .job
        .iter()
        .map(|job| JobRequest {
            name: job.name.clone(),
            terminals: job.terminals,
        })
        .collect();
    check_queue(&queue, &machine, &root)?;
    let outcomes = machine.place_queue(&queue, backfill || file.placement.backfill);
    let rows: Vec<Json> = queue
        .iter()
        .zip(&outcomes)
        .map(|(job, outcome)| row(job, outcome, &fabric, &map))
        .collect();
    Ok(json!({
        "fabric": {
            "name": fabric.name(),
            "hosts": fabric.hosts().len(),
            "switches": fabric.switches().len(),
            "links": fabric.links().len(),
        },
        "running": file.running.len(),
        "free": machine.free(),
        "placed": outcomes.iter().filter(|o| matches!(o, Outcome::Placed(_))).count(),
        "jobs": rows,
        "warnings": warnings,
    }))
}

/// Names that stand twice are mistakes of the file; everything else is the machine's answer.
fn check_queue(queue: &[JobRequest], machine: &Machine, root: &Node) -> Result<(), InputError> {
    let mut names: std::collections::BTreeSet<String> =
        machine.jobs().into_iter().map(|job| job.job).collect();
    for (index, job) in queue.iter().enumerate() {
        let at = item(root, &["job"], index);
        if !names.insert(job.name.clone()) {
            let message = format!("there is already a job `{}`", clip(&job.name));
            return Err(job_error(&at, &message).with_hint("give each job its own name"));
        }
    }
    Ok(())
}

fn job_error(at: &Location, error: &impl ToString) -> InputError {
    let problem = Problem::Value {
        key: String::new(),
        message: clip(&error.to_string()),
    };
    InputError::at(at, problem)
}

fn find(fabric: &Fabric, host: &HostName, at: &Location) -> Result<NodeId, InputError> {
    let name = match host {
        HostName::Number(number) => number.to_string(),
        HostName::Name(name) => name.clone(),
    };
    let found = fabric.find_node(&name).filter(|node| fabric.is_host(*node));
    found.ok_or_else(|| {
        let message = format!("there is no host `{}` in {}", clip(&name), fabric.name());
        job_error(at, &message).with_hint("`raddle fabric show` describes the map")
    })
}

fn row(job: &JobRequest, outcome: &Outcome, fabric: &Fabric, map: &CnTnMap) -> Json {
    let mut row = json!({
        "name": job.name,
        "terminals": job.terminals,
        "state": "placed",
        "class": null,
        "reason": null,
        "l0s": null,
        "cns": [],
        "hosts": [],
    });
    match outcome {
        Outcome::Placed(Placement {
            class, terminals, ..
        }) => {
            let cns: std::collections::BTreeSet<_> = terminals
                .iter()
                .filter_map(|&host| map.cn_of(host))
                .collect();
            let l0s: std::collections::BTreeSet<_> = terminals
                .iter()
                .map(|&host| fabric.peer_node(fabric.first_port(host)))
                .collect();
            row["class"] = class.to_string().into();
            row["l0s"] = l0s.len().into();
            row["cns"] = cns.into_iter().collect();
            row["hosts"] = terminals
                .iter()
                .map(|&host| fabric.node_name(host).into_owned())
                .collect();
        }
        Outcome::Refused(error) => {
            row["state"] = "refused".into();
            row["reason"] = error.to_string().into();
        }
        Outcome::Behind(first) => {
            row["state"] = "behind".into();
            row["reason"] =
                format!("waits behind `{first}`; with backfill it would be tried").into();
        }
    }
    row
}
