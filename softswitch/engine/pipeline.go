package engine

// node is one step of a pipeline: a table, a condition or an action call.
type node struct {
	name  string
	table *tableSpec
	cond  *tree
	yes   *node
	no    *node
	call  *boundAction
	next  *node
	label label
	pc    uint32 // where the lowered node stands
}

func (c *compiler) buildPipelines(j *jsonProgram) {
	c.nodes = map[string]*node{}
	c.tableBy, c.profileBy = map[string]*tableSpec{}, map[string]*profileSpec{}
	for i := range j.Pipelines {
		jp := &j.Pipelines[i]
		c.in("pipelines", i, func() {
			for k := range jp.Profiles {
				c.in("action_profiles", k, func() { c.declareProfile(&jp.Profiles[k]) })
			}
			for k := range jp.Tables {
				c.in("tables", k, func() { c.declareTable(&jp.Tables[k]) })
			}
			for k := range jp.Conditionals {
				c.declareNode(jp.Conditionals[k].Name)
			}
			for k := range jp.ActionCalls {
				c.declareNode(jp.ActionCalls[k].Name)
			}
		})
	}
	found := map[string]bool{}
	for i := range j.Pipelines {
		jp := &j.Pipelines[i]
		c.in("pipelines", i, func() {
			c.wirePipeline(jp)
			first := c.nodeNamed(jp.InitTable)
			switch jp.Name {
			case "ingress":
				c.ingress = first
			case "egress":
				c.egress = first
			}
			found[jp.Name] = true
		})
	}
	if !found["ingress"] || !found["egress"] {
		c.fail("there must be pipelines named %q and %q", "ingress", "egress")
	}
	state := map[*node]int{}
	c.checkAcyclic(c.ingress, state)
	c.checkAcyclic(c.egress, state)
}

// shortcut turns a table without a key whose default action is fixed, as p4c makes them
// of action calls, into the call of that action.
func (n *node) shortcut() {
	t := n.table
	if len(t.key) > 0 || !t.fixedDef || t.deflt == nil || t.counters || t.profile != nil || t.size > 0 && t.fixed {
		return
	}
	n.call = t.deflt
	n.next = t.miss
	if !t.hitMiss {
		n.next = t.nexts[t.deflt.act]
	}
}

func (c *compiler) declareNode(name string) *node {
	if c.nodes[name] != nil {
		c.fail("%q is declared twice", name)
	}
	n := &node{name: name}
	c.nodes[name] = n
	return n
}

func (c *compiler) nodeNamed(name *string) *node {
	if name == nil {
		return nil
	}
	n := c.nodes[*name]
	if n == nil {
		c.fail("unknown table, condition or action call %q", *name)
	}
	return n
}

func (c *compiler) wirePipeline(jp *jsonPipeline) {
	for k := range jp.Tables {
		c.in("tables", k, func() {
			c.wireTable(&jp.Tables[k])
			c.nodes[jp.Tables[k].Name].shortcut()
		})
	}
	for k := range jp.Conditionals {
		j := &jp.Conditionals[k]
		c.in("conditionals", k, func() {
			n := c.nodes[j.Name]
			c.in("expression", -1, func() { n.cond = c.lockedCond(j.Expression) })
			n.yes, n.no = c.nodeNamed(j.TrueNext), c.nodeNamed(j.FalseNext)
		})
	}
	for k := range jp.ActionCalls {
		j := &jp.ActionCalls[k]
		c.in("action_calls", k, func() {
			n := c.nodes[j.Name]
			n.call = &boundAction{act: c.actionByID(j.ActionID)}
			if len(n.call.act.params) > 0 {
				c.fail("action %q takes parameters and cannot be called directly", n.call.act.name)
			}
			n.next = c.nodeNamed(j.Next)
		})
	}
}

// lockedCond compiles a condition; one that reads registers takes their locks.
func (c *compiler) lockedCond(j *jsonValue) *tree {
	outer := c.regs
	c.regs = nil
	x := c.expression(j)
	lock := c.lockOf(c.regs)
	c.regs = outer
	if x.kind == xNone {
		return always(false).tree
	}
	if x.kind == xData {
		x = expr{kind: xBool, bool: nonzero(x.data)}
	}
	cond := c.want(x, xBool).bool
	if lock < 0 {
		return cond.form()
	}
	run := locked(lock, func(p *Packet) { p.parseOK = cond.f(p) })
	return called(func(p *Packet) bool { run(p); return p.parseOK }).form()
}

func (c *compiler) actionByID(id int) *action {
	a := c.actions[id]
	if a == nil {
		c.fail("unknown action id %d", id)
	}
	return a
}

// checkAcyclic refuses pipelines that could run for ever.
func (c *compiler) checkAcyclic(n *node, state map[*node]int) {
	if n == nil || state[n] == 2 {
		return
	}
	if state[n] == 1 {
		c.fail("the pipeline comes back to %q", n.name)
	}
	state[n] = 1
	for _, m := range []*node{n.yes, n.no, n.next} {
		c.checkAcyclic(m, state)
	}
	if t := n.table; t != nil {
		for _, m := range t.nexts {
			c.checkAcyclic(m, state)
		}
		for _, m := range []*node{t.hit, t.miss, t.base} {
			c.checkAcyclic(m, state)
		}
	}
	state[n] = 2
}

// stdField is a field that the switch itself reads or writes; word is −1 when the program
// does not have it.
type stdField struct {
	word int
	mask uint64
}

func (f stdField) set(p *Packet, v uint64) {
	if f.word >= 0 {
		p.w[f.word] = v & f.mask
	}
}

func (f stdField) get(p *Packet) uint64 {
	if f.word < 0 {
		return 0
	}
	return p.w[f.word]
}

// standardFields are the intrinsic fields of v1model, found under the names that BMv2
// uses for them, which p4c maps with field aliases.
type standardFields struct {
	ingressPort, packetLength, instanceType, egressPort, spec stdField
	parserError, checksumError                                stdField
	ingressTime, egressTime, mcast, rid, priority             stdField
	enqTime, enqDepth, deqDelta, deqDepth, qid                stdField

	queueing             bool // the program has all of enq and deq
	egressSpec, mcastGrp int  // words, −1 when missing
	specMask             uint64
}

func (c *compiler) findStandardFields() {
	find := func(h, f string) stdField {
		r, ok := c.layout.find(h, f)
		if !ok {
			return stdField{word: -1}
		}
		if r.f == nil || r.f.vl || r.f.bits > 64 {
			c.fail("%s.%s must have 1 to 64 bits", h, f)
		}
		c.writes(r)
		return stdField{r.word(), r.f.mask}
	}
	need := func(f string) stdField {
		s := find("standard_metadata", f)
		if s.word < 0 {
			c.fail("standard_metadata.%s is required and not declared", f)
		}
		return s
	}
	s := &c.std
	s.ingressPort, s.packetLength, s.instanceType = need("ingress_port"), need("packet_length"), need("instance_type")
	s.spec, s.egressPort = need("egress_spec"), need("egress_port")
	s.parserError, s.checksumError = find("standard_metadata", "parser_error"), find("standard_metadata", "checksum_error")
	s.ingressTime, s.egressTime = find("intrinsic_metadata", "ingress_global_timestamp"), find("intrinsic_metadata", "egress_global_timestamp")
	s.mcast, s.rid = find("intrinsic_metadata", "mcast_grp"), find("intrinsic_metadata", "egress_rid")
	s.priority = find("intrinsic_metadata", "priority")
	s.enqTime, s.enqDepth = find("queueing_metadata", "enq_timestamp"), find("queueing_metadata", "enq_qdepth")
	s.deqDelta, s.deqDepth = find("queueing_metadata", "deq_timedelta"), find("queueing_metadata", "deq_qdepth")
	s.qid = find("queueing_metadata", "qid")
	s.queueing = s.enqTime.word >= 0 && s.enqDepth.word >= 0 && s.deqDelta.word >= 0 && s.deqDepth.word >= 0
	s.egressSpec, s.mcastGrp, s.specMask = s.spec.word, s.mcast.word, s.spec.mask
}

// finishStandardFields forgets, when everything else is compiled, fields that the switch
// would only write and the program does not use.
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
