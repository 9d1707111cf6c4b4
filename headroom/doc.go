// Package headroom manages the shared memory of a switch whose ingress queues are paused by
// PFC. It chooses the pool to which each packet is accounted, and decides when a class or a
// whole port is paused and resumed. It has no clock and no input or output. The simulator, the switch and the tests report
// packets to an MMU and send the PFC frames that it asks for.
//
// Memory is split into pools (DSH Fig. 2 and 11). Each queue has a private pool, and all queues share
// one pool under a threshold. Packets that arrive before a PAUSE takes effect go to headroom, one per
// queue (SIH, Eq. 3), or to insurance, one per port (DSH, Eq. 9). A packet is
// placed whole in the first pool that takes it (Algorithm 1) and leaves in the opposite
// order, so that headroom is the first to be free again.
//
// # Where the papers leave a choice
//
//   - Algorithm 1 compares all pools with "<". Here only the threshold is compared with "<".
//     Private memory and headroom may be filled to the last byte.
//   - A threshold may be above the free shared memory (α > 1, SPFC's whole buffer). A packet
//     is still shared only while the pool has room for it.
//   - A packet that finds no shared memory goes to headroom, although the queue's occupancy may
//     still be below T(t). Fig. 3 would not pause the queue then. Here the queue pauses; see
//     Required for the memory that this packet needs.
//   - DSH prints no placement. A packet is shared while its port is below Xpoff and the pool
//     has room (§IV-E), then insured. Insurance belongs to the port, not to a queue: a
//     packet that leaves the port is taken from the insurance first. A port resumes only with
//     empty insurance, as a queue of SIH resumes only with empty headroom.
//   - PFC has one timer per class, so the RESUME after a port-level PAUSE leaves out the
//     classes whose own queue is still paused, and a queue that is paused or resumed while
//     its port is paused sends nothing.
//   - T(t) rises when other queues drain, so every departure rechecks all paused queues and
//     ports, lowest first. A match-action pipeline can only do Config.LocalResume.
//   - Classes that are not lossless share under T(t) and are then dropped. They use neither
//     headroom nor insurance, and do not count towards Xpoff.
//   - "The PFC threshold for this port is set to the buffer size" (SPFC §IV-B): a victim's port may hold the shared
//     pool and the headroom that paused queues do not need, because their peers are silent. Other headroom stays
//     reserved, so that nothing is dropped.
//   - SPFC counts all lossless classes of a port together; a PAUSE of any of them, or of the
//     port, makes the port normal until none is paused.
//
// Start at MMU in mmu.go, which admits and releases packets; policy.go has the thresholds of each policy and the PAUSE and
// RESUME decisions, config.go the sizes of the pools.
package headroom
