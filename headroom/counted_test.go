package headroom

import (
	"testing"

	"github.com/headgate/headgate/units"
)

// counted returns an MMU like SwitchMmu of HPCC's public simulator: 1 MB, two ports, a reserve of 4 KiB, headroom of 10
// kB.
func counted(t *testing.T, change func(*Config)) *MMU {
	t.Helper()
	c := Config{
		Policy: DT, Buffer: 1_000_000, Lossless: 1 << 3, Private: 4096, Headroom: 10_000, Alpha: -3, ResumeGap: 3072, Counted: true, AllowLoss: true,
		Ports: []Port{{Rate: 100 * units.Gbps}, {Rate: 100 * units.Gbps}},
	}
	change(&c)
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fill lets packets of 1000 B arrive at a port until the MMU refuses one or most have arrived. It returns the number
// admitted, and after which packet the port was paused; 0 for never.
func fill(m *MMU, port, most int) (took, paused int) {
	for took < most {
		if ok, _ := m.Arrive(0, port, 3, 1000); !ok {
			return took, paused
		}
		if took++; paused == 0 && m.Paused(port) != 0 {
			paused = took
		}
	}
	return took, paused
}

// With α = 1/8 and S bytes to share, a single port is paused at S/9 of shared memory, then uses its headroom, and loses
// the next packet.
func TestCountedThreshold(t *testing.T) {
	m := counted(t, func(*Config) {})
	const pool = 1_000_000 - 2*10_000 - 2*4096
	took, paused := fill(m, 0, 2000)
	shared := (pool/9 + 999) / 1000 // in packets of 1000 B: the first at which shared ≥ T
	if want := 4 + shared; paused < want-1 || paused > want {
		t.Errorf("paused after %d packets, want %d: 4 of the reserve and %d shared", paused, want, shared)
	}
	if want := paused + 10; took < want || took > want+1 {
		t.Errorf("took %d packets, want %d: those and 10 of the headroom", took, want)
	}
}

// Nothing keeps the sum within the memory: a victim's threshold is the whole buffer, whatever others hold. The same is
// true of a static threshold.
func TestCountedDoesNotHold(t *testing.T) {
	victim := counted(t, func(c *Config) { c.Policy, c.Ports[0].Victim = SPFC, true })
	victim.Arrive(0, 0, 3, 1000)
	victim.Depart(0, 0, 3, 1000) // a port is a victim from its first departure on
	took, _ := fill(victim, 0, 2000)
	if _, other := fill(victim, 1, 2000); took < 1000 || other != 1 {
		t.Errorf("the victim's port took %d packets, want 1000 and more; the other was paused after %d, want 1", took, other)
	}
	static := counted(t, func(c *Config) { c.Policy, c.Threshold = Static, 900_000 })
	for port := range 2 {
		if _, paused := fill(static, port, 2000); paused < 903 || paused > 905 {
			t.Errorf("port %d paused after %d packets, want 904: the reserve and its threshold", port, paused)
		}
	}
	for _, m := range []*MMU{victim, static} {
		if m.Usage().Total() <= 1_000_000 {
			t.Errorf("all queues hold %v, want more than the memory", m.Usage().Total())
		}
		if err := m.Audit(); err != nil {
			t.Error(err)
		}
	}
}

// Only a queue's own departures resume it, at 3 KiB below the threshold or without shared memory. Lossy classes are not
// counted.
func TestCountedResume(t *testing.T) {
	m := counted(t, func(*Config) {})
	_, first := fill(m, 0, 50)
	fill(m, 1, 200)
	fill(m, 0, 60)
	if first != 0 || m.Paused(0) == 0 || m.Paused(1) == 0 {
		t.Fatal("want both ports paused")
	}
	used := m.Usage()
	if ok, signals := m.Arrive(0, 0, 0, 5_000_000); !ok || signals != nil || m.Usage() != used {
		t.Error("a lossy packet is counted or refused")
	}
	for m.Queue(1, 3).Total() > 0 {
		if signals := m.Depart(0, 1, 3, 1000); len(signals) > 0 && signals[0].Port == 0 {
			t.Fatal("port 0 is resumed by a departure of port 1")
		}
	}
	if m.Paused(0) == 0 {
		t.Fatal("port 0 is resumed by departures of port 1")
	}
	for m.Paused(0) != 0 {
		before := m.Queue(0, 3)
		m.Depart(0, 0, 3, 1000)
		resumed := m.Paused(0) == 0
		if after := m.Queue(0, 3); resumed != (after.Headroom == 0 && (after.Shared == 0 || after.Shared+3072 <= m.Threshold())) {
			t.Errorf("holding %+v after %+v with a threshold of %v: resumed is %v", after, before, m.Threshold(), resumed)
		}
	}
}

func TestCountedFaults(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"loss not allowed": func(c *Config) { c.AllowLoss = false },
		"DSH":              func(c *Config) { c.Policy = DSH },
	} {
		c := Config{Policy: DT, Buffer: 1_000_000, Lossless: 1, Headroom: 10_000, Counted: true, AllowLoss: true, Ports: []Port{{Rate: units.Gbps}}}
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
