package dcqcn_test

import (
	"testing"

	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/units"
)

// §3.1: one CNP per window in which a packet was marked, the last one included.
func TestNotificationPoint(t *testing.T) {
	const gap = 50 * us
	for _, tt := range []struct{ marks, sent []units.Time }{
		{nil, nil},
		{[]units.Time{7 * us}, []units.Time{7 * us}},
		{[]units.Time{0, 1 * us}, []units.Time{0, 50 * us}},
		{[]units.Time{0, 1 * us, 49 * us}, []units.Time{0, 50 * us}},
		{[]units.Time{0, 50 * us}, []units.Time{0, 50 * us}},
		{[]units.Time{0, 10 * us, 60 * us, 90 * us, 200 * us}, []units.Time{0, 50 * us, 100 * us, 200 * us}},
	} {
		var n dcqcn.NotificationPoint
		var sent []units.Time
		expire := func(until units.Time) {
			for at := n.Due(); at <= until; at = n.Due() {
				if n.Expired(at-1, gap) {
					t.Errorf("%v: sent before its time", tt.marks)
				}
				if n.Expired(at, gap) {
					sent = append(sent, at)
				}
			}
		}
		for _, at := range tt.marks {
			expire(at)
			if n.Marked(at, gap) {
				sent = append(sent, at)
			}
		}
		expire(units.Second)
		if len(sent) != len(tt.sent) {
			t.Errorf("marks at %v: CNPs at %v, want %v", tt.marks, sent, tt.sent)
			continue
		}
		for i := range sent {
			if sent[i] != tt.sent[i] {
				t.Errorf("marks at %v: CNPs at %v, want %v", tt.marks, sent, tt.sent)
			}
		}
	}
}
