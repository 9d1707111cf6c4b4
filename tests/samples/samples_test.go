// Package samples compares the embedded switch with BMv2's simple_switch_grpc over the v1model programs of a
// checkout of p4c, with random packets and entries. It runs if P4C names the checkout: P4C=/path/to/p4c make
// test-samples.
package samples

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stf"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/target"
)

var (
	packets = flag.Int("packets", 50, "random packets of each run")
	gap     = flag.Duration("gap", 2*time.Millisecond, "time between packets; what differs is tried again at 20 ms")
	seed    = flag.Uint64("seed", defaultSeed, "seed of packets and entries; differences.txt must be exact for the default one only")
)

const (
	defaultSeed = 1
	dropPort    = 511
)

// tally counts runs by outcome.
type tally struct {
	sync.Mutex
	programs, runs, identical int
	listed                    map[string]int // by reason
	frames                    int
}

func TestSamples(t *testing.T) {
	checkout := os.Getenv("P4C")
	if checkout == "" {
		t.Skip("P4C is not set: it names a checkout of github.com/p4lang/p4c, whose samples are run")
	}
	if err := bmv2.Look(compiler, bmv2.Command, bmv2.CLI); err != nil {
		t.Fatal(err)
	}
	version, err := compilerVersion()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := list(checkout)
	if err != nil {
		t.Fatal(err)
	}
	differences, dir := known(t), cache(t)
	for name := range differences {
		if !slices.ContainsFunc(programs, func(s sample) bool { return s.name == name }) {
			t.Errorf("differences.txt: the checkout has no program %s", name)
		}
	}
	count := tally{listed: map[string]int{}}
	t.Run("run", func(t *testing.T) {
		for _, s := range programs {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				if err := s.compile(t.Context(), dir, version); err != nil {
					t.Fatal(err)
				}
				if s.json == "" {
					t.Skip("the compiler refuses it for simple_switch")
				}
				compareAll(t, s, differences[s.name], &count)
			})
		}
	})
	fmt.Printf("%d programs, %d runs: %d identical (%d frames), listed by reason: %v\n",
		count.programs, count.runs, count.identical, count.frames, count.listed)
}

// compareAll makes the runs of one program and compares the results with the list of differences.
func compareAll(t *testing.T, s sample, listed difference, count *tally) {
	for _, kind := range kinds {
		if kind == "test" && s.stf == "" {
			continue
		}
		expected := slices.Contains(listed.kinds, kind)
		got, frames, err := compare(t, s, kind, expected)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		switch {
		case got != "" && !expected:
			t.Errorf("%s: a difference that is not listed: %s", kind, got)
		case got == "" && expected && *seed == defaultSeed:
			t.Errorf("%s: no longer differs; differences.txt lists it as %s: %s", kind, listed.reason, listed.why)
		case got != "":
			t.Logf("%s: differs as listed (%s): %s", kind, listed.reason, got)
		}
		count.Lock()
		count.runs++
		if got == "" {
			count.identical++
			count.frames += frames
		} else {
			count.listed[listed.reason]++
		}
		count.Unlock()
	}
	count.Lock()
	count.programs++
	count.Unlock()
}

// compare runs one program on both switches. It returns their difference, or "", and the number of frames that
// left.
func compare(t *testing.T, s sample, kind string, expected bool) (diff string, frames int, err error) {
	doc, err := os.ReadFile(s.json)
	if err != nil {
		return "", 0, err
	}
	var test []stf.Statement
	if s.stf != "" {
		f, err := os.Open(s.stf)
		if err != nil {
			return "", 0, err
		}
		defer f.Close()
		if test, err = stf.Parse(f); err != nil {
			return "", 0, err
		}
	}
	h := fnv.New64a()
	h.Write([]byte(s.name + " " + kind))
	d := &draw{Rand: rand.New(rand.NewPCG(*seed, h.Sum64()))}
	if err := d.learn(doc, test); err != nil {
		return "", 0, err
	}
	j := job{doc: doc, port: uint32(d.IntN(ports))}
	prog, loadErr := engine.Load(doc)
	sent := map[int][]string{}
	if loadErr == nil {
		r := stf.NewRunner(prog, engine.New(prog, engine.Options{}))
		if j.commands, err = configure(r, prog, kind, test, d); err != nil {
			return "", 0, err
		}
		for range *packets {
			f := d.frame()
			j.frames = append(j.frames, f)
			before := total(r.Sent())
			if err := r.Step(&stf.Statement{Verb: "packet", Port: int(j.port), Data: fmt.Sprintf("%X", f)}); err != nil {
				return err.Error(), 0, nil
			}
			j.copies = append(j.copies, total(r.Sent())-before)
		}
		sent = r.Sent()
	}
	// On a busy machine packets overtake each other or reuse each other's memory. A result that is not listed is
	// tried again later, with one frame at a time.
	for _, pause := range []time.Duration{*gap, 20 * time.Millisecond} {
		if diff, frames, err = j.against(t, pause, sent, loadErr); err != nil || (diff != "") == expected {
			break
		}
	}
	return diff, frames, err
}

