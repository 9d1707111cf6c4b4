// Package sonic exports the buffer policy of a switch as the equivalent part of SONiC's CONFIG_DB, and imports a
// CONFIG_DB as far as a policy can express it. The tables follow sonic-buildimage's src/sonic-yang-models.
// docs/operate/sonic.md maps their fields to our keys.
//
// A SONiC switch counts at its ingress, as package headroom does: a priority group is a queue of a
// port, dynamic_th is the exponent of α, xoff is Φ. The pool's xoff is the sum of all Φ, so that no
// priority group borrows from another. With less, they share a pool of headroom, which is nearest to DSH.
package sonic

import (
	"time"

	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/units"
)

// DB is a part of a CONFIG_DB: the values by table, key and field.
type DB map[string]map[string]map[string]string

func (db DB) put(table, key string, row map[string]string) {
	if db[table] == nil {
		db[table] = map[string]map[string]string{}
	}
	db[table][key] = row
}

// Names of tables, and of the rows that are Headgate's.
const (
	tablePool    = "BUFFER_POOL"
	tableProfile = "BUFFER_PROFILE"
	tablePG      = "BUFFER_PG"
	tableQueue   = "BUFFER_QUEUE"
	tablePort    = "PORT"
	tableCable   = "CABLE_LENGTH"
	tablePortQoS = "PORT_QOS_MAP"
	tableDSCP    = "DSCP_TO_TC_MAP"
	tableTCQueue = "TC_TO_QUEUE_MAP"
	tableTCPG    = "TC_TO_PRIORITY_GROUP_MAP"
	tablePFC     = "MAP_PFC_PRIORITY_TO_QUEUE"
	tablePFCPG   = "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"
	tablePFCWD   = "PFC_WD"
	tableWRED    = "WRED_PROFILE"
	tableEgress  = "QUEUE"
	tableSched   = "SCHEDULER"

	ingressPool, egressPool       = "ingress_lossless_pool", "egress_lossless_pool"
	ingressLossy                  = "ingress_lossy_profile"
	egressLossless, egressLossy   = "egress_lossless_profile", "egress_lossy_profile"
	mapName                       = "headgate"
	cables                        = "AZURE" // the name that SONiC gives a switch's own maps
	watchdogGlobal, watchdogEvery = "GLOBAL", "POLL_INTERVAL"
)

// owned are the tables that are read; all but tablePFCPG are written, of PORT only some fields.
var owned = []string{tablePool, tableProfile, tablePG, tableQueue, tablePort, tableCable, tablePortQoS, tableDSCP, tableTCQueue, tableTCPG, tablePFC, tablePFCPG, tablePFCWD, tableWRED, tableEgress, tableSched}

// Limits of SONiC's YANG.
const (
	minAlpha              headroom.Alpha = -8
	minFrame, maxFrame                   = 68 * units.Byte, 9216 * units.Byte
	defaultFrame                         = 9100 // MTU of a PORT without mtu: DEFAULT_MTU of sonic-swss' portmgrd
	maxSpeed                             = 1_600_000 * units.Mbps
	minWatch, maxDetect                  = 100 * time.Millisecond, 5 * time.Second
	maxRestore, maxPolls                 = time.Minute, 200 * time.Millisecond
	dscps, trafficClasses                = 64, 16
	maxWeight                            = 100 // largest weight of a SCHEDULER
)

const metre = buffer.Metre

type port struct {
	number             uint32
	index, name, lanes string
	lossless           uint8
}

type policy struct {
	mmu      headroom.Config          // its ports are at line rate, their delays whole metres
	ports    []port                   // in the order of mmu.Ports
	own      map[uint32]*[dscps]uint8 // traffic classes of DSCPs at ports that have others
	weights  externs.Weights
	tc       [dscps]uint8            // traffic class of each DSCP
	traffic  map[uint8]qos.Class     // class and queue of each traffic class that some DSCP maps to
	queue    [headroom.Classes]uint8 // queue of each class; the queue of the same number if no DSCP has the class
	marks    [][]qos.ECN             // ECN curves of each port
	watchdog pfcwatchdog.Config      // without DetectionTime there is none
}

// losslessQueues returns the egress queues of lossless classes, a bit for each.
func (p *policy) losslessQueues() (mask uint8) {
	for class, queue := range p.queue {
		if p.mmu.Lossless>>class&1 != 0 {
			mask |= 1 << queue
		}
	}
	return mask
}

// link returns the speed and cable of a port in SONiC's form, and the name of buffermgrd's profile for
// them. buffermgrd uses an existing profile of that name and makes no other.
func (p *policy) link(i int) (speed, cable, profile string) {
	speed = num(p.mmu.Ports[i].Rate / units.Mbps)
	cable = num(p.mmu.Ports[i].Delay/metre) + "m"
	return speed, cable, "pg_lossless_" + speed + "_" + cable + "_profile"
}
