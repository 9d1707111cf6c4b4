package tofino

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/headroom"
)

const tablePauses = "$PORT_STAT"

// Names of fields of tablePauses.
const (
	portFrames = "$FramesTransmittedPause"
	pfcFrames  = "$FramesTransmittedPriPause"
)

func pauseTime(class int) string { return fmt.Sprintf("$TransmitPri%dPause1USCount", class) }

// Pauses reads the MACs of some ports, all in one request. It reads the MACs themselves: what
// the driver remembers of them may be older than a period of SPFC. It does not wait for other
// calls' turns.
func (d *Driver) Pauses(ctx context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error) {
	fields := bfrt.Fields{{Name: portFrames}, {Name: pfcFrames}}
	for c := range headroom.Classes {
		fields = append(fields, bfrt.Named{Name: pauseTime(c)})
	}
	ask := make([]bfrt.Row, len(ports))
	for i, p := range ports {
		ask[i] = bfrt.Row{Table: tablePauses, Pipe: bfrt.AllPipes, Key: bfrt.Fields{number("$DEV_PORT", uint64(p))}, Data: fields, Fresh: true}
	}
	rows, err := d.client.Read(ctx, ask...)
	if err != nil {
		return nil, fmt.Errorf("switch %s: pauses of ports: %w", d.opts.Name, err)
	}
	read := make(map[uint32]trafficmanager.PauseCounters, len(rows))
	for _, r := range rows {
		p := trafficmanager.PauseCounters{Frames: r.Data.Uint(pfcFrames), PortFrames: r.Data.Uint(portFrames)}
		for c := range p.Time {
			p.Time[c] = time.Duration(r.Data.Uint(pauseTime(c))) * time.Microsecond
		}
		read[uint32(r.Key.Uint("$DEV_PORT"))] = p
	}
	for _, p := range ports {
		if _, known := read[p]; !known {
			return nil, fmt.Errorf("switch %s: pauses of ports: %s: nothing came of port %d", d.opts.Name, tablePauses, p)
		}
	}
	return read, nil
}
