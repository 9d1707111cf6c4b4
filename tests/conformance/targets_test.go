package conformance

import (
	"testing"
	"time"

	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/embedded"
)

// tests are the cases; each gets a fresh switch. The comments name the corresponding cases of BMv2's
// targets/simple_switch_grpc/tests and of sonic-pins' arbitration_test.cc.
func tests() map[string]func(*rig) {
	all := map[string]func(*rig){
		"Entries":                testEntries,                // Basic.Entries
		"DefaultEntry":           testDefaultEntry,           // Basic.DefaultEntry
		"TernaryRead":            testTernaryRead,            // Ternary.ReadEntry
		"TernaryPriority":        testTernaryPriority,        // Ternary.PriorityOrder
		"TernaryPriorityZero":    testTernaryPriorityZero,    // Ternary.PriorityZero
		"OptionalRead":           testOptionalRead,           // Optional.ReadEntry
		"OptionalBoth":           testOptionalBoth,           // Optional.BothEntries
		"OptionalPriorityZero":   testOptionalPriorityZero,   // Optional.PriorityZero
		"DirectCounter":          testDirectCounter,          // Counter.CounterHit
		"DirectMeterDefault":     testDirectMeterDefault,     // Meter.ReadDefault
		"DirectMeterColours":     testDirectMeterColours,     //
		"Reflect":                testReflect,                // GrpcDataplane.SendAndReceive
		"DigestOneSample":        testDigestOneSample,        // Digest.OneSample
		"DigestAck":              testDigestAck,              // Digest.Ack
		"DigestDelete":           testDigestDelete,           // Digest.DeleteDigest
		"DigestList":             testDigestList,             //
		"IdleExpires":            testIdleExpires,            // IdleTimeout.EntryExpire
		"IdleAgain":              testIdleAgain,              // IdleTimeout.NotifyAgain
		"IdleRead":               testIdleRead,               // IdleTimeout.ReadEntry
		"IdleModify":             testIdleModify,             // IdleTimeout.ModifyTTL
		"PacketOutAndIn":         testPacketOutAndIn,         // PacketIO.SendAndReceiveCPUPacket
		"PacketOutRefused":       testPacketOutRefused,       //
		"Multicast":              testMulticast,              // Multicast.2Rids3Ports
		"CloneIngress":           testCloneIngress,           // Clone.SingletonAndMulticast
		"CloneEgress":            testCloneEgress,            //
		"WatchPort":              testWatchPort,              // ActionProfile.WatchPort
		"WatchPortOfGroup":       testWatchPortOfGroup,       //
		"DeleteGroupWithMembers": testDeleteGroupWithMembers, // ActionProfile.DeleteGroupWithMembers
		"Terms":                  testTerms,                  //
		"BackupCannotPush":       testBackupCannotPush,       // sonic-pins BackupConnectionCannotUpdateForwardingPipeline
		"BackupCannotWrite":      testBackupCannotWrite,      // sonic-pins BackupConnectionCannotSendWriteRequest
		"NobodyWritesAlone":      testNobodyWritesAlone,      // sonic-pins CannotSendRequestsAfterDisconnecting
		"InvalidStreamMessage":   testInvalidStreamMessage,   // sonic-pins SendingAnInvalidPacketWillNotCloseTheStream
	}
	for _, s := range scripts() {
		all["Arbitration/"+s.name] = s.play
	}
	return all
}

func TestEmbedded(t *testing.T) {
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait
			s, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			test(newRig(t, s, quirks{idle: 800 * time.Millisecond}))
		})
	}
}

// TestBMv2 runs the same cases on simple_switch_grpc 1.15.
func TestBMv2(t *testing.T) {
	bmv2.Need(t)
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) { test(newRig(t, bmv2.Start(t), bmv2Quirks())) })
	}
}

func bmv2Quirks() quirks {
	return quirks{
		idle: 2 * time.Second, settle: 200 * time.Millisecond,
		earlyRepeat: true, earlyDigests: true, lax: true, ownArbitration: true, openWhenAlone: true, noStreamError: true,
	}
}
