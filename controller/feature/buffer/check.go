package buffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/units"
)

// bufferFaults collects the faults of buffers. A fault of the fabric's section occurs on many switches, so a field is
// shown once, with the number of other switches that have a fault there.
type bufferFaults struct {
	c     *config.Config
	order []string // paths
	at    map[string]*bufferFault
}

type bufferFault struct {
	name, is, want string
	others, last   int // how many other switches, and which came last
}

// add reports a fault of a key of a switch's buffer. Its line is the key's line in the switch's own section, else in
// the fabric's section, else the section's line.
func (b *bufferFaults) add(i int, key, is, want string) {
	b.addAt(i, b.c.Origin(&b.c.Switches[i], "buffer."+key), is, want)
}

func (b *bufferFaults) addAt(i int, path, is, want string) {
	if f := b.at[path]; f == nil {
		b.order = append(b.order, path)
		b.at[path] = &bufferFault{b.c.Switches[i].Name, is, want, 0, i}
	} else if f.last != i {
		f.others, f.last = f.others+1, i
	}
}

// check is config.Section.Check: it compares every switch's buffer with its links and queues. The feature checks
// whether the target supports the buffer, because it knows the program.
func check(c *config.Config, d *yamlnode.Doc) {
	b := &bufferFaults{c: c, at: map[string]*bufferFault{}}
	for i := range c.Switches {
		b.checkPorts(i)
		if FromSwitch(&c.Switches[i]).On() {
			b.checkBuffer(i)
		}
	}
	for _, l := range c.Links {
		b.checkCable(l, l.A, l.B)
		b.checkCable(l, l.B, l.A)
	}
	for _, path := range b.order {
		f, where := b.at[path], ""
		if f.others > 0 {
			where = fmt.Sprintf(" (and %d more)", f.others)
		}
		d.Fault(path, "%s on the switch %q%s, want %s", f.is, f.name, where, f.want)
	}
}

func (b *bufferFaults) checkBuffer(i int) {
	s := &b.c.Switches[i]
	policy := fmt.Sprintf("is %q", FromSwitch(s).Policy)
	if s.PriorityQueues <= ids.HighestQueue {
		b.add(i, "policy", policy, fmt.Sprintf("off with %d priority queues: PFC frames and polls leave by queue %d", s.PriorityQueues, ids.HighestQueue))
		return
	}
	missing := false
	for _, need := range []struct {
		key   string
		given bool
		want  string
	}{
		{"size", FromSwitch(s).Size > 0, "the memory of the switch, such as 16MB"},
		{"lossless", FromSwitch(s).Lossless != 0, "a list of classes under PFC, such as [3]"},
		{"threshold", FromSwitch(s).Policy != headroom.Static || FromSwitch(s).Threshold > 0, `the bytes at which the policy "static" pauses a queue`},
	} {
		if !need.given {
			missing = true
			b.add(i, need.key, "is missing", need.want)
		}
	}
	if missing || !b.checkTimes(i) {
		return
	}
	b.checkClasses(i)
	h, ports, _ := Headroom(b.c, s)
	if err := h.Validate(); err != nil {
		b.refuse(i, ports, err)
	}
}

// checkPorts makes sure that no packet comes in by a port with a class that is lossless on the switch and not at the port.
func (b *bufferFaults) checkPorts(i int) {
	s, q := &b.c.Switches[i], qos.FromConfig(b.c)
	for j, p := range s.Ports {
		if p.Headroom != 0 && !FromSwitch(s).On() {
			b.addAt(i, fmt.Sprintf("switches[%d].ports[%d].headroom", i, j), "is given without a buffer.policy", "it with a policy only: no class is lossless")
		}
		if p.Lossless == nil {
			continue
		}
		path, own := fmt.Sprintf("switches[%d].ports[%d].lossless", i, j), *p.Lossless
		switch more := own &^ FromSwitch(s).Lossless; {
		case !FromSwitch(s).On():
			b.addAt(i, path, "is given without a buffer.policy", "it with a policy only: no class is lossless")
			continue
		case more != 0:
			b.addAt(i, path, "has "+classes(more), "classes of the switch's buffer.lossless alone, "+classes(FromSwitch(s).Lossless))
			continue
		}
		for dscp := range uint8(64) {
			if class := q.ClassAt(s.Name, p.Number, dscp); FromSwitch(s).Lossless&^own>>class&1 != 0 {
				b.addAt(i, path, fmt.Sprintf("lacks class %d", class), fmt.Sprintf(
					"it, or DSCP %d of port %d in a lossy class by qos.port_maps: it comes in with that class, which is lossless on the switch", dscp, p.Number))
				break
			}
		}
	}
}

