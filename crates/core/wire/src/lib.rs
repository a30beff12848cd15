//! Bytes and headers: Ethernet, VLAN, IPv4, UDP, the InfiniBand transport headers of RoCEv2 with their invariant CRC,
//! and the messages of the in-network Allreduce in two layouts.
//!
//! Views borrow the packet and check it once, when they are made; getters then cost a load. Nothing is allocated,
//! nothing panics on any input, and there is no state. Lengths are checked where a packet is parsed; checksums only
//! where a `verify_` method is called, because the hardware may have them in hand. Every error names layer, field, byte
//! and value. `docs/reference/wire.md` shows every header as a table, made from the same declarations as the code.
//!
//! - [`Datagram`], [`RocePacket`]: from a frame to the payload; [`Path`]: the way back.
//! - [`compat`]: the 22-byte MPI header and the 56-byte control payload of the published system.
//! - [`native`]: our own protocol, with a key per job.
//! - [`rails`]: packets of messages over several rails, with the same key.
//! - [`Edit`]: changes in place, as a switch makes them.
//! - [`DataType`], [`Operation`]: what is reduced and how, with the codes of the wire.
//! - [`classify`]: what a frame is to a switch.
//!
//! ```
//! use raddle_wire::{classify, Class, MacAddress, Path};
//! let (a, b) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
//! let path = Path::between(a, b, [10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 50_000);
//! let mut frame = [0; 100];
//! let length = path.write_udp(&mut frame, 53, &[b"a name?"]).unwrap();
//! assert!(matches!(classify(&frame[..length]), Ok(Class::Ordinary)));
//! let cut = classify(&frame[..30]).unwrap_err();
//! assert_eq!(cut.to_string(), "IPv4: header at byte 14: 20 bytes are needed, 16 are left");
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod data;
mod edit;
mod error;
mod ethernet;
mod field;
mod icrc;
mod ip;
mod packet;
mod roce;

pub mod compat;
pub mod native;
pub mod rails;

pub use data::{DataType, Element, Operation, elements, write_elements};
pub use edit::Edit;
pub use error::{Layer, Problem, WireError};
pub use ethernet::{Ethernet, EthernetView, MacAddress, Vlan, VlanView, ethertype};
pub use field::{Field, Order};
pub use icrc::{ICRC_SIZE, icrc};
pub use ip::{Ipv4, Ipv4View, PORT_ROCE, PROTOCOL_UDP, Udp, UdpView, ipv4_checksum, udp_checksum};
pub use packet::{Datagram, Extension, ExtensionView, Path, RocePacket};
pub use roce::{Aeth, AethView, Bth, BthView, Deth, DethView, ExtensionKind, Opcode, Syndrome};

/// What a frame is to a switch that computes.
#[derive(Debug, Clone, Copy)]
pub enum Class<'a> {
    /// To be forwarded: anything that is not one of the others, congestion notifications and acknowledgements too.
    Ordinary,
    /// A message of the compatible layout.
    Compat(RocePacket<'a>, compat::Message<'a>),
    /// A message of our own protocol in a UDP datagram: to a switch, or to the port of a member, as a query that
    /// passes is.
    Native(Datagram<'a>, native::Unverified<'a>),
    /// A message of our own protocol in a RoCEv2 packet.
    NativeRoce(RocePacket<'a>, native::Unverified<'a>),
}

/// Tells what a frame is.
///
/// Checksums and ICRC are not checked here.
///
/// # Errors
/// When a frame is cut short, or is a message of one of the two layouts with contents that cannot be.
#[inline]
pub fn classify(frame: &[u8]) -> Result<Class<'_>, WireError> {
    let Some(datagram) = Datagram::find(frame)? else {
        return Ok(Class::Ordinary);
    };
    match datagram.udp.destination_port() {
        native::PORT => {
            let at = datagram.payload_at();
            let message = native::Unverified::parse(datagram.bytes(), at)?;
            Ok(Class::Native(datagram, message))
        }
        PORT_ROCE => {
            let packet = RocePacket::parse(datagram)?;
            if let Some(message) = compat::Message::find(&packet)? {
                return Ok(Class::Compat(packet, message));
            }
            let (at, payload) = (packet.payload_at(), packet.payload());
            if matches!(packet.extension, ExtensionView::Deth(_))
                && native::Unverified::is_at(payload, 0)
            {
                let bytes = &datagram.bytes()[..at + payload.len()];
                let message = native::Unverified::parse(bytes, at)?;
                return Ok(Class::NativeRoce(packet, message));
            }
            Ok(Class::Ordinary)
        }
        // A member's port may be anything, and so may what goes there.
        _ => {
            let at = datagram.payload_at();
            if native::Unverified::is_at(datagram.bytes(), at)
                && let Ok(message) = native::Unverified::parse(datagram.bytes(), at)
            {
                return Ok(Class::Native(datagram, message));
            }
            Ok(Class::Ordinary)
        }
    }
}
