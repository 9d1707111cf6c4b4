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
//   - "For each RTT that observes a delay equal to base RTT" (§4.3.1): a window of W_LS/#flow may be a
//     few bytes, of which an acknowledgement tells every hundredth round trip. Where it says that the path is
//     empty, all of those count, for the step and for the count-down, until the window is a packet.
//     Counted as one, two flows that had taken the queue of three higher priorities for that of a
//     hundred flows of their own left an empty path unused for the whole of Figure 8's 4 ms.
//   - Data that leaves a window of less than a tenth of a packet makes the flow stop and
//     probe, for its signals would come every tenth round trip; and a window never exceeds
//     what fills the path up to the target. Both are in the authors' simulation and not in
//     the paper.
//
// # How long a takeover takes
//
// As published, a takeover may need a second try when many flows are below, for two reasons;
// docs/research/simulator.md has a trace and figures.
//
//   - #flow is 1 until the delay first passes D_limit. Where all flows of the priority below
//     stop within a round trip and the queue runs empty, each of n new flows adds W_LS at once;
//     n·W_LS beyond D_limit stops them all, once: then #flow is known.
//   - A probe that finds a delay above the base and below D_limit lets one packet go (line 34). Flows
//     below do so in every dip of the delay, so they come back with as many packets as they are.
//     Where these are more than (D_limit − D_target) holds, they push a priority that has just
//     reached its target over its limit. Each try takes some ten round trips, for the window
//     grows by half in two round trips at most.
//
// So a takeover takes the longer the more flows are below: 250 µs over none, 1 ms over 180, in
// the median of 40 runs of Figure 10a.
package prioplus
