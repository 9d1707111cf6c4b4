package dataplane

import (
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// tests are the cases; each gets a fresh switch.
func tests() map[string]func(*rig) {
	return map[string]func(*rig){
		"Forward":            testForward,
		"ForwardTCP":         testForwardTCP,
		"ECMPUsesAllMembers": testECMPUsesAllMembers,
		"ECMPWeights":        testECMPWeights,
		"ECMPFragments":      testECMPFragments,
		"Class":              testClass,
		"ECNThreshold":       testECNThreshold,
		"ECNProbability":     testECNProbability,
		"MaxQDTwoHops":       testMaxQDTwoHops,
		"MaxQDEcho":          testMaxQDEcho,
		"MaxQDScale":         testMaxQDScale,
		"PacketOut":          testPacketOut,
		"Punt":               testPunt,
		"Poll":               testPoll,
		"Admission":          testAdmission,
		"TailDrop":           testTailDrop,
		"Malformed":          testMalformed,
		"Garbage":            testGarbage,
		"Idle":               testIdle,
		"BufferTrace":        testBufferTrace,
		"BufferRefresh":      testBufferRefresh,
		"BufferForget":       testBufferForget,
		"BufferTshark":       testBufferTshark,
	}
}

func TestEmbedded(t *testing.T) {
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			s, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			test(newRig(t, s))
		})
	}
}

func TestBMv2(t *testing.T) {
	needBMv2(t)
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) { test(newRig(t, startBMv2(t))) })
	}
}

// TestTargetsAgree sends the same garbage through both switches: every byte and every
// counter must be the same.
func TestTargetsAgree(t *testing.T) {
	needBMv2(t)
	e, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	var got []behaviour
	for _, tg := range []target.Target{startBMv2(t), e} {
		r := newRig(t, tg)
		r.write(control.DisableStamping()) // delays are never the same
		got = append(got, behave(r, garbage(r, 3000)))
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("BMv2 -, embedded switch +\n%s", diff)
	}
}

func needBMv2(t *testing.T) {
	t.Helper()
	if os.Getenv("HEADGATE_BMV2") != "1" {
		t.Skip("runs on simple_switch_grpc with HEADGATE_BMV2=1 (make test-bmv2)")
	}
	if _, err := exec.LookPath(bmv2.Command); err != nil {
		t.Skipf("%s is not on the PATH", bmv2.Command)
	}
}

func startBMv2(t testing.TB) target.Target {
	t.Helper()
	dir, err := os.MkdirTemp("", "bmv2") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := bmv2.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
