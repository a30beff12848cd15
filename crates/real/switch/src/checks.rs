//! What a switch's file says that only the machine can tell to be right: its interfaces, its addresses, its sockets.

use std::{
    fs, io,
    net::{IpAddr, TcpListener},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use raddle_text::{InputError, Location, Problem};

use crate::config::{Backend, Config, PortConfig, value_error};
use raddle_host::{
    interfaces::{self, Assigned, Properties},
    secret::{self, Secret},
};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The switch would not work: it does not start.
    Wrong,
    /// Something is not there yet: the switch starts, and uses it when it comes.
    Absent,
    /// The switch works, perhaps otherwise than somebody thought.
    Odd,
}

/// What the machine has against a file.
#[derive(Debug, Clone)]
pub struct Finding {
    /// How much it weighs.
    pub weight: Weight,
    /// Place, reason and cure.
    pub error: InputError,
}

/// What a switch asks its machine before it starts.
pub trait Machine {
    /// An interface of that name, or with that as another name.
    fn interface(&self, name: &str) -> Option<Properties>;

    /// All IPv4 addresses that the kernel has.
    fn addresses(&self) -> Vec<Assigned>;

    /// Why no socket can have an address, if it cannot.
    fn refuses(&self, address: IpAddr) -> Option<io::Error>;

    /// Whether something stands at a path that is no socket.
    fn is_other_than_socket(&self, path: &Path) -> bool;

    /// Whether this program was built with a back-end.
    fn has(&self, backend: Backend) -> bool;
}

/// This machine, as this process's network namespace shows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn interface(&self, name: &str) -> Option<Properties> {
        interfaces::properties(name)
    }

    fn addresses(&self) -> Vec<Assigned> {
        interfaces::addresses().unwrap_or_default()
    }

    fn refuses(&self, address: IpAddr) -> Option<io::Error> {
        TcpListener::bind((address, 0)).err()
    }

    fn is_other_than_socket(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|about| !about.file_type().is_socket())
    }

    fn has(&self, backend: Backend) -> bool {
        backend == Backend::Sockets || cfg!(raddle_xdp)
    }
}

/// Reads the secret that a switch's file names.
///
/// # Errors
/// The file does not exist, cannot be read, holds no secret, or others can read or change it. The error names the line of the
/// switch's file that names it.
pub fn read_secret(config: &Config) -> Result<Secret, InputError> {
    secret::read(&config.secret_file).map_err(|error| {
        let problem = Problem::Refused(error.reason());
        let error_at = InputError::at(&config.places.secret_file, problem);
        match error.cure() {
            Some(cure) => error_at.with_hint(cure),
            None => error_at,
        }
    })
}

/// Everything that the machine has against a file, in the order of weight.
#[must_use]
pub fn check(config: &Config, machine: &dyn Machine) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |weight, error| findings.push(Finding { weight, error });
    check_sockets(config, machine, &mut find);
    let addresses = machine.addresses();
    if let Some(own) = addresses.iter().find(|one| one.address == config.address) {
        let message = format!(
            "the kernel has {} too, on {}: both would answer",
            own.address, own.interface
        );
        let error = value_error(&config.places.address, "address", message);
        let hint = "give the switch a free address of the hosts' network, which no interface has";
        find(Weight::Wrong, error.with_hint(hint));
    }
    let known: Vec<Option<Properties>> = config
        .ports
        .iter()
        .map(|port| machine.interface(&port.interface))
        .collect();
    for (index, port) in config.ports.iter().enumerate() {
        let Some(about) = &known[index] else {
            let message = format!("there is no interface `{}`", port.interface);
            let error = at_port(port, message).with_hint("`ip link` lists those that there are");
            find(Weight::Absent, error);
            continue;
        };
        let same = known[..index].iter().flatten();
        if same.into_iter().any(|other| other.index == about.index) {
            let message = format!(
                "`{}` is another name of `{}`, which is a port already",
                port.interface, about.name
            );
            find(Weight::Wrong, at_port(port, message));
            continue;
        }
        if let Some((weight, error)) = check_interface(port, about) {
            find(weight, error);
            if weight == Weight::Wrong {
                continue;
            }
        }
        if let Some(own) = addresses.iter().find(|one| one.interface == about.name) {
            let message = format!(
                "`{}` has the address {}: the kernel answers there, too",
                port.interface, own.address
            );
            let hint = format!("ip addr flush dev {}", about.name);
            find(Weight::Odd, at_port(port, message).with_hint(hint));
        }
    }
    findings.sort_by_key(|finding| finding.weight);
    findings
}

