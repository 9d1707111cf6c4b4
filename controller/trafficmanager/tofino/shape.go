package tofino

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/units"
)

// shape returns the rows that the chip should hold. The error, a *units.FieldError, names the field that is invalid
// or that the chip cannot express, and the allowed values.
func shape(ch *chip, bridged units.Bytes, wanted trafficmanager.Config) (*settings, error) {
	c := newConfig(wanted, bridged)
	if err := c.check(ch); err != nil {
		return nil, err
	}
	s := &settings{chip: ch, policy: "off"}
	for _, p := range c.Ports {
		s.ports = append(s.ports, p.Number)
	}
	sortPorts(s.ports)
	p := plain(ch, len(c.Ports))
	if c.MMU != nil {
		var err error
		if p, err = newPolicy(ch, c); err != nil {
			return nil, err
		}
		s.policy = string(c.MMU.Policy)
	}
	s.reserved = p.guaranteed + p.shared + p.skid
	p.pools(s)
	for i := range c.Ports {
		p.port(s, c, i)
	}
	for i := range c.Ports {
		c.queues(s, i)
		c.filters(s, i)
	}
	return s, nil
}

// policy is a policy in the chip's terms; limits in cells.
type policy struct {
	chip       *chip
	mmu        *headroom.Config // nil for none
	shared     uint64           // size of the application pool
	skid       uint64           // size of the skid pool: all headroom
	guaranteed uint64           // guaranteed cells of all groups; those of other ports have the defaults
	share      string           // dynamic_baf
	limit      uint64           // pool_max_cells
	hysteresis uint64
	private    uint64      // guaranteed cells of a lossless group
	ports      []portCells // in the order of Config.Ports
	whole      map[uint32]bool
}

// portCells are the ingress groups of a port; sizes in cells.
type portCells struct {
	lossless uint8  // classes with a group of their own, a bit for each
	pause    bool   // the port as a whole is paused
	rest     uint64 // guaranteed cells of the default group
	group    uint64 // skid of each lossless group
	total    uint64 // skid of the port
}

func (p portCells) groups() uint64 { return uint64(bits.OnesCount8(p.lossless)) }

// plain returns the policy that is the chip's default.
func plain(ch *chip, ports int) *policy {
	return &policy{
		chip: ch, shared: ch.pool, share: ch.poolShare, limit: ch.poolLimit, hysteresis: leastHysteresis,
		guaranteed: others(ch, 0), ports: slices.Repeat([]portCells{{rest: ch.guaranteed}}, ports),
	}
}

// others returns the guaranteed cells of the default groups of all other ports.
func others(ch *chip, ports int) uint64 {
	all := uint64(portsPerPipe+1) * uint64(ch.pipes) * ch.guaranteed
	if ch.reserved > 0 {
		all = ch.reserved
	}
	return all - uint64(ports)*ch.guaranteed
}

// newPolicy translates a policy into the chip's terms. Package headroom defines the policies; the package comment
// lists what the chip cannot express.
func newPolicy(ch *chip, c *config) (*policy, error) {
	m := c.MMU
	if len(m.Ports) != len(c.Ports) {
		return nil, wrong("ports", fmt.Sprintf("%d ports and %d in the policy", len(c.Ports), len(m.Ports)), "the same ports in both")
	}
	if m.Buffer > ch.memory() {
		return nil, wrong("buffer", fmt.Sprintf("%d B", m.Buffer), fmt.Sprintf("up to %d B, %d cells of %d B", ch.memory(), ch.cells, ch.cell))
	}
	layout, err := m.Layout()
	if err != nil {
		return nil, err
	}
	if m.Policy.Insured() && m.DSH.NoInsurance {
		return nil, wrong("dsh.no_insurance", true, "false: the chip has no headroom in its shared pool")
	}
	p := &policy{
		chip: ch, mmu: m, whole: map[uint32]bool{},
		private:    ch.up(m.Private),
		hysteresis: max(leastHysteresis, steps(ch.up(m.ResumeGap))),
		limit:      1,
	}
	for i := range m.Ports {
		at := portCells{lossless: m.Lossless &^ c.Ports[i].Lossy, group: steps(ch.headroom(layout.Phi[i], smallestFrame, m.MTU, c.bridged))}
		n := at.groups()
		at.rest = (headroom.Classes - n) * ch.up(m.LossyPrivate)
		at.total = at.group * n
		if m.Policy.Insured() {
			at.pause, at.total = n > 1, min(at.total, at.group)
		}
		p.ports = append(p.ports, at)
		p.skid += at.total
	}
	for _, v := range c.Victims {
		p.whole[v] = true
	}
	if err := p.pool(c); err != nil {
		return nil, err
	}
	return p, p.fits(c)
}

