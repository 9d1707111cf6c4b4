package device

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/p4runtime/gnmiport"
	"github.com/headgate/headgate/controller/p4runtime/session"
)

// portStateName is the capability that says where the states of a switch's ports come from.
const portStateName = "port_state"

// askAgain is the wait before a switch that has reported its ports before is asked again.
const askAgain = 5 * time.Second

// followPorts passes on the port states that the switch reports, until the connection ends. A switch that reports
// none is not asked again before the next connection.
func (d *Device) followPorts(ctx context.Context, conn grpc.ClientConnInterface) {
	numbers := gnmiport.OpenConfig
	if d.opts.Switch.Target.Chip() != "" {
		numbers = gnmiport.Stratum
	}
	d.notePorts("not asked yet", nil)
	for {
		told := false
		err := gnmiport.Follow(ctx, conn, numbers, func(ports map[uint32]pb.PortStatus_State) {
			told = true
			d.notePorts("", ports)
		})
		if ctx.Err() != nil {
			if !errors.Is(context.Cause(ctx), session.ErrStopped) {
				d.notePorts("not asked yet", nil)
			}
			return
		}
		d.notePorts(noPorts(err), nil)
		if !told {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
}

// noPorts returns why a switch does not report its ports.
func noPorts(err error) string {
	st := status.Convert(err)
	if st.Code() == codes.Unimplemented {
		return "the switch serves no gNMI at its address, or its gNMI shows no ports"
	}
	return st.Message()
}

// notePorts keeps a switch's port states, or why there are none.
func (d *Device) notePorts(why string, ports map[uint32]pb.PortStatus_State) {
	c := lacks(portStateName, why+"; probes monitor links between switches")
	if why == "" {
		c = has(portStateName, pb.ByTarget, "gNMI, interfaces' oper-status")
	}
	d.mu.Lock()
	d.portState = c
	d.mu.Unlock()
	d.opts.Ports(ports)
}
