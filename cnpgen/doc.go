// Package cnpgen is the switch part of PACC (Zhong et al., "PACC: Proactive and Accurate
// Congestion Feedback for RDMA Congestion Control"): per egress port a PI controller over
// the queue says how many congestion notifications (CNPs) to send in the coming period, a
// filter lets bursts pass that are shorter than a round trip, and the notifications are
// shared out by how many packets of each flow met a queue above the threshold.
//
// A Port is that state machine and a Pacer spreads what it grants over the period. Both
// are free of clocks, sockets and goroutines: the simulator ticks them in virtual time,
// the controller and the switch-local agent with what they read from P4 counters.
//
// Params has the rules by which the paper derives its parameters, and the stability of
// the loop that they close: the paper's phase margin, and beside it the eigenvalues of the
// loop as the algorithm really runs (see Stability).
package cnpgen
