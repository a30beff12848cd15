//! Traces of steps of training a neural network on many processors: what each computes, and what it sends when.
//!
//! A worker is a processor with its network card. Workers are numbered with the tensor index fastest, then the data index
//! (expert groups are neighbours in it), then the pipeline stage:
//! `rank = (stage · data_parallel + data) · tensor_parallel + tensor`.
//!
//! | traffic | volume | source |
//! |---|---|---|
//! | tensor | per layer and micro-batch 2 Allreduces forward and 2 backward of b·s·h values | Shoeybi et al. 2019, 3 |
//! | pipeline | b·s·h values to the next stage for each micro-batch, as many back | Narayanan et al. 2021, 3.2 |
//! | data | one Allreduce of the parameters that a worker has, per step, in buckets | Li et al. 2020, 3.2 |
//! | expert | per layer with experts 2 Alltoalls forward and 2 backward of k·b·s·h values | Lepikhin et al. 2021, 3.2 |
//!
//! with b samples of a micro-batch, s values of a sequence, h of the hidden size, and k experts for each token. A layer has
//! 12 h² + 13 h parameters, the embedding (V + s) h (Narayanan et al. 2021, equation 2).

use std::ops::Range;

use raddle_text::{Finding, InputError, at_most, between, check_value, read, tree};
use raddle_trace::{
    Action, Collective, CollectiveKind, Event, Interval, Message, Trace, Wildcards,
};
use raddle_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Most calls that a trace may have.
const MOST_CALLS: u128 = 200_000_000;

/// Tags of messages between stages, and between a worker and its stream.
const ACTIVATION: i32 = 0;
const GRADIENT: i32 = 1;
const READY: i32 = 2;
const REDUCED: i32 = 3;

/// In which order a stage computes its micro-batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum PipelineSchedule {
    /// As many forward passes as stages follow, then one forward and one backward by turns (Narayanan et al. 2021, 2.2).
    #[default]
    #[serde(rename = "1f1b")]
    OneForwardOneBackward,
    /// All forward passes, then all backward (Huang et al. 2019).
    #[serde(rename = "gpipe")]
    GPipe,
}

/// A worker that computes slower than the others.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Straggler {
    /// The worker.
    pub rank: u32,
    /// How many times as long it computes.
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub factor: f64,
}

/// Steps of training.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Layers of the model; each stage has an equal number of them.
    #[schemars(range(min = 1, max = 100_000))]
    pub layers: u32,
    /// Hidden size: values of a token.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub hidden: u32,
    /// Tokens of a sample.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub sequence: u32,
    /// Words that the first stage has an embedding of. 0: no embedding.
    #[serde(default)]
    #[schemars(range(max = 16_777_216))]
    pub vocabulary: u32,
    /// Parameters of a layer that all data-parallel workers share. Without it those of a transformer's layer:
    /// 12 hidden² + 13 hidden, without 8 hidden² in a layer with experts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 281_474_976_710_656_u64))]
    pub layer_parameters: Option<u64>,
    /// Replicas of the model, each with its own samples.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub data_parallel: u32,
    /// Workers that share each layer.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tensor_parallel: u32,
    /// Stages, each with its share of the layers.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub pipeline_parallel: u32,
    /// Neighbours among the data-parallel workers that share the experts of a layer. 1: no experts.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub expert_parallel: u32,
    /// Experts that each token goes to (top-k).
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub experts_per_token: u32,
    /// One of so many layers has experts.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub expert_every: u32,
    /// Parameters of the experts of a worker group in one layer, before tensor parallelism shares them. Without it those of
    /// one expert: 8 hidden².
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 281_474_976_710_656_u64))]
    pub expert_parameters: Option<u64>,
    /// Micro-batches of a replica in a step.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub micro_batches: u32,
    /// Samples of a micro-batch.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4096))]
    pub micro_batch: u32,
    /// Bytes of a value: of activations and of gradients.
    #[serde(default = "two_bytes")]
    #[schemars(transform = between("1B", "16B"))]
    pub value: Bytes,
    /// In which order a stage computes its micro-batches.
    #[serde(default)]
    pub schedule: PipelineSchedule,
    /// Time of a layer's forward pass for one micro-batch, on each of the workers that share it.
    #[schemars(transform = at_most("1000s"))]
    pub forward: Span,
    /// The same backward. Without it twice `forward`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("1000s"))]
    pub backward: Option<Span>,
    /// Gradients are reduced in buckets of so many bytes.
    #[serde(default = "usual_bucket")]
    #[schemars(transform = between("1KiB", "1TiB"))]
    pub bucket: Bytes,
    /// A bucket is reduced as soon as it is full, while the worker computes on: each worker has a stream for that, a rank of
    /// its own. Otherwise buckets are reduced at the end of the step.
    #[serde(default = "yes")]
    pub overlap: bool,
    /// Steps, one after the other.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub steps: u32,
    /// Workers on each host, in order.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub per_host: u32,
    /// Workers that compute slower than the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stragglers: Vec<Straggler>,
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