/// What is wrong with an interface that is there.
fn check_interface(port: &PortConfig, about: &Properties) -> Option<(Weight, InputError)> {
    let name = &port.interface;
    if about.is_loopback {
        let message = format!("`{name}` is the loopback: no host is behind it");
        return Some((Weight::Wrong, at_port(port, message)));
    }
    if !about.is_ethernet {
        let message = format!("`{name}` carries no Ethernet frames");
        return Some((Weight::Wrong, at_port(port, message)));
    }
    if let Some(master) = &about.master {
        let message = format!("`{name}` belongs to `{master}`, which forwards its frames, too");
        let hint = format!("ip link set {} nomaster", about.name);
        return Some((Weight::Wrong, at_port(port, message).with_hint(hint)));
    }
    if !about.is_up {
        let message = format!("`{name}` is not switched on");
        let hint = format!("ip link set {} up", about.name);
        return Some((Weight::Absent, at_port(port, message).with_hint(hint)));
    }
    if !about.has_carrier {
        let message =
            format!("`{name}` has no carrier: nothing is connected, or the other end is off");
        return Some((Weight::Odd, at_port(port, message)));
    }
    None
}

/// What is wrong with the switch's own sockets and back-end.
fn check_sockets(
    config: &Config,
    machine: &dyn Machine,
    find: &mut impl FnMut(Weight, InputError),
) {
    let mut wrong = |place: &Location, key: &str, message: String, hint: &str| {
        let error = value_error(place, key, message);
        find(Weight::Wrong, error.with_hint(hint));
    };
    let places = &config.places;
    if let Some(address) = config.metrics
        && let Some(cause) = machine.refuses(address.ip())
    {
        let message = format!("no socket can have {}: {cause}", address.ip());
        let hint = "write an address of this machine, like \"127.0.0.1:9464\", or \"0.0.0.0:9464\" for all";
        wrong(&places.metrics, "metrics", message, hint);
    }
    if machine.is_other_than_socket(&config.status) {
        let message = format!("{} exists and is not a socket", config.status.display());
        let hint = "write another path, or remove what is there";
        wrong(&places.status, "status", message, hint);
    }
    if !machine.has(config.backend) {
        let name = config.backend.name();
        let message = format!("`{name}`: this raddle-switch was built without it");
        let hint = "install clang and libbpf-dev and build it again, or write \"sockets\"";
        wrong(&places.backend, "backend", message, hint);
    }
}

