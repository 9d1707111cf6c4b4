package standalone

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// defaults are the options of `headgate switch --no-p4`.
func defaults(change func(*Options)) *Options {
	o := &Options{
		Driver: "auto", LogLevel: "info", GRPCAddr: "0.0.0.0:9559", DropPort: 511,
		Traffic: tm.Config{Queues: 1, Schedule: tm.Strict(1)},
		Rates:   map[uint32]units.Rate{},
	}
	if change != nil {
		change(o)
	}
	return o
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	some := &engine.Tracer{Port: engine.AnyPort, Limit: rate.NewLimiter(tracedPerSecond, tracedBurst)}
	two := []port.Named{{Number: 1, Name: "s1-eth1"}, {Number: 2, Name: "s1-eth2"}}
	for _, tt := range []struct {
		name, args string
		want       *Options
	}{
		{"least", "--no-p4", defaults(nil)},
		{"as the P4 tutorials start it", // p4runtime_switch.py
			"-i 1@s1-eth1 -i 2@s1-eth2 --pcap " + dir + " --nanolog ipc:///tmp/bm-0-log.ipc --device-id 3 out.json --log-console --thrift-port 9091 -- --grpc-server-addr 0.0.0.0:50052 --cpu-port 255",
			defaults(func(o *Options) {
				o.DeviceID, o.Interfaces, o.PcapDir, o.Program, o.LogConsole = 3, two, dir, "out.json", true
				o.GRPCAddr, o.CPUPort = "0.0.0.0:50052", 255
				o.Tracer = some
				o.Ignored = []string{
					"--thrift-port has no effect: there is no Thrift service: rates and limits are --port-rate and --queue-limit",
					"--nanolog has no effect: there is no nanomsg log",
				}
			})},
		{"as Stratum-like scripts start it", "--device-id=1 --interface=1@s1-eth1 --interface=2@s1-eth2 -Ltrace --no-p4 -- --grpc-server-addr=localhost:9559 --drop-port=510 --priority-queues=8",
			defaults(func(o *Options) {
				o.DeviceID, o.Interfaces, o.LogLevel = 1, two, "trace"
				o.GRPCAddr, o.DropPort = "localhost:9559", 510
				o.Traffic = tm.Config{Queues: 8, Schedule: tm.Strict(8)}
			})},
		{"as p4c's tests start it", "--log-file x.log --log-flush --use-files 0 --thrift-port 9090 --device-id 7 -i 0@pcap0 out.json",
			defaults(func(o *Options) {
				o.LogFile, o.UseFiles, o.DeviceID, o.Interfaces, o.Program = "x.log", true, 7, []port.Named{{Number: 0, Name: "pcap0"}}, "out.json"
				o.Ignored = []string{
					"--thrift-port has no effect: there is no Thrift service: rates and limits are --port-rate and --queue-limit",
					"--log-flush has no effect: log lines are written as soon as the output takes them",
				}
			})},
		{"pcap before the program", "--pcap out.json", defaults(func(o *Options) { o.PcapDir, o.Program = ".", "out.json" })},
		{"busy polling", "--no-p4 --busy-poll 5ms", defaults(func(o *Options) { o.BusyPoll = 5 * time.Millisecond })},
		{"pcap last", "--no-p4 --pcap", defaults(func(o *Options) { o.PcapDir = "." })},
		{"pcap gives way to files", "--no-p4 --pcap --use-files -3", defaults(func(o *Options) {
			o.UseFiles = true
			o.NoEffect = []string{"--pcap has no effect: with --use-files all frames are in files"}
		})},
		{"a program too many", "--no-p4 out.json", defaults(func(o *Options) {
			o.NoEffect = []string{"out.json has no effect: --no-p4 was given"}
		})},
		{"rates and limits", "--no-p4 -i 1@a -i 2@b --port-rate 1=20Mbps --port-rate 510=1Gbps --queue-limit 1000 --queue-limit 1=64KB --queue-limit 2:1=5 --scheduler 3,strict -- --priority-queues 2 --cpu-port 510",
			defaults(func(o *Options) {
				o.Interfaces = []port.Named{{Number: 1, Name: "a"}, {Number: 2, Name: "b"}}
				o.CPUPort = 510
				o.Traffic = tm.Config{Queues: 2, Schedule: []tm.Share{{Quantum: 3 * tm.DefaultQuantum}, {Level: 2}}}
				o.Rates = map[uint32]units.Rate{1: 20 * units.Mbps, 510: units.Gbps}
				o.Limits = []QueueLimit{{-1, -1, tm.Limit{Packets: 1000}}, {1, -1, tm.Limit{Bytes: 64000}}, {2, 1, tm.Limit{Packets: 5}}}
			})},
		{"PFC", "--no-p4 --pfc --pfc-classes 3,none -- --priority-queues 2", defaults(func(o *Options) {
			o.Traffic = tm.Config{Queues: 2, Schedule: tm.Strict(2)}
			o.PFC = softswitch.PFC{Enabled: true, Classes: []int{3, softswitch.NoClass}}
		})},
		{"TLS", "--no-p4 -- --grpc-server-ssl --grpc-server-cacert ca --grpc-server-cert c --grpc-server-key k --grpc-server-with-client-auth",
			defaults(func(o *Options) { o.TLS = TLSOptions{true, "ca", "c", "k", true} })},
		{"TLS left out", "--no-p4 -- --grpc-server-cert c --disable-swap", defaults(func(o *Options) {
			o.TLS.Cert = "c"
			o.Ignored = []string{"--disable-swap has no effect: a pipeline can always be replaced"}
			o.NoEffect = []string{"certificates and --grpc-server-with-client-auth have no effect without --grpc-server-ssl"}
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := parse(strings.Fields(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, &f.options, cmpopts.IgnoreUnexported(engine.Tracer{}, rate.Limiter{})); diff != "" {
				t.Errorf("%s\n%s", tt.args, diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                                                  "no program: want the path of a BMv2 JSON file, or --no-p4",
		"a.json b.json":                                     `argument "b.json": want one JSON program only; target flags go behind --`,
		"--no-p4 -- x":                                      `argument "x" behind --: want flags only`,
		"--no-p4 --cpu-port 3":                              "unknown flag: --cpu-port",
		"--no-p4 -i veth1":                                  `--interface "veth1": want PORT@NAME, such as 1@veth1, with a port of 0 to 511`,
		"--no-p4 -i 512@veth1":                              `--interface "512@veth1": want PORT@NAME`,
		"--no-p4 -i 1@":                                     `--interface "1@": want PORT@NAME`,
		"--no-p4 -i 1@a -i 1@b":                             `--interface "1@b": port 1 is a already: want each port once`,
		"--no-p4 -i 1@a -i 2@a":                             `--interface "2@a": a is port 1 already: want each interface once`,
		"--no-p4 --device-id -1":                            `invalid argument "-1" for "--device-id" flag`,
		"--no-p4 -i 5@a -- --cpu-port 5":                    "--interface 5@a: port 5 is the CPU port: use another port or --cpu-port",
		"--no-p4 -i 511@a":                                  "--interface 511@a: port 511 is the drop port: use another port or --drop-port",
		"--no-p4 -- --cpu-port 0":                           "--cpu-port 0: want 1 to 511",
		"--no-p4 -- --cpu-port 511":                         "--cpu-port 511 is the drop port: give one of them another number",
		"--no-p4 -- --drop-port 600":                        "--drop-port 600: want 1 to 511",
		"--no-p4 -- --priority-queues 0":                    "--priority-queues 0: want 1 to 32",
		"--no-p4 --pfcwd-action drop":                       "--pfcwd-restoration-time and --pfcwd-action: want --pfcwd-detection-time with them",
		"--no-p4 --busy-poll 2s":                            "--busy-poll 2s: want 0 to 1s",
		"--no-p4 --pfcwd-detection-time 1s":                 "--pfcwd-detection-time: want --pfc with it",
		"--no-p4 --pfc-classes 3":                           "--pfc-classes: want --pfc with it",
		"--no-p4 --pfc --pfc-classes 3,4":                   `--pfc-classes "3,4" is for 2 queues: want one word for each of the 1 queues`,
		"--no-p4 --pfc --pfc-classes 8":                     `--pfc-classes "8": "8" of queue 0: want a class of 0 to 7, or none`,
		"--no-p4 -L loud":                                   `--log-level "loud": want trace, debug, info, warn, error or off`,
		"--no-p4 --log-console --log-file x":                "--log-console and --log-file: want one of them",
		"--no-p4 --pcap=/nosuchdir":                         `--pcap "/nosuchdir": want an existing directory`,
		"--no-p4 --p4info x":                                "--p4info: want a JSON program with it",
		"--no-p4 --port-rate 20Mbps":                        `--port-rate "20Mbps": want PORT=RATE, such as 1=20Mbps`,
		"--no-p4 -i 1@a --port-rate 1=20":                   `--port-rate "1=20": "20" is not a rate`,
		"--no-p4 -i 1@a --port-rate 2=20Mbps":               `--port-rate "2=20Mbps": port 2 has no --interface`,
		"--no-p4 --queue-limit many":                        `--queue-limit "many": want a number of packets, such as 1000, or an amount of data, such as 64KB`,
		"--no-p4 --queue-limit -5":                          `--queue-limit "-5": want a number of packets`,
		"--no-p4 --queue-limit 1=5":                         `--queue-limit "1=5": port 1 has no --interface`,
		"--no-p4 -i 1@a --queue-limit 1:x=5":                `--queue-limit "1:x=5": want PORT=LIMIT or PORT:QUEUE=LIMIT before the limit`,
		"--no-p4 -i 1@a --queue-limit 1:1=5":                `--queue-limit "1:1=5": queue 1: want 0 to 0 (--priority-queues)`,
		"--no-p4 --scheduler 1,2":                           `--scheduler "1,2" is for 2 queues: want one word for each of the 1 queues (--priority-queues)`,
		"--no-p4 --scheduler 0":                             `--scheduler "0": "0" of queue 0: want strict or a weight of 1 to 1000`,
		"--no-p4 --restore-state x":                         "--restore-state: restoring state from a file is not supported: push it by P4Runtime",
		"--no-p4 -- --dp-grpc-server-addr x":                "--dp-grpc-server-addr: frames over gRPC are not supported",
		"--no-p4 -- --grpc-server-ssl":                      "--grpc-server-ssl: want --grpc-server-cert with it",
		"--no-p4 -- --grpc-server-ssl --grpc-server-cert c": "--grpc-server-ssl: want --grpc-server-key with it",
		"--no-p4 -- --grpc-server-ssl --grpc-server-cert c --grpc-server-key k --grpc-server-with-client-auth": "--grpc-server-with-client-auth: want --grpc-server-cacert with it",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", args, err, want)
		}
	}
}

// Whatever the words are, they give options or an error that says something.
func FuzzParse(f *testing.F) {
	f.Add("--no-p4 -i 1@a --port-rate 1=1Mbps --queue-limit 1:0=5 -- --cpu-port 3")
	f.Add("x.json --pcap -- --grpc-server-ssl")
	f.Add("--scheduler 1,strict --use-files=3 -- --priority-queues 2")
	f.Fuzz(func(t *testing.T, args string) {
		fl, err := parse(strings.Fields(args))
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Errorf("%q: an error without text", args)
			}
			return
		}
		if fl.version || fl.jsonVers {
			return
		}
		if o := fl.options; len(o.Traffic.Schedule) != o.Traffic.Queues || o.Program != "" && fl.noP4 {
			t.Errorf("%q: %+v", args, o)
		}
	})
}