// pool sizes the application pool with the remaining cells of the buffer, and sets the thresholds in it.
func (p *policy) pool(c *config) error {
	m, ch := p.mmu, p.chip
	own := uint64(0)
	for _, at := range p.ports {
		own += at.groups()*p.private + at.rest
	}
	p.guaranteed = others(ch, len(c.Ports)) + own
	have := ch.down(m.Buffer)
	if have <= own+p.skid {
		return &units.FieldError{
			Field: "buffer", Value: fmt.Sprintf("%d B = %d cells of %d B", m.Buffer, have, ch.cell), Allowed: fmt.Sprintf("more than %d cells", own+p.skid),
			Because: fmt.Sprintf("guarantees %d cells + headroom %d cells, in which frames of %d B and more take whole cells", own, p.skid, smallestFrame),
		}
	}
	p.shared = have - own - p.skid
	// The chip's threshold must leave room for a packet and for the hysteresis.
	need := p.hysteresis + ch.up(m.MTU+c.bridged) + 1
	var top uint64
	var err error
	field, value := "alpha", m.Alpha.String()
	if m.Policy == headroom.Static {
		field, value = "threshold", fmt.Sprintf("%d B", m.Threshold)
		p.share, p.limit = "DISABLE", ch.down(m.Threshold)
		top = p.limit
		if top > p.shared {
			return wrong(field, fmt.Sprintf("%s = %d cells", value, top), fmt.Sprintf("up to the %d cells of the shared pool", p.shared))
		}
	} else {
		if p.share, err = share(m.Alpha); err != nil {
			return err
		}
		if m.Alpha >= 0 {
			top = p.shared * (1 << m.Alpha) / (1<<m.Alpha + 1)
		} else {
			top = p.shared / (1<<-m.Alpha + 1)
		}
	}
	if top < need {
		return &units.FieldError{
			Field: field, Value: value, Allowed: fmt.Sprintf("what lets a group alone hold %d cells or more", need),
			Because: fmt.Sprintf("of the shared pool of %d cells it gets %d, and %d cells of hysteresis and one frame have to fit", p.shared, top, p.hysteresis),
		}
	}
	return nil
}

// fits makes sure that every pipe has enough priority groups.
func (p *policy) fits(c *config) error {
	type half struct {
		pipe  uint32
		upper bool // the ports from 40 on of Tofino 2 have separate groups
	}
	used := map[half]uint64{}
	for i, port := range c.Ports {
		h, most := half{pipe: pipeOf(port.Number)}, uint64(groupsPerPipe)
		if p.chip.name == Tofino2 {
			h.upper, most = port.Number&0x7f >= 40, groupsPerPipe/2
		}
		if used[h] += p.ports[i].groups(); used[h] > most {
			return &units.FieldError{
				Field: "lossless", Value: fmt.Sprintf("%d classes", p.ports[i].groups()), Allowed: fmt.Sprintf("up to %d priority groups", most),
				Because: fmt.Sprintf("pipe %d needs %d or more for its ports", h.pipe, used[h]),
			}
		}
	}
	return nil
}

