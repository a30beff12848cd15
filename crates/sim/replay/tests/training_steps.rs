//! Steps of training: volumes and times beside published formulas.

use raddle_replay::{
    Algorithms, Machine, Noise, Prepared, Program, ReplayCosts, ReplaySettings, Straggler, Training,
};
use raddle_trace::{Action, CollectiveKind, Trace};
use raddle_units::{BitRate, Bytes, NodeId, Span};
use raddle_workload::{IdealNetwork, collective::HostCosts, drive_ideal};

/// 8 layers, 4 micro-batches; a layer takes 30 us for one of them.
const BASE: &str = r#"
layers = 8
hidden = 64
sequence = 128
micro_batches = 4
forward = "10us"
"#;

fn training(more: &str) -> Training {
    // Later keys are the test's own.
    let text: String = BASE
        .lines()
        .filter(|line| {
            let key = line.split(' ').next().unwrap();
            !more.lines().any(|own| own.split(' ').next() == Some(key))
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    Training::read(&format!("{text}{more}"), "test.toml").unwrap()
}

/// Ends of the ranks in ps. `gbps` is the rate of a network that costs nothing else.
fn ends(trace: &Trace, gbps: u64) -> Vec<u64> {
    let costs = ReplayCosts {
        host: HostCosts {
            send_overhead: Span::ZERO,
            receive_overhead: Span::ZERO,
            copy_per_byte: Span::ZERO,
            local_overhead: Span::ZERO,
            local_copy_per_byte: Span::ZERO,
            socket_latency: Span::ZERO,
            cross_latency: Span::ZERO,
            contention_per_rank: Span::ZERO,
            envelope: Bytes(0),
        },
        ..ReplayCosts::default()
    };
    let settings = ReplaySettings {
        scheme: "none".to_owned(),
        costs,
        sockets: 1,
        processors: None,
        algorithms: Algorithms::default(),
        noise: Noise {
            gap_share: 0.0,
            start_skew: Span::ZERO,
        },
        seed: 1,
    };
    let prepared = Prepared::new(trace, &settings.algorithms).unwrap();
    let program = Program::new(&prepared, None, &settings.costs);
    let hosts: Vec<NodeId> = trace.placement.iter().map(|&host| NodeId(host)).collect();
    let mut machine = Machine::new(&program, &hosts, &settings).unwrap();
    let network = IdealNetwork {
        rate: BitRate::from_gbps(gbps),
        latency: Span(1),
    };
    drive_ideal(&mut machine, network, u64::MAX, |_, _| {});
    machine.ends().unwrap().iter().map(|end| end.0).collect()
}

fn step_ps(training: &Training, gbps: u64) -> u64 {
    let trace = training.trace().unwrap();
    trace.check().unwrap();
    ends(&trace, gbps).into_iter().max().unwrap()
}

const INSTANT: u64 = 1_000_000;

#[track_caller]
fn near(found: u64, expected: u64, share: f64) {
    let off = found as f64 / expected as f64 - 1.0;
    assert!(off.abs() < share, "{found} ps, expected {expected} ps");
}

/// (calls, bytes) of a rank's collectives of a kind.
fn collectives(trace: &Trace, rank: usize, kind: CollectiveKind) -> (u64, u64) {
    let calls = trace.ranks[rank]
        .iter()
        .filter_map(|event| match event.action {
            Action::Collective { call, .. } if call.kind == kind => Some(call.bytes.0),
            _ => None,
        });
    calls.fold((0, 0), |(calls, all), bytes| (calls + 1, all + bytes))
}

fn sent(trace: &Trace, rank: usize) -> (u64, u64) {
    let sends = trace.ranks[rank]
        .iter()
        .filter_map(|event| match event.action {
            Action::Send { message, .. } if message.bytes.0 > 0 => Some(message.bytes.0),
            _ => None,
        });
    sends.fold((0, 0), |(sends, all), bytes| (sends + 1, all + bytes))
}

/// Shoeybi et al. 2019: 4 Allreduces of b·s·h values for each layer and micro-batch, by every worker.
#[test]
fn tensor_parallel_workers_reduce_four_times_per_layer() {
    let trace = training("tensor_parallel = 4\nmicro_batch = 3\nvalue = \"4B\"")
        .trace()
        .unwrap();
    assert_eq!(trace.ranks.len(), 4);
    let calls = 4 * 8 * 4;
    let bytes = calls * (3 * 128 * 64 * 4);
    for rank in 0..4 {
        assert_eq!(
            collectives(&trace, rank, CollectiveKind::Allreduce),
            (calls, bytes)
        );
        assert_eq!(sent(&trace, rank), (0, 0));
    }
}

/// Narayanan et al. 2021: b·s·h values per micro-batch from stage to stage, and as many back.
#[test]
fn stages_send_activations_and_their_gradients() {
    for schedule in ["1f1b", "gpipe"] {
        let more = format!("pipeline_parallel = 4\nschedule = \"{schedule}\"\nsteps = 3");
        let trace = training(&more).trace().unwrap();
        let message = 128 * 64 * 2;
        for (rank, neighbours) in [1, 2, 2, 1].into_iter().enumerate() {
            let messages = 3 * 4 * neighbours;
            assert_eq!(sent(&trace, rank), (messages, messages * message));
        }
    }
}

/// A worker reduces the gradients of its parameters once in a step, whatever the buckets: P = 12 l h² (1 + 13 / 12 h) and the
/// embedding (V + s) h, shared by tensor-parallel workers.
#[test]
fn gradients_of_all_parameters_are_reduced_once() {
    for bucket in ["4KiB", "100kB", "1GiB"] {
        for overlap in [true, false] {
            let more = format!(
                "data_parallel = 2\npipeline_parallel = 2\nvocabulary = 1000\nbucket = \"{bucket}\"\noverlap = {overlap}"
            );
            let trace = training(&more).trace().unwrap();
            trace.check().unwrap();
            // The streams of workers reduce for them.
            let first = if overlap { 4 } else { 0 };
            let layers = 4 * (12 * 64 * 64 + 13 * 64);
            for (rank, parameters) in [
                (0, layers + (1000 + 128) * 64),
                (1, layers + (1000 + 128) * 64),
                (2, layers),
                (3, layers),
            ] {
                let (_, bytes) = collectives(&trace, first + rank, CollectiveKind::Allreduce);
                assert_eq!(bytes, 2 * parameters);
            }
        }
    }
}

/// Lepikhin et al. 2021: tokens go to their experts and come back, forward and backward; every worker reduces the shared
/// gradients with all, and those of its experts with the workers that have the same ones.
#[test]
fn tokens_go_to_their_experts_and_back() {
    let more = "data_parallel = 6\nexpert_parallel = 3\nexperts_per_token = 2\nexpert_every = 2";
    let trace = training(more).trace().unwrap();
    trace.check().unwrap();
    let calls = 4 * 4 * 4;
    for rank in 0..6 {
        let found = collectives(&trace, rank, CollectiveKind::Alltoall);
        assert_eq!(found, (calls, calls * 2 * 128 * 64 * 2));
        let (_, reduced) = collectives(&trace, 6 + rank, CollectiveKind::Allreduce);
        let square = 64 * 64;
        let shared = 4 * (12 * square + 13 * 64) + 4 * (4 * square + 13 * 64);
        assert_eq!(reduced, 2 * (shared + 4 * 8 * square));
    }
    // Experts 0, 1, 2 of workers 0, 1, 2 and again of 3, 4, 5.
    assert!(trace.communicators.contains(&vec![0, 1, 2]));
    assert!(trace.communicators.contains(&vec![6 + 1, 6 + 4]));
}

/// Tensor index fastest, then data, then pipeline.
#[test]
fn groups_have_the_workers_that_the_numbering_says() {
    let more = "tensor_parallel = 2\ndata_parallel = 3\npipeline_parallel = 2\noverlap = false";
    let trace = training(more).trace().unwrap();
    for group in [vec![0, 1], vec![10, 11], vec![0, 2, 4], vec![7, 9, 11]] {
        assert!(trace.communicators.contains(&group), "{group:?}");
    }
    assert_eq!(trace.communicators.len(), 1 + 6 + 4);
    step_ps(&training(more), INSTANT);
}

/// A step takes (m + p - 1) (t_f + t_b); stages are idle for (p - 1) / (m + p - 1) of it (Narayanan et al. 2021, 2.2).
#[test]
fn a_pipeline_takes_the_time_of_its_bubble() {
    for schedule in ["1f1b", "gpipe"] {
        for (stages, micro_batches) in [(1, 4), (2, 1), (4, 8), (8, 3), (8, 32)] {
            let more = format!(
                "pipeline_parallel = {stages}\nmicro_batches = {micro_batches}\nschedule = \"{schedule}\""
            );
            let training = training(&more);
            let stage_ps = 8 / stages * 30_000_000;
            let found = step_ps(&training, INSTANT);
            near(found, (micro_batches + stages - 1) * stage_ps, 0.01);
            let idle = 1.0 - (micro_batches * stage_ps) as f64 / found as f64;
            let expected = (stages - 1) as f64 / (micro_batches + stages - 1) as f64;
            assert!(
                (idle - expected).abs() < 0.02,
                "{idle}, expected {expected}"
            );
        }
    }
}

/// All wait for the gradients of the worker that takes twice as long.
#[test]
fn a_straggler_sets_the_pace() {
    let mut training = training("data_parallel = 4\nsteps = 5");
    let plain = step_ps(&training, INSTANT);
    training.stragglers = vec![Straggler {
        rank: 2,
        factor: 2.0,
    }];
    near(step_ps(&training, INSTANT), 2 * plain, 0.01);
}

/// Gradients that are reduced in less time than the backward pass goes on add only what the last layer leaves: of 8 layers
/// with 99,968 B, three buckets of 50 kB, each in 6 steps of a ring with a quarter of it.
#[test]
fn gradients_that_fit_behind_the_backward_pass_add_no_time() {
    let more = "data_parallel = 4\nmicro_batches = 1\nbucket = \"50kB\"";
    let mut training = training(more);
    let computing = 8 * 30_000_000;
    near(
        step_ps(&training, 100),
        computing + 3 * 6 * 12_500 * 80,
        0.01,
    );
    // In the ring each of 6 steps hands on a quarter of the gradients: (12·64² + 13·64)·8·2 B at 100 Gbit/s.
    let bytes = (12 * 64 * 64 + 13 * 64) * 8 * 2;
    training.overlap = false;
    near(
        step_ps(&training, 100),
        computing + 6 * bytes / 4 * 80,
        0.01,
    );
    training.overlap = true;
    training.forward = Span::from_us(1000);
    near(step_ps(&training, 100), 100 * computing, 0.01);
}

#[test]
fn what_cannot_be_shared_out_is_told() {
    for (more, expected) in [
        (
            "pipeline_parallel = 3",
            "`layers` is 8: it must be a multiple of `pipeline_parallel`",
        ),
        (
            "data_parallel = 4\nexpert_parallel = 3",
            "must be a multiple of `expert_parallel`",
        ),
        (
            "steps = 1000000\nmicro_batches = 1000000",
            "take fewer `steps`",
        ),
    ] {
        let told = training(more).trace().unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
    }
    let mut training = training("data_parallel = 2");
    training.stragglers = vec![Straggler {
        rank: 2,
        factor: 2.0,
    }];
    let told = training.trace().unwrap_err().to_string();
    assert!(told.contains("from 0 to 1"), "{told}");
    for (text, expected) in [
        ("layers = 0", "layers"),
        ("layer = 4", "did you mean `layers`"),
        (
            "layers = 8\nhidden = 64\nsequence = 8\nforward = \"10\"",
            "forward",
        ),
    ] {
        let told = Training::read(text, "t.toml").unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
    }
}
