// Package soze is Söze's rate law (Söze: One Network Telemetry Is All You Need for
// Per-flow Weighted Bandwidth Allocation at Scale, §3 and appendices C to E). Flows that
// share a bottleneck reach rates in proportion to their weights. They know only the largest
// queueing delay on their path, maxQD, which each acknowledgement echoes.
//
// A target function T maps every rate per weight x = r/w to a queueing delay: the lower the
// rate, the longer the delay. A flow that sees the delay D moves its rate towards T⁻¹(D), with
// exponent m per round trip:
//
//	x ← x · (T⁻¹(D)/x)^m, spread over one round trip's acknowledgements
//
// All flows of a link see the same D, so all come to the same x; D itself grows while the
// sum of rates exceeds the link's, so it settles at T(fair share).
//
// # The window
//
// The lemmas assume feedback without delay. With delay, a pure rate law is unstable at any
// useful m, because the queue integrates what is sent. This law keeps a window instead, so
// that acknowledgements clock the flow (§3.3 allows either):
//
//	W = r · (RTT − D + T(x))
//
// RTT − D, smoothed, is the round trip without the bottleneck's queue: propagation, and
// queues elsewhere, which the flow has to bear. T(x) replaces the bottleneck's queue. If
// D = T(x), W/RTT is exactly r. Otherwise the queue follows the flows' rates directly. With
// W = r · RTT it would be the integral of their rates.
//
// # What is stable
//
// Let the rates of all flows of a link be off by a small factor e^ρ. The link's queue follows to
// D ≈ T + (RTT − k/L)·ρ with L = ln α − ln β, flows see it one round trip later, and the
// exponent's pull comes to −m·G·ρ per round trip with G = RTT·L/k, where RTT includes the
// queue. This loop does not oscillate for m·G ≤ 1/e and is stable for m·G < π/2. Differences
// between flows fade with m alone, as the fairness lemma says. So a flow whose round trip is
// long for the fabric's k and L lowers m to keep m·G ≤ 1. TestStableRange shows both sides of
// the bound in a packet-level model.
//
// # The corners
//
// A flow starts with a few packets. Their echoes show the rate per weight at its bottleneck, and
// the flow joins at that rate; on an empty path it is α. The rate at which its NIC let those
// packets go is an upper bound: ten flows that start together on one host see little of each
// other in the fabric, and at α each would fill it ten times over.
//
// A new weight changes the rate in proportion immediately. If fair shares are below β, all flows
// aim at β: the queue grows past p + k until windows of β·w times the longer round trip fit, and
// rates remain in proportion to weights.
//
// A flow whose share is less than a packet per round trip keeps one packet in flight and paces its
// packets at the rate of its window. It learns of the queue once per packet instead of once per
// round trip, so G uses the longer of the two times. Weights hold within 5 % down to a fifth of
// a packet per round trip, with β up to four times the share. Below that they fade: beyond
// p + k, flows with one packet in flight each are all alike.
//
// A flow that does not use its allowance, because its application or its NIC has no more, does
// not raise it.
package soze
