package standalone

import (
	"context"
	"fmt"
	"net"
	"time"
)

// appear waits until all interfaces exist, for at most --interface-wait. Containers and virtual
// machines get their interfaces after their programs have started.
func (o *Options) appear(ctx context.Context, find func(name string) (*net.Interface, error)) error {
	if o.UseFiles {
		return nil
	}
	end := time.NewTimer(o.InterfaceWait)
	defer end.Stop()
	for _, p := range o.Interfaces {
		for {
			_, err := find(p.Name)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-end.C:
				return fmt.Errorf("--interface %d@%s: %w, not after --interface-wait %v either", p.Number, p.Name, err, o.InterfaceWait)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}
