// Package cnpgen is the switch part of PACC (Zhong et al., "PACC: Proactive and Accurate
// Congestion Feedback for RDMA Congestion Control"). For each egress port, a PI controller over the
// queue computes how many congestion notifications (CNPs) to send in the coming period. A filter
// ignores bursts that are shorter than a round trip. Each flow gets notifications in proportion to
// the number of its packets that met a queue above the threshold.
//
// Types: a Port is this controller, filter and allocation for one egress port. Its input is the traffic of each flow
// since the last tick. Its Pacer spreads the granted CNPs over the period. A Loop runs the Ports of one switch: it keeps
// the switch's flow table and computes the differences of its counters. A Loop works in the switch's own process
// (softswitch/pacc), started by Settings in table entries, or over P4Runtime (controller/feature/pacc); both use package
// flowtable. The simulator counts by itself and ticks Ports directly (package sim). Nothing here has a clock, a socket or
// a goroutine.
//
// Recipients: PACC counts by pairs of addresses, so it slows down everything that one address sends to the other. A NIC
// or Headgate host slows down only the queue pair that a frame names. So the loop sends one frame for each queue pair of
// the source that acknowledgements have named at this switch, at most 16 at a time and then in turn. Acknowledgements may
// name none, because they take another path or the pipeline cannot learn. The frame then names queue pair 0: Headgate's
// hosts apply it to all their flows to the address, and NICs drop it. READ responses are not acknowledged, so the queue
// pairs of a source that only answers READs are not known.
//
// Params derives its parameters by the paper's rules. It analyses the stability of the control loop by
// the paper's phase margin, and by the eigenvalues of the loop as the algorithm really runs (see
// Stability).
//
// Start at Port.Tick in port.go, the algorithm of one egress port; then loop.go.
package cnpgen
