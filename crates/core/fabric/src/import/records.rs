//! The lines of `ibnetdiscover`'s output and of ibsim's net files: one syntax, ibsim's with some additions.
//!
//! ```text
//! vendid=0x2c9
//! switchguid=0x2c90300a1b2c0(2c90300a1b2c0)
//! Switch  36 "S-0002c90300a1b2c0"         # "leaf1" enhanced port 0 lid 3 lmc 0
//! [1]     "H-0002c90300112233"[1](2c90300112234)          # "node1 HCA-1" lid 7 4xHDR
//!
//! Ca      1 "H-0002c90300112233"          # "node1 HCA-1"
//! [1](2c90300112234)      "S-0002c90300a1b2c0"[1]         # lid 7 lmc 0 "leaf1" lid 3 4xHDR
//! ```

use raddle_text::words::shorten;
use raddle_units::{BitRate, many};

use super::{
    Found, ImportFormat,
    speed::{self, Masks},
};
use crate::{
    builders::LONGEST_NODE_NAME,
    error::{FabricError, Place},
};

/// Most characters of a line; longer ones are no topology.
const LONGEST_LINE: usize = 4096;
/// Most characters of a node's id.
const LONGEST_ID: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordKind {
    Switch,
    Ca,
    Router,
}

/// A node and where it stands.
pub(super) struct Record<'a> {
    pub(super) kind: RecordKind,
    pub(super) id: String,
    pub(super) description: Option<&'a str>,
    pub(super) ports: u16,
    pub(super) line: u32,
}

/// One end of a link as one of the two nodes tells it.
pub(super) struct End<'a> {
    /// Index of the record.
    pub(super) record: u32,
    pub(super) port: u16,
    pub(super) peer: String,
    pub(super) peer_port: u16,
    pub(super) peer_description: Option<&'a str>,
    /// `None` where the file does not say.
    pub(super) rate: Option<BitRate>,
    pub(super) line: u32,
}

pub(super) struct Records<'a> {
    pub(super) records: Vec<Record<'a>>,
    pub(super) ends: Vec<End<'a>>,
    pub(super) ignored: Found,
    /// Words like `4xABC` that say nothing to us.
    pub(super) strange_rates: Found,
    pub(super) ibsim: bool,
}

/// Reads all lines.
pub(super) fn read<'a>(
    text: &'a str,
    source: &str,
    format: ImportFormat,
) -> Result<Records<'a>, FabricError> {
    let ibsim = match format {
        ImportFormat::Ibnetdiscover => false,
        ImportFormat::Ibsim => true,
        ImportFormat::Auto => !text.lines().any(is_of_ibnetdiscover),
    };
    let mut reader = Reader {
        source,
        line: 0,
        prefix: String::new(),
        masks: Masks::default(),
        found: Records {
            records: Vec::new(),
            ends: Vec::new(),
            ignored: Found::default(),
            strange_rates: Found::default(),
            ibsim,
        },
        open: false,
    };
    for (line, words) in (1u32..).zip(text.lines()) {
        reader.line = line;
        if words.len() > LONGEST_LINE {
            return Err(reader.error(format!(
                "the line has {} bytes, more than {LONGEST_LINE}: this is not a topology file",
                words.len()
            )));
        }
        reader.read_line(words)?;
    }
    if reader.found.records.is_empty() {
        reader.line = reader.line.max(1);
        return Err(reader.error(
            "there is no `Switch` and no `Ca` line: give the output of ibnetdiscover or a net file of ibsim",
        ));
    }
    Ok(reader.found)
}

/// Lines that `ibnetdiscover` prints and nobody writes by hand.
fn is_of_ibnetdiscover(line: &str) -> bool {
    line.starts_with("# Topology file: generated")
        || line.starts_with("vendid=")
        || line.starts_with("sysimgguid=")
}

struct Reader<'a, 's> {
    source: &'s str,
    line: u32,
    /// ibsim's `module`: stands before ids, with `#`.
    prefix: String,
    /// ibsim's `width`, `speed` and `speedext`.
    masks: Masks,
    found: Records<'a>,
    /// Whether port lines belong to a record.
    open: bool,
}

