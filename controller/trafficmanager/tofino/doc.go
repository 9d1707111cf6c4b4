// Package tofino configures the traffic manager of a Tofino chip: the buffer pools,
// priority groups, PFC and queues that no P4 program can reach. A Driver turns what
// package trafficmanager says into rows of BF Runtime tables, compares them with what a chip
// holds, and writes the differences.
//
// # What a policy becomes
//
// Per port, each lossless class has a priority group (tm.ppg.cfg) and all other classes
// share the port's default group (tm.port.dpg); all groups are in one ingress application
// pool, the shared pool of package headroom.
//
//	ρ (private)          guaranteed_cells
//	α, T(t) (Eq. 2)      dynamic_baf, pool_max_cells 1
//	threshold (static)   pool_max_cells, dynamic_baf DISABLE
//	δ                    hysteresis_cells, at least 32
//	Φ per class          pfc_skid_max_cells, skid_limit_cells of the port for all of them
//	η, DSH's insurance   both of them, once per port
//	B_h, B_i             size of IG_SKID_POOL
//	shared pool          size of IG_APP_POOL_0: the buffer without guarantees and headroom
//	victim port (SPFC)   pool_max_cells of the whole pool, dynamic_baf DISABLE
//
// Egress queues of lossless classes do not drop (tail_drop_enable) and obey PFC (pfc_cos).
// MACs are told which PAUSE frames to send and to obey ($PORT).
//
// Bytes become cells of 80 B (Tofino 1) or 176 B (Tofino 2): guarantees and headroom are
// rounded up, limits down, hysteresis and headroom to the 8 cells that the chip counts in.
// Headroom is for frames of any size from 64 B on: each takes whole cells.
//
// # What the chip cannot do
//
//   - α is 1/64 to 4; any other is an error. A group alone in the pool gets the part of it
//     that dynamic_baf says, α/(1+α).
//   - A hysteresis of less than 32 cells: the chip does not share dynamically without, and
//     so a smaller δ is 32 cells.
//   - All classes of a port that are not lossless are one group, with one threshold.
//   - Eq. 2 and the bounds of groups count cells, not bytes.
//
// # What is lost of DSH
//
//   - PAUSE of the queue and of the port together. A port of the chip sends PFC or PAUSE.
//     With one lossless class it sends PFC, and the insurance η is that class's headroom,
//     as in the paper. With several it sends PAUSE for the port when the first of its
//     groups passes T(t): only then is η per port enough. Classes of one port are not
//     isolated any more; the memory that DSH saves is saved.
//   - Xpoff = Nq·T(t), and δp with it: the chip has no dynamic threshold of a port.
//   - τ, by which a queue pauses sooner when it grows fast (Algorithms 3 and 4): the chip
//     compares with T(t). The program's estimate reaches the controller, and nothing here
//     uses it. DSHConfig's Window, Precision, Entries, Tick and NoSharedHeadroom, and
//     PortQueues, are without effect; NoInsurance is an error.
//
// # What is lost of SPFC
//
// A port is a victim or not for as long as Config.Victims says. The controller decides from counters, once in each spfc.period; see
// package feature/buffer for what that is late by.
package tofino
