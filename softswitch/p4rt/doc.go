// Package p4rt is the P4Runtime server of the embedded switch, by specification 1.4. It is the gRPC
// service that joins its subpackages: arbitration decides which client may write, schema holds the
// P4Info and translates packet-ins and packet-outs, entity holds what clients have written, and digest
// gathers digests into lists.
//
// Where the specification leaves a choice, or this server differs from BMv2's:
//
//   - An election id of zero is an id like any other. A client without an election id never
//     becomes primary. No other client becomes primary when the primary disconnects. A client
//     without a stream may not write.
//   - role.config is a google.protobuf.Struct, see scope; the default role may have none.
//   - A configuration is compiled, and the objects of its P4Info compared with its program,
//     before anything changes; VERIFY does all of it. VERIFY_AND_SAVE starts a second
//     instance that reads and writes refer to, COMMIT runs it. RECONCILE_AND_COMMIT writes
//     the old state to the new instance. If that fails it returns INVALID_ARGUMENT.
//   - An object of the P4Info that the compiler left out of the program is logged. Reads of it
//     find nothing, writes are FAILED_PRECONDITION. A P4Info without one table of a program
//     that has tables is refused.
//   - A match field of type error, which has no bitwidth in the P4Info, is as wide as in the
//     program.
//   - ROLLBACK_ON_ERROR is supported; DATAPLANE_ATOMIC for batches of one update.
//   - Registers, value sets, class_of_service and packet_length_bytes work, unlike on BMv2.
//     Per-colour meter counters are UNIMPLEMENTED. So are externs, except those of package
//     externs, which belong to the switch and are in no P4Info: the lossless classes, the
//     classes that ports obey, the weights of queues, and the watchdog for received PFC.
//   - Metadata that a packet-out leaves out is 0, as in BMv2. The switch logs the first packet-out
//     of this kind and counts all. StreamError is always on.
//   - A message of a stream has at most 1 MiB, a request 128 MiB. A larger one ends the stream, or fails, with
//     RESOURCE_EXHAUSTED.
//   - @p4runtime_translation to numbers is the identity, on exact and optional fields and
//     action parameters. A program with a translation to strings runs, and entries that need
//     one are INVALID_ARGUMENT. Translated types in controller headers, registers and digests
//     are refused with the pipeline.
//   - A group whose members' watch ports are all down acts like an empty group.
//   - If a client reads nothing from a stream or Read for 30 s, the call ends with RESOURCE_EXHAUSTED.
//     At most 64 MiB wait for all clients of a process; the switch drops and counts further messages.
//     A connection may have 256 calls in progress, and a listener 4096 connections.
//   - gRPC clients other than Go's accept only 8 KiB of status by default. If the errors of a failed batch
//     exceed that, they have no texts. If they still exceed it, the status has no errors, and its message
//     describes the first three failures.
//   - Fields that P4Runtime 1.4.0 added after 1.4.0-rc.5, the version of the Go module, are
//     served where they matter: TableEntry.is_const and Replica.port.
package p4rt
