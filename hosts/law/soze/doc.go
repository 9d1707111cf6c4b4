// Package soze is Söze's rate law (Söze: One Network Telemetry Is All You Need for
// Per-flow Weighted Bandwidth Allocation at Scale, §3 and appendices C to E): flows that
// share a bottleneck reach rates in proportion to their weights, knowing nothing but the
// largest queueing delay on their path, maxQD, which each acknowledgement echoes.
//
// A target function T gives every rate per weight x = r/w a queueing delay of its own,
// the lower the rate the longer the delay. A flow that sees the delay D moves its rate
// towards the one that D stands for, a step of exponent m per round trip:
//
//	x ← x · (T⁻¹(D)/x)^m, spread over one round trip's acknowledgements
//
// All flows of a link see the same D, so all come to the same x; D itself grows while the
// sum of rates exceeds the link's, so it settles at T(fair share).
//
// # The window
//
// The lemmas assume feedback without delay. With it, a pure rate law is unstable at any
// useful m, for the queue integrates what is sent. This law keeps a window instead, so
// that acknowledgements clock the flow (§3.3 allows either):
//
//	W = r · (RTT − D + T(x))
//
// RTT − D, smoothed, is the round trip without the bottleneck's queue: propagation, and
// queues elsewhere, which the flow has to bear. T(x) stands in for the bottleneck's
// queue. Where D = T(x), W/RTT is exactly r. Away from there the queue is given by the
// flows' rates at once instead of being their integral, which W = r · RTT would leave.
//
// # What is stable
//
// Let all flows of a link be off by a small factor e^ρ. The link's queue follows to
// D ≈ T + (RTT − k/L)·ρ with L = ln α − ln β, flows see it one round trip later, and the
// exponent's pull comes to −m·G·ρ per round trip with G = RTT·L/k, RTT taken with its
// queue. Such a loop does not oscillate for m·G ≤ 1/e and is stable for m·G < π/2. What
// distinguishes flows from each other fades with m alone, as the fairness lemma says. So
// m is lowered, for a flow whose round trip is long for the fabric's k and L, to keep
// m·G ≤ 1; the test TestStableRange shows both sides of the bound in a packet-level
// model.
//
// # The corners
//
// A flow starts with a few packets and then, from their echoes, joins at the rate per
// weight that its bottleneck has already; on an empty path that is α. It joins at no more than
// the rate at which its NIC let those packets go: ten flows that start together on one host
// see little of each other in the fabric, and at α each would fill it ten times over.
//
// A new weight changes the rate in proportion at once. Shares below β all pull towards β: the
// queue grows past p + k until β·w times the longer round trip fits, and rates remain in
// proportion to weights.
//
// A flow whose share is less than a packet per round trip keeps one packet in flight,
// spaced by pacing as its window would leave. It hears of the queue once a packet, not once
// a round trip, so G takes the longer of the two. Weights hold within 5 % down to a fifth of
// a packet per round trip, with β up to four times the share. Below that they fade: beyond
// p + k, and with one packet in flight each, all flows are alike.
//
// A flow that does not use its allowance, because
// its application or its NIC has no more, does not raise it.
package soze