// checkCable compares the traffic that the switch at one end of a link sends with the other end's configuration.
// Frames must fit the other end's headroom, and a class must be lossless at both ends or at none. No route changes
// the class of a DSCP otherwise.
func (b *bufferFaults) checkCable(l config.Link, at, other config.Endpoint) {
	i := slices.IndexFunc(b.c.Switches, func(s config.Switch) bool { return s.Name == at.Node })
	j := slices.IndexFunc(b.c.Switches, func(s config.Switch) bool { return s.Name == other.Node })
	if i < 0 || j < 0 {
		return
	}
	own, peer := FromSwitch(&b.c.Switches[i]), FromSwitch(&b.c.Switches[j])
	if !own.On() {
		return
	}
	if own.MTU < peer.MTU {
		b.add(i, "mtu", fmt.Sprintf("is %v", own.MTU), fmt.Sprintf("the %v of %s or more: %s brings frames of it, for which headroom and thresholds are not made", peer.MTU, other.Node, l.Name))
	}
	there := uint8(0)
	if peer.On() {
		there = LosslessAt(&b.c.Switches[j], other.Port)
	}
	if lost := LosslessAt(&b.c.Switches[i], at.Port) &^ there; lost != 0 && !own.AllowClassChange {
		b.add(i, "lossless", fmt.Sprintf("has %s", classes(lost)), fmt.Sprintf(
			"classes that %s has too, where %s leads, or buffer.allow_class_change: true; a packet that changes from lossless to lossy on its way is dropped like any other", other.Node, l.Name))
	}
}

// checkTimes reports whether the times are in range once they are multiplied by scale.
func (b *bufferFaults) checkTimes(i int) bool {
	s, ok := FromSwitch(&b.c.Switches[i]), true
	fits := func(key string, t units.Time) {
		if !b.c.Fits(t) {
			b.add(i, key, fmt.Sprintf("is %v", t), fmt.Sprintf("less: it is multiplied by scale %d", b.c.Scale))
			ok = false
		}
	}
	if fits("dsh.window", s.Window); !s.Policy.Victims() {
		return ok
	}
	if fits("spfc.period", s.Period); !b.c.Fits(s.Period) {
		return false
	}
	least, since := buffer.Tick, "the pipeline's clock counts in it"
	if b.c.Switches[i].Target.Chip() != "" {
		least, since = units.FromDuration(MinPeriod), "that often the controller can read counters over P4Runtime"
	}
	if b.c.Scaled(s.Period) < least {
		b.add(i, "spfc.period", fmt.Sprintf("is %v, with scale %d a period of %v", s.Period, b.c.Scale, b.c.Scaled(s.Period)),
			fmt.Sprintf("a period of %v or more: %s", least, since))
		return false
	}
	return ok
}

// checkClasses makes sure that lossless classes have packets, and that no egress queue drops packets that the buffer
// accepted.
func (b *bufferFaults) checkClasses(i int) {
	s := &b.c.Switches[i]
	for class := range uint8(headroom.Classes) {
		if FromSwitch(s).Lossless>>class&1 == 0 {
			continue
		}
		var list []qos.Class
		if class == 0 {
			list = append(list, qos.Class{}) // the class of DSCPs that are not listed
		}
		list = append(list, slices.DeleteFunc(slices.Clone(qos.FromConfig(b.c).Classes), func(k qos.Class) bool { return k.Class != class })...)
		for _, k := range list {
			b.checkLimit(i, k)
		}
		if len(list) == 0 {
			b.add(i, "lossless", fmt.Sprintf("has class %d", class), fmt.Sprintf("a class that some DSCP of qos.classes has: no packet is of class %d", class))
		}
	}
}

// checkLimit finds limits of egress queues below the buffer for the queue of a lossless class.
func (b *bufferFaults) checkLimit(i int, k qos.Class) {
	s := &b.c.Switches[i]
	want := fmt.Sprintf("at least the buffer's %v: queue %d holds class %d, which is lossless, and a full queue drops", FromSwitch(s).Size, k.Queue, k.Class)
	differs := 0
	for j, p := range s.Ports {
		if p.QueueLimit == 0 {
			continue
		}
		differs++
		if p.QueueLimit < FromSwitch(s).Size {
			b.addAt(i, fmt.Sprintf("switches[%d].ports[%d].queue_limit", i, j), fmt.Sprintf("is %v", p.QueueLimit), want)
		}
	}
	if qos.FromConfig(b.c).QueueLimit < FromSwitch(s).Size && differs < len(switchPorts(b.c, s.Name)) {
		b.addAt(i, "qos.queue_limit", fmt.Sprintf("is %v", qos.FromConfig(b.c).QueueLimit), want)
	}
}