const fn two_bytes() -> Bytes {
    Bytes(2)
}

/// PyTorch's `bucket_cap_mb` (Li et al. 2020).
const fn usual_bucket() -> Bytes {
    Bytes(25 << 20)
}

/// Why a training has no trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// A value is out of its limits.
    #[error(transparent)]
    Value(#[from] Finding),
    /// A number that another one must divide.
    #[error("`{whole}` is {found}: it must be a multiple of `{part}`, which is {by}")]
    Multiple {
        /// The key.
        whole: &'static str,
        /// Its value.
        found: u32,
        /// The key of the other number.
        part: &'static str,
        /// Its value.
        by: u32,
    },
    /// A straggler that is no worker.
    #[error("`stragglers`: there is no worker {rank}: they are numbered from 0 to {last}")]
    Straggler {
        /// The number.
        rank: u32,
        /// The last worker.
        last: u64,
    },
    /// More calls than a trace should have.
    #[error(
        "the trace would have about {calls} calls, at most {MOST_CALLS} are possible: take fewer `steps`, \
         `micro_batches`, `layers` or workers, or larger buckets"
    )]
    TooLong {
        /// How many.
        calls: u128,
    },
}

impl Training {
    /// Reads TOML.
    ///
    /// # Errors
    /// Text that is not TOML, unknown keys, or values out of range; with their place.
    pub fn read(text: &str, path: &str) -> Result<Self, InputError> {
        read(&tree::parse(text, path)?)
    }

    /// Number of workers.
    #[must_use]
    pub fn workers(&self) -> u64 {
        [
            self.tensor_parallel,
            self.data_parallel,
            self.pipeline_parallel,
        ]
        .iter()
        .fold(1, |all: u64, &factor| all.saturating_mul(u64::from(factor)))
    }

    /// Bytes of the activations of a micro-batch between two layers: b·s·h values.
    #[must_use]
    pub fn activation(&self) -> Bytes {
        let values =
            u64::from(self.micro_batch) * u64::from(self.sequence) * u64::from(self.hidden);
        Bytes(values * self.value.0)
    }

    /// The trace: workers, then the stream of each worker where gradients are reduced while it computes.
    ///
    /// # Errors
    /// [`TrainingError`].
    pub fn trace(&self) -> Result<Trace, TrainingError> {
        self.check()?;
        let groups = Groups::new(self);
        let workers = self.workers() as u32;
        let mut ranks = Vec::new();
        let mut streams = Vec::new();
        for rank in 0..workers {
            let mut writer = Writer::new(self, &groups, rank);
            for _ in 0..self.steps {
                writer.step();
            }
            writer.push(Action::End);
            ranks.push(writer.events);
            if groups.streams {
                let at = Interval::instant(0);
                let action = Action::End;
                writer.stream.push(Event { at, action });
                streams.push(writer.stream);
            }
        }
        ranks.extend(streams);
        let size = ranks.len() as u32;
        let hosts = workers.div_ceil(self.per_host);
        Ok(Trace {
            ranks,
            placement: (0..size)
                .map(|rank| rank % workers / self.per_host)
                .collect(),
            hosts: (0..hosts).map(|host| format!("host{host}")).collect(),
            communicators: groups.lists,
            fabric: String::new(),
            program: format!(
                "generated: training, data {} x tensor {} x pipeline {}",
                self.data_parallel, self.tensor_parallel, self.pipeline_parallel
            ),
            mpi: "generated".to_owned(),
            processors: None,
        })
    }

