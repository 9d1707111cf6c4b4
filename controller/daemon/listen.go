package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/headgate/headgate/controller/northbound"
)

// listeners are the daemon's open addresses.
type listeners struct {
	api     []net.Listener
	metrics net.Listener // nil when off
}

func (l *listeners) close() {
	for _, a := range l.api {
		_ = a.Close()
	}
	if l.metrics != nil {
		_ = l.metrics.Close()
	}
}

func (o Options) listen(ctx context.Context) (*listeners, error) {
	l := &listeners{}
	if err := o.open(ctx, l); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// open opens every address into l, up to the first that cannot be had.
func (o Options) open(ctx context.Context, l *listeners) error {
	c := o.Config.Controller
	api, err := northbound.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	l.api = append(l.api, api)
	if o.Socket != "" {
		// What a daemon that was killed left behind is no listener any more.
		if conn, err := net.Dial("unix", o.Socket); err == nil {
			_ = conn.Close()
			return fmt.Errorf("--socket %s: another process listens there", o.Socket)
		}
		if err := os.Remove(o.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("--socket: %w", err)
		}
		unix, err := (&net.ListenConfig{}).Listen(ctx, "unix", o.Socket)
		if err != nil {
			return fmt.Errorf("--socket %s: %w", o.Socket, err)
		}
		l.api = append(l.api, unix)
	}
	if c.Metrics != "off" {
		if l.metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Metrics); err != nil {
			return fmt.Errorf("controller.metrics %q: %w", c.Metrics, err)
		}
	}
	return nil
}
