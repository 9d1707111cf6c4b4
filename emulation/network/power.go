package network

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/units"
)

// Serve starts every switch's P4Runtime server at its configured address.
func (f *Fabric) Serve() error {
	for _, n := range f.switches {
		if _, err := n.sw.ServeGRPC(n.conf.Address, nil); err != nil {
			return fmt.Errorf("switch %s: %w", n.conf.Name, err)
		}
	}
	return nil
}

// Close ends every switch.
func (f *Fabric) Close() {
	for _, n := range f.switches {
		n.sw.Close()
	}
}

// Restart switches a switch's power off for a while. Its P4Runtime server, program, entries and queued
// packets are gone, and it comes back empty.
func (f *Fabric) Restart(ctx context.Context, name string, away time.Duration) error {
	n := f.switches[name]
	old := n.sw
	dropped, err := pipelineLosses(ctx, n.conf)
	if err != nil {
		return fmt.Errorf("drop counters of switch %s: %w", name, err)
	}
	if err := f.Loop.Do(ctx, func() {
		f.buried.add(dropped)
		f.buried.add(switchLosses(n))
		for _, s := range n.ports {
			s.plug(&unplugged{lost: &f.buried.Switches})
		}
	}); err != nil {
		return err
	}
	old.Close()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(away):
	}
	var failed error
	if err := f.Loop.Do(ctx, func() { failed = f.power(n) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	_, err = n.sw.ServeGRPC(n.conf.Address, nil)
	return err
}

// unplugged is the end of a cable while its switch has no power.
type unplugged struct {
	lost *uint64
}

func (u *unplugged) Attach(softswitch.Sender)   {}
func (u *unplugged) SetUp(bool)                 {}
func (u *unplugged) Receive([]byte, units.Time) { *u.lost++ }
