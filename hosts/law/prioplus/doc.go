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
//   - "consec ++ ≥ 2" would need three delays in a row by the rules of C; §4.3.1 says two. The
//     number is a parameter; the reference runs have one. A delay below the limit restarts the
//     count.
//   - Acknowledgements of data sent before a stop arrive after it. If their delay is beyond the
//     limit they raise the estimate and postpone the probe, as in the algorithm. Otherwise they
//     change nothing, because only a probe resumes sending.
//   - With one-way delays, the bytes in flight are LineRate times a round trip that is
//     computed from the one-way delay and an empty return path (§4.4).
//   - The estimate of #flow divides by the window, but by at least half a packet. As printed it
//     feeds on itself: windows of W_LS/#flow give still larger estimates, up to 10⁵ in
//     tests, and flows that then send a packet every 10 ms on an empty path. The authors'
//     simulation caps the estimate at 2000. Half a packet, about twice as many flows as packets fit
//     the path, came nearest to their numbers.
//   - "For each RTT that observes a delay equal to base RTT" (§4.3.1): a window of W_LS/#flow may be a
//     few bytes, so an acknowledgement may arrive only every hundredth round trip. If its delay is that of
//     an empty path, all round trips since the acknowledgement before count, for the step and for the
//     count-down, until the window is a packet. If they counted as one, two flows that mistook the queue
//     of three higher priorities for that of a hundred flows of their own would leave an empty path
//     unused for the whole of Figure 8's 4 ms.
//   - A flow whose window falls to a tenth of a packet stops and probes, because acknowledgements
//     would come only every tenth round trip. A window never exceeds the bytes that fill the path
//     up to the target. Both rules are in the authors' simulation and not in the paper.
//
// # How long a takeover takes
//
// As published, a takeover by a higher priority may need a second try when many flows of lower
// priorities are active. There are two reasons; docs/research/simulator.md has a trace and figures.
//
//   - #flow is 1 until the delay first passes D_limit. If all flows of the priority below
//     stop within a round trip and the queue runs empty, each of n new flows adds W_LS in the same
//     round trip. If n·W_LS exceeds D_limit, all of them stop once; then #flow is known.
//   - A probe that finds a delay above the base and below D_limit lets one packet go (line 34). Flows
//     of lower priorities do so in every dip of the delay, so n of them send n packets. If these are
//     more than (D_limit − D_target) holds, they push a priority that has just reached its target
//     over its limit. Each try takes some ten round trips, because the window grows by half in two
//     round trips at most.
//
// So a takeover takes longer with more flows of lower priorities: 250 µs over none, 1 ms over 180,
// in the median of 40 runs of Figure 10a.
package prioplus
