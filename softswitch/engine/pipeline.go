package engine

import (
	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/stages"
)

// node is one step of a pipeline: a table, a condition or an action call.
type node struct {
	label label // first instruction of the lowered node
	name  string
	text  string // the condition in P4
	table *tableSpec
	cond  *expr.Node
	lock  int // register whose lock the condition holds, −1 for none
	yes   *node
	no    *node
	call  *boundAction
	next  *node
}

func (c *compiler) buildPipelines(j *bmv2json.Program) {
	c.nodes = map[string]*node{}
	c.tables.kind, c.profiles.kind = "table", "action profile"
	for i := range j.Pipelines {
		jp := &j.Pipelines[i]
		c.In("pipelines", i, func() {
			for k := range jp.Profiles {
				c.In("action_profiles", k, func() { c.declareProfile(&jp.Profiles[k]) })
			}
			for k := range jp.Tables {
				c.In("tables", k, func() { c.declareTable(&jp.Tables[k]) })
			}
			for k := range jp.Conditionals {
				c.declareNode(jp.Conditionals[k].Name)
			}
			for k := range jp.ActionCalls {
				c.declareNode(jp.ActionCalls[k].Name)
			}
		})
	}
	for i := range j.Pipelines {
		c.In("pipelines", i, func() { c.wirePipeline(&j.Pipelines[i]) })
	}
	state := map[*node]int{}
	for k := range c.passes {
		name := c.arch.Passes[k].Pipeline
		i := block(c, "pipeline", name, j.Pipelines)
		c.passes[k].name, c.passes[k].stage = name, [...]stages.Stage{stages.Ingress, stages.Egress}[k]
		c.In("pipelines", i, func() { c.passes[k].first = c.nodeNamed(j.Pipelines[i].InitTable) })
		c.checkAcyclic(c.passes[k].first, state)
	}
}

// shortcut turns a table without a key whose default action is fixed into a call of that action.
// p4c makes such tables of action calls.
func (n *node) shortcut() {
	t := n.table
	if len(t.key.Fields) > 0 || !t.fixedDef || t.deflt == nil || t.counters || t.profile != nil || t.size > 0 && t.fixed {
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
		c.Fail("%q is declared twice", name)
	}
	n := &node{name: name, lock: -1}
	c.nodes[name] = n
	return n
}

func (c *compiler) nodeNamed(name *string) *node {
	if name == nil {
		return nil
	}
	n := c.nodes[*name]
	if n == nil {
		c.Fail("unknown table, condition or action call %q", *name)
	}
	return n
}

func (c *compiler) wirePipeline(jp *bmv2json.Pipeline) {
	for k := range jp.Tables {
		c.In("tables", k, func() {
			c.wireTable(&jp.Tables[k])
			c.nodes[jp.Tables[k].Name].shortcut()
		})
	}
	for k := range jp.Conditionals {
		j := &jp.Conditionals[k]
		c.In("conditionals", k, func() {
			n := c.nodes[j.Name]
			n.text = j.Source.Fragment
			n.lock = c.locking(func() { c.In("expression", -1, func() { n.cond = c.condition(j.Expression) }) })
			n.yes, n.no = c.nodeNamed(j.TrueNext), c.nodeNamed(j.FalseNext)
		})
	}
	for k := range jp.ActionCalls {
		j := &jp.ActionCalls[k]
		c.In("action_calls", k, func() {
			n := c.nodes[j.Name]
			n.call = &boundAction{act: c.actionByID(j.ActionID)}
			if len(n.call.act.params) > 0 {
				c.Fail("action %q takes parameters and cannot be called directly", n.call.act.name)
			}
			n.next = c.nodeNamed(j.Next)
		})
	}
}

// condition compiles the condition of a pipeline. A missing condition is false. A number is true
// unless it is 0.
func (c *compiler) condition(j *bmv2json.Value) *expr.Node {
	switch n := c.expression(j); n.Type {
	case expr.Nothing:
		return expr.NewTruth(false)
	case expr.Data:
		return expr.NewIsTrue(n)
	default:
		return c.want(n, expr.Bool)
	}
}

func (c *compiler) actionByID(id int) *action {
	a := c.actionID[id]
	if a == nil {
		c.Fail("unknown action id %d", id)
	}
	return a
}

// checkAcyclic refuses pipelines that could run for ever.
func (c *compiler) checkAcyclic(n *node, state map[*node]int) {
	if n == nil || state[n] == 2 {
		return
	}
	if state[n] == 1 {
		c.Fail("the pipeline comes back to %q", n.name)
	}
	state[n] = 1
	for _, m := range n.followers() {
		c.checkAcyclic(m, state)
	}
	state[n] = 2
}

// followers returns the nodes that may follow a node; some are nil.
func (n *node) followers() []*node {
	next := []*node{n.yes, n.no, n.next}
	if n.table != nil {
		next = append(next, n.table.followers()...)
	}
	return next
}
