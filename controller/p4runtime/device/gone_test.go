package device

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/p4src"
)

// The end of a P4Runtime server tells something about forwarding only if the server is in the
// forwarding process.
func TestGone(t *testing.T) {
	pipe, err := pipeline.Load(p4src.P4Info, p4src.JSON())
	if err != nil {
		t.Fatal(err)
	}
	refused := fmt.Errorf("dial: %w", session.ErrRefused)
	for _, tt := range []struct {
		target config.Target
		role   session.Role
		why    error
		want   bool
	}{
		{config.Embedded, session.Disconnected, refused, true},
		{config.BMv2, session.Disconnected, refused, true},
		{config.Tofino2, session.Disconnected, refused, false},
		{config.Embedded, session.Disconnected, errors.New("stream: EOF"), false},
		{config.Embedded, session.Backup, refused, false},
		{config.Embedded, session.Primary, nil, false},
	} {
		d := New(Options{Switch: config.Switch{Name: "s", Target: tt.target}, Pipeline: pipe})
		handler{d}.Role(tt.role, tt.why)
		if got := d.Health().Gone; got != tt.want {
			t.Errorf("%v, %v (%v): gone is %v, want %v", tt.target, tt.role, tt.why, got, tt.want)
		}
		if never := strings.HasPrefix(d.Status().Error, "never reached: "); never != (tt.role == session.Disconnected) {
			t.Errorf("%v, %v (%v): %q", tt.target, tt.role, tt.why, d.Status().Error)
		}
		handler{d}.Role(session.Backup, nil)
		handler{d}.Role(session.Disconnected, refused)
		if text := d.Status().Error; strings.HasPrefix(text, "never") || !d.Health().Reached {
			t.Errorf("a switch that was reached: %q", text)
		}
	}
}
