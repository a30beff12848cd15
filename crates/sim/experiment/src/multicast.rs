//! Trees for the groups of a `multicast` traffic table.

use std::sync::Arc;

use raddle_engine::{ForeignTime, Multicast};
use raddle_fabric::{CnTnMap, Fabric};
use raddle_multicast::{
    Broadcast, CMr4lms, CMr4lmsSettings, Group, Mgid, Mr4lms, Mr4lmsSettings, MulticastEngine,
    MulticastError, MulticastTables, OpenSmLike, RootChoice, RootRule, TableMode,
    groups::{Communicator, Grid, GroupSet, Layering},
    mgid::{SpanningTrees, allocate_layered},
};
use raddle_workload::{LineGroup, Multicast as Traffic, MulticastEngineName};

/// Groups, trees and tables as the traffic table asks for them.
///
/// # Errors
/// More groups than the fabric has hosts for, or than the engine finds colours for; one line.
pub(super) fn plan(spec: &Traffic, fabric: &Arc<Fabric>) -> Result<Multicast, String> {
    let hosts = fabric.hosts();
    let found = spec.groups(hosts).map_err(|error| error.to_string())?;
    let mgids = mgids(spec, fabric);
    let groups: Vec<Group> = (0..)
        .zip(found)
        .map(|(place, LineGroup { line, members })| {
            let known = mgids.as_ref().and_then(|known| known.get(line).copied());
            Group::new(known.unwrap_or(Mgid(place)), members)
        })
        .collect();
    let made = route(
        spec.engine,
        spec.colours,
        spec.fault_tolerant,
        fabric,
        &groups,
    );
    let mut made = made.map_err(|error| error.to_string())?;
    made.foreign = ForeignTime {
        packet: spec.foreign_packet_time,
        byte: spec.foreign_packet_time_per_byte,
    };
    Ok(made)
}

/// MGIDs by the layers of the lines where the fabric is the fat tree that they are made for and the grid has layers; otherwise
/// groups are numbered as they come.
fn mgids(spec: &Traffic, fabric: &Fabric) -> Option<Vec<Mgid>> {
    let shape = CnTnMap::recognise(fabric).ok()?.shape();
    let trees = SpanningTrees::new(spec.colours, shape.m, shape.p, spec.fault_tolerant).ok()?;
    let terminals = u32::try_from(fabric.hosts().len()).ok()?;
    let per_terminal = spec.processes_per_terminal;
    let lines = spec.lines();
    let set = if spec.random_groups.is_some() {
        let communicators = lines.iter().map(|line| Communicator {
            name: String::new(),
            layer: line.layer,
            members: line.processes.iter().map(|it| it / per_terminal).collect(),
        });
        GroupSet {
            communicators: communicators.collect(),
            layers: per_terminal,
            layered: true,
            terminals,
        }
    } else {
        let grid = Grid {
            dims: spec.dims.clone(),
            processes_per_terminal: per_terminal,
            layering: Layering::Tight,
        };
        grid.groups(terminals).ok()?
    };
    let mgids = allocate_layered(&set, &trees).ok()?.mgids;
    (mgids.len() == lines.len()).then_some(mgids)
}

/// Trees and tables of an engine for these groups.
///
/// # Errors
/// Groups that it finds no trees or colours for.
pub(super) fn route(
    engine: MulticastEngineName,
    colours: u32,
    fault_tolerant: bool,
    fabric: &Arc<Fabric>,
    groups: &[Group],
) -> Result<Multicast, MulticastError> {
    let mode = TableMode::PerPort;
    let c_mr4lms = |roots| {
        let settings = CMr4lmsSettings {
            colours,
            roots,
            fault_tolerant,
        };
        CMr4lms::new(fabric.clone(), settings)
    };
    let mut engine: Box<dyn MulticastEngine + '_> = match engine {
        MulticastEngineName::CMr4lmsFixed => Box::new(c_mr4lms(RootChoice::Fixed)?),
        MulticastEngineName::CMr4lmsDynamic => Box::new(c_mr4lms(RootChoice::Dynamic)?),
        MulticastEngineName::Mr4lms => Box::new(Mr4lms::new(
            fabric,
            mode,
            colours,
            Mr4lmsSettings::default(),
        )?),
        MulticastEngineName::Broadcast => Box::new(Broadcast::new(fabric, mode, colours)?),
        MulticastEngineName::Opensm => {
            Box::new(OpenSmLike::new(fabric, mode, colours, RootRule::default())?)
        }
    };
    let changes = engine.route(groups)?;
    let mut tables = MulticastTables::new(fabric, engine.table_mode());
    tables.apply(&changes.branches);
    Ok(Multicast::new(groups, engine.as_ref(), tables, fabric))
}

#[cfg(test)]
mod tests {
    use crate::{MemoryFiles, Resolved};
    use raddle_engine::{
        Progress, Recorder,
        record::{FlowRecord, MemberRecord},
        simulate,
    };

    const TEXT: &str = r#"schema = 1
name = "grid"
[fabric]
kind = "cn-tn"
m = 2
q = 2
p = 1
k = 2
w = 2
[traffic]
generator = "multicast"
dims = [4, 4]
rounds = 20
[simulation]
schemes = ["hpcc"]
"#;

