package trafficmanager

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/headgate/headgate/controller/bfrt"
)

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
	// tablePlace says where a port's queues are; it is only read.
	tablePlace = "tm.port.cfg"
)

// MaxQDFilter is the program's filter that maxQD's stamps go through, one cell per port. A
// schema may have the name of the pipe before it.
const MaxQDFilter = "egress.maxqd.delay_filter"

const (
	appPool  = "IG_APP_POOL_0"
	skidPool = "IG_SKID_POOL"
	minPool  = "IG_EG_GUARANTEED_MIN"
)

// Settings are the rows that a chip is to hold. They do not change once made, and any
// number of goroutines may read them.
type Settings struct {
	chip  *chip
	ports []uint32
	// rows are complete but for those of groups and queues, whose keys the chip decides on.
	rows []want
	// reserved are the cells that the policy counts on, of which a chip needs enough.
	reserved uint64
	policy   string
	config   Config // that they are the shape of
	// root are the settings that these differ from in nothing but victims, by WithVictims;
	// otherwise themselves.
	root *Settings
}

// WithVictims returns the settings with some ports being those that SPFC gives the whole
// shared pool, and no others. The error is as Shape's.
func (s *Settings) WithVictims(ports []uint32) (*Settings, error) {
	if slices.Equal(ports, s.config.Victims) {
		return s, nil
	}
	c := s.config
	c.Victims = slices.Clone(ports)
	other, err := Shape(c)
	if err == nil {
		other.root = s.root
	}
	return other, err
}

// want is a row that is wanted.
type want struct {
	bfrt.Row
	port  uint32 // of groups and queues
	class int    // of groups: iCoS
	queue int    // of queues
	plain bool   // of tableEgress: the chip's default values
}

// Rows returns the rows as lines for people, sorted.
func (s *Settings) Rows() []string {
	var lines []string
	for _, w := range s.rows {
		line := w.String()
		switch w.Table {
		case tableGroup:
			line = fmt.Sprintf("%s port %d class %d → %s", w.Table, w.port, w.class, w.Data)
		case tableQueue, tableEgress, tableSched:
			data := w.Data.String()
			if w.plain {
				data = "default"
			}
			line = fmt.Sprintf("%s port %d queue %d → %s", w.Table, w.port, w.queue, data)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// Groups returns how many priority groups are wanted.
func (s *Settings) Groups() int {
	n := 0
	for _, w := range s.rows {
		if w.Table == tableGroup {
			n++
		}
	}
	return n
}

func (s *Settings) add(w want) { s.rows = append(s.rows, w) }

// device adds a row of the whole device.
func (s *Settings) device(table string, key, data bfrt.Fields) {
	s.add(want{Row: bfrt.Row{Table: table, Pipe: bfrt.AllPipes, Key: key, Data: data}})
}

func number(name string, v uint64) bfrt.Named { return bfrt.Named{Name: name, Value: bfrt.Uint(v)} }
func text(name, v string) bfrt.Named          { return bfrt.Named{Name: name, Value: bfrt.String(v)} }
func flag(name string, v bool) bfrt.Named     { return bfrt.Named{Name: name, Value: bfrt.Bool(v)} }

func devPort(p uint32) bfrt.Fields { return bfrt.Fields{number("dev_port", uint64(p))} }

func pipeOf(port uint32) uint32 { return port >> 7 }

func icos(class int) string { return fmt.Sprintf("icos_%d", class) }

func sortPorts(list []uint32) []uint32 {
	slices.SortFunc(list, cmp.Compare[uint32])
	return list
}
