package config

import "github.com/headgate/headgate/p4src/ids"

// Target is the kind of switch behind a P4Runtime server.
type Target string

// The targets.
const (
	BMv2     Target = "bmv2"     // simple_switch_grpc; its clock ticks in microseconds
	Embedded Target = "embedded" // headgate switch; its clock ticks in microseconds
	Tofino1  Target = "tofino1"  // Stratum on Tofino; its clock ticks in nanoseconds
	Tofino2  Target = "tofino2"  // Stratum on Tofino 2; its clock ticks in nanoseconds
)

// tofinoAlias is how a file may write Tofino1.
const tofinoAlias Target = "tofino"

// Chip returns the Tofino chip of a target, as package tofino and p4src name it; ""
// for the targets that run the v1model program.
func (t Target) Chip() string {
	switch t {
	case Tofino1, Tofino2:
		return string(t)
	}
	return ""
}

// Architecture names the program that the target runs: "v1model", or its chip.
func (t Target) Architecture() string {
	if chip := t.Chip(); chip != "" {
		return chip
	}
	return "v1model"
}

// TickShift returns how often the target's clock tick has to be doubled to be about a
// microsecond. Tofino stamps nanoseconds, of which 1024 are taken for one microsecond,
// 2.4 % too much.
func (t Target) TickShift() uint {
	if t.Chip() != "" {
		return 10
	}
	return 0
}

// cpuPort returns the CPU port of the program as Headgate builds it (CPU_PORT of the P4
// sources).
func (t Target) cpuPort() uint32 {
	switch t {
	case Tofino1:
		return 320
	case Tofino2:
		return 0
	}
	return ids.CPUPort
}
