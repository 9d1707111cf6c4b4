package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/controller/view"
)

// buffer shows a switch's buffer. A class that is not lossless is shown while it holds
// something, since most of the eight never do.
func buffer(ch chan<- prometheus.Metric, name string, b *view.Buffer) {
	if len(b.Ports) == 0 {
		return
	}
	for _, p := range []struct {
		pool             string
		size, used, peak uint64
	}{
		{"private", b.Size.Private, b.Used.Private, b.Peak.Private},
		{"shared", b.Size.Shared, b.Used.Shared, b.Peak.Shared},
		{"headroom", b.Size.Headroom, b.Used.Headroom, b.Peak.Headroom},
		{"insurance", b.Size.Insurance, b.Used.Insurance, b.Peak.Insurance},
	} {
		bufferSize.send(ch, float64(p.size), name, b.Policy, p.pool)
		bufferUsed.send(ch, float64(p.used), name, p.pool)
		bufferPeak.send(ch, float64(p.peak), name, p.pool)
	}
	bufferThreshold.send(ch, float64(b.Threshold), name)
	alarms := map[string]int{}
	for _, kind := range view.AlarmKinds() {
		alarms[kind] = 0
	}
	for _, a := range b.Alarms {
		alarms[a.Kind]++
	}
	for kind, n := range alarms {
		bufferAlarms.send(ch, float64(n), name, kind)
	}
	for i := range b.Ports {
		portBuffer(ch, name, &b.Ports[i])
	}
}

func portBuffer(ch chan<- prometheus.Metric, name string, p *view.PortBuffer) {
	port := []string{name, number(p.Number), p.Peer}
	with := func(labels ...string) []string { return append(port[:3:3], labels...) }
	pfcPauses.send(ch, float64(p.Pauses), port...)
	pfcResumes.send(ch, float64(p.Resumes), port...)
	pfcRefreshes.send(ch, float64(p.Refreshes), port...)
	pfcLate.send(ch, p.Late.Seconds(), port...)
	pfcMostLate.send(ch, p.MostLate.Seconds(), port...)
	pfcDeparted.send(ch, float64(p.Departed), port...)
	pfcVictim.send(ch, truth(p.Victim), port...)
	pfcTurns.send(ch, float64(p.Turns), port...)
	for class := range len(p.PausedTime) {
		c := strconv.Itoa(class)
		if p.Lossless>>class&1 != 0 {
			pfcPaused.send(ch, truth(p.Paused>>class&1 != 0), with(c)...)
			pfcTime.send(ch, p.PausedTime[class].Seconds(), with(c)...)
			pfcDrops.send(ch, float64(p.LosslessDrops[class]), with(c)...)
		} else if p.Private[class]+p.Shared[class] == 0 {
			continue
		}
		pfcQueue.send(ch, float64(p.Private[class]), with(c, "private")...)
		pfcQueue.send(ch, float64(p.Shared[class]), with(c, "shared")...)
		pfcQueue.send(ch, float64(p.Headroom[class]), with(c, "headroom")...)
	}
}