fn at_port(port: &PortConfig, message: String) -> InputError {
    value_error(&port.at, "interface", message)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, net::Ipv4Addr};

    use raddle_text::MemoryFiles;

    use super::*;

    struct Imagined {
        interfaces: BTreeMap<&'static str, Properties>,
        addresses: Vec<Assigned>,
    }

    impl Machine for Imagined {
        fn interface(&self, name: &str) -> Option<Properties> {
            self.interfaces.get(name).cloned()
        }

        fn addresses(&self) -> Vec<Assigned> {
            self.addresses.clone()
        }

        fn refuses(&self, address: IpAddr) -> Option<io::Error> {
            let own = address.is_loopback();
            (!own).then(|| io::ErrorKind::AddrNotAvailable.into())
        }

        fn is_other_than_socket(&self, path: &Path) -> bool {
            path == Path::new("/etc/hosts")
        }

        fn has(&self, backend: Backend) -> bool {
            backend == Backend::Sockets
        }
    }

    /// An interface that is a good port.
    fn good(name: &str, index: u32) -> Properties {
        Properties {
            index,
            name: name.to_owned(),
            is_up: true,
            has_carrier: true,
            is_loopback: false,
            is_ethernet: true,
            master: None,
        }
    }

    fn machine() -> Imagined {
        let mut interfaces = BTreeMap::from([("p1", good("p1", 2)), ("p2", good("p2", 3))]);
        interfaces.insert("other", good("p1", 2));
        let lo = Properties {
            is_loopback: true,
            is_ethernet: false,
            ..good("lo", 1)
        };
        interfaces.insert("lo", lo);
        let assigned = |interface: &str, address: [u8; 4]| Assigned {
            interface: interface.to_owned(),
            address: Ipv4Addr::from(address),
            mask: Ipv4Addr::new(255, 0, 0, 0),
            is_up: true,
        };
        let addresses = vec![
            assigned("lo", [127, 0, 0, 1]),
            assigned("e9", [10, 0, 0, 9]),
        ];
        Imagined {
            interfaces,
            addresses,
        }
    }

    fn config(change: (&str, &str)) -> Config {
        let text = r#"
schema = 1
name = "tor1"
address = "10.0.0.253"
tier = 1
secret_file = "site.secret"
metrics = "127.0.0.1:9464"

[[ports]]
interface = "p1"

[[ports]]
interface = "p2"
"#
        .replace(change.0, change.1);
        let files = MemoryFiles::default().with("tor1.toml", text);
        Config::load("tor1.toml", &files).unwrap()
    }

    fn found(machine: &Imagined, change: (&str, &str)) -> Vec<(Weight, String)> {
        check(&config(change), machine)
            .into_iter()
            .map(|finding| (finding.weight, finding.error.to_string()))
            .collect()
    }

    #[test]
    fn a_good_file_is_fine() {
        assert_eq!(found(&machine(), ("", "")), []);
    }

    #[test]
    fn each_thing_that_the_machine_knows_better_is_said_with_its_line() {
        use Weight::{Absent, Wrong};
        let cases: [(&str, &str, Weight, &[&str]); 8] = [
            (
                "\"p2\"",
                "\"p7\"",
                Absent,
                &["tor1.toml:13:", "no interface `p7`", "ip link"],
            ),
            ("\"p2\"", "\"lo\"", Wrong, &["tor1.toml:13:", "loopback"]),
            (
                "\"p2\"",
                "\"other\"",
                Wrong,
                &["tor1.toml:13:", "another name of `p1`"],
            ),
            (
                "10.0.0.253",
                "10.0.0.9",
                Wrong,
                &["tor1.toml:4:", "on e9", "free address"],
            ),
            (
                "127.0.0.1:",
                "192.0.2.1:",
                Wrong,
                &["tor1.toml:7:", "192.0.2.1"],
            ),
            (
                "tier = 1",
                "tier = 1\nstatus = \"/etc/hosts\"",
                Wrong,
                &["tor1.toml:6:", "/etc/hosts", "not a socket"],
            ),
            (
                "tier = 1",
                "tier = 1\nbackend = \"xdp\"",
                Wrong,
                &["tor1.toml:6:", "`xdp`", "built without it", "clang"],
            ),
            (
                "\"p1\"",
                "\"p0\"",
                Absent,
                &["tor1.toml:10:", "no interface `p0`"],
            ),
        ];
        for (old, new, weight, words) in cases {
            let [(found, message)] = &found(&machine(), (old, new))[..] else {
                panic!("{new}: not one finding");
            };
            assert_eq!(*found, weight, "{message}");
            for word in words {
                assert!(
                    message.contains(word),
                    "{new}: {word} is not in:\n{message}"
                );
            }
        }
    }

    #[test]
    fn the_state_of_interfaces_weighs_as_much_as_it_hinders() {
        type Case = (fn(&mut Properties), Weight, &'static str);
        let cases: [Case; 4] = [
            (|p| p.is_ethernet = false, Weight::Wrong, "no Ethernet"),
            (
                |p| p.master = Some("br0".to_owned()),
                Weight::Wrong,
                "`br0`",
            ),
            (|p| p.is_up = false, Weight::Absent, "ip link set p2 up"),
            (|p| p.has_carrier = false, Weight::Odd, "no carrier"),
        ];
        for (change, weight, word) in cases {
            let mut machine = machine();
            change(machine.interfaces.get_mut("p2").unwrap());
            let [(found, message)] = &found(&machine, ("", ""))[..] else {
                panic!("{word}: not one finding");
            };
            assert_eq!(*found, weight, "{message}");
            assert!(message.contains(word), "{message}");
        }
        let mut machine = machine();
        machine.addresses[1].interface = "p2".to_owned();
        let [(Weight::Odd, message)] = &found(&machine, ("", ""))[..] else {
            panic!("not one finding");
        };
        assert!(message.contains("ip addr flush dev p2"), "{message}");
    }
}