func total(sent map[int][]string) (n int) {
	for _, frames := range sent {
		n += len(frames)
	}
	return n
}

// job is a run on BMv2.
type job struct {
	doc      []byte
	commands []string // of simple_switch_CLI
	port     uint32   // that all frames come in on
	frames   [][]byte
	copies   []int // that leave the embedded switch, for each input frame
}

// against runs a job on BMv2 and compares the results.
func (j *job) against(t *testing.T, gap time.Duration, sent map[int][]string, loadErr error) (diff string, frames int, err error) {
	want, err := j.run(t, gap)
	exit := new(exec.ExitError)
	switch {
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		return "BMv2 ended with " + exit.Error(), 0, nil
	case errors.As(err, &exit):
		if loadErr != nil {
			return "", 0, nil // both refuse it
		}
		return "BMv2 refuses it: " + err.Error(), 0, nil
	case err != nil:
		return "", 0, err
	case loadErr != nil:
		return "the embedded switch refuses it: " + loadErr.Error(), 0, nil
	}
	for port := range dropPort {
		got := sent[port]
		for i := range min(len(got), len(want[port])) {
			if w := want[port][i]; got[i] != w {
				return fmt.Sprintf("port %d, frame %d: got %s, BMv2 has %s", port, i, got[i], w), 0, nil
			}
		}
		if len(got) != len(want[port]) {
			return fmt.Sprintf("port %d: got %d frames, BMv2 has %d", port, len(got), len(want[port])), 0, nil
		}
		frames += len(got)
	}
	return "", frames, nil
}

// run returns what leaves BMv2, per port, in hexadecimal. The error is an *exec.ExitError
// if the switch ends by itself.
func (j *job) run(t *testing.T, gap time.Duration) (map[int][]string, error) {
	sw, err := bmv2.TryProgram(t, j.doc)
	if err != nil {
		return nil, err
	}
	defer sw.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if len(j.commands) > 0 {
		err = sw.CLI(ctx, j.commands...)
	}
	output := map[int][]string{}
	receive := func(wait time.Duration) bool {
		f, ok := sw.Receive(target.Any, wait)
		if ok {
			output[int(f.Port)] = append(output[int(f.Port)], fmt.Sprintf("%X", f.Data))
		}
		return ok
	}
	ahead := true // until a frame is missing
	for i := 0; i < len(j.frames) && err == nil; i++ {
		err = sw.Send(j.port, j.frames[i])
		// Each frame is alone in the switch: the next one waits until the expected frames have left.
		for n := j.copies[i]; n > 0 && err == nil && ahead; n-- {
			ahead = receive(time.Second)
		}
		time.Sleep(gap)
	}
	patience := time.Duration(0)
	if err != nil {
		patience = 10 * time.Second // the stream breaks when the switch is about to end
	}
	for err == nil && receive(200*time.Millisecond+20*gap) { // silence ends the run
	}
	if end := sw.Ended(patience); end != nil {
		return nil, sw.Explain(end)
	}
	return output, err
}

// configure gives the engine the run's entries, and returns the commands that do the same to BMv2. Entries that
// the engine refuses, such as one drawn twice, are left out of both.
func configure(r *stf.Runner, prog *engine.Program, kind string, test []stf.Statement, d *draw) (commands []string, err error) {
	var wanted []stf.Statement
	switch kind {
	case "test":
		for _, s := range test {
			if s.Verb == "remove" {
				break
			}
			if !slices.Contains([]string{"packet", "expect", "no_packet", "wait", "check_counter"}, s.Verb) {
				wanted = append(wanted, s)
			}
		}
	case "random":
		wanted = d.entries(prog)
	}
	for i := range wanted {
		if r.Step(&wanted[i]) != nil {
			continue
		}
		c, err := command(r, &wanted[i])
		if err != nil {
			return nil, err
		}
		commands = append(commands, c)
	}
	return commands, nil
}
