package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// Options say where a fabric file comes from and what overrides it.
type Options struct {
	// File is the file's name; empty looks for fabric.yaml in the working directory, then
	// in /etc/headgate.
	File string
	// Flags maps keys such as "controller.listen" to flags; a flag that was set on the
	// command line overrides environment and file.
	Flags map[string]*pflag.Flag
	// Sections are the sections of all features.
	Sections []Section
}

// overridable are the keys that environment and flags may set.
var overridable = [...]string{
	"listen", "metrics", "tls.cert", "tls.key", "tls.client_ca", "policy", "audit", "election_id", "state", "poll_interval", "probe_interval",
	"probe_timeout", "flap_hold", "flap_hold_max", "unreachable_after", "resync_interval", "comparisons",
}

// Load finds and reads a fabric file. Environment variables named like HEADGATE_CONTROLLER_LISTEN override the
// file's controller section, flags override both. Faults in the text are returned as a *yamlnode.Error; other
// errors are the file system's.
func Load(o Options) (*Config, error) {
	file, err := find(o.File)
	if err != nil {
		return nil, err
	}
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text, o.Flags, o.Sections...)
}

// Parse reads a fabric file's text with the overrides of Load. On any fault the configuration
// is nil and the error a *yamlnode.Error with all of them. The file name is for messages only.
// Features' sections are unknown keys unless they are given.
func Parse(file string, text []byte, flags map[string]*pflag.Flag, sections ...Section) (*Config, error) {
	overrides, err := overridesOf(flags)
	if err != nil {
		return nil, err
	}
	return parse(file, text, overrides, sections)
}

func find(file string) (string, error) {
	if file != "" {
		return file, nil
	}
	v := viper.New()
	v.SetConfigName("fabric")
	v.SetConfigType("yaml")
	v.AddConfigPath(".")
	v.AddConfigPath("/etc/headgate")
	err := v.ReadInConfig()
	var missing viper.ConfigFileNotFoundError
	if errors.As(err, &missing) || v.ConfigFileUsed() == "" {
		return "", errors.New("no fabric.yaml in . or /etc/headgate; name one with -f")
	}
	return v.ConfigFileUsed(), nil // parse has better messages for faults inside it
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("fabric file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, yamlnode.MaxText+1))
	if err != nil {
		return nil, fmt.Errorf("fabric file: %w", err)
	}
	return text, nil
}

func overridesOf(flags map[string]*pflag.Flag) ([]override, error) {
	v := viper.New()
	v.SetEnvPrefix("headgate")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	var list []override
	for _, key := range overridable {
		path := "controller." + key
		if err := v.BindEnv(path); err != nil {
			return nil, fmt.Errorf("environment of %s: %w", path, err)
		}
		origin := "HEADGATE_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
		if flag := flags[path]; flag != nil && flag.Changed {
			if err := v.BindPFlag(path, flag); err != nil {
				return nil, fmt.Errorf("flag --%s: %w", flag.Name, err)
			}
			origin = "--" + flag.Name
		}
		if v.IsSet(path) {
			list = append(list, override{path: path, value: v.GetString(path), origin: origin})
		}
	}
	return list, nil
}

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
	if t == Tofino1 || t == Tofino2 {
		return string(t)
	}
	return ""
}

// Architecture names the program that the target runs: "v1model", or its chip.
func (t Target) Architecture() string { return cmp.Or(t.Chip(), "v1model") }

// TickShift returns the n for which 2^n ticks of the target's clock are about a microsecond. Tofino's timestamps
// are in nanoseconds; 1024 ns count as one microsecond, an error of 2.4 %.
func (t Target) TickShift() uint {
	if t.Chip() != "" {
		return 10
	}
	return 0
}

// cpuPort returns the CPU port of the program as Headgate builds it (CPU_PORT of the P4
// sources).
func (t Target) cpuPort() uint32 {
	return map[Target]uint32{BMv2: ids.CPUPort, Embedded: ids.CPUPort, Tofino1: 320, Tofino2: 0}[t]
}
