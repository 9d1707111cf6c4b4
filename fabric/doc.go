// Package fabric simulates a lossless Ethernet fabric packet by packet under a virtual
// clock: hosts that run the transport and laws of package hosts, links, output-queued
// store-and-forward switches with eight classes per port, PFC with its real response time,
// ECN, in-band telemetry and Söze's maxQD. The buffer of a switch is whatever implements
// Buffer; the policies live in package headroom.
//
// # How it is fast
//
// Packets, ports and flows are values in slices and refer to each other by index; after
// warming up nothing is allocated per packet. A direction of a link has one pending event
// however many packets are on it. A port that sends and has nothing more to send schedules
// nothing: the time at which it is free again is only compared with. Flows carry their
// path, so a switch looks nothing up. Events are small values dispatched by a switch
// statement.
//
// # How it is deterministic
//
// A Sim runs on one goroutine. Times are integer picoseconds, events of one time happen in
// the order in which they were scheduled, and every component that needs chance derives
// its own stream from the run's one seed, so that what one of them draws never moves
// another. Runs of different seeds share nothing and may run in parallel.
package fabric