    #[derive(Default)]
    struct Log(Vec<FlowRecord>, Vec<MemberRecord>);

    impl Recorder for Log {
        fn flow(&mut self, flow: &FlowRecord) {
            self.0.push(*flow);
        }
        fn member(&mut self, member: &MemberRecord) {
            self.1.push(*member);
        }
    }

    #[test]
    fn a_grid_of_broadcasts_runs_on_every_engine() {
        let files = MemoryFiles::default();
        for (engine, twice) in [
            ("c-mr4lms-fixed", false),
            ("c-mr4lms-fixed", true),
            ("c-mr4lms-dynamic", true),
            ("mr4lms", false),
            ("broadcast", false),
            ("opensm", false),
        ] {
            let settings = format!("rounds = 20\nengine = \"{engine}\"\nfault_tolerant = {twice}");
            let text = TEXT.replace("rounds = 20", &settings);
            let resolved = Resolved::new(&text, "grid.toml", &files).unwrap();
            let run = &resolved.runs[0];
            let mut workload = resolved.workload(run, &files).unwrap();
            let mut log = Log::default();
            let (config, progress) = (resolved.run_config(run), Progress::default());
            let network = &resolved.network;
            let summary =
                simulate(network, &config, workload.as_mut(), &mut log, &progress).unwrap();
            // Four rows and four columns, 20 rounds, three receivers each.
            assert_eq!(
                (summary.flows_finished, log.0.len()),
                (160, 160),
                "{engine}"
            );
            assert_eq!(
                (summary.members_reached, log.1.len()),
                (480, 480),
                "{engine}"
            );
            assert_eq!((summary.drops, summary.dead_ends), (0, 0));
            let late = summary.late_copies;
            if twice {
                assert!(summary.second_copies + late > 0, "{engine}");
            } else if engine == "broadcast" {
                assert!(summary.foreign_copies > 0);
                assert_eq!(summary.second_copies, 0);
            } else {
                assert_eq!(summary.second_copies + late, 0, "{engine}");
            }
            assert!(log.0.iter().all(|flow| flow.dst.group().is_some()));
        }
    }

    /// Link traversals of the 16 x 16 grid on 256 hosts, counted on paper: a midplane is a row; four hosts share a switch, four
    /// switches an L1, four midplanes an L2, four of those an L3. Of a broadcast's 15 acknowledgements in a row 3 take 2 links
    /// and 12 take 4; in a column 3 take 6 and 12 take 8. Trees of members have 20 and 52 links; one over all hosts has
    /// 256 + 64 + 16 + 4, and 240 hosts hear each packet in vain.
    #[test]
    fn the_latency_experiment_crosses_as_many_links_as_its_trees_have() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let file = format!("{folder}/../../../experiments/multicast/latency.toml");
        let text = std::fs::read_to_string(file).unwrap();
        let files = MemoryFiles::default();
        let (rounds, packets) = (3, 3);
        for engine in [
            "c-mr4lms-fixed",
            "c-mr4lms-dynamic",
            "mr4lms",
            "broadcast",
            "opensm",
        ] {
            let named = format!("engine = \"{engine}\"");
            let text = text
                .replace("engine = \"c-mr4lms-fixed\"", &named)
                .replace("rounds = 500", &format!("rounds = {rounds}"));
            let resolved = Resolved::new(&text, "latency.toml", &files).unwrap();
            let run = &resolved.runs[0];
            let mut workload = resolved.workload(run, &files).unwrap();
            let (config, progress) = (resolved.run_config(run), Progress::default());
            let network = &resolved.network;
            let mut log = Log::default();
            let summary =
                simulate(network, &config, workload.as_mut(), &mut log, &progress).unwrap();
            let (row, column, vain) = match engine {
                "broadcast" => (340, 340, 240),
                _ => (20, 52, 0),
            };
            let acknowledgements = [3 * 2 + 12 * 4, 3 * 6 + 12 * 8];
            let pair = row + acknowledgements[0] + column + acknowledgements[1];
            let all = rounds * 16 * packets;
            assert_eq!(summary.packet_hops, all * pair, "{engine}");
            assert_eq!(summary.members_reached, rounds * 2 * 16 * 15, "{engine}");
            let unwanted = summary.foreign_copies + summary.late_copies;
            assert_eq!(unwanted, 2 * all * vain, "{engine}");
            assert_eq!((summary.members_missed, summary.drops), (0, 0), "{engine}");
        }
    }

    #[test]
    fn what_cannot_be_routed_is_refused_at_the_traffic_table() {
        let files = MemoryFiles::default();
        for (line, by, problem) in [
            ("dims = [4, 4]", "dims = [4, 5]", "16"),
            ("rounds = 20", "rounds = 20\ncolours = 0", "colours"),
            ("rounds = 20", "rounds = 20\nengine = \"tree\"", "tree"),
            (
                "rounds = 20",
                "rounds = 20\nengine = \"opensm\"\ncolours = 3",
                "colour",
            ),
            ("p = 1\nk = 2", "p = 0\nk = 1", "hosts"),
        ] {
            let error = Resolved::new(&TEXT.replace(line, by), "grid.toml", &files);
            let error = error.map(|_| ()).unwrap_err().to_string();
            assert!(
                error.contains("grid.toml") && error.contains(problem),
                "{error}"
            );
        }
    }
}