impl<'a> Reader<'a, '_> {
    fn error(&self, message: impl Into<String>) -> FabricError {
        FabricError::Malformed {
            at: Place {
                source: self.source.to_owned(),
                line: Some(self.line),
            },
            message: message.into(),
        }
    }

    fn read_line(&mut self, line: &'a str) -> Result<(), FabricError> {
        let line = line.trim_end();
        // Comments inside a record do not end it, other lines do.
        if line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with('[') {
            return self.read_port(line);
        }
        if line.starts_with('@') {
            return Err(self.error(
                "port aliases (`@[1] \"name\"`) are not read: name the node and the port at the other end instead",
            ));
        }
        self.open = false;
        let word = line
            .split(|c: char| !c.is_ascii_alphabetic() && c != '-')
            .next()
            .unwrap_or("");
        match word {
            "Switch" => self.read_node(RecordKind::Switch, &line[word.len()..]),
            "Ca" | "Hca" => self.read_node(RecordKind::Ca, &line[word.len()..]),
            "Rt" | "Router" => self.read_node(RecordKind::Router, &line[word.len()..]),
            // GUIDs and vendors are no part of a map; chassis are only headings.
            "vendid" | "devid" | "sysimgguid" | "switchguid" | "caguid" | "rtguid" | "hcaguids"
            | "Chassis" | "Non-Chassis" | "" => self.expect_blank_or_known(word, line),
            "width" | "speed" | "speedext" | "module" | "include" | "do" | "pdebug"
                if self.found.ibsim =>
            {
                self.read_setting(word, line)
            }
            // Warnings of the tools end up in the same file.
            "ibwarn" | "ibpanic" | "src" => {
                self.ignore(line);
                Ok(())
            }
            _ if self.found.ibsim => {
                self.ignore(line);
                Ok(())
            }
            _ => Err(self.error(format!(
                "`{}` is not a line of ibnetdiscover's output: remove it, or give the file as ibnetdiscover printed it",
                shorten(line)
            ))),
        }
    }

    fn expect_blank_or_known(&mut self, word: &str, line: &str) -> Result<(), FabricError> {
        if !word.is_empty() || line.trim().is_empty() {
            return Ok(());
        }
        if self.found.ibsim {
            self.ignore(line);
            return Ok(());
        }
        Err(self.error(format!(
            "`{}` is not a line of ibnetdiscover's output: lines begin with `Switch`, `Ca`, `[port]`, `#` or a word and `=`",
            shorten(line)
        )))
    }

    fn ignore(&mut self, line: &str) {
        let entry = format!("line {}: {}", self.line, shorten(line));
        self.found.ignored.push(|| entry);
    }

    /// `width=3`, `speed=7`, `module "x"` and the like, as ibsim reads them.
    fn read_setting(&mut self, word: &str, line: &str) -> Result<(), FabricError> {
        match word {
            "include" => Err(self.error(
                "`include` is not followed: put the other file's lines here, or save the whole net with ibnetdiscover",
            )),
            "module" => {
                let (name, _) = self.quoted(line, "the module's name")?;
                name.clone_into(&mut self.prefix);
                Ok(())
            }
            "width" | "speed" | "speedext" => {
                let value = line.split_once('=').map_or("", |(_, value)| value.trim());
                let Some(mask) = number(value) else {
                    let message = format!("`{word}` is `{}`: write a number, as `{word}=3`", shorten(value));
                    return Err(self.error(message));
                };
                let target = match word {
                    "width" => &mut self.masks.width,
                    "speed" => &mut self.masks.speed,
                    _ => &mut self.masks.extended,
                };
                *target = Some(mask);
                Ok(())
            }
            _ => {
                self.ignore(line);
                Ok(())
            }
        }
    }

    /// What follows `Switch` or `Ca`: ports, the quoted id, a comment with the description.
    fn read_node(&mut self, kind: RecordKind, rest: &'a str) -> Result<(), FabricError> {
        let rest = rest.trim_start();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Some(ports) = rest[..digits]
            .parse()
            .ok()
            .filter(|ports| (1..=255).contains(ports))
        else {
            let word = shorten(rest.split_whitespace().next().unwrap_or(""));
            return Err(self.error(format!(
                "`{word}` is not a number of ports: write 1 to 255 between the word and the quoted id"
            )));
        };
        let (id, rest) = self.quoted(&rest[digits..], "the node's id")?;
        let id = self.full_id(id)?;
        let record = Record {
            kind,
            id,
            description: description(rest),
            ports,
            line: self.line,
        };
        self.found.records.push(record);
        self.open = true;
        Ok(())
    }

    /// `[1](guid) "id"[2](guid) # ... 4xHDR`
    fn read_port(&mut self, line: &'a str) -> Result<(), FabricError> {
        let Some(record) = self.found.records.last().filter(|_| self.open) else {
            return Err(self.error(
                "a port line without a node above it: it follows a `Switch` or `Ca` line without a gap",
            ));
        };
        let (kind, most) = (record.kind, record.ports);
        let own = (self.found.records.len() - 1) as u32;
        let (port, rest) = self.port_number(line, "the port")?;
        if port > most {
            let message = format!(
                "port {port} is above what the node's line gives: {}",
                many(most, "port")
            );
            return Err(self.error(message));
        }
        let Some(quote) = rest.find('"') else {
            return Err(self
                .error("the quoted id of the node at the other end is missing: `[1] \"id\"[2]`"));
        };
        let between = rest[..quote].replace("ext ", "");
        if let Some(odd) = between
            .split(|c: char| c.is_ascii_hexdigit() || "()[] \t".contains(c))
            .find(|part| !part.is_empty())
        {
            let message = format!(
                "`{}` between the port and the quoted id: only a GUID in parentheses may be there",
                shorten(odd)
            );
            return Err(self.error(message));
        }
        let (peer, rest) = self.quoted(&rest[quote..], "the id of the node at the other end")?;
        let peer = if peer.contains('#') {
            peer.to_owned()
        } else {
            self.full_id(peer)?
        };
        let (peer_port, rest) = if rest.trim_start().starts_with('[') {
            self.port_number(rest.trim_start(), "the port at the other end")?
        } else if self.found.ibsim {
            (1, rest)
        } else {
            return Err(self.error("the port at the other end is missing: `\"id\"[2]`"));
        };
        let rate = self.rate(rest)?;
        self.found.ends.push(End {
            record: own,
            port,
            peer,
            peer_port,
            peer_description: description(rest).filter(|_| kind == RecordKind::Switch),
            rate,
            line: self.line,
        });
        Ok(())
    }

    fn port_number<'t>(&self, text: &'t str, what: &str) -> Result<(u16, &'t str), FabricError> {
        let inside = text.strip_prefix('[').and_then(|text| text.split_once(']'));
        let Some((digits, rest)) = inside else {
            return Err(self.error(format!("{what} has no closing `]`")));
        };
        match digits.trim().parse() {
            Ok(port @ 1..=255) => Ok((port, rest)),
            _ => {
                let word = shorten(digits);
                Err(self.error(format!("{what} is `{word}`: ports are numbered 1 to 255")))
            }
        }
    }

    /// The first quoted text and what follows it.
    fn quoted<'t>(&self, text: &'t str, what: &str) -> Result<(&'t str, &'t str), FabricError> {
        let inside = text
            .split_once('"')
            .and_then(|(_, rest)| rest.split_once('"'));
        match inside {
            Some((id, _)) if id.trim().is_empty() || id.chars().any(char::is_control) => {
                Err(self.error(format!("{what} has characters that cannot be printed")))
            }
            Some((id, rest)) if !id.is_empty() && id.len() <= LONGEST_ID => Ok((id, rest)),
            Some((id, _)) => Err(self.error(format!(
                "{what} has {} bytes: it has 1 to {LONGEST_ID}",
                id.len()
            ))),
            None => Err(self.error(format!("{what} is missing: write it in quotation marks"))),
        }
    }

    fn full_id(&self, id: &str) -> Result<String, FabricError> {
        if self.found.ibsim && id.contains('@') {
            return Err(self.error(format!(
                "`{}` is a port alias, which is not read: name the node and its port",
                shorten(id)
            )));
        }
        if self.prefix.is_empty() {
            return Ok(id.to_owned());
        }
        let id = format!("{}#{id}", self.prefix);
        // A port may be added to it.
        if id.chars().count() + 10 > LONGEST_NODE_NAME as usize {
            return Err(self.error(format!(
                "the node's id has more than {LONGEST_NODE_NAME} characters with the name of the file's part before it"
            )));
        }
        Ok(id)
    }

    /// The rate: a word like `4xHDR` outside quotes, else ibsim's options `w=`, `s=`, `e=`, else what holds for all.
    fn rate(&mut self, rest: &str) -> Result<Option<BitRate>, FabricError> {
        let mut masks = self.masks;
        let mut own = masks.any();
        for part in rest.split('"').step_by(2) {
            for word in part.split_whitespace() {
                if let Some(rate) = speed::read(word) {
                    return Ok(Some(rate));
                }
                if speed::is_width_and_speed(word) {
                    let entry = format!("line {}: {}", self.line, shorten(word));
                    self.found.strange_rates.push(|| entry);
                    return Ok(None);
                }
                let Some((option @ ("w" | "s" | "e"), value)) = word.split_once('=') else {
                    continue;
                };
                let Some(mask) = number(value) else {
                    let message = format!("`{option}` is `{}`: write a number", shorten(value));
                    return Err(self.error(message));
                };
                own = true;
                match option {
                    "w" => masks.width = Some(mask),
                    "s" => masks.speed = Some(mask),
                    _ => masks.extended = Some(mask),
                }
            }
        }
        Ok(if own { masks.rate() } else { None })
    }
}

/// What the comment says the node is called.
fn description(rest: &str) -> Option<&str> {
    let comment = rest.split_once('#')?.1.trim_start();
    let name = match comment.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None if comment.starts_with("lid ") => return None,
        None => [" enhanced port ", " base port ", " lid ", " lmc "]
            .iter()
            .filter_map(|end| comment.split_once(end))
            .map(|(name, _)| name)
            .min_by_key(|name| name.len())
            .unwrap_or(comment),
    };
    let name = name.trim();
    (!name.is_empty()).then_some(name)
}

/// A number as C reads it: decimal or with `0x`.
fn number(word: &str) -> Option<u32> {
    let word = word.trim();
    match word.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}
