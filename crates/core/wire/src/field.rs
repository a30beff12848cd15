//! Fields of headers: one table per header makes its view, its builder, its description and its documentation.

use core::net::Ipv4Addr;

/// Order of a field's bytes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Most significant byte first: network order.
    Big,
    /// Least significant byte first: the order of the hosts whose layout `compat` is.
    Little,
}

/// A field of a header, as `docs/reference/wire.md` lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name of the getter and of the builder's field.
    pub name: &'static str,
    /// Byte of the header in which the field begins.
    pub byte: usize,
    /// Bit of that byte in which it begins, 0 = most significant.
    pub bit: usize,
    /// Width in bits.
    pub bits: usize,
    /// Byte order.
    pub order: Order,
    /// What it means, in the words of its documentation.
    pub meaning: &'static str,
}

/// A value that fits into a field of at most 64 bits.
pub(crate) trait FieldValue: Copy {
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! unsigned {
    ($($type:ty),+) => {$(
        impl FieldValue for $type {
            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )+};
}
unsigned!(u8, u16, u32, u64);

impl FieldValue for bool {
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
}

impl FieldValue for Ipv4Addr {
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(u32::from(self))
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        Self::from(bits as u32)
    }
}

/// All ones in the lowest `bits` bits.
#[inline]
pub(crate) const fn mask(bits: usize) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// Reads a field. All arguments but `bytes` are constants at every call, so that this becomes a load, a swap and a shift.
#[inline(always)]
pub(crate) fn get<const N: usize>(
    bytes: &[u8; N],
    byte: usize,
    bit: usize,
    bits: usize,
    order: Order,
) -> u64 {
    let last = byte + (bit + bits - 1) / 8;
    let mut word = 0;
    let mut index = 0;
    while index <= last - byte {
        let at = match order {
            Order::Big => byte + index,
            Order::Little => last - index,
        };
        word = word << 8 | u64::from(bytes[at]);
        index += 1;
    }
    (word >> (7 - (bit + bits - 1) % 8)) & mask(bits)
}

/// Writes a field; other bits of its bytes stay.
#[inline(always)]
pub(crate) fn set<const N: usize>(
    bytes: &mut [u8; N],
    byte: usize,
    bit: usize,
    bits: usize,
    order: Order,
    value: u64,
) {
    let last = byte + (bit + bits - 1) / 8;
    let shift = 7 - (bit + bits - 1) % 8;
    let ones = mask(bits) << shift;
    let word = (value & mask(bits)) << shift;
    let mut index = 0;
    while index <= last - byte {
        let at = match order {
            Order::Big => last - index,
            Order::Little => byte + index,
        };
        let (keep, new) = (!(ones >> (8 * index)) as u8, (word >> (8 * index)) as u8);
        bytes[at] = bytes[at] & keep | new;
        index += 1;
    }
}

/// Defines a header of fixed size from its table: `name: type = order byte:bit/bits`.
///
/// Makes the struct of values with `write`, the view that borrows a packet with a getter per field, and `FIELDS`.
macro_rules! header {
    (
        $(#[$attribute:meta])*
        $name:ident, $view:ident, $layer:ident, $size:literal {
            $($(#[doc = $meaning:literal])+ $field:ident: $type:ty = $order:ident $byte:literal:$bit:literal/$bits:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $field: $type,)+
        }

        /// All bits 0.
        impl Default for $name {
            fn default() -> Self {
                $view(&[0; $size]).values()
            }
        }

        impl $name {
            /// Bytes of this header.
            pub const SIZE: usize = $size;
            /// The layer that errors name.
            pub const LAYER: $crate::Layer = $crate::Layer::$layer;
            /// All fields in the order of the wire; together they are every bit of the header.
            pub const FIELDS: &'static [$crate::Field] = &[$($crate::Field {
                name: stringify!($field),
                byte: $byte,
                bit: $bit,
                bits: $bits,
                order: $crate::Order::$order,
                meaning: concat!($($meaning),+),
            },)+];

            /// Views the header that begins at byte `at` of `packet`.
            ///
            /// # Errors
            /// When fewer than [`Self::SIZE`] bytes are left.
            #[inline]
            pub fn view(packet: &[u8], at: usize) -> Result<$view<'_>, $crate::WireError> {
                match packet.get(at..).and_then(|rest| rest.first_chunk()) {
                    Some(bytes) => Ok($view(bytes)),
                    None => Err($crate::WireError::short(
                        Self::LAYER, "header", at, Self::SIZE, packet.len(),
                    )),
                }
            }

            /// Writes the header at byte `at` of `packet`.
            ///
            /// # Errors
            /// When it does not fit there, or a value is wider than its field; nothing is written then.
            #[inline]
            pub fn write(&self, packet: &mut [u8], at: usize) -> Result<(), $crate::WireError> {
                $(
                    let found = $crate::field::FieldValue::to_bits(self.$field);
                    if found > $crate::field::mask($bits) {
                        return Err($crate::WireError {
                            layer: Self::LAYER,
                            field: stringify!($field),
                            offset: at + $byte,
                            problem: $crate::Problem::Range { found, bits: $bits },
                        });
                    }
                )+
                let length = packet.len();
                let Some(bytes) = packet.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<$size>())
                else {
                    return Err($crate::WireError::short(
                        Self::LAYER, "header", at, Self::SIZE, length,
                    ));
                };
                $(
                    $crate::field::set(
                        bytes, $byte, $bit, $bits, $crate::Order::$order,
                        $crate::field::FieldValue::to_bits(self.$field),
                    );
                )+
                Ok(())
            }
        }

        #[doc = concat!("View of a [`", stringify!($name), "`] in a packet.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $view<'a>(pub(crate) &'a [u8; $size]);

        impl<'a> $view<'a> {
            $(
                $(#[doc = $meaning])+
                #[inline]
                #[must_use]
                pub fn $field(self) -> $type {
                    $crate::field::FieldValue::from_bits(
                        $crate::field::get(self.0, $byte, $bit, $bits, $crate::Order::$order),
                    )
                }
            )+

            /// All values, to change some and write them back.
            #[inline]
            #[must_use]
            pub fn values(self) -> $name {
                $name { $($field: self.$field(),)+ }
            }

            /// The header's bytes.
            #[inline]
            #[must_use]
            pub const fn bytes(self) -> &'a [u8; $size] {
                self.0
            }
        }
    };
}
pub(crate) use header;
