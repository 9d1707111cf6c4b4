package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

func (o *options) startVeth(k kind, p *program) (t *target, clean func(), err error) {
	dir, err := os.MkdirTemp(os.Getenv(inside), "veth-")
	if err != nil {
		return nil, nil, err
	}
	remove, err := cables()
	var flags []string
	for port := 1; port <= ports; port++ {
		flags = append(flags, "-i", fmt.Sprintf("%d@%s", port, switchEnd(port)))
	}
	if k == oursXDP {
		flags = append(flags, "--port-driver", "xdp")
	}
	if err == nil {
		t, err = o.start(k, p, dir, flags...)
	}
	clean = func() {
		if t != nil {
			t.stop()
		}
		remove()
		os.RemoveAll(dir)
	}
	if err != nil {
		clean()
		return nil, nil, err
	}
	time.Sleep(200 * time.Millisecond)
	return t, clean, nil
}

// lossLimit is the loss up to which a rate counts as forwarded.
const lossLimit = 0.001

// veth searches for the highest rate that the switch forwards between veth pairs without
// loss, sent on all ports in turns, and what it forwards when everything is sent at once.
func (o *options) veth(k kind, p *program) (sample, error) {
	t, clean, err := o.startVeth(k, p)
	if err != nil {
		return nil, err
	}
	defer clean()
	rx, err := newSink()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err, "- the network stack drops it")
	} else {
		defer rx.close()
	}
	tx, err := newSender(o.sender, p, o.size)
	if err != nil {
		return nil, err
	}
	s, err := o.rates(t, tx)
	return s, errors.Join(err, tx.close())
}

// rates measures at one rate, or searches for the best.
func (o *options) rates(t *target, tx sender) (sample, error) {
	if _, err := o.offer(t, tx, 10000, o.seconds/4); err != nil { // warm up
		return nil, err
	}
	if o.rate > 0 {
		r, err := o.offer(t, tx, o.rate, o.seconds)
		return sample{
			{"packets/s", r.out, 1},
			{"packets lost of 1000", 1000 * r.loss(), 0},
			{"CPU ns per packet", r.cpu, -1},
		}, err
	}
	flood, err := o.offer(t, tx, 1e9, o.seconds)
	if err != nil {
		return nil, err
	}
	best, err := search(flood.out, func(rate float64) (trial, error) { return o.offer(t, tx, rate, o.seconds/2) })
	return sample{
		{"packets/s without loss", best.out, 1},
		{"packets/s under flood", flood.out, 1},
		{"packets/s offered by flood", flood.in, 0},
		{"packets lost of 1000 under flood", 1000 * flood.loss(), 0},
		{"CPU ns per packet without loss", best.cpu, -1},
	}, err
}

// searchSteps bounds the search for the best rate, and closeEnough ends it: the lowest rate
// that failed over the highest that did not.
const (
	searchSteps = 12
	closeEnough = 1.02
)

// search looks for the highest rate without loss, from a first guess, which does not bound
// the result. A rate fails when it loses twice in a row: once may be the machine's doing.
func search(rate float64, try func(rate float64) (trial, error)) (best trial, err error) {
	var lo, hi float64 // 0 while unknown
	for range searchSteps {
		r, err := try(rate)
		if err == nil && r.loss() > lossLimit {
			r, err = try(rate)
		}
		if err != nil {
			return best, err
		}
		fine := r.loss() <= lossLimit
		if fine && r.out > best.out {
			best = r
		}
		if fine && r.in >= rate*offered {
			lo = rate
		} else {
			hi = rate
		}
		switch {
		case hi == 0:
			rate = lo * 1.5
		case lo == 0:
			rate = hi / 1.5
		case hi/lo < closeEnough:
			return best, nil
		default:
			rate = (lo + hi) / 2
		}
	}
	return best, nil
}

// offered is the share of a rate that the sender must have sent for the next higher one to
// be worth trying.
const offered = 0.98

type trial struct {
	in, out float64 // packets/s
	cpu     float64 // ns per packet forwarded
}

func (t trial) loss() float64 { return max(0, 1-t.out/t.in) }

// offer sends at a rate for some seconds and counts what comes out.
func (o *options) offer(t *target, tx sender, rate, seconds float64) (trial, error) {
	before := received()
	sent0, err := tx.sent()
	if err != nil {
		return trial{}, err
	}
	u0, s0 := t.cpu()
	elapsed, err := pace(tx, rate, time.Duration(seconds*1e9))
	if err != nil {
		return trial{}, err
	}
	took := elapsed.Seconds()
	// What still comes a little later counts, but does not lengthen the time by much.
	last, still := received(), 0
	for still < 3 {
		time.Sleep(20 * time.Millisecond)
		if n := received(); n != last {
			last, still = n, 0
		} else {
			still++
		}
	}
	u1, s1 := t.cpu()
	sent1, err := tx.sent()
	got := float64(last - before)
	return trial{float64(sent1-sent0) / took, got / took, float64(u1+s1-u0-s0) / max(1, got)}, err
}
