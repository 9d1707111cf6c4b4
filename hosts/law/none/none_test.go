package none_test

import (
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/units"
)

func TestNone(t *testing.T) {
	l, err := none.New(units.Gbps, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.OnEvent(law.Loss, 1)
	l.OnAck(&law.Ack{CE: true, RTT: units.Second})
	if a := l.Allowance(); a.Rate != units.Gbps || a.Window < units.GB || l.Timer() != units.MaxTime {
		t.Errorf("allowance %+v", a)
	}
	if _, err := none.New(0, 0); err == nil {
		t.Error("a rate of 0 was taken")
	}
	if _, err := none.New(1, -1); err == nil {
		t.Error("a negative window was taken")
	}
}
