// Package sim simulates a lossless Ethernet fabric packet by packet under a virtual clock: hosts with the transport
// and laws of package hosts, links, output-queued store-and-forward switches with eight classes per port, PFC with
// its response time, ECN, in-band telemetry and Söze's maxQD. The buffer of a switch is whatever implements Buffer;
// the policies are in package headroom.
//
//	Sim ── actions (samples, link failures, changes) run between windows
//	 │
//	 ├─ partition 0 ── eventQueue ──► dispatch ──► host.go   senders and receivers
//	 │                  ▲  heap           │        switch.go  buffer, marking, forwarding
//	 │                  ▲  FIFOs          │        port.go    queues, scheduling, links
//	 │                  │                 ▼        pfc.go     PAUSE and RESUME
//	 │                  └── next arrivals, ends of sending, timers
//	 │                                    │
//	 └─ partition 1 … ◄── outboxes ◄──────┘  packets that cross, taken at the next window
//
// A packet is a value of 24 bytes. It is copied from the event queue of its link to the queue of a port and from
// there to the next link. A flow has its path as a list of egress ports, so switches look nothing up. Packets,
// ports and flows are in slices and refer to each other by index; a run that has warmed up allocates nothing per
// packet. A port that sends and has nothing more to send schedules no event: its freeAt is compared with the time.
//
// # Determinism
//
// Times are integer picoseconds. Events of one time happen in the order of their kinds, then of their ports or
// flows. Each node draws from random streams of its own, derived from the seed of the run. So results depend
// neither on the number of partitions nor on other runs in the same process.
//
// # Parallel runs
//
// Config.Cores divides the nodes into partitions. Each runs by itself for a window that is as long as a packet takes
// at least into another partition; then they exchange packets. A window is run sequentially when a flow may end in
// it that a Driver answers with other flows, or the last flow: both act on other partitions at once.
package sim