    fn check(&self) -> Result<(), TrainingError> {
        check_value(self)?;
        for (whole, found, part, by) in [
            (
                "layers",
                self.layers,
                "pipeline_parallel",
                self.pipeline_parallel,
            ),
            (
                "data_parallel",
                self.data_parallel,
                "expert_parallel",
                self.expert_parallel,
            ),
        ] {
            if !found.is_multiple_of(by) {
                return Err(TrainingError::Multiple {
                    whole,
                    found,
                    part,
                    by,
                });
            }
        }
        let workers = self.workers();
        let unknown = |straggler: &&Straggler| u64::from(straggler.rank) >= workers;
        if let Some(straggler) = self.stragglers.iter().find(unknown) {
            return Err(TrainingError::Straggler {
                rank: straggler.rank,
                last: workers - 1,
            });
        }
        let layers = u128::from(self.layers / self.pipeline_parallel);
        let passes = u128::from(self.micro_batches) * (4 + 8 * layers);
        let most = self.shared_bytes(false) + self.expert_bytes();
        let buckets = if self.data_parallel > 1 {
            let embedding = self.embedding_bytes() / self.bucket.0;
            2 + u128::from(embedding) + layers * u128::from(most.div_ceil(self.bucket.0))
        } else {
            0
        };
        let calls = u128::from(workers) * u128::from(self.steps) * (passes + 4 * buckets);
        if calls > MOST_CALLS {
            return Err(TrainingError::TooLong { calls });
        }
        Ok(())
    }

    fn has_experts(&self, layer: u32) -> bool {
        self.expert_parallel > 1 && (layer + 1).is_multiple_of(self.expert_every)
    }

    /// A worker's gradients of a layer that all data-parallel workers share, in bytes.
    fn shared_bytes(&self, experts: bool) -> u64 {
        let hidden = u64::from(self.hidden);
        let squares = if experts { 4 } else { 12 };
        let usual = squares * hidden * hidden + 13 * hidden;
        self.share(self.layer_parameters.unwrap_or(usual))
    }

    /// A worker's gradients of the experts of a layer, in bytes.
    fn expert_bytes(&self) -> u64 {
        let hidden = u64::from(self.hidden);
        self.share(self.expert_parameters.unwrap_or(8 * hidden * hidden))
    }

    /// A worker's gradients of the embedding, in bytes.
    fn embedding_bytes(&self) -> u64 {
        if self.vocabulary == 0 {
            return 0;
        }
        let words = u64::from(self.vocabulary) + u64::from(self.sequence);
        self.share(words * u64::from(self.hidden))
    }

    fn share(&self, parameters: u64) -> u64 {
        parameters.div_ceil(u64::from(self.tensor_parallel)) * self.value.0
    }

    /// The passes of a stage over its micro-batches, in order: forward or not.
    fn passes(&self, stage: u32) -> Vec<bool> {
        let all = self.micro_batches;
        let ahead = match self.schedule {
            PipelineSchedule::OneForwardOneBackward => all.min(self.pipeline_parallel - 1 - stage),
            PipelineSchedule::GPipe => all,
        };
        let mut passes = vec![true; ahead as usize];
        for _ in ahead..all {
            passes.extend([true, false]);
        }
        passes.extend(vec![false; ahead as usize]);
        passes
    }
}

/// The communicators, and which of them a worker is in.
struct Groups {
    lists: Vec<Vec<u32>>,
    streams: bool,
    tensor: Range<u32>,
    expert: Range<u32>,
    data: Range<u32>,
    /// Workers that have the same experts.
    same_experts: Range<u32>,
}

impl Groups {
    fn new(training: &Training) -> Self {
        let (tensor, data) = (training.tensor_parallel, training.data_parallel);
        let (stages, experts) = (training.pipeline_parallel, training.expert_parallel);
        let workers = tensor * data * stages;
        let streams = training.overlap && data > 1;
        let all = if streams { 2 * workers } else { workers };
        let first_reducer = if streams { workers } else { 0 };
        let mut lists = vec![(0..all).collect()];
        // Groups of one rank need no communicator.
        let mut add = |size: u32, groups: &mut dyn Iterator<Item = Vec<u32>>| {
            let begin = lists.len() as u32;
            if size > 1 {
                lists.extend(groups);
            }
            begin..lists.len() as u32
        };
        let rank =
            move |stage: u32, replica: u32, part: u32| (stage * data + replica) * tensor + part;
        let replicas = (0..stages).flat_map(|stage| (0..data).map(move |replica| (stage, replica)));
        let parts = (0..stages).flat_map(|stage| (0..tensor).map(move |part| (stage, part)));
        let blocks = |stages: u32, blocks: u32| {
            (0..stages).flat_map(move |stage| {
                (0..blocks).flat_map(move |block| (0..tensor).map(move |part| (stage, block, part)))
            })
        };
        Self {
            streams,
            tensor: add(
                tensor,
                &mut replicas.map(|(stage, replica)| {
                    (0..tensor).map(|part| rank(stage, replica, part)).collect()
                }),
            ),
            expert: add(
                experts,
                &mut blocks(stages, data / experts).map(|(stage, block, part)| {
                    let own = block * experts..(block + 1) * experts;
                    own.map(|replica| rank(stage, replica, part)).collect()
                }),
            ),
            data: add(
                data,
                &mut parts.map(|(stage, part)| {
                    let own = 0..data;
                    own.map(|replica| first_reducer + rank(stage, replica, part))
                        .collect()
                }),
            ),
            same_experts: add(
                if experts > 1 { data / experts } else { 1 },
                &mut blocks(stages, experts).map(|(stage, place, part)| {
                    let own = (place..data).step_by(experts as usize);
                    own.map(|replica| first_reducer + rank(stage, replica, part))
                        .collect()
                }),
            ),
            lists,
        }
    }
}

