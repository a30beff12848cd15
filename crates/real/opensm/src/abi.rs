//! What C calls, as `shim/raddle.h` declares it. A panic stays on this side: the engine then leaves the subnet to OpenSM.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
};

use crate::{
    config::{Config, VARIABLE},
    engine::{BLOCK_MLIDS, Engine, Host, Members, Sweep},
};

#[repr(C)]
#[derive(Clone, Copy)]
struct RaddleNode {
    guid: u64,
    is_switch: u32,
    switch_index: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RaddleEndport {
    guid: u64,
    node: u32,
    lid: u16,
    lmc: u8,
    port: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RaddleLink {
    a: u32,
    b: u32,
    port_a: u8,
    port_b: u8,
    reserved: [u8; 2],
}

/// A sweep's findings as the shim hands them over.
#[repr(C)]
struct RaddleSubnet {
    nodes: *const RaddleNode,
    node_count: usize,
    endports: *const RaddleEndport,
    endport_count: usize,
    links: *const RaddleLink,
    link_count: usize,
    mlids: u32,
    resend: u32,
    stale: *const u32,
    stale_count: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RaddleGroup {
    mgid: [u8; 16],
    mlid: u16,
    fixed: u8,
    reserved: u8,
    member_count: u32,
    members: *const u64,
}

/// Functions of the shim.
#[repr(C)]
#[derive(Clone, Copy)]
struct RaddleHost {
    context: *mut c_void,
    log: unsafe extern "C" fn(*mut c_void, c_int, *const c_char),
    send: unsafe extern "C" fn(*mut c_void, u32, u16, u8, *const u16),
    mask: unsafe extern "C" fn(*mut c_void, u32, u16, u8),
    move_group: unsafe extern "C" fn(*mut c_void, *const u8, u16),
}

impl RaddleHost {
    fn log(&self, level: c_int, message: &str) {
        let line = CString::new(message.replace(['\n', '\0'], " ")).unwrap_or_default();
        // SAFETY: the shim's function with its own context and a string that lives until it returns.
        unsafe { (self.log)(self.context, level, line.as_ptr()) }
    }
}

impl Host for RaddleHost {
    fn error(&self, message: &str) {
        self.log(0, message);
    }

    fn info(&self, message: &str) {
        self.log(1, message);
    }

    fn send(&self, switch: u32, block: u16, position: u8, masks: &[u16; BLOCK_MLIDS]) {
        // SAFETY: the shim reads 32 masks and keeps none.
        unsafe { (self.send)(self.context, switch, block, position, masks.as_ptr()) }
    }

    fn mask(&self, switch: u32, mlid: u16, port: u8) {
        // SAFETY: plain numbers, which the shim checks.
        unsafe { (self.mask)(self.context, switch, mlid, port) }
    }

    fn move_group(&self, mgid: &[u8; 16], mlid: u16) {
        // SAFETY: the shim reads 16 bytes and keeps none.
        unsafe { (self.move_group)(self.context, mgid.as_ptr(), mlid) }
    }
}

struct Plugin {
    host: RaddleHost,
    engine: Option<Engine>,
}

/// A slice of C's, empty where the pointer is null.
///
/// # Safety
/// `data` is null or points to `count` values that live while the slice does.
unsafe fn view<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if data.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: see above.
    unsafe { slice::from_raw_parts(data, count) }
}

/// Runs `work` on the engine. Without engine, and when it panics, `otherwise`.
///
/// # Safety
/// `plugin` is null or comes from [`raddle_plugin_new`] and is used by one thread at a time (OpenSM's lock).
unsafe fn with<T>(
    plugin: *mut c_void,
    otherwise: T,
    work: impl FnOnce(&mut Engine, &RaddleHost) -> T,
) -> T {
    // SAFETY: see above.
    let Some(plugin) = (unsafe { plugin.cast::<Plugin>().as_mut() }) else {
        return otherwise;
    };
    let host = plugin.host;
    let Some(mut engine) = plugin.engine.take() else {
        return otherwise;
    };
    let done = catch_unwind(AssertUnwindSafe(|| {
        let result = work(&mut engine, &host);
        (engine, result)
    }));
    match done {
        Ok((engine, result)) => {
            plugin.engine = Some(engine);
            result
        }
        Err(reason) => {
            let what = reason
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| reason.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            host.error(&format!(
                "internal error, OpenSM's own routing is used from the next sweep on: {what}"
            ));
            otherwise
        }
    }
}

/// Makes the engine; null if its configuration is wrong, which stands in OpenSM's log.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_new(host: *const RaddleHost, options: *const c_char) -> *mut c_void {
    // SAFETY: the shim's own structure.
    let Some(&host) = (unsafe { host.as_ref() }) else {
        return std::ptr::null_mut();
    };
    let options = match options.is_null() {
        true => String::new(),
        // SAFETY: a C string of OpenSM's options.
        false => unsafe { CStr::from_ptr(options) }
            .to_string_lossy()
            .into_owned(),
    };
    let made = catch_unwind(|| Config::load(std::env::var(VARIABLE).ok().as_deref(), &options));
    match made {
        Ok(Ok(config)) => {
            host.info(&format!("loaded, {config:?}"));
            let engine = Some(Engine::new(config));
            Box::into_raw(Box::new(Plugin { host, engine })).cast()
        }
        Ok(Err(error)) => {
            host.error(&error.to_string());
            std::ptr::null_mut()
        }
        Err(_) => std::ptr::null_mut(),
    }
}

/// Frees the engine.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_free(plugin: *mut c_void) {
    if !plugin.is_null() {
        // SAFETY: made by `raddle_plugin_new`, freed once.
        let plugin = unsafe { Box::from_raw(plugin.cast::<Plugin>()) };
        // A destructor that panics must not reach C.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(plugin)));
    }
}

