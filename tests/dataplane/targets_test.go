package dataplane

import (
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
		"ECMPHash":           testECMPHash,
		"ECMPTiers":          testECMPTiers,
		"Class":              testClass,
		"ECNThreshold":       testECNThreshold,
		"ECNProbability":     testECNProbability,
		"MaxQDTwoHops":       testMaxQDTwoHops,
		"MaxQDEcho":          testMaxQDEcho,
		"MaxQDForeign":       testMaxQDForeign,
		"MaxQDScale":         testMaxQDScale,
		"MaxQDTCP":           testMaxQDTCP,
		"MaxQDTCPForeign":    testMaxQDTCPForeign,
		"MaxQDTCPPause":      testMaxQDTCPPause,
		"PacketOut":          testPacketOut,
		"Punt":               testPunt,
		"PuntLimit":          testPuntLimit,
		"SourceCheck":        testSourceCheck,
		"PortClasses":        testPortClasses,
		"Poll":               testPoll,
		"Admission":          testAdmission,
		"TailDrop":           testTailDrop,
		"Malformed":          testMalformed,
		"Garbage":            testGarbage,
		"Idle":               testIdle,
		"BufferTrace":        testBufferTrace,
		"BufferRefresh":      testBufferRefresh,
		"BufferForget":       testBufferForget,
		"BufferChange":       testBufferChange,
		"BufferTshark":       testBufferTshark,
		"SPFCPeriod":         testSPFCPeriod,
		"SPFCLends":          testSPFCLends,

		"IPv6Forward":            testForwardIPv6,
		"IPv6Malformed":          testMalformedIPv6,
		"IPv6SourceCheck":        testSourceCheckIPv6,
		"IPv6ECMPHash":           ipv6(testECMPHash),
		"IPv6ECMPFlowLabel":      testECMPFlowLabel,
		"IPv6ECMPUsesAllMembers": ipv6(testECMPUsesAllMembers),
		"IPv6Class":              ipv6(testClass),
		"IPv6ECNThreshold":       ipv6(testECNThreshold),
		"IPv6ECNProbability":     ipv6(testECNProbability),
		"IPv6MaxQDEcho":          ipv6(testMaxQDEcho),
		"IPv6MaxQDScale":         ipv6(testMaxQDScale),
		"IPv6MaxQDTCP":           ipv6(testMaxQDTCP),
		"IPv6MaxQDTCPForeign":    ipv6(testMaxQDTCPForeign),
		"IPv6Admission":          ipv6(testAdmission),
		"IPv6BufferTrace":        ipv6(testBufferTrace),
		"GatewayARP":             testGatewayARP,
		"GatewayNeighbour":       testGatewayNeighbour,
		"GatewayEcho":            testGatewayEcho,
	}
}

// ipv6 makes a test use IPv6 instead of IPv4.
func ipv6(test func(*rig)) func(*rig) {
	return func(r *rig) {
		r.six = true
		test(r)
	}
}

func TestEmbedded(t *testing.T) {
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := embedded.StartPaused()
			if err != nil {
				t.Fatal(err)
			}
			test(newRig(t, s))
		})
	}
}

func TestBMv2(t *testing.T) {
	bmv2.Need(t)
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) { test(newRig(t, bmv2.Start(t))) })
	}
}

// TestTargetsAgree sends the same garbage through both switches: every byte and every counter must be equal.
func TestTargetsAgree(t *testing.T) {
	bmv2.Need(t)
	e, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	var got []behaviour
	for _, tg := range []target.Target{bmv2.Start(t), e} {
		r := newRig(t, tg)
		r.write(control.DisableStamping()) // delays always differ
		got = append(got, behave(r, garbage(r, 3000)))
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("BMv2 -, embedded switch +\n%s", diff)
	}
}
