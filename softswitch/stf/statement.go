// Package stf reads and runs STF tests, the format of p4c's tests for P4 programs: packets sent to
// ports, packets expected on ports, and the control plane's commands in between. The grammar is
// that of p4c's tools/stf/stf_parser.py and backends/bmv2/bmv2stf.py. Start reading at Run.
package stf

// Statement is one line of a test.
type Statement struct {
	Line int
	Verb string // lower case

	Port int    // packet, expect
	Data string // hexadecimal digits; expect also has * for any digit and $ for the end
	Any  bool   // expect without data: any packets on the port

	Name     string // add, setdefault: table; check_counter, counter_*, register_*, meter_*
	Priority int
	Matches  []Match
	Action   string
	Args     []Arg

	Numbers []string // arguments of the direct commands
	Index   string   // check_counter
	Unit    string   // packets or bytes
	Op      string   // ==, !=, <, <=, >, >=
	Number  string
}

// Match is one name:value of an add.
type Match struct{ Name, Value string }

// Arg is one name:value of an action call.
type Arg struct{ Name, Value string }