/// Takes a sweep; 1: the subnet is ours.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_subnet(plugin: *mut c_void, subnet: *const RaddleSubnet) -> c_int {
    // SAFETY: the shim's own structure and arrays, which live until we return.
    let Some(subnet) = (unsafe { subnet.as_ref() }) else {
        return 0;
    };
    // SAFETY: as above.
    let (nodes, endports, links, stale) = unsafe {
        (
            view(subnet.nodes, subnet.node_count),
            view(subnet.endports, subnet.endport_count),
            view(subnet.links, subnet.link_count),
            view(subnet.stale, subnet.stale_count),
        )
    };
    let run = |engine: &mut Engine, host: &RaddleHost| {
        let mut sweep = Sweep {
            mlids: subnet.mlids,
            resend: subnet.resend != 0,
            stale: stale.iter().copied().collect(),
            ..Sweep::default()
        };
        for node in nodes {
            sweep.found.nodes.insert(node.guid, node.is_switch != 0);
            if node.is_switch != 0 {
                sweep.switch_index.insert(node.guid, node.switch_index);
            }
        }
        let guid = |index: u32| nodes.get(index as usize).map(|node| node.guid);
        for link in links {
            if let (Some(a), Some(b)) = (guid(link.a), guid(link.b)) {
                let (a, b) = ((a, link.port_a), (b, link.port_b));
                sweep.found.cables.insert(a.min(b), a.max(b));
            }
        }
        for port in endports {
            if let Some(node) = guid(port.node) {
                let endport = (node, port.guid, port.port, port.lid, port.lmc);
                sweep.endports.push(endport);
            }
        }
        c_int::from(engine.sweep(&sweep, host))
    };
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, 0, run) }
}

/// 1: unicast tables are ours.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_unicast(plugin: *mut c_void) -> c_int {
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, 0, |engine, _| c_int::from(engine.routes_unicast())) }
}

/// 1: MLIDs of new groups are ours.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_shares(plugin: *mut c_void) -> c_int {
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, 0, |engine, _| c_int::from(engine.shares())) }
}

