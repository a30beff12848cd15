//! The calls of a program, what each rank gives, and what comes out by definition.

use raddle_offload::{
    member::RoundSpec, order::Expression, program::Program, reduce::combine_into_right,
};
use raddle_random::Random;
use raddle_wire::{DataType, Operation, native::Collective};

/// A random call. Where the order of operations matters it is ordered.
pub(crate) fn random_call(chance: &mut Random, ranks: u32) -> RoundSpec {
    use Collective::{Allreduce, Barrier, Bcast, Reduce};
    let kinds = [
        (Allreduce, Some(Operation::Sum), Some(DataType::Double)),
        (Allreduce, Some(Operation::Sum), Some(DataType::Double)),
        (Allreduce, Some(Operation::Prod), Some(DataType::Float)),
        (Reduce, Some(Operation::Sum), Some(DataType::Double)),
        (Allreduce, Some(Operation::Sum), Some(DataType::Int64)),
        (
            Allreduce,
            Some(Operation::LogicalXor),
            Some(DataType::Uint8),
        ),
        (Reduce, Some(Operation::Max), Some(DataType::Int32)),
        (
            Allreduce,
            Some(Operation::MinLoc),
            Some(DataType::Int16Index),
        ),
        (Barrier, None, None),
        (Bcast, None, Some(DataType::Double)),
        (Bcast, None, Some(DataType::Uint8)),
    ];
    let (collective, operation, data_type) = kinds[chance.index(kinds.len())];
    let count = match data_type {
        None => 0,
        Some(_) if chance.below(10) < 6 => 1,
        Some(_) => chance.index(70),
    };
    let reduces = operation.is_some();
    let floats = data_type.is_some_and(DataType::is_float);
    RoundSpec {
        collective,
        operation,
        data_type,
        count,
        ordered: reduces && (floats || chance.below(4) == 0),
        root: chance.index(ranks as usize) as u32,
    }
}

/// What a rank gives to a call: bytes that depend on seed, call and rank only.
pub(crate) fn operand(seed: u64, call: usize, rank: u32, spec: &RoundSpec) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(spec.bytes());
    for element in 0..spec.count {
        let word = mixed(seed ^ (call as u64) << 20, u64::from(rank), element as u64);
        match spec.data_type {
            Some(DataType::Double) => {
                // Magnitudes far apart, so that another order gives other bits.
                let exponent = 1023 - 30 + (word >> 52) % 61;
                let bits = word & ((1 << 63) | ((1 << 52) - 1)) | exponent << 52;
                bytes.extend(f64::from_bits(bits).to_be_bytes());
            }
            Some(DataType::Float) => {
                let value = 0.5 + (word >> 40) as f32 / (1 << 24) as f32;
                bytes.extend(value.to_be_bytes());
            }
            Some(data_type) => {
                let word = [word.to_be_bytes(), word.rotate_left(17).to_be_bytes()].concat();
                bytes.extend(&word[..data_type.size()]);
            }
            None => {}
        }
    }
    bytes
}

/// What a member sends: its ranks' operands folded, or combined as far as its program can.
pub(crate) fn own_operands(
    seed: u64,
    call: usize,
    spec: &RoundSpec,
    ranks: &[u32],
    program: &Program,
) -> Vec<u8> {
    if spec.collective == Collective::Bcast {
        let roots = ranks.contains(&spec.root);
        return if roots {
            operand(seed, call, spec.root, spec)
        } else {
            Vec::new()
        };
    }
    let values: Vec<Vec<u8>> = ranks
        .iter()
        .map(|rank| operand(seed, call, *rank, spec))
        .collect();
    let (Some(operation), Some(data_type)) = (spec.operation, spec.data_type) else {
        return Vec::new();
    };
    if spec.ordered {
        let mut all = values.concat();
        all.resize(program.operands() * spec.bytes(), 0);
        program
            .run(operation, data_type, &mut all, spec.bytes())
            .unwrap();
        return program
            .results(&all, spec.bytes())
            .collect::<Vec<_>>()
            .concat();
    }
    let mut all = values[0].clone();
    for value in &values[1..] {
        combine_into_right(operation, data_type, value, &mut all).unwrap();
    }
    all
}

/// What every member must get, computed from the definition alone.
pub(crate) fn expected(
    seed: u64,
    call: usize,
    spec: &RoundSpec,
    expression: &Expression,
) -> Vec<u8> {
    let values: Vec<Vec<u8>> = (0..expression.size())
        .map(|rank| operand(seed, call, rank, spec))
        .collect();
    match (spec.operation, spec.data_type) {
        (Some(operation), Some(data_type)) if spec.ordered => {
            expression.evaluate(operation, data_type, &values).unwrap()
        }
        (Some(operation), Some(data_type)) => {
            let mut all = values[0].clone();
            for value in &values[1..] {
                combine_into_right(operation, data_type, value, &mut all).unwrap();
            }
            all
        }
        (None, Some(_)) => values[spec.root as usize].clone(),
        _ => Vec::new(),
    }
}

/// A number that looks random, made from three others (finaliser of SplitMix64).
fn mixed(a: u64, b: u64, c: u64) -> u64 {
    let mut z = a
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(b.rotate_left(32))
        .wrapping_add(c.wrapping_mul(0xd6e8_feb8_6659_fd93));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
