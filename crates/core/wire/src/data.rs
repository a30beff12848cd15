//! Types and operations of a reduction, and elements in the order of the wire.

/// An element type. Codes 1 to 10 are those of the compatible layout (the datatype ids of Open MPI 4.0); the pairs are
/// our own protocol's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataType {
    /// Signed, 8 bits.
    Int8,
    /// Unsigned, 8 bits.
    Uint8,
    /// Signed, 16 bits.
    Int16,
    /// Unsigned, 16 bits.
    Uint16,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits.
    Uint32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 64 bits.
    Uint64,
    /// IEEE 754 binary32.
    Float,
    /// IEEE 754 binary64.
    Double,
    /// A 16-bit value and a 32-bit index, without a gap: `MPI_SHORT_INT`.
    Int16Index,
    /// A 32-bit value and a 32-bit index: `MPI_2INT`.
    Int32Index,
    /// A 64-bit value and a 32-bit index, without a gap: `MPI_LONG_INT`.
    Int64Index,
    /// A binary32 value and a 32-bit index: `MPI_FLOAT_INT`.
    FloatIndex,
    /// A binary64 value and a 32-bit index, without a gap: `MPI_DOUBLE_INT`.
    DoubleIndex,
}

impl DataType {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 15] = [
        Self::Int8,
        Self::Uint8,
        Self::Int16,
        Self::Uint16,
        Self::Int32,
        Self::Uint32,
        Self::Int64,
        Self::Uint64,
        Self::Float,
        Self::Double,
        Self::Int16Index,
        Self::Int32Index,
        Self::Int64Index,
        Self::FloatIndex,
        Self::DoubleIndex,
    ];

    /// The code on the wire, 1..=10 and 32..=36.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Int8 => 1,
            Self::Uint8 => 2,
            Self::Int16 => 3,
            Self::Uint16 => 4,
            Self::Int32 => 5,
            Self::Uint32 => 6,
            Self::Int64 => 7,
            Self::Uint64 => 8,
            Self::Float => 9,
            Self::Double => 10,
            // Far from the ids of an MPI library, whose 11 and up mean other types.
            Self::Int16Index => 32,
            Self::Int32Index => 33,
            Self::Int64Index => 34,
            Self::FloatIndex => 35,
            Self::DoubleIndex => 36,
        }
    }

    /// The type of a code; `None` for codes of no type.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=10 => Some(Self::ALL[code as usize - 1]),
            32..=36 => Some(Self::ALL[code as usize - 22]),
            _ => None,
        }
    }

    /// Bytes of an element on the wire.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double | Self::Int32Index | Self::FloatIndex => 8,
            Self::Int16Index => 6,
            Self::Int64Index | Self::DoubleIndex => 12,
        }
    }

    /// Whether the compatible layout has this type.
    #[must_use]
    pub const fn is_compat(self) -> bool {
        self.code() <= 10
    }

    /// Whether it is a value with an index, for MINLOC and MAXLOC.
    #[must_use]
    pub const fn is_pair(self) -> bool {
        self.code() >= 32
    }

    /// Whether it is a floating-point number, alone or in a pair.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::Float | Self::Double | Self::FloatIndex | Self::DoubleIndex
        )
    }

    /// Name for messages, as C programs say it, e.g. `MPI_DOUBLE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "MPI_INT8_T",
            Self::Uint8 => "MPI_UINT8_T",
            Self::Int16 => "MPI_INT16_T",
            Self::Uint16 => "MPI_UINT16_T",
            Self::Int32 => "MPI_INT32_T",
            Self::Uint32 => "MPI_UINT32_T",
            Self::Int64 => "MPI_INT64_T",
            Self::Uint64 => "MPI_UINT64_T",
            Self::Float => "MPI_FLOAT",
            Self::Double => "MPI_DOUBLE",
            Self::Int16Index => "MPI_SHORT_INT",
            Self::Int32Index => "MPI_2INT",
            Self::Int64Index => "MPI_LONG_INT",
            Self::FloatIndex => "MPI_FLOAT_INT",
            Self::DoubleIndex => "MPI_DOUBLE_INT",
        }
    }
}

