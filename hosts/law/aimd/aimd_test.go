package aimd_test

import (
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/aimd"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func TestWindow(t *testing.T) {
	flow := law.Flow{Rate: 100 * units.Gbps, BaseRTT: 10 * us, MSS: 1000}
	l, err := aimd.New(param.For[aimd.Params](flow))
	if err != nil {
		t.Fatal(err)
	}
	seq := uint64(0)
	ack := func(d units.Time) {
		seq += 1000
		l.OnAck(&law.Ack{RTT: 10*us + d, MaxQD: d, Acked: 1000, AckedSeq: seq, SentSeq: seq})
	}
	for i, step := range []struct {
		do   func()
		want units.Bytes
	}{
		{func() { ack(0) }, 10_000}, // begins the first round
		{func() { ack(20 * us) }, 11_000},
		{func() { ack(21 * us) }, 9625},
		{func() { l.OnAck(&law.Ack{RTT: 31 * us, MaxQD: 21 * us, AckedSeq: seq + 1, SentSeq: seq}) }, 9625}, // a duplicate
		{func() { l.OnEvent(law.Loss, 100*us) }, 8421},
		{func() { l.OnEvent(law.Loss, 105*us) }, 8421}, // of the same round trip
		{func() { l.OnEvent(law.CNP, 200*us) }, 8421},
		{func() {
			for range 40 {
				ack(50 * us)
			}
		}, 1000},
	} {
		if step.do(); l.Allowance().Window != step.want {
			t.Errorf("step %d: window %v, want %v", i, l.Allowance().Window, step.want)
		}
	}
	if _, err := aimd.New(aimd.Params{LineRate: 1, MSS: 1000, Delay: us, Increase: 1000, InitialWindow: 1000, Decrease: 1}); err == nil {
		t.Error("a decrease of the whole window is taken")
	}
}
