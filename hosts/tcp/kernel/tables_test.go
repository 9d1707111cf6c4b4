package kernel

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/tables/log2"
)

var update = flag.Bool("update", false, "write tables.h anew")

// nodeBits is the number of bits that select a node within an octave. The C code interpolates between nodes.
const nodeBits = 6

// TestTables compares tables.h with package log2, whose small tables are exact at their nodes.
func TestTables(t *testing.T) {
	exp, err := log2.New(log2.Precision{Log: 1, Exp: nodeBits, Frac: nodeBits})
	if err != nil {
		t.Fatal(err)
	}
	log, err := log2.New(log2.Precision{Log: nodeBits, Exp: 1, Frac: log2.MaxFrac})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "/* Made by go test ./hosts/tcp/kernel -run TestTables -update from package tables/log2. */\n#pragma once\n#define NODE_BITS %d\n#define NODES (1 << NODE_BITS)\n", nodeBits)
	list := func(name, what string, at func(i int) uint64) {
		fmt.Fprintf(&b, "\n/* %s */\nstatic const __u64 %s[NODES + 1] = {", what, name)
		for i := range 1<<nodeBits + 1 {
			if i%8 == 0 {
				b.WriteString("\n\t")
			} else {
				b.WriteString(" ")
			}
			fmt.Fprintf(&b, "%d,", at(i))
		}
		b.WriteString("\n};\n")
	}
	list("exp2_nodes", "2^(i / NODES) << 30", func(i int) uint64 { return exp.Exp2(int32(30<<nodeBits + i)) })
	const lg = 24
	list("log2_nodes", "log2(1 + i / NODES) << 24", func(i int) uint64 {
		v := log.Log2(uint64(1<<nodeBits + i))
		if i == 1<<nodeBits { // the next octave's first bucket, which is not a node
			v = (nodeBits + 1) << log2.MaxFrac
		}
		return uint64(v-nodeBits<<log2.MaxFrac) << (lg - log2.MaxFrac)
	})
	for i := range 1 << nodeBits {
		if got, want := float64(exp.Exp2(int32(30<<nodeBits+i)))/(1<<30), math.Exp2(float64(i)/(1<<nodeBits)); math.Abs(got/want-1) > 1e-8 {
			t.Errorf("node %d is %v, 2^(i/64) is %v", i, got, want)
		}
	}
	const file = "tables.h"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != b.String() {
		t.Errorf("%s is not what tables/log2 gives (%v): run go test ./hosts/tcp/kernel -run TestTables -update", file, err)
	}
}
