/* SipHash-2-4 (Aumasson and Bernstein, 2012) over 64-bit words, for the tag of messages. */
#ifndef RADDLE_SIPHASH_H
#define RADDLE_SIPHASH_H

#include "number.h"

struct sip {
	__u64 v0, v1, v2, v3;
};

#define ROTATE(word, bits) ((word) << (bits) | (word) >> (64 - (bits)))

INLINE void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = ROTATE(s->v1, 13) ^ s->v0;
	s->v0 = ROTATE(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = ROTATE(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = ROTATE(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = ROTATE(s->v1, 17) ^ s->v2;
	s->v2 = ROTATE(s->v2, 32);
}

INLINE void sip_begin(struct sip *s, const __u64 key[2])
{
	s->v0 = key[0] ^ 0x736f6d6570736575ULL;
	s->v1 = key[1] ^ 0x646f72616e646f6dULL;
	s->v2 = key[0] ^ 0x6c7967656e657261ULL;
	s->v3 = key[1] ^ 0x7465646279746573ULL;
}

INLINE void sip_word(struct sip *s, __u64 word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

/* `rest`: the bytes behind the last whole word, and the number of all bytes modulo 256 in the highest byte. */
INLINE __u64 sip_end(struct sip *s, __u64 rest)
{
	sip_word(s, rest);
	s->v2 ^= 0xff;
	sip_round(s);
	sip_round(s);
	sip_round(s);
	sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif
