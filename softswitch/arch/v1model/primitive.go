package v1model

import (
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/engine/expr"
)

// Primitive implements engine.Model.
func (m *model) Primitive(c *engine.Compiler, j *bmv2json.Primitive) engine.Emit {
	switch j.Op {
	case "drop":
		c.Arity(j, 0)
		return m.drop(c, m.spec, m.mcast)
	case "mark_to_drop":
		c.Arity(j, 1)
		spec, mcast := c.HeaderField(j, 0, "egress_spec"), c.HeaderField(j, 0, "mcast_grp")
		return m.drop(c, spec, mcast)
	case "generate_digest":
		c.Arity(j, 2)
		return c.Store(m.asks(c, learnList), c.LearnList(j, 1))
	case "clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress":
		c.Arity(j, 2)
		session := expr.NewOp(expr.BitOr, c.Data(j, 0), expr.NewInt(cloneValid))
		return engine.Both(c.Store(m.asks(c, cloneSession), session), c.Store(m.asks(c, cloneList), c.Data(j, 1)))
	case "resubmit":
		c.Arity(j, 1)
		return c.Store(m.asks(c, resubmit), c.Data(j, 0))
	case "recirculate":
		c.Arity(j, 1)
		return c.Store(m.asks(c, recirculate), c.Data(j, 0))
	}
	return nil
}

// asks returns the field that holds an action's request. Requests that no action of the program makes have no
// field, so packets do not spend time reading them.
func (m *model) asks(c *engine.Compiler, i int) engine.Field {
	m.request[i] = c.Scratch(i, 16)
	return m.request[i]
}

// drop sends the packet to the drop port, and to no multicast group.
func (m *model) drop(c *engine.Compiler, spec, group engine.Field) engine.Emit {
	if !spec.Exists() {
		c.Fail("drop needs a field egress_spec of at most 64 bits")
	}
	return engine.Call(func(p *engine.Packet) {
		spec.Set(p, uint64(p.Options().DropPort))
		group.Set(p, 0)
	})
}
