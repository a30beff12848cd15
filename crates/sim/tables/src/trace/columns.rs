//! Calls as columns.

use std::sync::Arc;

use arrow_array::{
    RecordBatch,
    builder::{
        BooleanBuilder, Int32Builder, ListBuilder, StringBuilder, UInt32Builder, UInt64Builder,
    },
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use raddle_trace::{Action, Event, Wildcards};

/// Columns in their order: name, type, whether it may be absent.
pub(super) fn schema() -> SchemaRef {
    let list = DataType::List(Arc::new(Field::new("item", DataType::UInt32, false)));
    let columns = [
        ("rank", DataType::UInt32, false),
        ("start_ns", DataType::UInt64, false),
        ("end_ns", DataType::UInt64, false),
        ("action", DataType::Utf8, false),
        ("peer", DataType::UInt32, true),
        ("tag", DataType::Int32, true),
        ("comm", DataType::UInt32, true),
        ("bytes", DataType::UInt64, true),
        ("request", DataType::UInt32, true),
        ("requests", list, true),
        ("any_source", DataType::Boolean, true),
        ("any_tag", DataType::Boolean, true),
    ];
    let fields = columns.map(|(name, kind, nullable)| Field::new(name, kind, nullable));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Rows on their way into a file.
pub(super) struct Columns {
    rank: UInt32Builder,
    start: UInt64Builder,
    end: UInt64Builder,
    action: StringBuilder,
    peer: UInt32Builder,
    tag: Int32Builder,
    comm: UInt32Builder,
    bytes: UInt64Builder,
    request: UInt32Builder,
    requests: ListBuilder<UInt32Builder>,
    any_source: BooleanBuilder,
    any_tag: BooleanBuilder,
    rows: usize,
}

impl Default for Columns {
    fn default() -> Self {
        let item = Field::new("item", DataType::UInt32, false);
        Self {
            rank: UInt32Builder::new(),
            start: UInt64Builder::new(),
            end: UInt64Builder::new(),
            action: StringBuilder::new(),
            peer: UInt32Builder::new(),
            tag: Int32Builder::new(),
            comm: UInt32Builder::new(),
            bytes: UInt64Builder::new(),
            request: UInt32Builder::new(),
            requests: ListBuilder::new(UInt32Builder::new()).with_field(item),
            any_source: BooleanBuilder::new(),
            any_tag: BooleanBuilder::new(),
            rows: 0,
        }
    }
}

impl Columns {
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn push(&mut self, rank: u32, event: &Event) {
        self.rows += 1;
        self.rank.append_value(rank);
        self.start.append_value(event.at.start_ns);
        self.end.append_value(event.at.end_ns);
        let (name, any) = match &event.action {
            Action::Send { .. } => ("send", None),
            Action::Receive { any, .. } => ("receive", Some(*any)),
            Action::Wait { .. } => ("wait", None),
            Action::Collective { call, .. } => (call.kind.name(), None),
            Action::End => ("end", None),
        };
        self.action.append_value(name);
        let (peer, tag, bytes) = match &event.action {
            Action::Send { message, .. } | Action::Receive { message, .. } => {
                (Some(message.peer), Some(message.tag), Some(message.bytes.0))
            }
            Action::Collective { call, .. } => (call.root, None, Some(call.bytes.0)),
            Action::Wait { .. } | Action::End => (None, None, None),
        };
        self.peer.append_option(peer);
        self.tag.append_option(tag);
        self.comm.append_option(event.action.comm());
        self.bytes.append_option(bytes);
        self.request.append_option(event.action.starts());
        if let Action::Wait { requests } = &event.action {
            self.requests.values().append_slice(requests);
            self.requests.append(true);
        } else {
            self.requests.append(false);
        }
        self.any_source
            .append_option(any.map(|any: Wildcards| any.source));
        self.any_tag.append_option(any.map(|any| any.tag));
    }

    /// The rows since the last call.
    pub(super) fn finish(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        RecordBatch::try_new(
            Arc::clone(schema),
            vec![
                Arc::new(self.rank.finish()),
                Arc::new(self.start.finish()),
                Arc::new(self.end.finish()),
                Arc::new(self.action.finish()),
                Arc::new(self.peer.finish()),
                Arc::new(self.tag.finish()),
                Arc::new(self.comm.finish()),
                Arc::new(self.bytes.finish()),
                Arc::new(self.request.finish()),
                Arc::new(self.requests.finish()),
                Arc::new(self.any_source.finish()),
                Arc::new(self.any_tag.finish()),
            ],
        )
    }
}