/// Fills a switch's linear forwarding table; LIDs that we do not know stay as they are.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_lft(plugin: *mut c_void, switch: u32, lft: *mut u8, entries: usize) {
    if lft.is_null() {
        return;
    }
    // SAFETY: a table of OpenSM's, which has `entries` bytes.
    let lft = unsafe { slice::from_raw_parts_mut(lft, entries) };
    let fill = |engine: &mut Engine, _: &RaddleHost| {
        for (entry, port) in lft.iter_mut().zip(engine.table(switch)) {
            *entry = *port;
        }
    };
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, (), fill) }
}

/// The MLID of a new group, 0 where OpenSM chooses.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_new_group(plugin: *mut c_void, mgid: *const u8, member: u64) -> u16 {
    // SAFETY: 16 bytes of the shim's.
    let Some(mgid) = (unsafe { gid(mgid) }) else {
        return 0;
    };
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe {
        with(plugin, 0, |engine, host| {
            engine.new_group(mgid, member, host).unwrap_or(0)
        })
    }
}

/// Brings groups up to date and sends what changed.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_sync(
    plugin: *mut c_void,
    groups: *const RaddleGroup,
    count: usize,
    all: c_int,
) {
    // SAFETY: the shim's own arrays, which live until we return.
    let groups = unsafe { view(groups, count) };
    let run = |engine: &mut Engine, host: &RaddleHost| {
        let list: Vec<Members> = groups
            .iter()
            .map(|group| Members {
                mgid: group.mgid,
                mlid: group.mlid,
                fixed: group.fixed != 0,
                // SAFETY: as above.
                ports: unsafe { view(group.members, group.member_count as usize) }.to_vec(),
            })
            .collect();
        engine.sync(&list, all != 0, host);
    };
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, (), run) }
}

/// A group has gone; 1: the engine knew it.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_gone(plugin: *mut c_void, mgid: *const u8) -> c_int {
    // SAFETY: 16 bytes of the shim's.
    let Some(mgid) = (unsafe { gid(mgid) }) else {
        return 0;
    };
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe {
        with(plugin, 0, |engine, host| {
            c_int::from(engine.gone(mgid, host))
        })
    }
}

/// Sends what changed.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_flush(plugin: *mut c_void) {
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, (), |engine, host| engine.flush(host)) }
}

/// How many changes of a group's MLID have not been told yet.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_moved(plugin: *mut c_void) -> u64 {
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, 0, |engine, _| engine.moved()) }
}

/// Tells them in one line of OpenSM's log.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_tell_moves(plugin: *mut c_void, asked: u32) {
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, (), |engine, host| engine.tell_moves(asked, host)) }
}

/// Reports the ports of an MLID.
#[unsafe(no_mangle)]
extern "C" fn raddle_plugin_masks(plugin: *mut c_void, mlid: u16) {
    // SAFETY: the plugin of the shim, under OpenSM's lock.
    unsafe { with(plugin, (), |engine, host| engine.masks(mlid, host)) }
}

/// # Safety
/// `bytes` is null or points to 16 bytes.
unsafe fn gid(bytes: *const u8) -> Option<[u8; 16]> {
    // SAFETY: see above; arrays of bytes have no alignment.
    unsafe { bytes.cast::<[u8; 16]>().as_ref() }.copied()
}

/// The symbol that OpenSM looks for, with functions of the shim.
#[cfg(all(opensm_headers, not(test)))]
mod export {
    use std::ffi::{c_char, c_int, c_void};

    #[repr(C)]
    struct EventPlugin {
        version: *const c_char,
        create: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
        delete: unsafe extern "C" fn(*mut c_void),
        report: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void),
    }

    // SAFETY: constant; OpenSM only reads it.
    unsafe impl Sync for EventPlugin {}

    unsafe extern "C" {
        static raddle_osm_version: c_char;
        fn raddle_osm_create(osm: *mut c_void) -> *mut c_void;
        fn raddle_osm_delete(plugin: *mut c_void);
        fn raddle_osm_report(plugin: *mut c_void, event: c_int, data: *mut c_void);
    }

    #[unsafe(no_mangle)]
    static osm_event_plugin: EventPlugin = EventPlugin {
        version: &raw const raddle_osm_version,
        create: raddle_osm_create,
        delete: raddle_osm_delete,
        report: raddle_osm_report,
    };
}
