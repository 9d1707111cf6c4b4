// Package cnpgen is the switch part of PACC (Zhong et al., "PACC: Proactive and Accurate
// Congestion Feedback for RDMA Congestion Control"). For each egress port, a PI controller over the
// queue computes how many congestion notifications (CNPs) to send in the coming period. A filter
// ignores bursts that are shorter than a round trip. Each flow gets notifications in proportion to
// the number of its packets that met a queue above the threshold.
//
// Types: a Port is that state machine. Its input is what each flow has sent since the last
// tick. A Pacer spreads the CNPs that the Port grants over the period. A Loop runs them beside one
// switch: it keeps the switch's flow table and takes the differences of its counters. The Switch
// interface has two implementations. One is in the switch's own process (softswitch/pacc) and is
// switched on by Settings in table entries; the other works over P4Runtime (controller/feature/pacc).
// Both use package flowtable for the tables and digests of the P4 program. The simulator counts by
// itself and ticks Ports directly (package sim). Nothing here has a clock, a socket or a goroutine.
//
// Recipients: PACC counts by pairs of addresses, so it slows down everything that
// one address sends to the other, in the simulator, at Headgate's hosts and at NICs alike. But a
// NIC, like a Headgate host, slows down only the queue pair that a frame names. So the loop sends
// one frame for each queue pair of the source that acknowledgements have named at this switch, at
// most 16 at a time and then in turn. If they have named none, because they take another path or
// because the pipeline cannot learn, the frame names queue pair 0: Headgate's hosts apply it to all
// their flows to the address, and NICs drop it. READ responses are not acknowledgements, so nothing
// is learned of a source that only answers READs.
//
// Params has the rules by which the paper derives its parameters, and analyses the stability of the
// control loop with them: by the paper's phase margin, and by the eigenvalues of the loop as the
// algorithm really runs (see Stability).
//
// Start at Port.Tick in port.go, the algorithm of one egress port; then loop.go.
package cnpgen
