// Package psa is the Portable Switch Architecture as p4c-bm2-psa compiles it for BMv2's
// psa_switch: its metadata, its externs, and the way of a packet through it. It links itself into
// the engine.
//
// Where it deliberately differs from BMv2's psa_switch:
//
//   - A resubmitted packet keeps its ingress_port (PSA 1.2, §6.1); BMv2 sets it to 0.
//   - class_of_service chooses the queue of the port; the highest queue takes all classes from its
//     number on. Clones are of the class that their session names. BMv2 has one queue and clones of class 0.
//   - Direct meters give PSA's colours, as indirect ones do.
//   - An InternetChecksum belongs to one packet; in BMv2 all packets share it. Digests work.
//   - Frames of the CPU port arrive on PSA_PORT_CPU, and packets for that port leave as packet-ins.
package psa

import (
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine"
)

// Ports that p4include/bmv2/psa.p4 numbers.
const (
	portRecirculate = 0xfffffffa
	portCPU         = 0xfffffffd
)

// The values of PSA_PacketPath_t, as BMv2 numbers them.
const (
	pathNormal = iota
	pathUnicast
	pathMulticast
	pathCloneI2E
	pathCloneE2E
	pathResubmit
	pathRecirculate
)

var _ = engine.Support(engine.Architecture{
	Name: "PSA",
	Passes: [2]engine.Blocks{
		engine.Ingress: {Parser: "ingress_parser", Pipeline: "ingress", Deparser: "ingress_deparser"},
		engine.Egress:  {Parser: "egress_parser", Pipeline: "egress", Deparser: "egress_deparser"},
	},
	Scratch:         func(j *bmv2json.Program) int { return 1 + len(j.ExternInstances) },
	New:             newModel,
	RecirculatePort: portRecirculate,
	CPUPort:         portCPU,
	Colors:          [3]uint64{1, 2, 0},
})

// maxLearnLists bounds the learn lists of a program. p4c makes one of each call of Digest.pack.
const maxLearnLists = 64

// model is PSA's part of one program.
type model struct {
	in struct { // metadata of ingress
		port, path, portCopy, pathCopy, time, err engine.Field
		class, clone, session, drop, resubmit     engine.Field
		group, to                                 engine.Field
	}
	eg struct { // metadata of egress
		port, path, portCopy, pathCopy, deparserPort engine.Field
		class, instance, time, err                   engine.Field
		clone, session, drop                         engine.Field
	}
	packed engine.Field            // learn lists that the packet has packed, a bit each
	sums   map[string]engine.Field // states of the Internet checksums
	hashes map[string]string       // algorithms of the hashes
}

func newModel(c *engine.Compiler) engine.Model {
	m := &model{packed: c.Scratch(0, maxLearnLists), sums: map[string]engine.Field{}, hashes: map[string]string{}}
	type metadata []struct {
		field        *engine.Field
		header, name string
	}
	const in, eg = "psa_ingress_", "psa_egress_"
	for _, f := range (metadata{
		{&m.in.port, in + "parser_input_metadata", "ingress_port"}, {&m.in.path, in + "parser_input_metadata", "packet_path"},
		{&m.in.class, in + "output_metadata", "class_of_service"}, {&m.in.clone, in + "output_metadata", "clone"},
		{&m.in.session, in + "output_metadata", "clone_session_id"}, {&m.in.drop, in + "output_metadata", "drop"},
		{&m.in.resubmit, in + "output_metadata", "resubmit"}, {&m.in.group, in + "output_metadata", "multicast_group"},
		{&m.in.to, in + "output_metadata", "egress_port"},
		{&m.eg.path, eg + "parser_input_metadata", "packet_path"}, {&m.eg.clone, eg + "output_metadata", "clone"},
		{&m.eg.session, eg + "output_metadata", "clone_session_id"}, {&m.eg.drop, eg + "output_metadata", "drop"},
	}) {
		c.Output(f.field, f.header, f.name)
		c.Require(*f.field, f.header, f.name)
	}
	for _, f := range (metadata{
		{&m.in.portCopy, in + "input_metadata", "ingress_port"}, {&m.in.pathCopy, in + "input_metadata", "packet_path"},
		{&m.in.time, in + "input_metadata", "ingress_timestamp"}, {&m.in.err, in + "input_metadata", "parser_error"},
		{&m.eg.port, eg + "parser_input_metadata", "egress_port"}, {&m.eg.portCopy, eg + "input_metadata", "egress_port"},
		{&m.eg.deparserPort, eg + "deparser_input_metadata", "egress_port"}, {&m.eg.pathCopy, eg + "input_metadata", "packet_path"},
		{&m.eg.class, eg + "input_metadata", "class_of_service"}, {&m.eg.instance, eg + "input_metadata", "instance"},
		{&m.eg.time, eg + "input_metadata", "egress_timestamp"}, {&m.eg.err, eg + "input_metadata", "parser_error"},
	}) {
		c.Input(f.field, f.header, f.name)
	}
	for i, x := range c.Source().ExternInstances {
		c.In("extern_instances", i, func() {
			switch x.Type {
			case "Counter", "Meter": // the engine has them
			case "Hash":
				m.hashes[x.Name] = x.Attribute("algo")
			case "InternetChecksum":
				m.sums[x.Name] = c.Scratch(1+i, 16)
			default:
				c.Fail("unknown extern type %q, allowed are Counter, Hash, InternetChecksum and Meter", x.Type)
			}
		})
	}
	return m
}
