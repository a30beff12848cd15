// Made from shim/border.h by `make generate`; tests/border.rs compares.

pub const RADDLE_ABI: u32 = 8;
pub const RADDLE_CLAIMED: u32 = 1;
pub const RADDLE_VOTE: u32 = 6;
pub const RADDLE_SECRET: u32 = 20;
pub type RaddleFunction = ::core::option::Option<unsafe extern "C" fn()>;
pub const RADDLE_ALLREDUCE: RaddleCollective = 1;
pub const RADDLE_REDUCE: RaddleCollective = 2;
pub const RADDLE_BARRIER: RaddleCollective = 3;
pub const RADDLE_BCAST: RaddleCollective = 4;
pub type RaddleCollective = ::core::ffi::c_uint;
pub const RADDLE_OP_NONE: RaddleOperation = 0;
pub const RADDLE_OP_MAX: RaddleOperation = 1;
pub const RADDLE_OP_MIN: RaddleOperation = 2;
pub const RADDLE_OP_SUM: RaddleOperation = 3;
pub const RADDLE_OP_PROD: RaddleOperation = 4;
pub const RADDLE_OP_LAND: RaddleOperation = 5;
pub const RADDLE_OP_BAND: RaddleOperation = 6;
pub const RADDLE_OP_LOR: RaddleOperation = 7;
pub const RADDLE_OP_BOR: RaddleOperation = 8;
pub const RADDLE_OP_LXOR: RaddleOperation = 9;
pub const RADDLE_OP_BXOR: RaddleOperation = 10;
pub const RADDLE_OP_MAXLOC: RaddleOperation = 11;
pub const RADDLE_OP_MINLOC: RaddleOperation = 12;
pub type RaddleOperation = ::core::ffi::c_uint;
pub const RADDLE_DATA_NONE: RaddleDataType = 0;
pub const RADDLE_DATA_INT8: RaddleDataType = 1;
pub const RADDLE_DATA_UINT8: RaddleDataType = 2;
pub const RADDLE_DATA_INT16: RaddleDataType = 3;
pub const RADDLE_DATA_UINT16: RaddleDataType = 4;
pub const RADDLE_DATA_INT32: RaddleDataType = 5;
pub const RADDLE_DATA_UINT32: RaddleDataType = 6;
pub const RADDLE_DATA_INT64: RaddleDataType = 7;
pub const RADDLE_DATA_UINT64: RaddleDataType = 8;
pub const RADDLE_DATA_FLOAT: RaddleDataType = 9;
pub const RADDLE_DATA_DOUBLE: RaddleDataType = 10;
pub const RADDLE_DATA_INT16_INDEX: RaddleDataType = 32;
pub const RADDLE_DATA_INT32_INDEX: RaddleDataType = 33;
pub const RADDLE_DATA_INT64_INDEX: RaddleDataType = 34;
pub const RADDLE_DATA_FLOAT_INDEX: RaddleDataType = 35;
pub const RADDLE_DATA_DOUBLE_INDEX: RaddleDataType = 36;
pub type RaddleDataType = ::core::ffi::c_uint;
pub const RADDLE_ELIGIBLE: RaddleReason = 0;
pub const RADDLE_NO_ELEMENTS: RaddleReason = 1;
pub const RADDLE_ARGUMENTS: RaddleReason = 2;
pub const RADDLE_TYPE: RaddleReason = 3;
pub const RADDLE_OPERATION: RaddleReason = 4;
pub type RaddleReason = ::core::ffi::c_uint;
pub const RADDLE_PLAIN: RaddleVerdict = 0;
pub const RADDLE_PLAIN_TIMED: RaddleVerdict = 1;
pub const RADDLE_OFFLOAD: RaddleVerdict = 2;
pub type RaddleVerdict = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleCall {
    pub send: *const ::core::ffi::c_void,
    pub receive: *mut ::core::ffi::c_void,
    pub count: u64,
    pub handle: usize,
    pub root: i32,
    pub collective: u8,
    pub operation: u8,
    pub data_type: u8,
    pub reason: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleCall"][::core::mem::size_of::<RaddleCall>() - 40usize];
    ["Alignment of RaddleCall"][::core::mem::align_of::<RaddleCall>() - 8usize];
    [
        "Offset of field: RaddleCall::send",
    ][::core::mem::offset_of!(RaddleCall, send) - 0usize];
    [
        "Offset of field: RaddleCall::receive",
    ][::core::mem::offset_of!(RaddleCall, receive) - 8usize];
    [
        "Offset of field: RaddleCall::count",
    ][::core::mem::offset_of!(RaddleCall, count) - 16usize];
    [
        "Offset of field: RaddleCall::handle",
    ][::core::mem::offset_of!(RaddleCall, handle) - 24usize];
    [
        "Offset of field: RaddleCall::root",
    ][::core::mem::offset_of!(RaddleCall, root) - 32usize];
    [
        "Offset of field: RaddleCall::collective",
    ][::core::mem::offset_of!(RaddleCall, collective) - 36usize];
    [
        "Offset of field: RaddleCall::operation",
    ][::core::mem::offset_of!(RaddleCall, operation) - 37usize];
    [
        "Offset of field: RaddleCall::data_type",
    ][::core::mem::offset_of!(RaddleCall, data_type) - 38usize];
    [
        "Offset of field: RaddleCall::reason",
    ][::core::mem::offset_of!(RaddleCall, reason) - 39usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleView {
    pub handle: usize,
    pub rank: i32,
    pub size: i32,
    pub inter: u8,
    pub world: u8,
    pub session: u8,
    pub name: [::core::ffi::c_char; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleView"][::core::mem::size_of::<RaddleView>() - 88usize];
    ["Alignment of RaddleView"][::core::mem::align_of::<RaddleView>() - 8usize];
    [
        "Offset of field: RaddleView::handle",
    ][::core::mem::offset_of!(RaddleView, handle) - 0usize];
    [
        "Offset of field: RaddleView::rank",
    ][::core::mem::offset_of!(RaddleView, rank) - 8usize];
    [
        "Offset of field: RaddleView::size",
    ][::core::mem::offset_of!(RaddleView, size) - 12usize];
    [
        "Offset of field: RaddleView::inter",
    ][::core::mem::offset_of!(RaddleView, inter) - 16usize];
    [
        "Offset of field: RaddleView::world",
    ][::core::mem::offset_of!(RaddleView, world) - 17usize];
    [
        "Offset of field: RaddleView::session",
    ][::core::mem::offset_of!(RaddleView, session) - 18usize];
    [
        "Offset of field: RaddleView::name",
    ][::core::mem::offset_of!(RaddleView, name) - 19usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddlePlain {
    pub allgather: unsafe extern "C" fn(
            comm: usize,
            mine: *const ::core::ffi::c_void,
            all: *mut ::core::ffi::c_void,
            bytes_each: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub gather: unsafe extern "C" fn(
            comm: usize,
            mine: *const ::core::ffi::c_void,
            all: *mut ::core::ffi::c_void,
            bytes_each: ::core::ffi::c_int,
            root: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub gatherv: unsafe extern "C" fn(
            comm: usize,
            mine: *const ::core::ffi::c_void,
            bytes: ::core::ffi::c_int,
            all: *mut ::core::ffi::c_void,
            lengths: *const ::core::ffi::c_int,
            offsets: *const ::core::ffi::c_int,
            root: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub bcast: unsafe extern "C" fn(
            comm: usize,
            data: *mut ::core::ffi::c_void,
            bytes: ::core::ffi::c_int,
            root: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub barrier: unsafe extern "C" fn(comm: usize) -> ::core::ffi::c_int,
    pub send: unsafe extern "C" fn(
            comm: usize,
            data: *const ::core::ffi::c_void,
            bytes: ::core::ffi::c_int,
            to: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub receive: unsafe extern "C" fn(
            comm: usize,
            data: *mut ::core::ffi::c_void,
            bytes: ::core::ffi::c_int,
            from: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub least: unsafe extern "C" fn(
            comm: usize,
            mine: i32,
            least: *mut i32,
        ) -> ::core::ffi::c_int,
    pub sum: unsafe extern "C" fn(
            comm: usize,
            mine: *const f64,
            sums: *mut f64,
            count: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub split: unsafe extern "C" fn(
            comm: usize,
            colour: ::core::ffi::c_int,
            key: ::core::ffi::c_int,
            part: *mut usize,
        ) -> ::core::ffi::c_int,
    pub free: unsafe extern "C" fn(comm: usize) -> ::core::ffi::c_int,
    pub reduce: unsafe extern "C" fn(
            comm: usize,
            collective: u8,
            operation: u8,
            type_: usize,
            mine: *const ::core::ffi::c_void,
            result: *mut ::core::ffi::c_void,
            count: ::core::ffi::c_int,
            root: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub reduce_local: unsafe extern "C" fn(
            operation: u8,
            type_: usize,
            in_: *const ::core::ffi::c_void,
            inout: *mut ::core::ffi::c_void,
            count: ::core::ffi::c_int,
        ) -> ::core::ffi::c_int,
    pub progress: unsafe extern "C" fn(),
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddlePlain"][::core::mem::size_of::<RaddlePlain>() - 112usize];
    ["Alignment of RaddlePlain"][::core::mem::align_of::<RaddlePlain>() - 8usize];
    [
        "Offset of field: RaddlePlain::allgather",
    ][::core::mem::offset_of!(RaddlePlain, allgather) - 0usize];
    [
        "Offset of field: RaddlePlain::gather",
    ][::core::mem::offset_of!(RaddlePlain, gather) - 8usize];
    [
        "Offset of field: RaddlePlain::gatherv",
    ][::core::mem::offset_of!(RaddlePlain, gatherv) - 16usize];
    [
        "Offset of field: RaddlePlain::bcast",
    ][::core::mem::offset_of!(RaddlePlain, bcast) - 24usize];
    [
        "Offset of field: RaddlePlain::barrier",
    ][::core::mem::offset_of!(RaddlePlain, barrier) - 32usize];
    [
        "Offset of field: RaddlePlain::send",
    ][::core::mem::offset_of!(RaddlePlain, send) - 40usize];
    [
        "Offset of field: RaddlePlain::receive",
    ][::core::mem::offset_of!(RaddlePlain, receive) - 48usize];
    [
        "Offset of field: RaddlePlain::least",
    ][::core::mem::offset_of!(RaddlePlain, least) - 56usize];
    [
        "Offset of field: RaddlePlain::sum",
    ][::core::mem::offset_of!(RaddlePlain, sum) - 64usize];
    [
        "Offset of field: RaddlePlain::split",
    ][::core::mem::offset_of!(RaddlePlain, split) - 72usize];
    [
        "Offset of field: RaddlePlain::free",
    ][::core::mem::offset_of!(RaddlePlain, free) - 80usize];
    [
        "Offset of field: RaddlePlain::reduce",
    ][::core::mem::offset_of!(RaddlePlain, reduce) - 88usize];
    [
        "Offset of field: RaddlePlain::reduce_local",
    ][::core::mem::offset_of!(RaddlePlain, reduce_local) - 96usize];
    [
        "Offset of field: RaddlePlain::progress",
    ][::core::mem::offset_of!(RaddlePlain, progress) - 104usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleProcess {
    pub initialised: unsafe extern "C" fn(),
    pub introduce: unsafe extern "C" fn(rank: ::core::ffi::c_int, alike: u8),
    pub faults: unsafe extern "C" fn() -> u64,
    pub finalize: unsafe extern "C" fn(
            world: usize,
            rank: ::core::ffi::c_int,
            size: ::core::ffi::c_int,
        ),
    pub own: unsafe extern "C" fn(symbol: *const ::core::ffi::c_char) -> RaddleFunction,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleProcess"][::core::mem::size_of::<RaddleProcess>() - 40usize];
    ["Alignment of RaddleProcess"][::core::mem::align_of::<RaddleProcess>() - 8usize];
    [
        "Offset of field: RaddleProcess::initialised",
    ][::core::mem::offset_of!(RaddleProcess, initialised) - 0usize];
    [
        "Offset of field: RaddleProcess::introduce",
    ][::core::mem::offset_of!(RaddleProcess, introduce) - 8usize];
    [
        "Offset of field: RaddleProcess::faults",
    ][::core::mem::offset_of!(RaddleProcess, faults) - 16usize];
    [
        "Offset of field: RaddleProcess::finalize",
    ][::core::mem::offset_of!(RaddleProcess, finalize) - 24usize];
    [
        "Offset of field: RaddleProcess::own",
    ][::core::mem::offset_of!(RaddleProcess, own) - 32usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleCollectives {
    pub communicator: unsafe extern "C" fn(view: *const RaddleView) -> *mut ::core::ffi::c_void,
    pub release: unsafe extern "C" fn(state: *mut ::core::ffi::c_void),
    pub forget: unsafe extern "C" fn(state: *mut ::core::ffi::c_void),
    pub begin: unsafe extern "C" fn(
            state: *mut ::core::ffi::c_void,
            call: *const RaddleCall,
        ) -> ::core::ffi::c_int,
    pub run: unsafe extern "C" fn(
            state: *mut ::core::ffi::c_void,
            call: *const RaddleCall,
        ) -> ::core::ffi::c_int,
    pub timed: unsafe extern "C" fn(state: *mut ::core::ffi::c_void),
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleCollectives"][::core::mem::size_of::<RaddleCollectives>() - 48usize];
    [
        "Alignment of RaddleCollectives",
    ][::core::mem::align_of::<RaddleCollectives>() - 8usize];
    [
        "Offset of field: RaddleCollectives::communicator",
    ][::core::mem::offset_of!(RaddleCollectives, communicator) - 0usize];
    [
        "Offset of field: RaddleCollectives::release",
    ][::core::mem::offset_of!(RaddleCollectives, release) - 8usize];
    [
        "Offset of field: RaddleCollectives::forget",
    ][::core::mem::offset_of!(RaddleCollectives, forget) - 16usize];
    [
        "Offset of field: RaddleCollectives::begin",
    ][::core::mem::offset_of!(RaddleCollectives, begin) - 24usize];
    [
        "Offset of field: RaddleCollectives::run",
    ][::core::mem::offset_of!(RaddleCollectives, run) - 32usize];
    [
        "Offset of field: RaddleCollectives::timed",
    ][::core::mem::offset_of!(RaddleCollectives, timed) - 40usize];
};
pub const RADDLE_KIND_BARRIER: RaddleKind = 0;
pub const RADDLE_KIND_BCAST: RaddleKind = 1;
pub const RADDLE_KIND_REDUCE: RaddleKind = 2;
pub const RADDLE_KIND_ALLREDUCE: RaddleKind = 3;
pub const RADDLE_KIND_GATHER: RaddleKind = 4;
pub const RADDLE_KIND_ALLGATHER: RaddleKind = 5;
pub const RADDLE_KIND_SCATTER: RaddleKind = 6;
pub const RADDLE_KIND_REDUCE_SCATTER: RaddleKind = 7;
pub const RADDLE_KIND_ALLTOALL: RaddleKind = 8;
pub const RADDLE_KIND_SCAN: RaddleKind = 9;
pub const RADDLE_KIND_EXSCAN: RaddleKind = 10;
pub type RaddleKind = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, Default, PartialEq, Eq)]
pub struct RaddleMessage {
    pub bytes: u64,
    pub comm: i32,
    pub peer: i32,
    pub tag: i32,
    pub any_source: u8,
    pub any_tag: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleMessage"][::core::mem::size_of::<RaddleMessage>() - 24usize];
    ["Alignment of RaddleMessage"][::core::mem::align_of::<RaddleMessage>() - 8usize];
    [
        "Offset of field: RaddleMessage::bytes",
    ][::core::mem::offset_of!(RaddleMessage, bytes) - 0usize];
    [
        "Offset of field: RaddleMessage::comm",
    ][::core::mem::offset_of!(RaddleMessage, comm) - 8usize];
    [
        "Offset of field: RaddleMessage::peer",
    ][::core::mem::offset_of!(RaddleMessage, peer) - 12usize];
    [
        "Offset of field: RaddleMessage::tag",
    ][::core::mem::offset_of!(RaddleMessage, tag) - 16usize];
    [
        "Offset of field: RaddleMessage::any_source",
    ][::core::mem::offset_of!(RaddleMessage, any_source) - 20usize];
    [
        "Offset of field: RaddleMessage::any_tag",
    ][::core::mem::offset_of!(RaddleMessage, any_tag) - 21usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleShare {
    pub bytes: u64,
    pub rank: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleShare"][::core::mem::size_of::<RaddleShare>() - 16usize];
    ["Alignment of RaddleShare"][::core::mem::align_of::<RaddleShare>() - 8usize];
    [
        "Offset of field: RaddleShare::bytes",
    ][::core::mem::offset_of!(RaddleShare, bytes) - 0usize];
    [
        "Offset of field: RaddleShare::rank",
    ][::core::mem::offset_of!(RaddleShare, rank) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Default, PartialEq, Eq)]
pub struct RaddleMatched {
    pub bytes: u64,
    pub source: i32,
    pub tag: i32,
    pub cancelled: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleMatched"][::core::mem::size_of::<RaddleMatched>() - 24usize];
    ["Alignment of RaddleMatched"][::core::mem::align_of::<RaddleMatched>() - 8usize];
    [
        "Offset of field: RaddleMatched::bytes",
    ][::core::mem::offset_of!(RaddleMatched, bytes) - 0usize];
    [
        "Offset of field: RaddleMatched::source",
    ][::core::mem::offset_of!(RaddleMatched, source) - 8usize];
    [
        "Offset of field: RaddleMatched::tag",
    ][::core::mem::offset_of!(RaddleMatched, tag) - 12usize];
    [
        "Offset of field: RaddleMatched::cancelled",
    ][::core::mem::offset_of!(RaddleMatched, cancelled) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleRecorder {
    pub clock: unsafe extern "C" fn() -> u64,
    pub open: unsafe extern "C" fn(rank: ::core::ffi::c_int, size: ::core::ffi::c_int),
    pub close: unsafe extern "C" fn(complete: ::core::ffi::c_int),
    pub communicator: unsafe extern "C" fn(
            members: *const i32,
            count: usize,
            remote: *const i32,
            remote_count: usize,
        ) -> i32,
    pub claim: unsafe extern "C" fn(request: usize) -> usize,
    pub restore: unsafe extern "C" fn(claimed: usize, request: usize),
    pub persist: unsafe extern "C" fn(
            message: *const RaddleMessage,
            receives: ::core::ffi::c_int,
            request: usize,
        ),
    pub send: unsafe extern "C" fn(begun: u64, message: *const RaddleMessage, request: usize),
    pub receive: unsafe extern "C" fn(begun: u64, message: *const RaddleMessage, request: usize),
    pub exchange: unsafe extern "C" fn(
            begun: u64,
            sent: *const RaddleMessage,
            received: *const RaddleMessage,
        ),
    pub collective: unsafe extern "C" fn(
            begun: u64,
            comm: i32,
            kind: u8,
            bytes: u64,
            root: i32,
            request: usize,
        ),
    pub neighbours: unsafe extern "C" fn(
            begun: u64,
            comm: i32,
            sent: *const RaddleShare,
            sent_count: usize,
            received: *const RaddleShare,
            received_count: usize,
            request: usize,
        ),
    pub start: unsafe extern "C" fn(begun: u64, requests: *const usize, count: usize),
    pub complete: unsafe extern "C" fn(
            begun: u64,
            requests: *const usize,
            which: *const ::core::ffi::c_int,
            statuses: *const ::core::ffi::c_void,
            count: usize,
        ),
    pub rename: unsafe extern "C" fn(begun: u64, from: usize, to: usize),
    pub cancel: unsafe extern "C" fn(begun: u64, request: usize),
    pub release: unsafe extern "C" fn(begun: u64, request: usize),
    pub pass: unsafe extern "C" fn(begun: u64),
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleRecorder"][::core::mem::size_of::<RaddleRecorder>() - 144usize];
    ["Alignment of RaddleRecorder"][::core::mem::align_of::<RaddleRecorder>() - 8usize];
    [
        "Offset of field: RaddleRecorder::clock",
    ][::core::mem::offset_of!(RaddleRecorder, clock) - 0usize];
    [
        "Offset of field: RaddleRecorder::open",
    ][::core::mem::offset_of!(RaddleRecorder, open) - 8usize];
    [
        "Offset of field: RaddleRecorder::close",
    ][::core::mem::offset_of!(RaddleRecorder, close) - 16usize];
    [
        "Offset of field: RaddleRecorder::communicator",
    ][::core::mem::offset_of!(RaddleRecorder, communicator) - 24usize];
    [
        "Offset of field: RaddleRecorder::claim",
    ][::core::mem::offset_of!(RaddleRecorder, claim) - 32usize];
    [
        "Offset of field: RaddleRecorder::restore",
    ][::core::mem::offset_of!(RaddleRecorder, restore) - 40usize];
    [
        "Offset of field: RaddleRecorder::persist",
    ][::core::mem::offset_of!(RaddleRecorder, persist) - 48usize];
    [
        "Offset of field: RaddleRecorder::send",
    ][::core::mem::offset_of!(RaddleRecorder, send) - 56usize];
    [
        "Offset of field: RaddleRecorder::receive",
    ][::core::mem::offset_of!(RaddleRecorder, receive) - 64usize];
    [
        "Offset of field: RaddleRecorder::exchange",
    ][::core::mem::offset_of!(RaddleRecorder, exchange) - 72usize];
    [
        "Offset of field: RaddleRecorder::collective",
    ][::core::mem::offset_of!(RaddleRecorder, collective) - 80usize];
    [
        "Offset of field: RaddleRecorder::neighbours",
    ][::core::mem::offset_of!(RaddleRecorder, neighbours) - 88usize];
    [
        "Offset of field: RaddleRecorder::start",
    ][::core::mem::offset_of!(RaddleRecorder, start) - 96usize];
    [
        "Offset of field: RaddleRecorder::complete",
    ][::core::mem::offset_of!(RaddleRecorder, complete) - 104usize];
    [
        "Offset of field: RaddleRecorder::rename",
    ][::core::mem::offset_of!(RaddleRecorder, rename) - 112usize];
    [
        "Offset of field: RaddleRecorder::cancel",
    ][::core::mem::offset_of!(RaddleRecorder, cancel) - 120usize];
    [
        "Offset of field: RaddleRecorder::release",
    ][::core::mem::offset_of!(RaddleRecorder, release) - 128usize];
    [
        "Offset of field: RaddleRecorder::pass",
    ][::core::mem::offset_of!(RaddleRecorder, pass) - 136usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleOutgoing {
    pub bytes: u64,
    pub to: u32,
    pub context: u32,
    pub tag: i32,
    pub synchronous: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleOutgoing"][::core::mem::size_of::<RaddleOutgoing>() - 24usize];
    ["Alignment of RaddleOutgoing"][::core::mem::align_of::<RaddleOutgoing>() - 8usize];
    [
        "Offset of field: RaddleOutgoing::bytes",
    ][::core::mem::offset_of!(RaddleOutgoing, bytes) - 0usize];
    [
        "Offset of field: RaddleOutgoing::to",
    ][::core::mem::offset_of!(RaddleOutgoing, to) - 8usize];
    [
        "Offset of field: RaddleOutgoing::context",
    ][::core::mem::offset_of!(RaddleOutgoing, context) - 12usize];
    [
        "Offset of field: RaddleOutgoing::tag",
    ][::core::mem::offset_of!(RaddleOutgoing, tag) - 16usize];
    [
        "Offset of field: RaddleOutgoing::synchronous",
    ][::core::mem::offset_of!(RaddleOutgoing, synchronous) - 20usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleEnvelope {
    pub bytes: u64,
    pub context: u32,
    pub source: u32,
    pub tag: i32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleEnvelope"][::core::mem::size_of::<RaddleEnvelope>() - 24usize];
    ["Alignment of RaddleEnvelope"][::core::mem::align_of::<RaddleEnvelope>() - 8usize];
    [
        "Offset of field: RaddleEnvelope::bytes",
    ][::core::mem::offset_of!(RaddleEnvelope, bytes) - 0usize];
    [
        "Offset of field: RaddleEnvelope::context",
    ][::core::mem::offset_of!(RaddleEnvelope, context) - 8usize];
    [
        "Offset of field: RaddleEnvelope::source",
    ][::core::mem::offset_of!(RaddleEnvelope, source) - 12usize];
    [
        "Offset of field: RaddleEnvelope::tag",
    ][::core::mem::offset_of!(RaddleEnvelope, tag) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleWanted {
    pub context: u32,
    pub source: u32,
    pub tag: i32,
    pub any_source: u8,
    pub any_tag: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleWanted"][::core::mem::size_of::<RaddleWanted>() - 16usize];
    ["Alignment of RaddleWanted"][::core::mem::align_of::<RaddleWanted>() - 4usize];
    [
        "Offset of field: RaddleWanted::context",
    ][::core::mem::offset_of!(RaddleWanted, context) - 0usize];
    [
        "Offset of field: RaddleWanted::source",
    ][::core::mem::offset_of!(RaddleWanted, source) - 4usize];
    [
        "Offset of field: RaddleWanted::tag",
    ][::core::mem::offset_of!(RaddleWanted, tag) - 8usize];
    [
        "Offset of field: RaddleWanted::any_source",
    ][::core::mem::offset_of!(RaddleWanted, any_source) - 12usize];
    [
        "Offset of field: RaddleWanted::any_tag",
    ][::core::mem::offset_of!(RaddleWanted, any_tag) - 13usize];
};
pub const RADDLE_COPIED: RaddleWay = 1;
pub const RADDLE_BY_REFERENCE: RaddleWay = 2;
pub const RADDLE_WITHOUT_ROOM: RaddleWay = 4;
pub const RADDLE_SCARCE: RaddleWay = 8;
pub type RaddleWay = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleCounts {
    pub sent: u64,
    pub received: u64,
    pub waiting: u64,
    pub parcels: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleCounts"][::core::mem::size_of::<RaddleCounts>() - 32usize];
    ["Alignment of RaddleCounts"][::core::mem::align_of::<RaddleCounts>() - 8usize];
    [
        "Offset of field: RaddleCounts::sent",
    ][::core::mem::offset_of!(RaddleCounts, sent) - 0usize];
    [
        "Offset of field: RaddleCounts::received",
    ][::core::mem::offset_of!(RaddleCounts, received) - 8usize];
    [
        "Offset of field: RaddleCounts::waiting",
    ][::core::mem::offset_of!(RaddleCounts, waiting) - 16usize];
    [
        "Offset of field: RaddleCounts::parcels",
    ][::core::mem::offset_of!(RaddleCounts, parcels) - 24usize];
};
pub const RADDLE_PLAIN_NOW: RaddleDecision = 1;
pub const RADDLE_SETTLED: RaddleDecision = 2;
pub type RaddleDecision = ::core::ffi::c_uint;
pub const RADDLE_FORCED: RaddleOpened = 1;
pub const RADDLE_HANDS_ON: RaddleOpened = 2;
pub type RaddleOpened = ::core::ffi::c_uint;
pub const RADDLE_SETTINGS: RaddlePlainState = 0;
pub const RADDLE_THREADS: RaddlePlainState = 1;
pub const RADDLE_SPAWNED: RaddlePlainState = 2;
pub const RADDLE_LIBRARY_UNKNOWN: RaddlePlainState = 3;
pub type RaddlePlainState = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleMessages {
    pub ability: unsafe extern "C" fn(keys: ::core::ffi::c_int) -> u64,
    pub node: unsafe extern "C" fn() -> u64,
    pub stay_plain: unsafe extern "C" fn(why: ::core::ffi::c_int),
    pub open: unsafe extern "C" fn(
            rank: ::core::ffi::c_int,
            size: ::core::ffi::c_int,
            nodes: *const u64,
        ) -> ::core::ffi::c_int,
    pub longest: unsafe extern "C" fn() -> usize,
    pub send: unsafe extern "C" fn(
            message: *const RaddleOutgoing,
            fill: unsafe extern "C" fn(
                    from: *const ::core::ffi::c_void,
                    room: *mut ::core::ffi::c_void,
                ),
            from: *const ::core::ffi::c_void,
            key: *mut u32,
        ) -> ::core::ffi::c_int,
    pub receive: unsafe extern "C" fn(
            wanted: *const RaddleWanted,
            capacity: u64,
            receive: u64,
            ticket: *mut u64,
        ) -> ::core::ffi::c_int,
    pub probe: unsafe extern "C" fn(
            wanted: *const RaddleWanted,
            found: *mut RaddleEnvelope,
            claim: *mut u64,
        ) -> ::core::ffi::c_int,
    pub receive_claimed: unsafe extern "C" fn(claim: u64, capacity: u64, receive: u64),
    pub cancel: unsafe extern "C" fn(ticket: u64) -> ::core::ffi::c_int,
    pub flush: unsafe extern "C" fn(),
    pub parcel: unsafe extern "C" fn(
            from: ::core::ffi::c_int,
            bytes: *const ::core::ffi::c_void,
            length: usize,
        ) -> ::core::ffi::c_int,
    pub sent: unsafe extern "C" fn(slot: u32),
    pub begin_trial: unsafe extern "C" fn(context: u32),
    pub collective: unsafe extern "C" fn(context: u32) -> ::core::ffi::c_int,
    pub vote: unsafe extern "C" fn(
            context: u32,
            plain: *const RaddleCounts,
            words: *mut [i64; 6usize],
        ),
    pub decide: unsafe extern "C" fn(
            context: u32,
            words: *const [i64; 6usize],
        ) -> ::core::ffi::c_int,
    pub secret: unsafe extern "C" fn(
            secret: *mut [::core::ffi::c_uchar; 20usize],
        ) -> ::core::ffi::c_int,
    pub begin_rails: unsafe extern "C" fn(secret: *const [::core::ffi::c_uchar; 20usize]),
    pub offer: unsafe extern "C" fn(
            message: *const RaddleOutgoing,
            start: *const ::core::ffi::c_void,
            offer: u64,
        ) -> ::core::ffi::c_int,
    pub offered_came: unsafe extern "C" fn(source: u32, key: u32),
    pub step_rails: unsafe extern "C" fn() -> ::core::ffi::c_int,
    pub open_offers: unsafe extern "C" fn() -> usize,
    pub close_rails: unsafe extern "C" fn(),
    pub looked: unsafe extern "C" fn(looks: u64),
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleMessages"][::core::mem::size_of::<RaddleMessages>() - 200usize];
    ["Alignment of RaddleMessages"][::core::mem::align_of::<RaddleMessages>() - 8usize];
    [
        "Offset of field: RaddleMessages::ability",
    ][::core::mem::offset_of!(RaddleMessages, ability) - 0usize];
    [
        "Offset of field: RaddleMessages::node",
    ][::core::mem::offset_of!(RaddleMessages, node) - 8usize];
    [
        "Offset of field: RaddleMessages::stay_plain",
    ][::core::mem::offset_of!(RaddleMessages, stay_plain) - 16usize];
    [
        "Offset of field: RaddleMessages::open",
    ][::core::mem::offset_of!(RaddleMessages, open) - 24usize];
    [
        "Offset of field: RaddleMessages::longest",
    ][::core::mem::offset_of!(RaddleMessages, longest) - 32usize];
    [
        "Offset of field: RaddleMessages::send",
    ][::core::mem::offset_of!(RaddleMessages, send) - 40usize];
    [
        "Offset of field: RaddleMessages::receive",
    ][::core::mem::offset_of!(RaddleMessages, receive) - 48usize];
    [
        "Offset of field: RaddleMessages::probe",
    ][::core::mem::offset_of!(RaddleMessages, probe) - 56usize];
    [
        "Offset of field: RaddleMessages::receive_claimed",
    ][::core::mem::offset_of!(RaddleMessages, receive_claimed) - 64usize];
    [
        "Offset of field: RaddleMessages::cancel",
    ][::core::mem::offset_of!(RaddleMessages, cancel) - 72usize];
    [
        "Offset of field: RaddleMessages::flush",
    ][::core::mem::offset_of!(RaddleMessages, flush) - 80usize];
    [
        "Offset of field: RaddleMessages::parcel",
    ][::core::mem::offset_of!(RaddleMessages, parcel) - 88usize];
    [
        "Offset of field: RaddleMessages::sent",
    ][::core::mem::offset_of!(RaddleMessages, sent) - 96usize];
    [
        "Offset of field: RaddleMessages::begin_trial",
    ][::core::mem::offset_of!(RaddleMessages, begin_trial) - 104usize];
    [
        "Offset of field: RaddleMessages::collective",
    ][::core::mem::offset_of!(RaddleMessages, collective) - 112usize];
    [
        "Offset of field: RaddleMessages::vote",
    ][::core::mem::offset_of!(RaddleMessages, vote) - 120usize];
    [
        "Offset of field: RaddleMessages::decide",
    ][::core::mem::offset_of!(RaddleMessages, decide) - 128usize];
    [
        "Offset of field: RaddleMessages::secret",
    ][::core::mem::offset_of!(RaddleMessages, secret) - 136usize];
    [
        "Offset of field: RaddleMessages::begin_rails",
    ][::core::mem::offset_of!(RaddleMessages, begin_rails) - 144usize];
    [
        "Offset of field: RaddleMessages::offer",
    ][::core::mem::offset_of!(RaddleMessages, offer) - 152usize];
    [
        "Offset of field: RaddleMessages::offered_came",
    ][::core::mem::offset_of!(RaddleMessages, offered_came) - 160usize];
    [
        "Offset of field: RaddleMessages::step_rails",
    ][::core::mem::offset_of!(RaddleMessages, step_rails) - 168usize];
    [
        "Offset of field: RaddleMessages::open_offers",
    ][::core::mem::offset_of!(RaddleMessages, open_offers) - 176usize];
    [
        "Offset of field: RaddleMessages::close_rails",
    ][::core::mem::offset_of!(RaddleMessages, close_rails) - 184usize];
    [
        "Offset of field: RaddleMessages::looked",
    ][::core::mem::offset_of!(RaddleMessages, looked) - 192usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleChannel {
    pub send: unsafe extern "C" fn(
            to: u32,
            bytes: *const ::core::ffi::c_void,
            length: usize,
            slot: u32,
        ),
    pub deliver: unsafe extern "C" fn(
            receive: u64,
            message: *const RaddleEnvelope,
            bytes: *const ::core::ffi::c_void,
            length: usize,
        ),
    pub fetch: unsafe extern "C" fn(receive: u64, message: *const RaddleEnvelope, key: u32),
    pub fetch_aside: unsafe extern "C" fn(receive: u64, message: *const RaddleEnvelope, aside: u64),
    pub set_aside: unsafe extern "C" fn(aside: u64, message: *const RaddleEnvelope, key: u32),
    pub land: unsafe extern "C" fn(
            receive: u64,
            message: *const RaddleEnvelope,
        ) -> *mut ::core::ffi::c_void,
    pub landed: unsafe extern "C" fn(receive: u64),
    pub fetch_offered: unsafe extern "C" fn(receive: u64, message: *const RaddleEnvelope, key: u32),
    pub send_offered: unsafe extern "C" fn(offer: u64, key: u32),
    pub offer_sent: unsafe extern "C" fn(offer: u64),
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleChannel"][::core::mem::size_of::<RaddleChannel>() - 80usize];
    ["Alignment of RaddleChannel"][::core::mem::align_of::<RaddleChannel>() - 8usize];
    [
        "Offset of field: RaddleChannel::send",
    ][::core::mem::offset_of!(RaddleChannel, send) - 0usize];
    [
        "Offset of field: RaddleChannel::deliver",
    ][::core::mem::offset_of!(RaddleChannel, deliver) - 8usize];
    [
        "Offset of field: RaddleChannel::fetch",
    ][::core::mem::offset_of!(RaddleChannel, fetch) - 16usize];
    [
        "Offset of field: RaddleChannel::fetch_aside",
    ][::core::mem::offset_of!(RaddleChannel, fetch_aside) - 24usize];
    [
        "Offset of field: RaddleChannel::set_aside",
    ][::core::mem::offset_of!(RaddleChannel, set_aside) - 32usize];
    [
        "Offset of field: RaddleChannel::land",
    ][::core::mem::offset_of!(RaddleChannel, land) - 40usize];
    [
        "Offset of field: RaddleChannel::landed",
    ][::core::mem::offset_of!(RaddleChannel, landed) - 48usize];
    [
        "Offset of field: RaddleChannel::fetch_offered",
    ][::core::mem::offset_of!(RaddleChannel, fetch_offered) - 56usize];
    [
        "Offset of field: RaddleChannel::send_offered",
    ][::core::mem::offset_of!(RaddleChannel, send_offered) - 64usize];
    [
        "Offset of field: RaddleChannel::offer_sent",
    ][::core::mem::offset_of!(RaddleChannel, offer_sent) - 72usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleEntry {
    pub symbol: *const ::core::ffi::c_char,
    pub offload: RaddleFunction,
    pub matching: RaddleFunction,
    pub record: RaddleFunction,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleEntry"][::core::mem::size_of::<RaddleEntry>() - 32usize];
    ["Alignment of RaddleEntry"][::core::mem::align_of::<RaddleEntry>() - 8usize];
    [
        "Offset of field: RaddleEntry::symbol",
    ][::core::mem::offset_of!(RaddleEntry, symbol) - 0usize];
    [
        "Offset of field: RaddleEntry::offload",
    ][::core::mem::offset_of!(RaddleEntry, offload) - 8usize];
    [
        "Offset of field: RaddleEntry::matching",
    ][::core::mem::offset_of!(RaddleEntry, matching) - 16usize];
    [
        "Offset of field: RaddleEntry::record",
    ][::core::mem::offset_of!(RaddleEntry, record) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleCore {
    pub process: *const RaddleProcess,
    pub collectives: *const RaddleCollectives,
    pub recorder: *const RaddleRecorder,
    pub messages: *const RaddleMessages,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleCore"][::core::mem::size_of::<RaddleCore>() - 32usize];
    ["Alignment of RaddleCore"][::core::mem::align_of::<RaddleCore>() - 8usize];
    [
        "Offset of field: RaddleCore::process",
    ][::core::mem::offset_of!(RaddleCore, process) - 0usize];
    [
        "Offset of field: RaddleCore::collectives",
    ][::core::mem::offset_of!(RaddleCore, collectives) - 8usize];
    [
        "Offset of field: RaddleCore::recorder",
    ][::core::mem::offset_of!(RaddleCore, recorder) - 16usize];
    [
        "Offset of field: RaddleCore::messages",
    ][::core::mem::offset_of!(RaddleCore, messages) - 24usize];
};
pub const RADDLE_OPEN_MPI: RaddleLibrary = 1;
pub const RADDLE_MPICH: RaddleLibrary = 2;
pub type RaddleLibrary = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct RaddleShim {
    pub abi: u32,
    pub library: u32,
    pub version: [::core::ffi::c_int; 3usize],
    pub entries: *const RaddleEntry,
    pub entry_count: usize,
    pub plain: RaddlePlain,
    pub matched: unsafe extern "C" fn(
            status: *const ::core::ffi::c_void,
            matched: *mut RaddleMatched,
        ),
    pub status_bytes: usize,
    pub channel: *const RaddleChannel,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of RaddleShim"][::core::mem::size_of::<RaddleShim>() - 176usize];
    ["Alignment of RaddleShim"][::core::mem::align_of::<RaddleShim>() - 8usize];
    [
        "Offset of field: RaddleShim::abi",
    ][::core::mem::offset_of!(RaddleShim, abi) - 0usize];
    [
        "Offset of field: RaddleShim::library",
    ][::core::mem::offset_of!(RaddleShim, library) - 4usize];
    [
        "Offset of field: RaddleShim::version",
    ][::core::mem::offset_of!(RaddleShim, version) - 8usize];
    [
        "Offset of field: RaddleShim::entries",
    ][::core::mem::offset_of!(RaddleShim, entries) - 24usize];
    [
        "Offset of field: RaddleShim::entry_count",
    ][::core::mem::offset_of!(RaddleShim, entry_count) - 32usize];
    [
        "Offset of field: RaddleShim::plain",
    ][::core::mem::offset_of!(RaddleShim, plain) - 40usize];
    [
        "Offset of field: RaddleShim::matched",
    ][::core::mem::offset_of!(RaddleShim, matched) - 152usize];
    [
        "Offset of field: RaddleShim::status_bytes",
    ][::core::mem::offset_of!(RaddleShim, status_bytes) - 160usize];
    [
        "Offset of field: RaddleShim::channel",
    ][::core::mem::offset_of!(RaddleShim, channel) - 168usize];
};
pub type RaddleAttach = ::core::option::Option<
    unsafe extern "C" fn(
        core: *const RaddleCore,
        abi: u32,
        why: *mut ::core::ffi::c_char,
        why_bytes: usize,
    ) -> *const RaddleShim,
>;