/// The group number `index` of a kind; none where its groups have one rank.
fn group(of: &Range<u32>, index: u32) -> Option<u32> {
    (!of.is_empty()).then_some(of.start + index)
}

/// A worker while its calls are made.
struct Writer<'a> {
    training: &'a Training,
    rank: u32,
    /// Workers of a stage, and of all.
    stage_size: u32,
    workers: u32,
    stage: u32,
    tensor: Option<u32>,
    expert: Option<u32>,
    data: Option<u32>,
    same_experts: Option<u32>,
    streams: bool,
    /// Times of half a layer, in ps.
    forward_ps: u64,
    backward_ps: u64,
    now_ps: u64,
    requests: u32,
    open: Vec<u32>,
    events: Vec<Event>,
    /// The calls of its stream.
    stream: Vec<Event>,
    /// Buckets of this step.
    buckets: u32,
}

impl<'a> Writer<'a> {
    fn new(training: &'a Training, groups: &Groups, rank: u32) -> Self {
        let (tensor, data) = (training.tensor_parallel, training.data_parallel);
        let experts = training.expert_parallel;
        let (part, replica, stage) = (rank % tensor, rank / tensor % data, rank / tensor / data);
        let own = training
            .stragglers
            .iter()
            .filter(|straggler| straggler.rank == rank);
        let factor: f64 = own.map(|straggler| straggler.factor).product();
        let half = |span: Span| (span.0 as f64 * factor / 2.0).round() as u64;
        let backward = training.backward.unwrap_or(training.forward * 2);
        let block = replica / experts;
        let place = replica % experts;
        Self {
            training,
            rank,
            stage_size: tensor * data,
            workers: tensor * data * training.pipeline_parallel,
            stage,
            tensor: group(&groups.tensor, stage * data + replica),
            expert: group(
                &groups.expert,
                (stage * (data / experts) + block) * tensor + part,
            ),
            data: group(&groups.data, stage * tensor + part),
            same_experts: group(
                &groups.same_experts,
                (stage * experts + place) * tensor + part,
            ),
            streams: groups.streams,
            forward_ps: half(training.forward),
            backward_ps: half(backward),
            now_ps: 0,
            requests: 0,
            open: Vec::new(),
            events: Vec::new(),
            stream: Vec::new(),
            buckets: 0,
        }
    }

    fn push(&mut self, action: Action) {
        let at = Interval::instant(self.now_ps / 1000);
        self.events.push(Event { at, action });
    }

    fn request(&mut self) -> u32 {
        let request = self.requests;
        self.requests += 1;
        self.open.push(request);
        request
    }

    fn step(&mut self) {
        let passes = self.training.passes(self.stage);
        let last = passes.len() - 1;
        for (index, forward) in passes.into_iter().enumerate() {
            if forward {
                self.forward();
            } else {
                self.backward(index == last);
            }
        }
        if self.buckets > 0 && self.streams {
            let worker = self.rank;
            let stream = self.workers + worker;
            let done = message(worker, REDUCED, Bytes(0));
            self.on_stream(Action::Send {
                message: done,
                request: None,
            });
            self.receive(stream, REDUCED, Bytes(0));
        }
        self.buckets = 0;
        if !self.open.is_empty() {
            let requests = std::mem::take(&mut self.open).into();
            self.push(Action::Wait { requests });
        }
    }

    fn layers(&self) -> Range<u32> {
        let own = self.training.layers / self.training.pipeline_parallel;
        self.stage * own..(self.stage + 1) * own
    }

