// Package p4rt is the P4Runtime server of the embedded switch, by specification 1.4. Its
// parts: arbitration decides who may write, schema knows the P4Info, entity what has been
// written, packetio and digest what flows on streams; this package is the gRPC service
// that joins them.
//
// Where the specification leaves a choice, or this server does other than BMv2's:
//
//   - An election id that is set to zero is an id like any other; an unset one never makes a
//     primary. Nobody is promoted when the primary leaves. Without a stream nobody writes.
//   - role.config is a google.protobuf.Struct, see scope; the default role takes none.
//   - A configuration is compiled, and every object of its P4Info found in its program,
//     before anything changes; VERIFY does all of it. VERIFY_AND_SAVE starts a second
//     instance that reads and writes refer to, COMMIT runs it. RECONCILE_AND_COMMIT writes
//     the old state to the new instance and is INVALID_ARGUMENT where that fails.
//   - ROLLBACK_ON_ERROR is supported; DATAPLANE_ATOMIC for batches of one update.
//   - Registers, value sets, class_of_service and packet_length_bytes work, unlike on BMv2.
//     Per-colour meter counters and externs are UNIMPLEMENTED.
//   - Missing packet-out metadata is an error, unless the field is annotated @padding.
//     StreamError is always on.
//   - @p4runtime_translation to numbers is the identity, on exact and optional fields and
//     action parameters; anything else of it is refused with the pipeline.
//   - A group whose members' watch ports are all down acts like an empty group.
//   - Fields that P4Runtime 1.4.0 added after 1.4.0-rc.5, the version of the Go module, are
//     served where they matter: TableEntry.is_const and Replica.port.
package p4rt
