package emulation

import (
	"fmt"
	"math"
)

func judgeDSH(r *Report) {
	r.noLosslessDrop("oversubscribed")
	sih, dsh := r.Variant("sih"), r.Variant("dsh")
	if sih != nil && dsh != nil {
		r.check(2*dsh.Pause.Frames <= sih.Pause.Frames && sih.Pause.Frames > 0,
			"DSH sends at most half of SIH's PAUSE frames", "%d of %d", dsh.Pause.Frames, sih.Pause.Frames)
	}
	if dsh != nil {
		r.check(dsh.Victim.Lost < 10, "DSH protects the victim: it loses less than 10 %", "%.1f %%", dsh.Victim.Lost)
	}
	if sih != nil && dsh != nil {
		r.check(sih.Victim.Lost > dsh.Victim.Lost+10, "under SIH the victim loses more", "%.1f %%", sih.Victim.Lost)
	}
}

func judgeSPFC(r *Report) {
	r.noLosslessDrop("")
	if dt := r.Variant("dt"); dt != nil {
		r.check(dt.Victim.Lost > 50, "under DT the victim loses more than half of its throughput", "%.1f %%", dt.Victim.Lost)
	}
	if v := r.Variant("spfc"); v != nil {
		r.check(v.Victim.Lost < 10, "under SPFC it loses less than 10 %", "%.1f %%", v.Victim.Lost)
	}
}

// judgePACC judges pacc-paper, because carry: false is the default of a fabric file. DCQCN has no
// set-point, so each law's queue is judged steady at its own level.
func judgePACC(r *Report) {
	p, d := r.Variant("pacc-paper"), r.Variant("dcqcn")
	if p == nil {
		return
	}
	q := p.Queue
	r.check(q.SettledUS != nil, "under PACC with carry: false, the default, the queue settles within 20 % of Qth",
		"%.0f KB, %+.0f %%, %s", q.SettledKB, (q.SettledKB*1e3/float64(r.scenario.Target)-1)*100, after(q.SettledUS))
	a, b := p.Phases[1].Flows[0].Measured, p.Phases[1].Flows[1].Measured
	apart := math.Abs(a-b) / ((a + b) / 2) * 100
	r.check(apart < 10, "the long flows' throughputs differ by less than 10 %", "%.2f and %.2f Gb/s, %.1f %%", a/1e9, b/1e9, apart)
	if d == nil {
		return
	}
	r.check(q.SteadyUS != nil && (d.Queue.SteadyUS == nil || *q.SteadyUS < *d.Queue.SteadyUS),
		"its queue is steady sooner than DCQCN's alone, each within 20 % of its own level",
		"%s against %s", after(q.SteadyUS), after(d.Queue.SteadyUS))
	alone := d.Phases[1].Flows[0].Measured + d.Phases[1].Flows[1].Measured
	r.note("what it costs: the long flows together got %.2f Gb/s, %.2f with DCQCN alone, %+.1f %%, for %d notifications and %d",
		(a+b)/1e9, alone/1e9, ((a+b)/alone-1)*100, p.CNPs, d.CNPs)
	r.note("what it gains: the queue is %.0f … %.0f KB, %.0f … %.0f with DCQCN alone, and the burst is done after %.0f µs, %.0f there",
		q.LowKB, q.HighKB, d.Queue.LowKB, d.Queue.HighKB, p.burst().LastUS, d.burst().LastUS)
}

// after says when something came about.
func after(us *float64) string {
	if us == nil {
		return "never"
	}
	return fmt.Sprintf("after %.0f µs", *us)
}
