package tofino

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
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

const (
	appPool  = "IG_APP_POOL_0"
	skidPool = "IG_SKID_POOL"
	minPool  = "IG_EG_GUARANTEED_MIN"
)

// settings are the rows that a chip is to hold. They do not change once made.
type settings struct {
	chip  *chip
	ports []uint32
	// rows are complete but for those of groups and queues, whose keys the chip decides on.
	rows []want
	// reserved are the cells that the policy counts on, of which a chip needs enough.
	reserved uint64
	policy   string
}

// want is a row that is wanted.
type want struct {
	bfrt.Row
	port   uint32 // of groups and queues
	class  int    // of groups: iCoS
	queue  int    // of queues
	plain  bool   // of tableEgress: the chip's default values
	filter bool   // Table is a filter's name in the program
}

func (s *settings) add(w want) { s.rows = append(s.rows, w) }

// device adds a row of the whole device.
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
