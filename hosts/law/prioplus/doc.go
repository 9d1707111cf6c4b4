// Package prioplus is PrioPlus (Zhang et al., "Enabling Virtual Priority in Data Center
// Congestion Control", EuroSys 2025, §4 and Algorithm 1): strict priorities among flows of
// one physical queue, by delay. Each priority has a channel of delays (package channel). A
// flow steers the delay to its channel's target with an ordinary delay law; when the delay
// passes the channel's limit, flows of higher priority are there, and it stops and probes.
//
// The law underneath is any DelayLaw: Swift and LEDBAT are. PrioPlus sets its target, its
// window where the algorithm says so, and the step of its additive increase.
//
// # What the paper's text leaves open
//
//   - Lines 14 to 16 double #flow where lines 27 to 32 halve it; §4.3.1 says halve. Both
//     halve here.
//   - "Delay equals base RTT" needs a tolerance; the authors' simulation has 1 µs.
//   - "consec ++ ≥ 2" would take three delays in a row as C reads it; §4.3.1 says two. How
//     many is a parameter; the reference runs have one. A delay below the limit starts the
//     count anew.
//   - Acknowledgements of data sent before a stop arrive after it. Those beyond the limit
//     raise the estimate and put the probe off, as the algorithm does; others change
//     nothing, for sending is only resumed by a probe.
//   - Where the delay is one-way, what is in flight is LineRate times the round trip that
//     the one-way delay stands for: the return path is taken to be empty (§4.4).
//   - The estimate of #flow divides by a window of half a packet at least. As printed it
//     feeds on itself: windows of W_LS/#flow give still larger estimates, up to 10⁵ in
//     tests, and flows that then send a packet every 10 ms on an empty path. The authors'
//     simulation stops at 2000. Half a packet, about twice as many flows as packets fit the
//     path, came nearest to their numbers.
//   - Data that leaves a window of less than a tenth of a packet makes the flow stop and
//     probe, for its signals would come every tenth round trip; and a window never exceeds
//     what fills the path up to the target. Both are in the authors' simulation and not in
//     the paper.
package prioplus
