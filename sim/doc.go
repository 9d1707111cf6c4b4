// Package sim simulates a lossless Ethernet fabric packet by packet under a virtual clock: hosts with the transport
// and laws of package hosts, links, output-queued store-and-forward switches with eight classes per port, PFC with
// its response time, ECN, in-band telemetry and Söze's maxQD. A switch's buffer implements Buffer; its policies are
// in package headroom.
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
// ports and flows are in slices and refer to each other by index. After its start a run allocates nothing per
// packet. A port that sends its last packet schedules no event: the time is compared with its freeAt instead.
//
// # Determinism
//
// Times are integer picoseconds. Events of one time happen in the order of their kinds, then of their ports or
// flows. Each node draws from random streams of its own, derived from the seed of the run. So results depend
// neither on the number of partitions nor on other runs in the same process.
//
// # Parallel runs
//
// Config.Cores divides the nodes into partitions. Each runs by itself for a window, and then they exchange packets.
// A window is as long as the shortest time that a packet takes into another partition. A window runs sequentially if
// the last flow may end in it, or a flow whose end makes a Driver start others, because these ends act on other
// partitions immediately.
package sim
