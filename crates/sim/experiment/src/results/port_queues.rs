//! The series of single ports. Which ports were the busiest is known at the end: until then all of them go to a file beside
//! the table, so that a run's memory does not grow with its length.

use std::{
    cmp::Reverse,
    fs::{self, File},
    io::{BufReader, BufWriter, Error, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use raddle_fabric::Fabric;
use raddle_tables::{Cell, TableWriter};
use raddle_units::PortId;

use super::{ResultsError, tables::Table};
use raddle_engine::{
    PortSeries,
    record::{PortSample, Sample},
};

/// Writes the table of a run.
pub(super) struct PortQueues {
    scheme: String,
    seed: u64,
    fabric: Arc<Fabric>,
    table: TableWriter,
    gathered: Option<Gathered>,
}

impl PortQueues {
    pub(super) fn create(
        folder: &Path,
        scheme: &str,
        seed: u64,
        series: &PortSeries,
        fabric: &Arc<Fabric>,
    ) -> Result<Option<Self>, ResultsError> {
        let gathered = match series {
            PortSeries::None => return Ok(None),
            PortSeries::Ports(_) => None,
            PortSeries::Busiest(ports) => Some(Gathered::create(folder, *ports, fabric)?),
        };
        let table = Table::PortQueues;
        Ok(Some(Self {
            scheme: scheme.to_owned(),
            seed,
            fabric: Arc::clone(fabric),
            table: TableWriter::create(folder.join(table.file()), table.schema())?,
            gathered,
        }))
    }

    pub(super) fn sample(&mut self, sample: &Sample<'_>) {
        match &mut self.gathered {
            Some(gathered) => gathered.sample(sample),
            None => {
                for port in sample.ports {
                    self.row(sample.time.0, port);
                }
            }
        }
    }

    pub(super) fn failed(&self) -> bool {
        let gathered = self.gathered.as_ref();
        self.table.failed() || gathered.is_some_and(|gathered| gathered.error.is_some())
    }

    pub(super) fn finish(mut self) -> Result<(), ResultsError> {
        if let Some(gathered) = self.gathered.take() {
            let path = gathered.path.clone();
            let fabric = Arc::clone(&self.fabric);
            gathered
                .choose(&fabric, |time, port| self.row(time, port))
                .map_err(ResultsError::disk("use", &path))?;
            fs::remove_file(&path).map_err(ResultsError::disk("remove", &path))?;
        }
        self.table.finish()?;
        Ok(())
    }

    fn row(&mut self, time: u64, port: &PortSample) {
        self.table.row(&[
            Cell::Text(&self.scheme),
            Cell::U64(self.seed),
            Cell::U64(time),
            Cell::U32(port.node.0),
            Cell::U16(port.port),
            Cell::Text(&self.fabric.node_name(port.node)),
            Cell::U64(port.queue_bytes),
            Cell::U64(port.ingress_bytes),
            Cell::Bool(port.paused),
            Cell::U64(port.tx_bytes),
            Cell::U64(port.ecn_marks),
        ]);
    }
}

/// Bytes of a sample's heading: its time and how many ports follow.
const HEADING: usize = 12;
/// Bytes of a port in a sample.
const ENTRY: usize = 37;

/// All samples of a run in a file, and what each port had in sum.
struct Gathered {
    most: u32,
    path: PathBuf,
    file: BufWriter<File>,
    /// By port: bytes queued and bytes sent, summed over samples.
    totals: Vec<(u64, u64)>,
    error: Option<Error>,
}

impl Gathered {
    fn create(folder: &Path, most: u32, fabric: &Fabric) -> Result<Self, ResultsError> {
        let path = folder.join("port_queues.samples");
        let file = File::create(&path).map_err(ResultsError::disk("write", &path))?;
        Ok(Self {
            most,
            path,
            file: BufWriter::new(file),
            totals: vec![(0, 0); fabric.port_count()],
            error: None,
        })
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        for port in sample.ports {
            let total = &mut self.totals[port.id.index()];
            total.0 += port.queue_bytes;
            total.1 += port.tx_bytes;
        }
        if self.error.is_none() {
            self.error = self.write(sample).err();
        }
    }

    fn write(&mut self, sample: &Sample<'_>) -> std::io::Result<()> {
        self.file.write_all(&sample.time.0.to_le_bytes())?;
        let ports = sample.ports.len() as u32;
        self.file.write_all(&ports.to_le_bytes())?;
        for port in sample.ports {
            let mut entry = [0; ENTRY];
            entry[0] = u8::from(port.paused);
            entry[1..5].copy_from_slice(&port.id.0.to_le_bytes());
            for (at, figure) in [
                (5, port.queue_bytes),
                (13, port.ingress_bytes),
                (21, port.tx_bytes),
                (29, port.ecn_marks),
            ] {
                entry[at..at + 8].copy_from_slice(&figure.to_le_bytes());
            }
            self.file.write_all(&entry)?;
        }
        Ok(())
    }

    /// Gives all samples of the busiest ports, also those where nothing happened: by time, then by port.
    fn choose(self, fabric: &Fabric, mut row: impl FnMut(u64, &PortSample)) -> std::io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.file.into_inner().map_err(|error| error.into_error())?;
        let mut busiest: Vec<usize> = (0..self.totals.len())
            .filter(|&port| self.totals[port] != (0, 0))
            .collect();
        busiest.sort_by_key(|&port| (Reverse(self.totals[port]), port));
        busiest.truncate(self.most as usize);
        busiest.sort_unstable();
        let mut file = BufReader::new(File::open(&self.path)?);
        let mut heading = [0; HEADING];
        loop {
            match file.read_exact(&mut heading) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
            let time = number(&heading[..8]);
            // Entries are in the order of ports, as the busiest are.
            let mut rest = busiest.iter().map(|&port| PortId(port as u32)).peekable();
            for _ in 0..number(&heading[8..]) {
                let mut entry = [0; ENTRY];
                file.read_exact(&mut entry)?;
                let id = PortId(number(&entry[1..5]) as u32);
                while let Some(idle) = rest.next_if(|&port| port < id) {
                    row(time, &idle_port(fabric, idle));
                }
                if rest.next_if_eq(&id).is_some() {
                    row(
                        time,
                        &PortSample {
                            queue_bytes: number(&entry[5..13]),
                            ingress_bytes: number(&entry[13..21]),
                            paused: entry[0] != 0,
                            tx_bytes: number(&entry[21..29]),
                            ecn_marks: number(&entry[29..]),
                            ..idle_port(fabric, id)
                        },
                    );
                }
            }
            for idle in rest {
                row(time, &idle_port(fabric, idle));
            }
        }
    }
}

/// At most eight bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

fn idle_port(fabric: &Fabric, id: PortId) -> PortSample {
    let port = fabric.port(id);
    PortSample {
        id,
        node: port.node,
        port: port.number,
        queue_bytes: 0,
        ingress_bytes: 0,
        paused: false,
        tx_bytes: 0,
        ecn_marks: 0,
    }
}
