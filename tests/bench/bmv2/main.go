// Command bmv2 measures the embedded switch side by side with BMv2's simple_switch_grpc:
// the same program, the same entries (through P4Runtime) and the same packets, in turns,
// so that both see the same load of the machine, and prints medians. It needs root and
// simple_switch_grpc on the PATH, and runs in a network namespace of its own.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

type options struct {
	headgate  string
	bmv2      string
	programs  []string
	scenarios []string
	runs      int
	packets   int
	size      int
	seconds   float64
	rate      float64
	only      string
	driver    string
	sender    string
	verbose   bool
}

const inside = "HEADGATE_BENCH_NAMESPACE"

func main() {
	var o options
	var programs, scenarios string
	flag.StringVar(&o.headgate, "headgate", "", "headgate binary (built when empty)")
	flag.StringVar(&o.bmv2, "bmv2", "simple_switch_grpc", "BMv2 binary")
	flag.StringVar(&programs, "programs", "l3,headgate", "programs to run")
	flag.StringVar(&scenarios, "scenarios", "pcap,veth,latency", "scenarios to run")
	flag.IntVar(&o.runs, "runs", 5, "runs of each scenario, of which the median counts")
	flag.IntVar(&o.packets, "packets", 500000, "packets of a run from pcap to pcap")
	flag.IntVar(&o.size, "size", 128, "bytes of a packet, 64 to 1500")
	flag.Float64Var(&o.seconds, "seconds", 2, "seconds of each rate between veth pairs")
	flag.Float64Var(&o.rate, "rate", 0, "offer only this many packets per second between veth pairs, to compare processor time")
	flag.StringVar(&o.driver, "port-driver", "both", "port driver of ours between veth pairs, afpacket, xdp or both in turns")
	flag.StringVar(&o.sender, "sender", "xdp", "what sends between veth pairs: xdp multiplies frames in the kernel, packet sends each by AF_PACKET")
	flag.StringVar(&o.only, "only", "", "run only ours or bmv2")
	flag.BoolVar(&o.verbose, "v", false, "print every run")
	flag.Parse()
	o.programs, o.scenarios = strings.Split(programs, ","), strings.Split(scenarios, ",")
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	if os.Getenv(inside) == "" {
		return o.enter()
	}
	if err := loopback(); err != nil {
		return err
	}
	for _, name := range o.programs {
		p, err := loadProgram(name)
		if err != nil {
			return err
		}
		for _, s := range o.scenarios {
			if err := o.scenario(s, p); err != nil {
				return fmt.Errorf("%s, %s: %w", name, s, err)
			}
		}
	}
	return nil
}

// enter builds the switch and starts this program again in a network namespace.
func (o *options) enter() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("network namespaces need root")
	}
	if _, err := exec.LookPath(o.bmv2); err != nil && o.only != "ours" {
		return fmt.Errorf("%s is not on the PATH: install p4lang's packages, or give -only ours", o.bmv2)
	}
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := slices.Clone(os.Args[1:])
	if o.headgate == "" {
		o.headgate = filepath.Join(dir, "headgate")
		build := exec.Command("go", "build", "-trimpath", "-o", o.headgate, "./cmd/headgate")
		build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build ./cmd/headgate (run this from the root of the repository): %w", err)
		}
		args = append([]string{"-headgate", o.headgate}, args...)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

// scenario runs one scenario on both switches in turns.
func (o *options) scenario(name string, p *program) error {
	measure, ok := map[string]func(*options, kind, *program) (sample, error){
		"pcap": (*options).pcap, "veth": (*options).veth, "latency": (*options).latency,
	}[name]
	if !ok {
		return fmt.Errorf("no such scenario: want pcap, veth or latency")
	}
	kinds, err := o.kinds(name)
	if err != nil {
		return err
	}
	all := map[kind][]sample{}
	for range o.runs {
		for _, k := range kinds {
			s, err := measure(o, k, p)
			if err != nil {
				return fmt.Errorf("%v: %w", k, err)
			}
			if o.verbose {
				fmt.Printf("  %-13v %-8s %-7s %v\n", k, p.name, name, s)
			}
			all[k] = append(all[k], s)
		}
	}
	report(name, p.name, kinds, all)
	return nil
}

// kinds is which switches a scenario runs on, in turns.
func (o *options) kinds(scenario string) ([]kind, error) {
	drivers := map[string][]kind{"afpacket": {ours}, "xdp": {oursXDP}, "both": {ours, oursXDP}}
	kinds, ok := drivers[o.driver]
	if !ok {
		return nil, fmt.Errorf("port driver %q: want afpacket, xdp or both", o.driver)
	}
	if scenario == "pcap" { // has no interfaces
		kinds = []kind{ours}
	}
	switch o.only {
	case "":
		return append(kinds, bmv2), nil
	case "ours":
		return kinds, nil
	case "bmv2":
		return []kind{bmv2}, nil
	}
	return nil, fmt.Errorf("only %q: want ours, bmv2 or nothing", o.only)
}
