package engine_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stf"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/target"
)

var diffPackets = flag.Int("bmv2-packets", 150, "random packets per program for the comparison with BMv2")
var diffSeed = flag.Uint64("bmv2-seed", 1, "seed of the random packets for the comparison with BMv2")

func mustLoad(t testing.TB, name string) *engine.Program {
	t.Helper()
	doc, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	prog, err := engine.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// entries holds the entries that a program needs beside its own, as STF statements. It has no value sets, because simple_switch_CLI pads their values to
// the wrong width.
var entries = map[string]string{
	"flow": replicas,
	"left": replicas,
	"control": `
add exact_ hdr.h.a:1 hdr.h.b:2 mark(v:1)
add exact_ hdr.h.a:2 hdr.h.b:2 wide(v:0x0102030405060708090a0b0c0d0e0f10)
add lpm_ hdr.h.c:10.0.0.0/8 mark(v:1)
add lpm_ hdr.h.c:10.1.0.0/16 mark(v:2)
add lpm_ hdr.h.c:10.1.0.1/32 mark(v:3)
add lpm6 hdr.h.w:0x20010db8000000000000000000000000/32 hdr.h.op:3 mark(v:1)
add lpm6 hdr.h.w:0x20010db8000000010000000000000000/64 hdr.h.op:3 mark(v:2)
add ternary_ 1 hdr.h.a:1&&&0xff mark(v:1)
add ternary_ 3 hdr.h.b:0x0100&&&0xff00 mark(v:2)
add ternary_ 2 hdr.h.a:2&&&2 hdr.h.c:0x0a000000&&&0xff000000 mark(v:3)
add range_ 2 hdr.h.b:10->20 hdr.h.a:1&&&0xff mark(v:1)
add range_ 1 hdr.h.b:15->300 mark(v:2)
`,
}

// commands holds BMv2's commands for the entries that simple_switch_CLI does not read as STF does.
// Priorities are turned round, because BMv2's lowest number wins.
var commands = map[string]string{
	"control": `
table_add I.exact_ I.mark 1 2 => 1
table_add I.exact_ I.wide 2 2 => 0x0102030405060708090a0b0c0d0e0f10
table_add I.lpm_ I.mark 0x0a000000/8 => 1
table_add I.lpm_ I.mark 0x0a010000/16 => 2
table_add I.lpm_ I.mark 0x0a010001/32 => 3
table_add I.lpm6 I.mark 0x20010db8000000000000000000000000/32 3 => 1
table_add I.lpm6 I.mark 0x20010db8000000010000000000000000/64 3 => 2
table_add I.ternary_ I.mark 1&&&0xff 0&&&0 0&&&0 => 1 9
table_add I.ternary_ I.mark 0&&&0 0x0100&&&0xff00 0&&&0 => 2 7
table_add I.ternary_ I.mark 2&&&2 0&&&0 0x0a000000&&&0xff000000 => 3 8
table_add I.range_ I.mark 10->20 1&&&0xff => 1 8
table_add I.range_ I.mark 15->300 0&&&0 => 2 9
`,
}

const replicas = `
mirroring_add 5 6
mirroring_add 6 1
mc_mgrp_create 1
mc_node_create 10 2 3
mc_node_create 11 3
mc_node_associate 1 0
mc_node_associate 1 1
`

// groupCommands are BMv2's commands for what addGroup does, because STF has no statement for
// action profiles.
var groupCommands = []string{
	"act_prof_create_member I.sel I.port 1", "act_prof_create_member I.sel I.port 2", "act_prof_create_member I.sel I.port 3",
	"act_prof_create_group I.sel", "act_prof_add_member_to_group I.sel 0 0", "act_prof_add_member_to_group I.sel 1 0",
	"act_prof_add_member_to_group I.sel 2 0", "table_indirect_add_with_group I.group 7 => 0",
}

func addGroup(t testing.TB, in *engine.Instance) {
	t.Helper()
	group := engine.GroupID(0)
	var errs []error
	for i := range engine.MemberID(3) {
		errs = append(errs, in.AddMember("I.sel", i, engine.ActionCall{Name: "I.port", Args: [][]byte{{byte(i + 1)}}}))
	}
	errs = append(errs, in.SetGroup("I.sel", 0, []engine.MemberID{0, 1, 2}))
	_, err := in.AddEntry("I.group", []engine.Match{{Value: []byte{7}}}, 0, engine.Target{Group: &group}, 0)
	for _, err := range append(errs, err) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// configured returns a switch that runs a program with its entries, and BMv2's commands for the
// same entries.
func configured(t testing.TB, name string) (r *stf.Runner, told []string) {
	t.Helper()
	prog := mustLoad(t, name)
	in := engine.New(prog, engine.Options{})
	r = stf.NewRunner(prog, in)
	list, err := stf.Parse(strings.NewReader(entries[name]))
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := r.Step(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	told = strings.FieldsFunc(cmp.Or(commands[name], entries[name]), func(r rune) bool { return r == '\n' })
	if name == "control" {
		addGroup(t, in)
		told = append(told, groupCommands...)
	}
	return r, told
}

func send(t testing.TB, r *stf.Runner, port int, frame []byte) {
	t.Helper()
	if err := r.Step(&stf.Statement{Verb: "packet", Port: port, Data: hex.EncodeToString(frame)}); err != nil {
		t.Fatal(err)
	}
}

// pick returns one of vs or a random byte.
func pick(r *rand.Rand, vs ...byte) byte {
	if r.IntN(8) == 0 {
		return byte(r.Uint32())
	}
	return vs[r.IntN(len(vs))]
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = pick(r, 0, 0xff, 1, 0x80, 0x7f, byte(r.Uint32()), byte(r.Uint32()))
	}
	return b
}

// setSum writes the Internet checksum of b into its two bytes at an even offset.
func setSum(b []byte, at int) {
	b[at], b[at+1] = 0, 0
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	b[at], b[at+1] = byte(^sum>>8), byte(^sum)
}

// frames makes random packets that reach the branches of each program.
var frames = map[string]func(r *rand.Rand) []byte{
	"arith": func(r *rand.Rand) []byte {
		f := random(r, 76+r.IntN(8))
		f[8] = pick(r, 0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255)
		if r.IntN(4) == 0 {
			copy(f[4:8], f[0:4])
			copy(f[12:14], f[10:12])
			copy(f[32:48], f[16:32])
		}
		return f
	},
	"headers": func(r *rand.Rand) []byte {
		f := []byte{pick(r, 1, 1, 1, 2, 3, 4, 5, 6, 7, 0x41, 0x80, 0x9f, 0xa0), pick(r, 0, 1, 2, 3, 8, 16, 24, 0x10, 0x20, 0x31, 0x42, 0x52, 0x61, 0x73, 0x80, 0x90)}
		for range r.IntN(7) {
			f = append(f, pick(r, 0, 0xff, 1, 2, 3, 4), pick(r, 0, 0xff), pick(r, 0, 0, 0xf0, 1, 0xf1), pick(r, 1, 64))
		}
		return append(f, random(r, r.IntN(20))...)
	},
	"match": func(r *rand.Rand) []byte {
		f := []byte{pick(r, 1, 2, 3, 0xff, 0x80), pick(r, 10, 10, 0x80), pick(r, 1, 0), pick(r, 1, 0), pick(r, 1, 0),
			pick(r, 1, 0, 0x10, 0x20, 0x30, 0x40), pick(r, 2, 5, 4, 1), pick(r, 0, 0, 0, 1, 5, 0xff), pick(r, 0, 9, 10, 15, 16, 20, 21, 44, 0xe8),
			pick(r, 0, 0), pick(r, 0x50, 0x70, 0x51, 0x71, 1, 0x0f)}
		if r.IntN(2) == 0 {
			if f[0] == 8 {
				f[1] &= 7 // BMv2 does not check bounds
			}
			f = append(f, 0x20, 0x01, 0x0d, 0xb8, 0, pick(r, 1, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, pick(r, 1, 2))
		} else {
			f = append(f, random(r, 16)...)
		}
		return append(f, append([]byte{pick(r, 0, 5, 7, 0x10)}, random(r, r.IntN(8))...)...)
	},
	"flow": func(r *rand.Rand) []byte {
		f := []byte{byte(r.IntN(28)), pick(r, 0, 1, 2, 3, 5, 6, 7, 120, 160, 210), 0, 0}
		return append(f, random(r, r.IntN(60))...)
	},
	"left": func(r *rand.Rand) []byte {
		way, rest, arg := byte(r.IntN(10)), pick(r, 0, 1, 2, 3, 4, 5), pick(r, 0, 1, 8, 9, 16, 24, 64, 72, 100)
		f := []byte{byte(r.IntN(38)), way, rest, arg, pick(r, 0, 0xe1, 0x07, 0x1f), pick(r, 0, 0x11)}
		// Headers have 46, 20, 14 and 6 bytes; way selects the header in front of the last three.
		ip := append([]byte{0x45}, random(r, 19)...)
		if setSum(ip, 10); r.IntN(8) == 0 {
			ip[10]++
		}
		switch way {
		case 8:
			return append(append(f, ip...), random(r, 46+r.IntN(20))...)
		case 9:
		default:
			f = append(f, random(r, 46)...)
		}
		switch way {
		case 1:
			f = append(f, random(r, int(arg/8))...)
		case 2:
			f = append(f, random(r, int(arg/8)+2)...)
		case 3:
			for range r.IntN(22) {
				f = append(f, byte(r.Uint32()), byte(r.Uint32())&^1)
			}
			f = append(f, byte(r.Uint32()), 1)
		case 5:
			f = append(f, random(r, 46)...)
		case 6:
			f = append(f, random(r, 5)...)
			f = append(f, f[len(f)-5:]...)
			f[len(f)-1] ^= pick(r, 0, 1)
		case 7:
			f = append(f, random(r, 10)...)
		}
		seg, end := random(r, 14), random(r, 6)
		setSum(seg, 0)
		setSum(end, 4)
		switch r.IntN(8) {
		case 0:
			seg[0]++
		case 1:
			end[4]++
		}
		if rest != 0 && rest != 3 && rest != 4 {
			f = append(f, ip...)
		}
		if rest != 0 && rest != 1 && rest != 4 {
			f = append(f, seg...)
		}
		if rest != 0 && rest != 1 && rest != 2 {
			f = append(f, end...)
		}
		if r.IntN(8) == 0 {
			return f[:1+r.IntN(len(f))]
		}
		return append(f, random(r, r.IntN(20))...)
	},
	"sums": func(r *rand.Rand) []byte { return random(r, 1+r.IntN(27)) },
	"loops": func(r *rand.Rand) []byte {
		f := []byte{byte(r.IntN(7)), byte(r.IntN(9))}
		if r.IntN(16) == 0 { // few, because simple_switch takes long for them
			f = append([]byte{200, 100}, random(r, 6)...)
		}
		return append(f, random(r, r.IntN(9))...)
	},
	"control": func(r *rand.Rand) []byte {
		f := []byte{pick(r, 1, 2, 3, 4, 5, 7, 7, 8, 9, 0x40), pick(r, 0, 1, 2, 3), pick(r, 0, 1), pick(r, 0, 2, 10, 15, 20, 44), pick(r, 10, 10, 0), pick(r, 0, 1), pick(r, 0, 1), pick(r, 0, 1)}
		if f[0] == 8 {
			f[1] &= 7 // BMv2 does not check bounds
		}
		f = append(f, 0x20, 0x01, 0x0d, pick(r, 0xb8, 0xb8, 0), 0, 0, 0, pick(r, 0, 1))
		return append(f, random(r, 9+r.IntN(20))...)
	},
	"state": func(r *rand.Rand) []byte {
		f := append([]byte{pick(r, 3, 9, 0, 200), pick(r, 0, 1, 2, 15, 16, 255)}, random(r, 28)...)
		f[13] = f[13]&^7 | pick(r, 0, 1, 1, 2)&7
		if f[0] == 9 && r.IntN(2) == 0 {
			f[10], f[11] = 0, 0
		}
		return append(f, random(r, 4+r.IntN(30))...) // long enough, because fields of invalid headers are undefined
	},
}

// onBMv2 sends frames to a port of BMv2 and returns the frames that leave per port, as stf.Runner
// does. It waits for n frames, and then for more until BMv2 has been silent for a while.
func onBMv2(t *testing.T, name string, commands []string, port int, input [][]byte, n int) map[int][]string {
	t.Helper()
	program, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	sw := bmv2.StartProgram(t, program)
	defer sw.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := sw.CLI(ctx, commands...); err != nil {
		t.Fatal(err)
	}
	for _, f := range input {
		if err := sw.Send(uint32(port), f); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	output := map[int][]string{}
	for {
		silence := 200 * time.Millisecond
		if n > 0 {
			silence = time.Minute // on a busy machine BMv2 is silent before it has sent all
		}
		f, ok := sw.Receive(target.Any, silence)
		if !ok {
			return output
		}
		n--
		output[int(f.Port)] = append(output[int(f.Port)], fmt.Sprintf("%X", f.Data))
	}
}

// TestAgainstBMv2 feeds the same random packets to simple_switch_grpc and to the engine.
func TestAgainstBMv2(t *testing.T) {
	for name, draw := range frames {
		t.Run(name, func(t *testing.T) {
			if err := bmv2.Look(bmv2.Command, bmv2.CLI); err != nil {
				t.Skip(err)
			}
			t.Parallel()
			r := rand.New(rand.NewPCG(*diffSeed, uint64(len(name))))
			ours, commands := configured(t, name)
			port := r.IntN(8)
			var input [][]byte
			for range *diffPackets {
				f := draw(r)
				input = append(input, f)
				send(t, ours, port, f)
			}
			sent := 0
			for _, frames := range ours.Sent() {
				sent += len(frames)
			}
			// On a busy machine a queue of 64 packets drops some.
			theirs := onBMv2(t, name, append([]string{"set_queue_depth 4096"}, commands...), port, input, sent)
			total := 0
			for port := range 8 {
				got, want := ours.Sent()[port], theirs[port]
				if entries[name] == replicas { // the order of recirculated packets depends on threads
					slices.Sort(got)
					slices.Sort(want)
				}
				total += compareFrames(t, port, got, want)
			}
			t.Logf("%d frames are equal", total)
		})
	}
}

func compareFrames(t *testing.T, port int, got, want []string) int {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("port %d, frame %d:\n got %s\nwant %s", port, i, got[i], want[i])
			return 0
		}
	}
	if len(got) != len(want) {
		t.Errorf("port %d: got %d frames, want %d", port, len(got), len(want))
	}
	return len(want)
}