// pools adds the rows of the device.
func (p *policy) pools(s *settings) {
	size := func(pool string, cells uint64) {
		s.device(tablePool, bfrt.Fields{text("pool", pool)}, bfrt.Fields{number("size_cells", cells)})
	}
	size(appPool, p.shared)
	size(skidPool, p.skid)
	limit := p.shared
	if p.mmu != nil {
		limit = limit / step * step
	}
	for class := range headroom.Classes {
		s.device(tableAppPFC, bfrt.Fields{text("pool", appPool), number("cos", uint64(class))}, bfrt.Fields{number("pfc_limit_cells", limit)})
	}
	if p.chip.reserved == 0 {
		return
	}
	size(minPool, p.guaranteed)
	most := p.chip.ingressMost
	if p.mmu != nil {
		most = p.chip.cells // the pools already limit ingress
	}
	s.device(tableChip, nil, bfrt.Fields{number("ig_buffer_limit_cells", most)})
}

// port adds the rows of a port's ingress.
func (p *policy) port(s *settings, c *config, i int) {
	port, at := c.Ports[i].Number, p.ports[i]
	mode, classes := "NONE", uint64(at.lossless)
	switch {
	case at.pause:
		mode, classes = "PAUSE", 0
	case at.lossless != 0:
		mode = "PFC"
	}
	s.device(tablePort, devPort(port), bfrt.Fields{number("skid_limit_cells", at.total)})
	s.device(tableFlow, devPort(port), bfrt.Fields{text("mode_tx", mode), {Name: "cos_to_icos", Value: []uint32{0, 1, 2, 3, 4, 5, 6, 7}}})
	s.device(tableMAC, bfrt.Fields{number("$DEV_PORT", uint64(port))}, bfrt.Fields{
		number("$TX_PFC_EN_MAP", classes), number("$RX_PFC_EN_MAP", classes), flag("$TX_PAUSE_FRAME_EN", at.pause), flag("$RX_PAUSE_FRAME_EN", at.pause),
	})
	pool := func(guaranteed, limit uint64, share string) bfrt.Fields {
		return bfrt.Fields{
			number("guaranteed_cells", guaranteed), number("hysteresis_cells", p.hysteresis),
			text("pool_id", appPool), number("pool_max_cells", limit), text("dynamic_baf", share),
		}
	}
	s.device(tableDefault, devPort(port), pool(at.rest, p.limit, p.share))
	limit, share := p.limit, p.share
	if p.whole[port] {
		limit, share = p.shared, "DISABLE"
	}
	for class := range headroom.Classes {
		if at.lossless>>class&1 == 0 {
			continue
		}
		data := append(bfrt.Fields{flag("pfc_enable", true), number("pfc_skid_max_cells", at.group)}, pool(p.private, limit, share)...)
		for x := range headroom.Classes {
			data = append(data, flag(icos(x), x == class))
		}
		s.add(want{Row: bfrt.Row{Table: tableGroup, Pipe: pipeOf(port), Action: "dev_port", Data: data}, port: port, class: class})
	}
}

// queues adds the rows of a port's egress.
func (c *config) queues(s *settings, i int) {
	port := c.Ports[i].Number
	limits := map[int]uint64{}
	for _, l := range c.QueueLimits {
		if l.Port == port && c.bounds(s.chip, l) {
			limits[l.Queue] = s.chip.down(l.Bytes)
		}
	}
	for q := range queues {
		add := func(w want) {
			w.Pipe, w.port, w.queue = pipeOf(port), port, q
			s.add(w)
		}
		lossless := c.lossless(q)
		cos := uint64(0)
		if lossless {
			cos = uint64(q)
		}
		add(want{Row: bfrt.Row{Table: tableQueue, Data: bfrt.Fields{number("pfc_cos", cos)}}})
		if cells, limited := limits[q]; limited {
			add(want{Row: bfrt.Row{Table: tableEgress, Action: "shared_pool", Data: bfrt.Fields{
				flag("tail_drop_enable", true), number("guaranteed_cells", 0),
				text("pool_id", "EG_APP_POOL_0"), number("pool_max_cells", cells), text("dynamic_baf", "DISABLE"),
			}}})
		} else {
			add(want{plain: true, Row: bfrt.Row{Table: tableEgress, Action: "shared_pool", Data: bfrt.Fields{flag("tail_drop_enable", !lossless)}}})
		}
		if c.Queues > 0 {
			level := fmt.Sprint(c.level(q))
			sched := bfrt.Fields{text("min_priority", level), text("max_priority", level)}
			if w := c.Weights[q]; w > 0 {
				sched = append(sched, number("dwrr_weight", uint64(w)))
			}
			add(want{Row: bfrt.Row{Table: tableSched, Data: sched}})
		}
	}
}