var (
	indexed = regexp.MustCompile(`ports\[(\d+)\]`)
	firstOf = regexp.MustCompile(`Φ of port 0 `)
)

// refuse turns a fault of package headroom into one of the file: its key, and port numbers for indices.
func (b *bufferFaults) refuse(i int, ports []uint32, err error) {
	s := &b.c.Switches[i]
	named := func(text string) string {
		text = indexed.ReplaceAllStringFunc(text, func(m string) string {
			i, _ := strconv.Atoi(m[len("ports[") : len(m)-1])
			if i >= len(ports) {
				return m
			}
			return fmt.Sprintf("port %d", ports[i])
		})
		if len(ports) > 0 {
			text = firstOf.ReplaceAllString(text, fmt.Sprintf("Φ of port %d ", ports[0]))
		}
		return text
	}
	var fault *units.FieldError
	if !errors.As(err, &fault) {
		b.add(i, "policy", "cannot be had: "+named(err.Error()), "another configuration")
		return
	}
	key, is, want := fault.Field, "is "+fault.Value, fault.Allowed
	path := ""
	switch {
	case key == "buffer":
		key = "size"
	case key == "ports":
		key, is, want = "policy", fmt.Sprintf("is %q, with %s ports", FromSwitch(s).Policy, fault.Value), fault.Allowed+" ports"
	case strings.HasPrefix(key, "ports["):
		_, field, _ := strings.Cut(key, "].")
		at, _ := strconv.Atoi(indexed.FindStringSubmatch(key)[1])
		is, key = fmt.Sprintf("on port %d has %s %s", ports[at], field, fault.Value), "policy"
		if field == "headroom" {
			key, path = "headroom", ownHeadroom(b.c, s, ports[at])
		}
	}
	if fault.Because != "" {
		want += "; " + fault.Because
	}
	b.addAt(i, cmp.Or(path, b.c.Origin(s, "buffer."+key)), is, named(want))
}

// ownHeadroom returns the path of the headroom that a port has in the file for itself, "" without one.
func ownHeadroom(c *config.Config, s *config.Switch, port uint32) string {
	if j := slices.Index(s.Ports, s.Port(port)); j >= 0 && s.Ports[j].Headroom != 0 {
		return fmt.Sprintf("%s.ports[%d].headroom", c.Path(s), j)
	}
	return ""
}

// validate is feature.Feature.Validate: routes of lossless classes have no cyclic buffer dependency, unless the file allows it.
func validate(ctx context.Context, c *config.Config, g *topology.Graph, down map[string]bool, failures int) (risks []feature.Risk) {
	fabric := config.SectionOf[Config](c, "buffer")
	for _, set := range losslessSets(c) {
		found := g.Cycles(ctx, down, failures, func(sw string) bool {
			return FromSwitch(c.Switch(sw)).On() && FromSwitch(c.Switch(sw)).Lossless&set != 0
		})
		r := feature.Risk{Text: classes(set) + ": " + found.Text(failures)}
		switch {
		case found.Now == "" && failures == 0:
			continue
		case found.Now != "" && !fabric.AllowCycles:
			r.Refused = yamlnode.Fault{Field: "buffer.allow_cycles", Text: "is false; " + r.Text +
				"; want true, or links with which paths go up and then down, or a switch of them without PFC"}
		}
		risks = append(risks, r)
	}
	return risks
}

// losslessSets returns the sets of lossless classes: classes that are lossless on the same switches form one set. A
// port-level PAUSE of DSH stops all classes, so with it they are one set.
func losslessSets(c *config.Config) []uint8 {
	var on [headroom.Classes]string
	var all uint8
	shared := false
	for i := range c.Switches {
		b := FromSwitch(&c.Switches[i])
		if !b.On() {
			continue
		}
		all |= b.Lossless
		shared = shared || b.Policy.Insured()
		for class := range on {
			if b.Lossless>>class&1 != 0 {
				on[class] += fmt.Sprintf(" %d", i)
			}
		}
	}
	if shared {
		return []uint8{all}
	}
	var sets []uint8
	for class, where := range on {
		if where == "" || slices.Contains(on[:class], where) {
			continue
		}
		var set uint8
		for other := range on {
			if on[other] == where {
				set |= 1 << other
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// classes prints a set such as "class 3" or "classes 3, 4".
func classes(set uint8) string {
	word := "class"
	if bits.OnesCount8(set) > 1 {
		word = "classes"
	}
	return word + " " + strings.ReplaceAll(units.Classes(set).String(), ",", ", ")
}
