// Package cnpgen is the switch part of PACC (Zhong et al., "PACC: Proactive and Accurate
// Congestion Feedback for RDMA Congestion Control"). For each egress port, a PI controller over the
// queue computes how many congestion notifications (CNPs) to send in the coming period. A filter
// ignores bursts that are shorter than a round trip. Each flow gets notifications in proportion to
// the number of its packets that met a queue above the threshold.
//
// Types: a Port is that state machine. Its input is what each flow has sent since the last tick, and its Pacer
// spreads the CNPs that it grants over the period. A Loop runs Ports beside one switch: it keeps the switch's flow table
// and takes the differences of its counters. It works in the switch's own process (softswitch/pacc), switched on by Settings in
// table entries, and over P4Runtime (controller/feature/pacc), both with package flowtable. The simulator counts by itself
// and ticks Ports directly (package sim). Nothing here has a clock, a socket or a goroutine.
//
// Recipients: PACC counts by pairs of addresses, so it slows down everything that one address sends to the other. A NIC, like a
// Headgate host, slows down only the queue pair that a frame names, so the loop sends one frame for each queue pair of the
// source that acknowledgements have named at this switch, at most 16 at a time and then in turn. If they have named none, because
// they take another path or the pipeline cannot learn, the frame names queue pair 0: Headgate's hosts apply it to all
// their flows to the address, and NICs drop it. READ responses are not acknowledged, so a source that only answers READs is not known.
//
// Params has the rules by which the paper derives its parameters, and analyses the stability of the
// control loop with them: by the paper's phase margin, and by the eigenvalues of the loop as the
// algorithm really runs (see Stability).
//
// Start at Port.Tick in port.go, the algorithm of one egress port; then loop.go.
package cnpgen
