//! The file of a switch: what it may say, and what is wrong with it. `docs/reference/switch.md` has the table.

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use raddle_offload::switch::Quotas;
use raddle_text::{
    Files, InputError, Location, Node, Problem, at_most, between, read,
    schema::check_version,
    tree::{self, Value},
};
use raddle_units::{Bytes, Span};
use raddle_wire::MacAddress;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{faults::FaultTable, socket::MAX_PORTS};

/// Longest name of an interface (`IFNAMSIZ` without its end).
const INTERFACE_NAME: usize = 15;
/// Longest path of a socket (`sun_path` without its end, unix(7)).
const SOCKET_PATH: usize = 107;

/// The file as it is written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchFile {
    #[expect(dead_code, reason = "`check_version` looks at the text")]
    schema: u32,
    name: String,
    address: String,
    mac: Option<String>,
    /// 1: joins hosts; above: joins switches of the tier below.
    #[schemars(range(min = 1, max = 8))]
    tier: u8,
    backend: Option<Backend>,
    forward: Option<Forwarding>,
    attach: Option<Attach>,
    /// Which protocols of in-network Allreduce it computes. Default: native.
    #[schemars(length(min = 1, max = 2))]
    protocols: Option<Vec<Protocol>>,
    secret_file: String,
    /// How long to look for frames before sleeping. Default: 200 us.
    #[schemars(transform = at_most("1s"))]
    spin: Option<Span>,
    /// Silence after which a station is forgotten. Default: 300 s.
    #[schemars(transform = between("1s", "86400s"))]
    ageing: Option<Span>,
    /// How long to wait for groups to end after SIGTERM. Default: 30 s.
    #[schemars(transform = at_most("86400s"))]
    drain: Option<Span>,
    metrics: Option<String>,
    status: Option<String>,
    log: Option<LogFormat>,
    log_level: Option<LogLevel>,
    #[serde(default)]
    quotas: QuotaTable,
    faults: Option<FaultTable>,
    #[serde(default)]
    ports: Vec<PortTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PortTable {
    interface: String,
    #[serde(default)]
    uplink: bool,
}

/// What groups may use of a switch, where the file says so; the core's defaults hold elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuotaTable {
    groups: Option<u32>,
    memory: Option<Bytes>,
    job_groups: Option<u32>,
    job_slots: Option<u32>,
    job_memory: Option<Bytes>,
    /// Longest time that a group lives without a sign of life: it fits into the clock when that begins anew. Default: 60 s.
    #[schemars(transform = between("1ms", "86400s"))]
    lease: Option<Span>,
}

impl QuotaTable {
    fn quotas(self) -> Quotas {
        let default = Quotas::default();
        Quotas {
            groups: self.groups.unwrap_or(default.groups),
            bytes: self.memory.map_or(default.bytes, |memory| memory.0),
            job_groups: self.job_groups.unwrap_or(default.job_groups),
            job_slots: self.job_slots.unwrap_or(default.job_slots),
            job_bytes: self.job_memory.map_or(default.job_bytes, |memory| memory.0),
            lease: self.lease.unwrap_or(default.lease),
        }
    }
}

/// What moves frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A packet socket.
    #[default]
    Sockets,
    /// The same, with a program in the kernel that takes steady rounds away from it.
    Xdp,
}

impl Backend {
    /// Its name in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sockets => "sockets",
            Self::Xdp => "xdp",
        }
    }
}

/// What forwards ordinary frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Forwarding {
    /// The switch's own bridge.
    #[default]
    Core,
    /// The program in the kernel, between stations that the bridge knows.
    Kernel,
}

/// Whose packets a switch computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Ours.
    Native,
    /// That of Li et al. (2022), over RoCEv2.
    Published,
}

/// Where in the kernel the packet program sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Attach {
    /// In traffic control if one of the ports is a virtual cable (veth), else in the driver.
    #[default]
    Auto,
    /// XDP in the driver of the card.
    Native,
    /// XDP behind it.
    Generic,
    /// In traffic control (tcx, Linux 6.6), behind the driver too.
    Tc,
}

/// How logs look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What ends the switch.
    Error,
    /// What somebody should look at.
    Warn,
    /// Ports and groups that come and go.
    #[default]
    Info,
    /// More.
    Debug,
}

/// A port of a switch.
#[derive(Debug, Clone)]
pub struct PortConfig {
    /// Its interface.
    pub interface: String,
    /// Whether it leads to switches of the next tier.
    pub uplink: bool,
    /// Where the file names the interface.
    pub at: Location,
}

/// Where the file says what only the machine can tell to be right.
#[derive(Debug, Clone)]
pub struct Places {
    /// The switch's address.
    pub address: Location,
    /// The file with the secret.
    pub secret_file: Location,
    /// Where metrics are served.
    pub metrics: Location,
    /// The status socket.
    pub status: Location,
    /// What moves frames.
    pub backend: Location,
}

