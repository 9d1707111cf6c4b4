package law_test

import (
	"testing"

	"github.com/headgate/headgate/hosts/law"
)

func TestRound(t *testing.T) {
	var r law.Round
	for i, tt := range []struct {
		acked, sent uint64
		want        bool
	}{
		{1000, 4000, false}, // begins the first round
		{4000, 7000, false}, // bytes before 4000 were sent before the round began
		{5000, 8000, true},
		{8000, 9000, false},
		{9000, 12000, true},
		{9000, 12000, false}, // a duplicate
	} {
		if got := r.Passed(&law.Ack{AckedSeq: tt.acked, SentSeq: tt.sent}); got != tt.want {
			t.Errorf("step %d, acked %d: passed %v, want %v", i, tt.acked, got, tt.want)
		}
	}
	r.Begin(20000)
	if r.Passed(&law.Ack{AckedSeq: 20000, SentSeq: 30000}) || !r.Passed(&law.Ack{AckedSeq: 21000, SentSeq: 30000}) {
		t.Error("a round that was begun by hand does not end after its first byte")
	}
}
