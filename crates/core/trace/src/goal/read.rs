//! From text to operations and what they wait for.

use std::collections::BTreeMap;

use raddle_units::Bytes;

use super::{
    At, GoalError,
    order::{Dependency, Operation, Work, sequence},
    tokens::{Token, Tokens},
};
use crate::model::{Event, Message, Trace};

/// Reads a GOAL schedule as a trace: every rank on a host of its own, all messages in MPI_COMM_WORLD.
///
/// Only the text is checked; whether every message has both ends is asked by [`crate::Pairing::new`].
///
/// # Errors
/// What is wrong with line and column: the grammar, unknown ranks and labels, operations that wait for each other, and
/// receives with `-1` (any source or tag), since a trace says what was received.
pub fn read(text: &str) -> Result<Trace, GoalError> {
    let mut tokens = Tokens::new(text)?;
    skip_lines(&mut tokens)?;
    tokens.expect(Token::Word("num_ranks"))?;
    let at = tokens.at();
    let ranks = tokens.number("the number of ranks")?;
    let Some(ranks) = u32::try_from(ranks).ok().filter(|&n| n > 0 && n < u32::MAX) else {
        return Err(at.error(format!("{ranks} ranks: 1 to 2^32 - 2 are possible")));
    };
    let mut blocks: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    loop {
        skip_lines(&mut tokens)?;
        let at = tokens.at();
        match tokens.take()? {
            Token::Word("rank") => {
                let place = tokens.at();
                let rank = rank(&mut tokens, ranks)?;
                tokens.expect(Token::Open)?;
                let events = block(&mut tokens, ranks)?;
                if blocks.insert(rank, events).is_some() {
                    return Err(place.error(format!("rank {rank} has a block already")));
                }
            }
            Token::End => break,
            other => {
                let found = other.show();
                return Err(at.error(format!("{found}, where `rank` is expected")));
            }
        }
    }
    if let Some(rank) = (0..ranks).find(|rank| !blocks.contains_key(rank)) {
        return Err(at.error(format!(
            "rank {rank} has no block: write `rank {rank} {{ }}`"
        )));
    }
    Ok(Trace {
        ranks: blocks.into_values().collect(),
        placement: (0..ranks).collect(),
        hosts: (0..ranks).map(|rank| format!("host{rank}")).collect(),
        communicators: vec![(0..ranks).collect()],
        mpi: "GOAL".to_owned(),
        ..Trace::default()
    })
}

fn skip_lines(tokens: &mut Tokens<'_>) -> Result<(), GoalError> {
    while tokens.peek() == Token::NewLine {
        tokens.take()?;
    }
    Ok(())
}

fn rank(tokens: &mut Tokens<'_>, ranks: u32) -> Result<u32, GoalError> {
    let at = tokens.at();
    if tokens.peek() == Token::Any {
        return Err(at.error("`-1`: a trace says what was received; name the rank"));
    }
    let rank = tokens.number("a rank")?;
    match u32::try_from(rank) {
        Ok(rank) if rank < ranks => Ok(rank),
        _ => Err(at.error(format!(
            "rank {rank}, but there are {ranks}: use 0 to {}",
            ranks - 1
        ))),
    }
}

/// A rank's operations while they are read.
#[derive(Default)]
struct Block<'a> {
    operations: Vec<Operation>,
    labels: BTreeMap<&'a str, u32>,
    /// Labels of what waits and what it waits for, and whether for its start only.
    dependencies: Vec<(&'a str, &'a str, bool, At)>,
}

