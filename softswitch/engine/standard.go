package engine

// stdField is a field that the switch itself reads or writes. word is −1 if the program does not
// have the field.
type stdField struct {
	word int
	mask uint64
}

func (f stdField) set(p *Packet, v uint64) {
	if f.word >= 0 {
		p.W[f.word] = v & f.mask
	}
}

func (f stdField) get(p *Packet) uint64 {
	if f.word < 0 {
		return 0
	}
	return p.W[f.word]
}

// standardFields are the intrinsic fields of v1model. The names are those that BMv2 uses; p4c maps
// them with field aliases.
type standardFields struct {
	ingressPort, packetLength, instanceType, egressPort, spec stdField
	parserError, checksumError                                stdField
	ingressTime, egressTime, mcast, rid, priority             stdField
	enqTime, enqDepth, deqDelta, deqDepth, qid                stdField

	queueing bool // the program has all enq and deq fields
}

func (c *compiler) findStandardFields() {
	s := &c.std
	for _, f := range []struct {
		field        *stdField
		header, name string
	}{
		{&s.ingressPort, "standard_metadata", "ingress_port"}, {&s.packetLength, "standard_metadata", "packet_length"},
		{&s.instanceType, "standard_metadata", "instance_type"}, {&s.spec, "standard_metadata", "egress_spec"},
		{&s.egressPort, "standard_metadata", "egress_port"}, {&s.parserError, "standard_metadata", "parser_error"},
		{&s.checksumError, "standard_metadata", "checksum_error"},
		{&s.ingressTime, "intrinsic_metadata", "ingress_global_timestamp"}, {&s.egressTime, "intrinsic_metadata", "egress_global_timestamp"},
		{&s.mcast, "intrinsic_metadata", "mcast_grp"}, {&s.rid, "intrinsic_metadata", "egress_rid"}, {&s.priority, "intrinsic_metadata", "priority"},
		{&s.enqTime, "queueing_metadata", "enq_timestamp"}, {&s.enqDepth, "queueing_metadata", "enq_qdepth"},
		{&s.deqDelta, "queueing_metadata", "deq_timedelta"}, {&s.deqDepth, "queueing_metadata", "deq_qdepth"}, {&s.qid, "queueing_metadata", "qid"},
	} {
		f.field.word = -1
		if r, ok := c.layout.Find(f.header, f.name); ok {
			if r.IsValidity() || r.F.Variable || r.F.Bits > 64 {
				c.Fail("%s.%s must have 1 to 64 bits", f.header, f.name)
			}
			c.writes(r)
			*f.field = stdField{r.Word(), r.F.Mask}
		}
	}
	for name, f := range map[string]stdField{
		"ingress_port": s.ingressPort, "packet_length": s.packetLength, "instance_type": s.instanceType,
		"egress_spec": s.spec, "egress_port": s.egressPort,
	} {
		if f.word < 0 {
			c.Fail("standard_metadata.%s is required and not declared", name)
		}
	}
	s.queueing = s.enqTime.word >= 0 && s.enqDepth.word >= 0 && s.deqDelta.word >= 0 && s.deqDepth.word >= 0
}

// finishStandardFields drops the fields that only the switch writes and the program never uses. It
// runs when everything else is compiled.
func (c *compiler) finishStandardFields() {
	s := &c.std
	for _, f := range []*stdField{
		&s.ingressPort, &s.packetLength, &s.instanceType, &s.egressPort, &s.parserError, &s.checksumError,
		&s.ingressTime, &s.egressTime, &s.rid, &s.enqTime, &s.enqDepth, &s.deqDelta, &s.deqDepth, &s.qid,
	} {
		if f.word >= 0 && !c.used[f.word] {
			f.word = -1
		}
	}
	s.queueing = s.queueing && max(s.enqTime.word, s.enqDepth.word, s.deqDelta.word, s.deqDepth.word) >= 0
}
