/* One operation on one pair of elements, in whole numbers only: the kernel's virtual machine has no floats.
 *
 * Elements are bit patterns in the low bits of a 64-bit word. `left` is MPI's `in`, `right` MPI's `inout`. The same
 * file is compiled for the host, where a test compares the sums with the processor's.
 */
#ifndef RADDLE_NUMBER_H
#define RADDLE_NUMBER_H

#include <linux/types.h>

#define INLINE static inline __attribute__((always_inline))

/* Codes of the wire (docs/reference/wire.md). */
enum operation {
	MAX = 1,
	MIN = 2,
	SUM = 3,
	LAND = 5,
	BAND = 6,
	LOR = 7,
	BOR = 8,
	LXOR = 9,
	BXOR = 10,
};

enum data_type {
	INT8 = 1,
	UINT8,
	INT16,
	UINT16,
	INT32,
	UINT32,
	INT64,
	UINT64,
	FLOAT,
	DOUBLE,
};

/* Logarithm of a type's size in bytes. */
INLINE __u32 size_shift(__u32 type)
{
	return type >= FLOAT ? type - 7 : (type - 1) >> 1;
}

/* The operations that the fast path knows. PROD and the pairs' MINLOC and MAXLOC are left to the core. */
INLINE int known(__u32 operation, __u32 type)
{
	if (type < INT8 || type > DOUBLE)
		return 0;
	if (operation == MAX || operation == MIN || operation == SUM)
		return 1;
	return operation >= LAND && operation <= BXOR && type <= UINT64;
}

/* A binary format of IEEE 754: bits of the fraction, and the exponent of infinity. */
struct format {
	__u32 fraction;
	__u32 infinity;
};

INLINE struct format format_of(__u32 type)
{
	struct format f = { 52, 0x7ff };

	if (type == FLOAT) {
		f.fraction = 23;
		f.infinity = 0xff;
	}
	return f;
}

/* Places by which the highest set bit of a word that is not 0 must move up to become bit 63. */
INLINE __u32 leading_zeros(__u64 word)
{
	__u32 n = 0;

	if (!(word >> 32)) { n += 32; word <<= 32; }
	if (!(word >> 48)) { n += 16; word <<= 16; }
	if (!(word >> 56)) { n += 8; word <<= 8; }
	if (!(word >> 60)) { n += 4; word <<= 4; }
	if (!(word >> 62)) { n += 2; word <<= 2; }
	return n + !(word >> 63);
}

/* left + right, rounded to nearest, ties to even; subnormal numbers are kept. What is not a number: the left operand's
 * if it is none, else the right one's, made quiet; infinity minus infinity gives the quiet one with the sign set and
 * no payload. That is what x86 does (SDM volume 1, table 4-7), whose bits plain MPI shows.
 */
INLINE __u64 add_floats(struct format f, __u64 left, __u64 right)
{
	const __u64 sign_bit = 1ULL << (f.fraction + (f.infinity == 0xff ? 8 : 11));
	const __u64 magnitude = sign_bit - 1;
	const __u64 hidden = 1ULL << f.fraction;
	const __u64 infinite = (__u64)f.infinity << f.fraction;
	__u64 a = left & magnitude, b = right & magnitude, sign = left & sign_bit;
	__u64 sum, high, low;
	__u32 exponent, distance;
	int same = !((left ^ right) & sign_bit);

	if (a >= infinite || b >= infinite) {
		if (a > infinite)
			return left | hidden >> 1;
		if (b > infinite)
			return right | hidden >> 1;
		if (a == b && !same)
			return sign_bit | infinite | hidden >> 1;
		return a == infinite ? left : right;
	}
	if (a < b) {
		__u64 swap = a;

		a = b;
		b = swap;
		sign = right & sign_bit;
	}
	exponent = a >> f.fraction;
	distance = b >> f.fraction;
	high = a & (hidden - 1);
	low = b & (hidden - 1);
	/* A subnormal number has the exponent of the smallest normal one, and no hidden bit. */
	if (exponent)
		high |= hidden;
	else
		exponent = 1;
	if (distance)
		low |= hidden;
	else
		distance = 1;
	distance = exponent - distance;
	/* Three more bits: two of the rest, and one that says whether anything is below them. */
	high <<= 3;
	low <<= 3;
	if (distance > 60)
		low = low != 0;
	else
		low = low >> distance | ((low & ((1ULL << distance) - 1)) != 0);
	if (same) {
		sum = high + low;
		if (sum >> (f.fraction + 4)) {
			sum = sum >> 1 | (sum & 1);
			exponent++;
		}
	} else {
		__u32 shift;

		sum = high - low;
		/* x - x is +0 in this rounding. */
		if (!sum)
			return 0;
		shift = leading_zeros(sum) - (60 - f.fraction);
		if (shift >= exponent)
			shift = exponent - 1;
		sum <<= shift;
		exponent -= shift;
	}
	if (exponent >= f.infinity)
		return sign | infinite;
	low = sum & 7;
	sum >>= 3;
	sum += low > 4 || (low == 4 && (sum & 1));
	/* The hidden bit, where there is one, raises the exponent by one; so does a carry out of the fraction. */
	return sign | (((__u64)(exponent - 1) << f.fraction) + sum);
}

/* A key in whose order floats' bit patterns compare as numbers: both zeros are equal. Not for what is no number. */
INLINE __s64 float_key(struct format f, __u64 bits)
{
	const __u64 sign_bit = 1ULL << (f.fraction + (f.infinity == 0xff ? 8 : 11));
	const __s64 magnitude = bits & (sign_bit - 1);

	return bits & sign_bit ? -magnitude : magnitude;
}

INLINE int is_nan(struct format f, __u64 bits)
{
	const __u64 sign_bit = 1ULL << (f.fraction + (f.infinity == 0xff ? 8 : 11));

	return (bits & (sign_bit - 1)) > (__u64)f.infinity << f.fraction;
}

/* A whole number of a type as a signed word, so that comparing words compares numbers; 64-bit ones without sign are
 * moved down by half their range.
 */
INLINE __s64 whole_key(__u32 type, __u64 bits)
{
	const __u32 up = 64 - (8U << size_shift(type));

	if (type & 1)
		return (__s64)(bits << up) >> up;
	return type == UINT64 ? (__s64)(bits ^ 1ULL << 63) : (__s64)bits;
}

/* MAX and MIN as MPI libraries write them: `left > right ? left : right`. A comparison with what is no number is false,
 * so the right operand stays; so it does when both are zeros.
 */
INLINE __u64 extreme(__u32 operation, __u32 type, __u64 left, __u64 right)
{
	__s64 a, b;

	if (type >= FLOAT) {
		struct format f = format_of(type);

		if (is_nan(f, left) || is_nan(f, right))
			return right;
		a = float_key(f, left);
		b = float_key(f, right);
	} else {
		a = whole_key(type, left);
		b = whole_key(type, right);
	}
	return (operation == MAX ? a > b : a < b) ? left : right;
}

/* left op right of an operation and type that are `known`; bits above the type's width are not defined. */
INLINE __u64 combine(__u32 operation, __u32 type, __u64 left, __u64 right)
{
	switch (operation) {
	case MAX:
	case MIN:
		return extreme(operation, type, left, right);
	case SUM:
		return type >= FLOAT ? add_floats(format_of(type), left, right) : left + right;
	case LAND:
		return left && right;
	case BAND:
		return left & right;
	case LOR:
		return left || right;
	case BOR:
		return left | right;
	case LXOR:
		return !left != !right;
	default:
		return left ^ right;
	}
}

#endif