fn block(tokens: &mut Tokens<'_>, ranks: u32) -> Result<Vec<Event>, GoalError> {
    let mut block = Block::default();
    loop {
        skip_lines(tokens)?;
        let at = tokens.at();
        match tokens.take()? {
            Token::Close => break,
            Token::Word(verb @ ("send" | "recv" | "calc")) => {
                block.operations.push(operation(tokens, verb, at, ranks)?);
            }
            Token::Word(label) => block.labelled(tokens, label, at, ranks)?,
            other => {
                let problem = "where an operation, a label or `}` is expected";
                return Err(at.error(format!("{}, {problem}", other.show())));
            }
        }
        if tokens.peek() != Token::Close {
            tokens.expect(Token::NewLine)?;
        }
    }
    let dependencies = block.resolve()?;
    sequence(&block.operations, &dependencies)
}

impl<'a> Block<'a> {
    fn labelled(
        &mut self,
        tokens: &mut Tokens<'a>,
        label: &'a str,
        at: At,
        ranks: u32,
    ) -> Result<(), GoalError> {
        let place = tokens.at();
        match tokens.peek() {
            Token::Colon => {
                tokens.take()?;
                let at_verb = tokens.at();
                let Token::Word(verb @ ("send" | "recv" | "calc")) = tokens.peek() else {
                    return Err(tokens.unexpected("`send`, `recv` or `calc`"));
                };
                tokens.take()?;
                let number = self.operations.len() as u32;
                if self.labels.insert(label, number).is_some() {
                    return Err(at.error("the label was given before in this rank"));
                }
                self.operations
                    .push(operation(tokens, verb, at_verb, ranks)?);
            }
            Token::Word(word @ ("requires" | "irequires")) => {
                tokens.take()?;
                let Token::Word(before) = tokens.peek() else {
                    return Err(tokens.unexpected("a label"));
                };
                tokens.take()?;
                let start_only = word == "irequires";
                self.dependencies.push((label, before, start_only, at));
            }
            other => {
                let found = other.show();
                let expected = "`:`, `requires` or `irequires`";
                return Err(place.error(format!("{found}, where {expected} is expected")));
            }
        }
        Ok(())
    }

    fn resolve(&self) -> Result<Vec<Dependency>, GoalError> {
        let find = |label: &str, at: At| {
            let shown = Token::Word(label).show();
            let number = self.labels.get(label).copied();
            number.ok_or_else(|| at.error(format!("no operation of this rank is labelled {shown}")))
        };
        let one =
            |&(after, before, start_only, at): &(&str, &str, bool, At)| -> Result<_, GoalError> {
                Ok(Dependency {
                    after: find(after, at)?,
                    before: find(before, at)?,
                    start_only,
                })
            };
        self.dependencies.iter().map(one).collect()
    }
}

fn operation(
    tokens: &mut Tokens<'_>,
    verb: &str,
    at: At,
    ranks: u32,
) -> Result<Operation, GoalError> {
    let work = if verb == "calc" {
        Work::Compute(tokens.number("a time in nanoseconds")?)
    } else {
        message(tokens, verb, ranks)?
    };
    for word in ["cpu", "nic"] {
        if tokens.peek() == Token::Word(word) {
            tokens.take()?;
            tokens.number("a number")?;
        }
    }
    Ok(Operation { work, at })
}

fn message(tokens: &mut Tokens<'_>, verb: &str, ranks: u32) -> Result<Work, GoalError> {
    let bytes = Bytes(tokens.number("a number of bytes")?);
    tokens.expect(Token::Word("b"))?;
    tokens.expect(Token::Word(if verb == "send" { "to" } else { "from" }))?;
    let peer = rank(tokens, ranks)?;
    let mut tag = 0;
    if tokens.peek() == Token::Word("tag") {
        tokens.take()?;
        let at = tokens.at();
        if tokens.peek() == Token::Any {
            return Err(at.error("`-1`: a trace says what was received; name the tag"));
        }
        let number = tokens.number("a tag")?;
        tag = i32::try_from(number)
            .map_err(|_| at.error(format!("tag {number}: at most {} is possible", i32::MAX)))?;
    }
    let message = Message {
        peer,
        tag,
        comm: 0,
        bytes,
    };
    Ok(match verb {
        "send" => Work::Send(message),
        _ => Work::Receive(message),
    })
}
