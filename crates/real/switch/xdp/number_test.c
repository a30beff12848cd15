/* Compares number.h with the processor: sums of floats bit for bit, MIN and MAX with C's own comparison.
 *
 *   cc -O2 -ffp-contract=off number_test.c -o number_test && ./number_test [PAIRS [SEED]]
 *
 * Exit status 1 at the first difference. Pairs: all of a list of edge values with each other, then random ones of
 * four kinds (any bits, close exponents, subnormal numbers, neighbours of powers of two).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

static __u64 state;

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static __u64 draw(void)
{
	__u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

#define HARDWARE(NAME, FLOAT, WORD)                                                                 \
	static __u64 NAME(int operation, __u64 left, __u64 right)                                   \
	{                                                                                           \
		WORD l = (WORD)left, r = (WORD)right;                                               \
		volatile FLOAT a, b, c;                                                             \
		memcpy((void *)&a, &l, sizeof l);                                                   \
		memcpy((void *)&b, &r, sizeof r);                                                   \
		if (operation == SUM) {                                                             \
			c = a + b;                                                                  \
			memcpy(&r, (void *)&c, sizeof r);                                           \
			return r;                                                                   \
		}                                                                                   \
		return (operation == MAX ? a > b : a < b) ? l : r;                                  \
	}
HARDWARE(hardware32, float, __u32)
HARDWARE(hardware64, double, __u64)

static void compare(int type, __u64 left, __u64 right)
{
	static const int operations[] = { SUM, MAX, MIN };
	unsigned i;

	if (type == FLOAT) {
		left = (__u32)left;
		right = (__u32)right;
	}
	for (i = 0; i < 3; i++) {
		__u64 ours = combine(operations[i], type, left, right);
		__u64 theirs = (type == FLOAT ? hardware32 : hardware64)(operations[i], left, right);

		if (ours != theirs) {
			printf("type %d, operation %d, %016llx with %016llx: %016llx, the processor says %016llx\n",
			       type, operations[i], left, right, ours, theirs);
			exit(1);
		}
	}
}

static void edges(int type)
{
	struct format f = format_of(type);
	const __u64 one = 1, hidden = one << f.fraction;
	const __u64 sign = one << (f.fraction + (type == FLOAT ? 8 : 11));
	__u64 list[400];
	int n = 0, i, j;
	static const int away[] = { 0, 1, 2, 3, 4, 22, 23, 24, 25, 26, 51, 52, 53, 54, 55, 56, 57, 61, 64, 100 };

	for (i = 0; i < (int)(sizeof away / sizeof *away); i++) {
		__u64 exponent = (f.infinity / 2 + away[i]) * hidden;

		list[n++] = exponent;
		list[n++] = exponent + 1;
		list[n++] = exponent - 1;
		list[n++] = exponent + hidden / 2;
		list[n++] = away[i];
		list[n++] = hidden - 1 - away[i];
		list[n++] = hidden + away[i];
		list[n++] = (__u64)f.infinity * hidden + (away[i] ? (__u64)away[i] * (hidden / 128) : 0);
		list[n++] = (__u64)f.infinity * hidden - 1 - away[i];
	}
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++) {
			compare(type, list[i], list[j]);
			compare(type, list[i] | sign, list[j]);
			compare(type, list[i], list[j] | sign);
			compare(type, list[i] | sign, list[j] | sign);
		}
}

static void random_pair(int type)
{
	struct format f = format_of(type);
	const __u64 hidden = 1ULL << f.fraction;
	__u64 left = draw(), right = draw();
	__u64 far = draw();

	switch (far & 3) {
	case 1: /* exponents that differ by less than the fraction's width and some */
		right = (right & ~((__u64)f.infinity * hidden)) |
			(left + ((far >> 8) % (2 * f.fraction + 10)) * hidden) % (f.infinity * hidden) / hidden * hidden;
		break;
	case 2: /* subnormal or nearly */
		left &= ~((__u64)f.infinity * hidden) | (far & 4 ? hidden : 0);
		right &= ~((__u64)f.infinity * hidden) | (far & 8 ? hidden : 0);
		break;
	case 3: /* sparse fractions, where ties and carries are */
		left &= ~(hidden - 1) | (hidden - 1) << (far >> 8 & 31) | 1;
		right |= (hidden - 1) >> (far >> 16 & 31);
		break;
	default:
		break;
	}
	compare(type, left, right);
}

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? atol(argv[1]) : 10000000;
	long i;

	state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	edges(FLOAT);
	edges(DOUBLE);
	for (i = 0; i < pairs; i++) {
		random_pair(FLOAT);
		random_pair(DOUBLE);
	}
	printf("%ld random pairs of each type and all edges: no difference\n", pairs);
	return 0;
}
