// Package sim simulates a lossless Ethernet fabric packet by packet under a virtual
// clock: hosts that run the transport and laws of package hosts, links, output-queued
// store-and-forward switches with eight classes per port, PFC with its real response time,
// ECN, in-band telemetry and Söze's maxQD. The buffer of a switch is whatever implements
// Buffer; the policies live in package headroom.
//
// # How it is fast
//
// Packets, ports and flows are values in slices and refer to each other by index; after
// warming up nothing is allocated per packet. A packet takes 24 bytes, which hold all that a hop needs to know,
// and goes from link to queue to link; a port has what a hop looks at in one cache line. A direction of a link has one pending event
// however many packets are on it. A port that sends and has nothing more to send schedules
// nothing: the time at which it is free again is only compared with. Flows carry their
// path, so a switch looks nothing up. Events are small values dispatched by a switch
// statement.
//
// # How it is deterministic
//
// Times are integer picoseconds, events of one time happen in the order of their kinds and of the
// ports or flows they are about, and every node derives streams of its own for what it draws
// from the run's one seed, so that what one of them draws never moves another. Runs of different
// seeds share nothing and may run in parallel.
//
// # How it uses several processors
//
// A fabric can be parted among processors (Config.Cores): a part owns its nodes, their events and
// packets, and runs by itself for as long as a packet takes at least to get into another part.
// Then the parts hand over what they have sent each other, and the next window begins. Since
// neither the order of a node's events nor its chance depends on the part it is in, results are the
// same for any number of parts. What touches several parts at once happens between windows
// (actions: samples, changes, failures of links), or in a window whose parts are run in order by one
// processor: a flow's end that a Driver answers with other flows, and the end of the last flow.
// Both are known a window ahead, by the acknowledgement on the wire to the sender.
package sim