    fn forward(&mut self) {
        let activation = self.training.activation();
        if self.stage > 0 {
            self.receive(self.rank - self.stage_size, ACTIVATION, activation);
        }
        for layer in self.layers() {
            self.layer(layer, self.forward_ps);
        }
        if self.stage + 1 < self.training.pipeline_parallel {
            self.send(self.rank + self.stage_size, ACTIVATION);
        }
    }

    /// The two halves of a layer, attention and what follows it, each with its Allreduce; tokens go to their experts before
    /// the second half and come back after it. Backward it is the same in the other order, which no time depends on.
    fn layer(&mut self, layer: u32, half_ps: u64) {
        let activation = self.training.activation();
        let to_experts = Bytes(activation.0 * u64::from(self.training.experts_per_token));
        let experts = self.expert.filter(|_| self.training.has_experts(layer));
        for second in [false, true] {
            let experts = experts.filter(|_| second);
            self.collective(CollectiveKind::Alltoall, experts, to_experts);
            self.now_ps = self.now_ps.saturating_add(half_ps);
            self.collective(CollectiveKind::Alltoall, experts, to_experts);
            self.collective(CollectiveKind::Allreduce, self.tensor, activation);
        }
    }

    fn backward(&mut self, last: bool) {
        if self.stage + 1 < self.training.pipeline_parallel {
            let bytes = self.training.activation();
            self.receive(self.rank + self.stage_size, GRADIENT, bytes);
        }
        let (mut shared, mut expert) = (0, 0);
        for layer in self.layers().rev() {
            self.layer(layer, self.backward_ps);
            if last {
                let experts = self.training.has_experts(layer);
                shared += self.training.shared_bytes(experts);
                if experts {
                    expert += self.training.expert_bytes();
                }
                shared = self.full_buckets(self.data, shared);
                expert = self.full_buckets(self.same_experts, expert);
            }
        }
        if self.stage > 0 {
            self.send(self.rank - self.stage_size, GRADIENT);
        }
        if last {
            if self.stage == 0 {
                shared += self.training.embedding_bytes();
            }
            for (comm, left) in [(self.data, shared), (self.same_experts, expert)] {
                let left = self.full_buckets(comm, left);
                if left > 0 {
                    self.bucket(comm, left);
                }
            }
        }
    }

    /// Reduces what fills buckets; gives what is left. Nobody has to be asked about gradients that one worker has alone.
    fn full_buckets(&mut self, comm: Option<u32>, mut bytes: u64) -> u64 {
        if comm.is_none() {
            return 0;
        }
        while bytes >= self.training.bucket.0 {
            self.bucket(comm, self.training.bucket.0);
            bytes -= self.training.bucket.0;
        }
        bytes
    }

    /// Reduces a bucket of gradients: on the worker's stream, or nonblocking, which waits for the end of the step.
    fn bucket(&mut self, comm: Option<u32>, bytes: u64) {
        let Some(comm) = comm else { return };
        self.buckets += 1;
        let call = Collective {
            kind: CollectiveKind::Allreduce,
            comm,
            bytes: Bytes(bytes),
            root: None,
        };
        if !self.streams {
            let request = Some(self.request());
            self.push(Action::Collective { call, request });
            return;
        }
        self.push(Action::Send {
            message: message(self.workers + self.rank, READY, Bytes(0)),
            request: None,
        });
        self.on_stream(Action::Receive {
            message: message(self.rank, READY, Bytes(0)),
            request: None,
            any: Wildcards::default(),
        });
        self.on_stream(Action::Collective {
            call,
            request: None,
        });
    }

    /// A stream computes nothing.
    fn on_stream(&mut self, action: Action) {
        let at = Interval::instant(0);
        self.stream.push(Event { at, action });
    }

    fn collective(&mut self, kind: CollectiveKind, comm: Option<u32>, bytes: Bytes) {
        if let Some(comm) = comm {
            let call = Collective {
                kind,
                comm,
                bytes,
                root: None,
            };
            self.push(Action::Collective {
                call,
                request: None,
            });
        }
    }

    /// Sends activations or their gradients to another stage, while the worker goes on.
    fn send(&mut self, peer: u32, tag: i32) {
        let message = message(peer, tag, self.training.activation());
        let request = Some(self.request());
        self.push(Action::Send { message, request });
    }

    fn receive(&mut self, peer: u32, tag: i32, bytes: Bytes) {
        self.push(Action::Receive {
            message: message(peer, tag, bytes),
            request: None,
            any: Wildcards::default(),
        });
    }
}

fn message(peer: u32, tag: i32, bytes: Bytes) -> Message {
    Message {
        peer,
        tag,
        comm: 0,
        bytes,
    }
}
