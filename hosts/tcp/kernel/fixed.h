/* Fixed-point arithmetic. Logarithms are to the base 2 with LG fractional bits. A factor of 1 is ONE. */
#pragma once
#include "tables.h"

#define LG 24
#define ONE_BITS 30
#define ONE (1ll << ONE_BITS)
#define NS 1000000000ull /* a second */

#define FN static __attribute__((always_inline)) inline
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define clamp(v, lo, hi) min(max(v, lo), hi)

/* scale returns v·f for a factor f below 2^31 and |v| below 2^62 / f. */
FN __s64 scale(__s64 v, __s64 f) { return v * f >> ONE_BITS; }

/* part returns a/b as a factor, at most 1; a below 2^34. */
FN __u64 part(__u64 a, __u64 b) { return a >= b ? (__u64)ONE : (a << ONE_BITS) / b; }

/* sent returns the bytes that a rate below 2^38 B/s sends in a time of at most 64 s. */
FN __u64 sent(__u64 rate, __u64 time)
{
	return time < 1 << 26 ? rate * time / NS : rate * (time >> 10) / (NS >> 10);
}

/* exp2 returns 2^(v / 2^LG), at most 2^61, rounded down; the relative error before rounding is 2e-5. */
FN __u64 exp2(__s64 v)
{
	__s64 whole = v >> LG;
	__u32 i = v >> (LG - NODE_BITS) & (NODES - 1);
	__u64 rest = v & ((1 << (LG - NODE_BITS)) - 1);
	__u64 m = exp2_nodes[i] + ((exp2_nodes[i + 1] - exp2_nodes[i]) * rest >> (LG - NODE_BITS));
	if (whole < -1)
		return 0;
	whole = min(whole, 60);
	return whole >= 30 ? m << (whole - 30) : m >> (30 - whole);
}

/* log2 returns the logarithm of x, and 0 for x = 0; absolute error 5e-5. */
FN __s64 log2(__u64 x)
{
	__u64 rest = x;
	__u32 e = 0, i;
	if (!x)
		return 0;
#define STEP(n) if (rest >> n) { rest >>= n; e += n; }
	STEP(32) STEP(16) STEP(8) STEP(4) STEP(2) STEP(1)
#undef STEP
	x = e <= 40 ? x << (40 - e) : x >> (e - 40); /* 2^40 to below 2^41 */
	i = x >> (40 - NODE_BITS) & (NODES - 1);
	rest = x & ((1ull << (40 - NODE_BITS)) - 1);
	return ((__s64)e << LG) + log2_nodes[i] + ((log2_nodes[i + 1] - log2_nodes[i]) * (rest >> 10) >> (30 - NODE_BITS));
}