/// Everything that a switch is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its name in logs and metrics.
    pub name: String,
    /// Its own address.
    pub address: Ipv4Addr,
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its tier: 1 for the switches that hosts are connected to.
    pub tier: u8,
    /// What moves frames.
    pub backend: Backend,
    /// What forwards ordinary frames.
    pub forward: Forwarding,
    /// Where the packet program sits.
    pub attach: Attach,
    /// Whether it computes by the published protocol too.
    pub published: bool,
    /// Whether it computes by our protocol.
    pub native: bool,
    /// The file with the site's secret.
    pub secret_file: String,
    /// How long to look for frames before sleeping.
    pub spin: Span,
    /// Silence after which a station is forgotten.
    pub ageing: Span,
    /// How long to wait for groups to end after SIGTERM.
    pub drain: Span,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The socket that gives the status.
    pub status: PathBuf,
    /// How logs look.
    pub log: LogFormat,
    /// What is logged.
    pub log_level: LogLevel,
    /// What groups and jobs may use.
    pub quotas: Quotas,
    /// What frames suffer on purpose.
    pub faults: Option<FaultTable>,
    /// Its ports.
    pub ports: Vec<PortConfig>,
    /// Where the file says some of it.
    pub places: Places,
}

impl Config {
    /// Reads the file of a switch.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, has unknown or missing keys, a value out of range, or settings that exclude each
    /// other.
    pub fn load(name: &str, files: &dyn Files) -> Result<Self, InputError> {
        let unreadable = |reason| {
            let problem = Problem::Unreadable {
                file: name.to_owned(),
                reason,
            };
            InputError::plain(problem)
        };
        let text = files.read_text(name).map_err(unreadable)?;
        let root = tree::load(&text, name, files)?;
        let file: SwitchFile = read(&root)?;
        check(file, &root, name, files)
    }

    /// The hardware address of a switch whose file gives none: locally administered, and as different as the addresses are.
    #[must_use]
    pub const fn mac_of(address: Ipv4Addr) -> MacAddress {
        let [a, b, c, d] = address.octets();
        MacAddress([0x02, 0x52, a, b, c, d])
    }

    /// The socket that gives the status of a switch of this name, unless its file says otherwise.
    #[must_use]
    pub fn status_socket(name: &str) -> PathBuf {
        format!("/run/raddle/switch-{name}.sock").into()
    }
}

fn check(
    file: SwitchFile,
    root: &Node,
    own_name: &str,
    files: &dyn Files,
) -> Result<Config, InputError> {
    let wrong = |key: &str, message: String| value_error(root.locate(&[key]), key, message);
    check_version(root)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if file.name.is_empty() || file.name.len() > 63 || !file.name.chars().all(plain) {
        let message = "a name has 1 to 63 letters, digits, `-`, `_` or `.`".to_owned();
        return Err(wrong("name", message));
    }
    let address = check_address(&file.address, root)?;
    let mac = match &file.mac {
        None => Config::mac_of(address),
        Some(text) => parse_mac(text).ok_or_else(|| {
            wrong(
                "mac",
                format!("`{text}` is not the hardware address of a station"),
            )
            .with_hint("write six bytes in hexadecimal, like \"02:00:00:00:00:01\", or remove it")
        })?,
    };
    let metrics = file
        .metrics
        .as_ref()
        .map(|text| {
            let parsed = text.parse().ok().filter(|to: &SocketAddr| to.port() > 0);
            parsed.ok_or_else(|| {
                wrong("metrics", format!("`{text}` is not an address with a port"))
                    .with_hint("write one like \"127.0.0.1:9464\"")
            })
        })
        .transpose()?;
    check_backend(&file, root)?;
    let status = file.status.as_ref().map_or_else(
        || Config::status_socket(&file.name),
        |status| files.beside(own_name, status).into(),
    );
    if status.file_name().is_none() || status.as_os_str().as_bytes().contains(&0) {
        return Err(wrong("status", "this is not the path of a file".to_owned()));
    }
    if status.as_os_str().len() > SOCKET_PATH {
        let message = format!("the path of a socket has at most {SOCKET_PATH} bytes");
        return Err(wrong("status", message));
    }
    let speaks = |protocol| match &file.protocols {
        Some(protocols) => protocols.contains(&protocol),
        None => protocol == Protocol::Native,
    };
    let place = |key: &str| root.locate(&[key]).clone();
    let places = Places {
        address: place("address"),
        secret_file: place("secret_file"),
        metrics: place("metrics"),
        status: place("status"),
        backend: place("backend"),
    };
    Ok(Config {
        address,
        mac,
        tier: file.tier,
        backend: file.backend.unwrap_or_default(),
        forward: file.forward.unwrap_or_default(),
        attach: file.attach.unwrap_or_default(),
        published: speaks(Protocol::Published),
        native: speaks(Protocol::Native),
        secret_file: files.beside(own_name, &file.secret_file),
        spin: file.spin.unwrap_or(Span::from_us(200)),
        ageing: file.ageing.unwrap_or(Span::from_ms(300_000)),
        drain: file.drain.unwrap_or(Span::from_ms(30_000)),
        metrics,
        status,
        log: file.log.unwrap_or_default(),
        log_level: file.log_level.unwrap_or_default(),
        quotas: file.quotas.quotas(),
        faults: file.faults,
        ports: check_ports(file.ports, root)?,
        places,
        name: file.name,
    })
}

