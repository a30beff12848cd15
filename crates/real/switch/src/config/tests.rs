use raddle_text::MemoryFiles;

use super::*;

const GOOD: &str = r#"
schema = 1
name = "tor1"
address = "10.0.0.253"
tier = 1
secret_file = "site.secret"

[[ports]]
interface = "p1"

[[ports]]
interface = "up"
uplink = true
"#;

fn load(text: &str) -> Result<Config, String> {
    let files = MemoryFiles::default().with("etc/tor1.toml", text);
    Config::load("etc/tor1.toml", &files).map_err(|error| error.to_string())
}

#[test]
fn a_short_file_is_enough() {
    let config = load(GOOD).unwrap();
    assert_eq!(config.mac.to_string(), "02:52:0a:00:00:fd");
    assert_eq!(config.secret_file, "etc/site.secret");
    assert_eq!(config.status, PathBuf::from("/run/raddle/switch-tor1.sock"));
    assert_eq!(config.backend, Backend::Sockets);
    assert_eq!(config.ports.len(), 2);
    assert!(!config.ports[0].uplink && config.ports[1].uplink);
}

#[test]
fn errors_say_where_what_and_how_to_cure_it() {
    // (what to replace, by what, words of the message)
    let cases: [(&str, &str, &[&str]); 23] = [
        (
            "schema = 1",
            "schema = 2",
            &["tor1.toml:2:", "version 2", "schema = 1"],
        ),
        (
            "tier = 1",
            "teir = 1",
            &["unknown key `teir`", "did you mean `tier`"],
        ),
        ("tier = 1", "", &["`tier` is missing"]),
        ("tier = 1", "tier = 0", &["tor1.toml:5:8", "from 1 to 8"]),
        (
            "\"10.0.0.253\"",
            "\"10.0.0\"",
            &["tor1.toml:4:", "not an IPv4 address", "10.0.0.253"],
        ),
        (
            "\"10.0.0.253\"",
            "\"224.0.0.1\"",
            &["cannot be a host's address"],
        ),
        (
            "\"10.0.0.253\"",
            "\"127.0.0.1\"",
            &["tor1.toml:4:", "loopback", "hosts' network"],
        ),
        (
            "[[ports]]\ninterface = \"p1\"",
            "[quotas]\nlease = \"60d\"\n[[ports]]\ninterface = \"p1\"",
            &["tor1.toml:9:", "`lease`"],
        ),
        (
            "tier = 1",
            "tier = 1\nmetrics = \"127.0.0.1:0\"",
            &["tor1.toml:6:", "`metrics`", "127.0.0.1:9464"],
        ),
        (
            "tier = 1",
            "tier = 1\nstatus = \"..\"",
            &["tor1.toml:6:", "`status`", "not the path"],
        ),
        (
            "tier = 1",
            "tier = 1\nstatus = \"\\u0000switch\"",
            &["tor1.toml:6:", "`status`", "not the path"],
        ),
        (
            "tier = 1",
            concat!(
                "tier = 1\nstatus = \"/run/a-folder-whose-name-is-so-long-that-no-socket-can-be-made-in-it/",
                "another-folder-whose-name-is-nearly-as-long/switch.sock\""
            ),
            &["tor1.toml:6:", "`status`", "107 bytes"],
        ),
        (
            "tier = 1",
            "tier = 1\nmac = \"01:00:00:00:00:00\"",
            &["tor1.toml:6:", "hardware address"],
        ),
        (
            "tier = 1",
            "tier = 1\nspin = 50",
            &["tor1.toml:6:", "`spin`", "unit"],
        ),
        ("tier = 1", "tier = 1\nspin = \"2s\"", &["at most 1s"]),
        (
            "tier = 1",
            "tier = 1\nbackend = \"socket\"",
            &["unknown `backend` `socket`", "`sockets`"],
        ),
        (
            "tier = 1",
            "tier = 1\nforward = \"kernel\"",
            &["tor1.toml:6:", "`forward`", "backend = \"xdp\""],
        ),
        (
            "tier = 1",
            "tier = 1\nattach = \"native\"",
            &["tor1.toml:6:", "`attach`", "backend = \"xdp\""],
        ),
        (
            "tier = 1",
            "tier = 1\nmetrics = \"9464\"",
            &["`metrics`", "127.0.0.1:9464"],
        ),
        (
            "[[ports]]\ninterface = \"p1\"",
            "[faults]\nloss = 1.5\n[[ports]]\ninterface = \"p1\"",
            &["tor1.toml:9:8", "`loss`", "0 to 1"],
        ),
        ("\"up\"", "\"p1\"", &["tor1.toml:12:", "is listed twice"]),
        (
            "\"up\"",
            "\"a-name-that-is-too-long\"",
            &["tor1.toml:12:", "ip link"],
        ),
        ("\"tor1\"", "\"tor 1\"", &["tor1.toml:3:", "letters"]),
    ];
    for (old, new, words) in cases {
        let text = GOOD.replace(old, new);
        assert_ne!(text, GOOD);
        let message = load(&text).expect_err(new);
        for word in words {
            assert!(
                message.contains(word),
                "{new}: {word} is not in:\n{message}"
            );
        }
    }
    let ports = GOOD.find("[[ports]]").unwrap();
    let message = load(&GOOD[..ports]).unwrap_err();
    assert!(message.contains("`ports` is missing"), "{message}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let message = Config::load("none.toml", &MemoryFiles::default()).unwrap_err();
    assert_eq!(
        message.to_string(),
        "cannot read none.toml: there is no such file"
    );
}
