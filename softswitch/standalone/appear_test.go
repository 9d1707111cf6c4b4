package standalone

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/softswitch/port"
)

func TestAppear(t *testing.T) {
	missing := errors.New("no such network interface")
	for _, c := range []struct {
		name        string
		wait, after time.Duration // until eth2 is there
		files       bool
		ended       bool
		err         string
		took        time.Duration
	}{
		{"all are there", time.Minute, 0, false, false, "", 0},
		{"one comes later", time.Minute, 5 * time.Second, false, false, "", 5 * time.Second},
		{"one does not come in time", 3 * time.Second, time.Hour, false, false, "--interface 2@eth2: no such network interface, not after --interface-wait 3s either", 3 * time.Second},
		{"files are opened by their names", time.Minute, time.Hour, true, false, "", 0},
		{"the switch is stopped", time.Minute, time.Hour, false, true, "context canceled", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.ended {
					cancel()
				}
				o := Options{Interfaces: []port.Named{{Number: 1, Name: "eth1"}, {Number: 2, Name: "eth2"}}, InterfaceWait: c.wait, UseFiles: c.files}
				start := time.Now()
				err := o.appear(ctx, func(name string) (*net.Interface, error) {
					if name == "eth2" && time.Since(start) < c.after {
						return nil, missing
					}
					return nil, nil
				})
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				if took := time.Since(start); took < c.took || took > c.took+100*time.Millisecond {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}