fn check_address(text: &str, root: &Node) -> Result<Ipv4Addr, InputError> {
    let wrong = |message: String| value_error(root.locate(&["address"]), "address", message);
    let address: Ipv4Addr = text.parse().map_err(|_| {
        wrong(format!("`{text}` is not an IPv4 address"))
            .with_hint("write the switch's own address without a prefix, like \"10.0.0.253\"")
    })?;
    if address.is_multicast() || address.is_broadcast() || address.octets()[0] == 0 {
        return Err(wrong(format!("{address} cannot be a host's address")));
    }
    if address.is_loopback() {
        let message = format!("{address} is a loopback address: it never leaves a host");
        return Err(
            wrong(message).with_hint("give the switch a free address of the hosts' network")
        );
    }
    Ok(address)
}

fn check_backend(file: &SwitchFile, root: &Node) -> Result<(), InputError> {
    let wrong =
        |key: &str, message: &str| value_error(root.locate(&[key]), key, message.to_owned());
    let has_program = file.backend == Some(Backend::Xdp);
    if file.forward == Some(Forwarding::Kernel) && (!has_program || file.faults.is_some()) {
        let message = "the kernel forwards with backend = \"xdp\", and knows no [faults]";
        return Err(wrong("forward", message).with_hint("remove `forward`, or write \"core\""));
    }
    let published = file
        .protocols
        .as_ref()
        .is_some_and(|protocols| protocols.contains(&Protocol::Published));
    if published && file.tier > 2 {
        let message = "the published protocol has TORs (tier 1) and SPINEs (tier 2) only";
        return Err(wrong("protocols", message).with_hint("remove \"published\""));
    }
    if published && file.forward == Some(Forwarding::Kernel) {
        let message = "what the kernel forwards, the switch of the published protocol does not see";
        return Err(wrong("protocols", message).with_hint("remove `forward`, or \"published\""));
    }
    if file.attach.is_some() && !has_program {
        let message = "only a packet program is attached: backend = \"xdp\"";
        return Err(wrong("attach", message).with_hint("remove `attach`"));
    }
    Ok(())
}

fn check_ports(ports: Vec<PortTable>, root: &Node) -> Result<Vec<PortConfig>, InputError> {
    if ports.is_empty() {
        let problem = Problem::Missing {
            key: "ports".to_owned(),
            within: String::new(),
        };
        return Err(InputError::at(root.locate(&[]), problem)
            .with_hint("write a table for each, like [[ports]] with interface = \"p1\""));
    }
    let at = |index: usize| {
        let items = root.find(&["ports"]).map(|node| &node.value);
        match items {
            Some(Value::Array(items)) => items
                .get(index)
                .map_or(&root.at, |item| item.locate(&["interface"])),
            _ => &root.at,
        }
    };
    if ports.len() > MAX_PORTS {
        let message = format!("more than {MAX_PORTS} ports");
        return Err(value_error(at(MAX_PORTS), "ports", message));
    }
    for (index, port) in ports.iter().enumerate() {
        let name = &port.interface;
        let wrong = |message: String| value_error(at(index), "interface", message);
        let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == ':';
        if name.is_empty() || name.len() > INTERFACE_NAME || name.contains(bad) {
            return Err(wrong("this is not the name of an interface".to_owned())
                .with_hint("`ip link` lists them"));
        }
        if ports[..index].iter().any(|other| other.interface == *name) {
            return Err(wrong(format!("`{name}` is listed twice")));
        }
    }
    let places: Vec<Location> = (0..ports.len()).map(|index| at(index).clone()).collect();
    let convert = |(port, at): (PortTable, Location)| PortConfig {
        interface: port.interface,
        uplink: port.uplink,
        at,
    };
    Ok(ports.into_iter().zip(places).map(convert).collect())
}

fn parse_mac(text: &str) -> Option<MacAddress> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    let mac = MacAddress(bytes);
    let station = parts.next().is_none() && !mac.is_multicast() && bytes != [0; 6];
    station.then_some(mac)
}

/// A value of the file that is refused.
pub(crate) fn value_error(at: &Location, key: &str, message: String) -> InputError {
    InputError::at(
        at,
        Problem::Value {
            key: format!("`{key}`: "),
            message,
        },
    )
}

#[cfg(test)]
mod tests;