// level returns the priority of a queue: queues with weights share the lowest.
func (c *config) level(q int) (level int) {
	q = min(q, c.Queues-1)
	if c.Weights == (externs.Weights{}) {
		return q
	}
	if c.Weights[q] > 0 {
		return 0
	}
	for below := range q {
		if c.Weights[below] == 0 {
			level++
		}
	}
	return level + 1
}

// filters adds the rows of a port in the program's filters.
func (c *config) filters(s *settings, i int) {
	for name, t := range c.Filters {
		ns := float32(t.Seconds() * 1e9)
		s.add(want{filter: true, Row: bfrt.Row{Table: name, Pipe: bfrt.AllPipes, Key: bfrt.Fields{number("$LPF_INDEX", uint64(c.Ports[i].Number))}, Data: bfrt.Fields{
			text("$LPF_SPEC_TYPE", "SAMPLE"),
			{Name: "$LPF_SPEC_GAIN_TIME_CONSTANT_NS", Value: ns}, {Name: "$LPF_SPEC_DECAY_TIME_CONSTANT_NS", Value: ns},
			number("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 0),
		}}})
	}
}

// Tables of the traffic manager and of ports that are written.
const (
	tableChip    = "tm.cfg"
	tablePool    = "tm.pool.cfg"
	tableAppPFC  = "tm.pool.app_pfc"
	tablePort    = "tm.port.buffer"
	tableFlow    = "tm.port.flowcontrol"
	tableDefault = "tm.port.dpg"
	tableGroup   = "tm.ppg.cfg"
	tableQueue   = "tm.queue.cfg"
	tableEgress  = "tm.queue.buffer"
	tableSched   = "tm.queue.sched_cfg"
	tableMAC     = "$PORT"
	// tablePlace maps a port to its queues; it is only read.
	tablePlace = "tm.port.cfg"
)

const (
	appPool  = "IG_APP_POOL_0"
	skidPool = "IG_SKID_POOL"
	minPool  = "IG_EG_GUARANTEED_MIN"
)

// settings are the rows that a chip is to hold. They do not change once made.
type settings struct {
	chip  *chip
	ports []uint32
	// rows are complete, except for the keys of groups and queues, which depend on the chip.
	rows []want
	// reserved is the number of cells that the policy needs.
	reserved uint64
	policy   string
}

// want is a row of the desired state.
type want struct {
	bfrt.Row
	port   uint32 // the port of a group or queue
	class  int    // the class (iCoS) of a group
	queue  int    // the number of a queue
	plain  bool   // in tableEgress: use the chip's default values
	filter bool   // Table is a filter's name in the program
}

func (s *settings) add(w want) { s.rows = append(s.rows, w) }

// device adds a row for the whole device.
func (s *settings) device(table string, key, data bfrt.Fields) {
	s.add(want{Row: bfrt.Row{Table: table, Pipe: bfrt.AllPipes, Key: key, Data: data}})
}

func number(name string, v uint64) bfrt.Named { return bfrt.Named{Name: name, Value: uint64(v)} }
func text(name, v string) bfrt.Named          { return bfrt.Named{Name: name, Value: v} }
func flag(name string, v bool) bfrt.Named     { return bfrt.Named{Name: name, Value: v} }

func devPort(p uint32) bfrt.Fields { return bfrt.Fields{number("dev_port", uint64(p))} }

func pipeOf(port uint32) uint32 { return port >> 7 }

func icos(class int) string { return fmt.Sprintf("icos_%d", class) }

func sortPorts(list []uint32) []uint32 {
	slices.SortFunc(list, cmp.Compare[uint32])
	return list
}
