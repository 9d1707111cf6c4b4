package config

import (
	"sort"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

func sortPorts(list []switchPort) {
	sort.SliceStable(list, func(i, j int) bool { return list[i].number < list[j].number })
}

// bufferSections are the buffer sections of a file. Those of switches are read over the
// fabric's, wherever in the file that stands.
type bufferSections struct {
	fabric   *yaml.Node
	switches map[int]*yaml.Node // by index of the switch
}

// read gives every switch its buffer.
func (s *bufferSections) read(d *decoder, c *Config) {
	base := Buffer{Policy: BufferOff, PauseQuanta: 65535, StormWindow: time.Second}
	if s.fabric != nil {
		base.read(d, s.fabric, "buffer")
	}
	c.Buffer = base
	for i := range c.Switches {
		c.Switches[i].Buffer = base
		if n := s.switches[i]; n != nil {
			c.Switches[i].Buffer.read(d, n, "switches["+strconv.Itoa(i)+"].buffer")
		}
	}
}

// policyNames lists what a policy may be.
func policyNames() string {
	text := string(BufferOff)
	for _, k := range headroom.Kinds() {
		text += ", " + string(k)
	}
	return "one of " + text
}

func readPolicy(d *decoder, n *yaml.Node, path string) headroom.Kind {
	want := policyNames()
	s, ok := d.scalar(n, path, want)
	if !ok {
		return BufferOff
	}
	for _, k := range append(headroom.Kinds(), BufferOff) {
		if s == string(k) {
			return k
		}
	}
	d.add(n.Line, path, "is %q, want %s", clip(s), want)
	return BufferOff
}

// read reads a section over what b is.
func (b *Buffer) read(d *decoder, n *yaml.Node, path string) {
	amount := func(v *units.Bytes, low units.Bytes) func(*yaml.Node, string) {
		return func(n *yaml.Node, p string) { *v = d.bytes(n, p, low, maxBuffer) }
	}
	number := func(v *int, low, high uint64) func(*yaml.Node, string) {
		return func(n *yaml.Node, p string) { *v = int(d.uint(n, p, low, high)) }
	}
	d.object(n, path, []field{
		{"policy", false, func(n *yaml.Node, p string) { b.Policy = readPolicy(d, n, p) }},
		{"size", false, amount(&b.Size, 1)},
		{"lossless", false, func(n *yaml.Node, p string) { b.Lossless = readLossless(d, n, p) }},
		{"mtu", false, func(n *yaml.Node, p string) { b.MTU = d.bytes(n, p, 64, 65535) }},
		{"private", false, amount(&b.Private, 0)},
		{"lossy_private", false, amount(&b.LossyPrivate, 0)},
		{"headroom", false, amount(&b.Headroom, 0)},
		{"alpha", false, func(n *yaml.Node, p string) { b.Alpha = readAlpha(d, n, p) }},
		{"threshold", false, amount(&b.Threshold, 1)},
		{"resume_gap", false, amount(&b.ResumeGap, 0)},
		{"port_resume_gap", false, amount(&b.PortResumeGap, 0)},
		{"port_queues", false, number(&b.PortQueues, 1, headroom.Classes)},
		{"pause_quanta", false, func(n *yaml.Node, p string) { b.PauseQuanta = uint16(d.uint(n, p, 1, 65535)) }},
		{"share", false, number(&b.Share, 1, 1000)},
		{"dsh", false, func(n *yaml.Node, p string) { b.readDSH(d, n, p) }},
		{"spfc", false, func(n *yaml.Node, p string) {
			d.object(n, p, []field{
				{"k", false, number(&b.K, 2, 64)},
				{"period", false, func(n *yaml.Node, p string) { b.Period = d.time(n, p, units.Nanosecond, units.Second) }},
			})
		}},
		{"watchdog", false, func(n *yaml.Node, p string) {
			d.object(n, p, []field{
				{"storm", false, func(n *yaml.Node, p string) { b.Storm = d.uint(n, p, 1, maxStorm) }},
				{"window", false, func(n *yaml.Node, p string) {
					b.StormWindow = d.wall(n, p, 100*time.Millisecond, time.Hour, false)
				}},
				{"stuck", false, func(n *yaml.Node, p string) { b.Stuck = d.wall(n, p, 10*time.Millisecond, 24*time.Hour, false) }},
			})
		}},
	})
}

func (b *Buffer) readDSH(d *decoder, n *yaml.Node, path string) {
	p := b.Precision
	if p == (log2.Precision{}) {
		p = log2.Default()
	}
	bits := func(v *uint, low, high uint64) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) { *v = uint(d.uint(n, path, low, high)) }
	}
	d.object(n, path, []field{
		{"window", false, func(n *yaml.Node, path string) { b.Window = d.time(n, path, units.Nanosecond, units.Second) }},
		{"log_bits", false, bits(&p.Log, log2.MinBits, log2.MaxBits)},
		{"exp_bits", false, bits(&p.Exp, log2.MinBits, log2.MaxBits)},
		{"frac_bits", false, bits(&p.Frac, log2.MinFrac, log2.MaxFrac)},
		{"entries", false, func(n *yaml.Node, path string) {
			b.Entries = int(d.uint(n, path, phi.MinEntries, phi.MaxEntries))
		}},
	})
	if p.Exp > p.Frac {
		d.add(n.Line, path, "has exp_bits %d above frac_bits %d, want at most as many", p.Exp, p.Frac)
	}
	b.Precision = p
}

func readAlpha(d *decoder, n *yaml.Node, path string) headroom.Alpha {
	const want = `a power of two from 1/1024 to 64, such as "1/16" or 2: the pipeline multiplies by shifting`
	s, ok := d.scalar(n, path, want)
	if !ok {
		return 0
	}
	a, err := headroom.ParseAlpha(s)
	if err != nil {
		d.add(n.Line, path, "is %q, want %s", clip(s), want)
	}
	return a
}

// readLossless reads a list of classes as a bit for each.
func readLossless(d *decoder, n *yaml.Node, path string) uint8 {
	var mask uint8
	d.list(n, path, func(n *yaml.Node, path string) {
		bit := uint8(1) << d.uint(n, path, 0, headroom.Classes-1)
		if mask&bit != 0 {
			d.add(n.Line, path, "is %q, which the list has already", clip(n.Value))
		}
		mask |= bit
	})
	return mask
}

// bufferDefaults fills in what depends on the scale.
func (c *Config) bufferDefaults(b *Buffer) {
	set(&b.MTU, 1500)
	set(&b.Share, 800)
	set(&b.Window, 10*units.Millisecond)
	set(&b.Precision, log2.Default())
	set(&b.Entries, phi.DefaultEntries)
	set(&b.K, 5)
	least := units.FromDuration(MinPeriod)
	set(&b.Period, max(100*units.Microsecond, (least+units.Time(c.Scale)-1)/units.Time(c.Scale)))
	set(&b.Storm, max(1, 100_000/uint64(c.Scale)))
	set(&b.Stuck, max(200*time.Millisecond, 2*time.Millisecond*time.Duration(c.Scale)))
}
