// Package v1model is the architecture v1model with the semantics of BMv2's simple_switch: its
// metadata, its primitives, and the way of a packet through it. It links itself into the engine.
package v1model

import (
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine"
)

var _ = engine.Support(engine.Architecture{
	Name: "v1model",
	Passes: [2]engine.Blocks{
		engine.Ingress: {Parser: "parser", Pipeline: "ingress"},
		engine.Egress:  {Pipeline: "egress", Deparser: "deparser"},
	},
	Scratch: func(*bmv2json.Program) int { return requests },
	New:     newModel,
	Colors:  [3]uint64{0, 1, 2},
})

// The scratch fields in which actions leave their requests.
const (
	cloneSession = iota // session | cloneValid
	cloneList
	learnList
	resubmit
	recirculate
	requests

	cloneValid = 1 << 15
)

// Packet instance types, standard_metadata.instance_type of v1model.
const (
	typeNormal = iota
	typeIngressClone
	typeEgressClone
	typeCoalesced
	typeRecirculated
	typeReplicated
	typeResubmitted
)

// model is v1model's part of one program. It finds its fields by BMv2's names. p4c maps these names to the
// program's with field aliases.
type model struct {
	ingressPort, packetLength, instanceType, egressPort, spec engine.Field
	parserError, checksumError                                engine.Field
	ingressTime, egressTime, mcast, rid, priority             engine.Field
	enqTime, enqDepth, deqDelta, deqDepth, qid                engine.Field
	request                                                   [requests]engine.Field
}

func newModel(c *engine.Compiler) engine.Model {
	m := &model{}
	for i, x := range c.Source().ExternInstances {
		c.In("extern_instances", i, func() { c.Fail("extern type %q is not part of v1model", x.Type) })
	}
	const standard, intrinsic, queueing = "standard_metadata", "intrinsic_metadata", "queueing_metadata"
	c.Output(&m.spec, standard, "egress_spec")
	c.Output(&m.mcast, intrinsic, "mcast_grp")
	c.Output(&m.priority, intrinsic, "priority")
	for _, f := range []struct {
		field        *engine.Field
		header, name string
	}{
		{&m.ingressPort, standard, "ingress_port"}, {&m.packetLength, standard, "packet_length"},
		{&m.instanceType, standard, "instance_type"}, {&m.egressPort, standard, "egress_port"},
		{&m.parserError, standard, "parser_error"}, {&m.checksumError, standard, "checksum_error"},
		{&m.ingressTime, intrinsic, "ingress_global_timestamp"}, {&m.egressTime, intrinsic, "egress_global_timestamp"},
		{&m.rid, intrinsic, "egress_rid"}, {&m.enqTime, queueing, "enq_timestamp"}, {&m.enqDepth, queueing, "enq_qdepth"},
		{&m.deqDelta, queueing, "deq_timedelta"}, {&m.deqDepth, queueing, "deq_qdepth"}, {&m.qid, queueing, "qid"},
	} {
		c.Input(f.field, f.header, f.name)
	}
	c.Require(m.ingressPort, standard, "ingress_port")
	c.Require(m.packetLength, standard, "packet_length")
	c.Require(m.instanceType, standard, "instance_type")
	c.Require(m.spec, standard, "egress_spec")
	c.Require(m.egressPort, standard, "egress_port")
	if !m.enqTime.Exists() || !m.enqDepth.Exists() || !m.deqDelta.Exists() || !m.deqDepth.Exists() {
		m.enqTime, m.enqDepth, m.deqDelta, m.deqDepth, m.qid = engine.Field{}, engine.Field{}, engine.Field{}, engine.Field{}, engine.Field{}
	}
	return m
}