/// A reduction. The codes are those of the compatible layout (Open MPI's enumeration).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Greatest value.
    Max,
    /// Least value.
    Min,
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Logical and.
    LogicalAnd,
    /// Bitwise and.
    BitAnd,
    /// Logical or.
    LogicalOr,
    /// Bitwise or.
    BitOr,
    /// Logical exclusive or.
    LogicalXor,
    /// Bitwise exclusive or.
    BitXor,
    /// Greatest value and its least index.
    MaxLoc,
    /// Least value and its least index.
    MinLoc,
}

impl Operation {
    /// All operations, in the order of their codes.
    pub const ALL: [Self; 12] = [
        Self::Max,
        Self::Min,
        Self::Sum,
        Self::Prod,
        Self::LogicalAnd,
        Self::BitAnd,
        Self::LogicalOr,
        Self::BitOr,
        Self::LogicalXor,
        Self::BitXor,
        Self::MaxLoc,
        Self::MinLoc,
    ];

    /// The code on the wire, 1..=12.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The operation of a code; `None` for codes of no operation.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=12 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// The bit that stands for it in masks of operations.
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << (self.code() - 1)
    }

    /// Whether MPI defines it on a type (MPI 4.1, 6.9.2 and 6.9.4).
    #[must_use]
    pub const fn accepts(self, data_type: DataType) -> bool {
        match self {
            Self::Max | Self::Min | Self::Sum | Self::Prod => !data_type.is_pair(),
            Self::MaxLoc | Self::MinLoc => data_type.is_pair(),
            _ => !data_type.is_pair() && !data_type.is_float(),
        }
    }

    /// Name for messages, e.g. `MPI_SUM`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Max => "MPI_MAX",
            Self::Min => "MPI_MIN",
            Self::Sum => "MPI_SUM",
            Self::Prod => "MPI_PROD",
            Self::LogicalAnd => "MPI_LAND",
            Self::BitAnd => "MPI_BAND",
            Self::LogicalOr => "MPI_LOR",
            Self::BitOr => "MPI_BOR",
            Self::LogicalXor => "MPI_LXOR",
            Self::BitXor => "MPI_BXOR",
            Self::MaxLoc => "MPI_MAXLOC",
            Self::MinLoc => "MPI_MINLOC",
        }
    }
}

/// A number of the machine that stands on the wire with its most significant byte first.
pub trait Element: Copy + sealed::Sealed {
    /// Its type.
    const TYPE: DataType;

    /// Reads one element.
    ///
    /// # Panics
    /// Only when `bytes` is not as long as the type, which [`elements`] makes sure of.
    fn read(bytes: &[u8]) -> Self;

    /// Writes one element.
    ///
    /// # Panics
    /// Only when `bytes` is not as long as the type, which [`write_elements`] makes sure of.
    fn write(self, bytes: &mut [u8]);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($type:ty = $code:ident),+) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const TYPE: DataType = DataType::$code;

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut copy = [0; size_of::<Self>()];
                copy.copy_from_slice(bytes);
                Self::from_be_bytes(copy)
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_be_bytes());
            }
        }
    )+};
}
element!(
    i8 = Int8,
    u8 = Uint8,
    i16 = Int16,
    u16 = Uint16,
    i32 = Int32,
    u32 = Uint32,
    i64 = Int64,
    u64 = Uint64,
    f32 = Float,
    f64 = Double
);

/// The elements in a body, in order; an incomplete last one is left out.
pub fn elements<T: Element>(body: &[u8]) -> impl ExactSizeIterator<Item = T> {
    body.chunks_exact(size_of::<T>()).map(T::read)
}

/// Writes elements one after the other until values or room end; gives the bytes written.
pub fn write_elements<T: Element>(values: &[T], body: &mut [u8]) -> usize {
    let pairs = values.iter().zip(body.chunks_exact_mut(size_of::<T>()));
    pairs.map(|(value, bytes)| value.write(bytes)).count() * size_of::<T>()
}
