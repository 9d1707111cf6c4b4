package softswitch

import (
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	wait := func() {
		t.Helper()
		select {
		case <-a.C:
		case <-time.After(hang):
			t.Fatal("the alarm did not go off")
		}
	}
	start := time.Now()
	a.set(time.Hour)
	a.set(2 * time.Millisecond) // replaces the alarm in an hour
	wait()
	if d := time.Since(start); d < 2*time.Millisecond {
		t.Errorf("went off after %v, want 2ms", d)
	}
	a.set(-time.Second) // a time in the past means now
	wait()
}

// BenchmarkAlarm measures how late an alarm of 200 µs goes off.
func BenchmarkAlarm(b *testing.B) {
	a, err := newAlarm()
	if err != nil {
		b.Fatal(err)
	}
	defer a.close()
	const d = 200 * time.Microsecond
	var late time.Duration
	for range b.N {
		start := time.Now()
		a.set(d)
		<-a.C
		late += time.Since(start) - d
	}
	b.ReportMetric(float64(late.Microseconds())/float64(b.N), "us-late")
}
