// Package p4 has the commands that talk to any switch with a P4Runtime server: the embedded switch, BMv2,
// Tofino. They name tables, actions and fields by the P4Info that the switch has.
package p4

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
)

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	root := &cobra.Command{
		Use:   "p4",
		Short: "Talk to any P4Runtime switch by the names of its program",
		Long: `Talk to any P4Runtime switch: the embedded one, BMv2's simple_switch_grpc, a Tofino.
Names are those of the switch's P4Info; the end of a name is enough where only one object has it.
Values are numbers, 0x and hexadecimal digits, IPv4, IPv6 and MAC addresses.`,
		Example: `  headgate p4 tables
  headgate p4 write insert ipv4_lpm hdr.ipv4.dstAddr=10.0.1.0/24 ipv4_forward dstAddr=08:00:00:00:01:11 port=1
  headgate p4 read ipv4_lpm`,
	}
	f := root.PersistentFlags()
	f.String("switch", "127.0.0.1:9559", "`address` of the switch's P4Runtime server, host:port or unix:PATH; also HEADGATE_SWITCH")
	f.Uint64("device-id", 0, "P4Runtime's device_id, `N`; also HEADGATE_DEVICE_ID")
	f.Uint64("election-id", 1, "election id, `N`, to write with: a controller with a higher one keeps the switch; also HEADGATE_ELECTION_ID")
	f.String("p4info", "", "`file` with the P4Info, in place of the switch's own; also HEADGATE_P4INFO")
	f.Duration("timeout", 0, "how long the switch may take (default 5s, for load 1m0s)")
	command.AddOutputFlag(root)
	return []*cobra.Command{command.OneOf(root,
		&cobra.Command{
			Use: "tables [TABLE]", Short: "List the program's tables, or the keys and actions of one", Args: cobra.MaximumNArgs(1),
			Example:           "  headgate p4 tables ipv4_lpm",
			ValidArgsFunction: completeName("table"), RunE: run(tables),
		},
		&cobra.Command{
			Use: "read [TABLE | KIND [NAME [INDEX]]]", Short: "Read entities; without arguments the entries of all tables", Args: cobra.MaximumNArgs(3),
			Long:              "Read entities. KIND is one of table, default, member, group, multicast, clone, counter, meter, register and digest.",
			Example:           "  headgate p4 read\n  headgate p4 read default\n  headgate p4 read counter port_packets 3",
			ValidArgsFunction: completeRead, RunE: run(read),
		},
		&cobra.Command{
			Use: "groups [PROFILE]", Short: "Read members and groups of action profiles, multicast groups and clone sessions", Args: cobra.MaximumNArgs(1),
			Example: "  headgate p4 groups", ValidArgsFunction: completeName("member"), RunE: run(groups),
		},
		&cobra.Command{
			Use: "counters [COUNTER [INDEX]]", Short: "Read indirect counters, and entries with their direct counters", Args: cobra.MaximumNArgs(2),
			Example: "  headgate p4 counters", ValidArgsFunction: completeName("counter"), RunE: run(counters),
		},
		newWriteCommand(),
		newPacketOutCommand(),
		newPortCommand(),
		&cobra.Command{
			Use: "watch", Short: "Print packet-ins, digests, idle timeouts and changes of the primary controller until Ctrl-C", Args: cobra.NoArgs,
			Long:    "Print what the switch sends. Only its primary controller gets packets and digests: where another one is, raise --election-id to take the switch over.",
			Example: "  headgate p4 watch -o json", RunE: run(watch),
		},
		&cobra.Command{
			Use: "load P4INFO PROGRAM.json", Short: "Make a compiled program the switch's pipeline, which deletes all its entries", Args: cobra.ExactArgs(2),
			Example: "  headgate p4 load basic.p4info.txtpb basic.json", RunE: run(load),
		},
	)}
}

func run(fn func(ctx context.Context, t *target, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t, err := newTarget(cmd)
		if err != nil {
			return err
		}
		return fn(cmd.Context(), t, args)
	}
}

type table struct {
	Name    string   `json:"name"`
	Keys    []key    `json:"keys"`
	Actions []action `json:"actions"`
	Profile string   `json:"profile,omitempty"`
	Size    int64    `json:"size"`
}

type key struct {
	Name  string `json:"name"`
	Match string `json:"match"`
	Bits  int32  `json:"bits"`
}

type action struct {
	Name    string  `json:"name"`
	Params  []param `json:"params"`
	Default bool    `json:"default_only,omitempty"`
}

type param struct {
	Name string `json:"name"`
	Bits int32  `json:"bits"`
}

func tables(ctx context.Context, t *target, args []string) error {
	p, err := t.pipeline(ctx)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if _, err := p.Query("table", args[0], nil); err != nil {
			return err // the error lists the tables
		}
	}
	actions := map[uint32]*p4configv1.Action{}
	for _, a := range p.Info().GetActions() {
		actions[a.GetPreamble().GetId()] = a
	}
	var list []table
	for _, d := range p.Info().GetTables() {
		name := d.GetPreamble().GetName()
		if len(args) == 1 && name != args[0] && !strings.HasSuffix(name, "."+args[0]) {
			continue
		}
		one := table{Name: name, Size: d.GetSize(), Keys: []key{}, Actions: []action{}}
		for _, f := range d.GetMatchFields() {
			one.Keys = append(one.Keys, key{f.GetName(), strings.ToLower(f.GetMatchType().String()), f.GetBitwidth()})
		}
		for _, r := range d.GetActionRefs() {
			a := action{Name: actions[r.GetId()].GetPreamble().GetName(), Params: []param{}, Default: r.GetScope() == p4configv1.ActionRef_DEFAULT_ONLY}
			for _, q := range actions[r.GetId()].GetParams() {
				a.Params = append(a.Params, param{q.GetName(), q.GetBitwidth()})
			}
			one.Actions = append(one.Actions, a)
		}
		if id := d.GetImplementationId(); id != 0 {
			one.Profile = p.ProfileName(id)
		}
		list = append(list, one)
	}
	return t.Value(list, func(w io.Writer) { drawTables(w, list) })
}

func drawTables(w io.Writer, list []table) {
	fmt.Fprintln(w, "TABLE\tKEYS\tACTIONS\tSIZE")
	for _, one := range list {
		rows := max(1, len(one.Keys), len(one.Actions))
		for i := range rows {
			cells := [4]string{}
			if i == 0 {
				cells[0], cells[3] = one.Name, fmt.Sprint(one.Size)
			}
			if i < len(one.Keys) {
				cells[1] = fmt.Sprintf("%s %s %d", one.Keys[i].Name, one.Keys[i].Match, one.Keys[i].Bits)
			}
			if i < len(one.Actions) {
				cells[2] = one.Actions[i].String()
			}
			fmt.Fprintln(w, strings.Join(cells[:], "\t"))
		}
	}
}

// String writes the action as its declaration, with widths in bits.
func (a action) String() string {
	text := make([]string, len(a.Params))
	for i, q := range a.Params {
		text[i] = fmt.Sprintf("%s:%d", q.Name, q.Bits)
	}
	only := ""
	if a.Default {
		only = " (default only)"
	}
	return fmt.Sprintf("%s(%s)%s", a.Name, strings.Join(text, ", "), only)
}

func read(ctx context.Context, t *target, args []string) error {
	kind, name := "table", ""
	var index *uint32
	if len(args) > 0 {
		if slices.Contains(pipeline.KindNames(), args[0]) {
			kind, args = args[0], args[1:]
		}
	}
	if len(args) > 0 {
		name = args[0]
	}
	if len(args) > 1 {
		n, err := pipeline.ParseIndex(kind+" "+name, args[1])
		if err != nil {
			return err
		}
		index = &n
	}
	return t.read(ctx, func(p *pipeline.Pipeline) ([]*p4v1.Entity, error) { return p.Query(kind, name, index) })
}

// read prints the entities that the requests of some queries match.
func (t *target) read(ctx context.Context, query func(*pipeline.Pipeline) ([]*p4v1.Entity, error)) error {
	p, err := t.pipeline(ctx)
	if err != nil {
		return err
	}
	requests, err := query(p)
	if err != nil {
		return err
	}
	c, done, err := t.reader()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	var list []pipeline.Named
	if len(requests) > 0 { // a Read of nothing is an error at some switches
		entities, err := c.Read(ctx, requests...)
		if err != nil {
			return t.named(err)
		}
		for _, e := range entities {
			list = append(list, p.Named(e))
		}
	}
	return t.print(list)
}

func groups(ctx context.Context, t *target, args []string) error {
	return t.read(ctx, func(p *pipeline.Pipeline) (all []*p4v1.Entity, err error) {
		kinds, name := []string{"member", "group", "multicast", "clone"}, ""
		if len(args) == 1 {
			kinds, name = kinds[:2], args[0]
		}
		for _, k := range kinds {
			list, err := p.Query(k, name, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
		return all, nil
	})
}

func counters(ctx context.Context, t *target, args []string) error {
	if len(args) > 0 {
		return read(ctx, t, append([]string{"counter"}, args...))
	}
	return t.read(ctx, func(p *pipeline.Pipeline) ([]*p4v1.Entity, error) {
		all, err := p.Query("counter", "", nil)
		if err != nil {
			return nil, err
		}
		entries, err := p.Query("table", "", nil)
		for _, e := range entries {
			if e.GetTableEntry().GetCounterData() != nil {
				all = append(all, e)
			}
		}
		return all, err
	})
}

func load(ctx context.Context, t *target, args []string) error {
	info, err := readInfo(args[0])
	if err != nil {
		return err
	}
	device, err := readFile(args[1])
	if err != nil {
		return err
	}
	p, err := pipeline.New(info, device)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return t.asPrimary(ctx, func(ctx context.Context, _ *session.Session, c *session.Client, _ <-chan error) error {
		if err := c.Push(ctx, p); err != nil {
			return err
		}
		_, err := fmt.Fprintf(t.Out, "%s runs at switch %s, device %d: %d tables\n", args[1], t.Address, t.Device, len(info.GetTables()))
		return err
	})
}

func newPacketOutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "packet-out FIELD=VALUE... HEX", Short: "Send a packet through the switch; - reads its hexadecimal digits from the input", Args: cobra.MinimumNArgs(1),
		Long:    "Send a packet through the switch, with the fields of the program's packet_out header; fields that are not given are 0.",
		Example: "  headgate p4 packet-out egress_port=2 ffffffffffff0200000000010800…",
		RunE: run(func(ctx context.Context, t *target, args []string) error {
			p, err := t.pipeline(ctx)
			if err != nil {
				return err
			}
			digits := args[len(args)-1]
			if digits == "-" {
				text, err := io.ReadAll(io.LimitReader(t.In, maxFile))
				if err != nil {
					return err
				}
				digits = string(text)
			}
			payload, err := hex.DecodeString(strings.Map(func(r rune) rune {
				if strings.ContainsRune(" \t\r\n:", r) {
					return -1
				}
				return r
			}, digits))
			if err != nil || len(payload) == 0 {
				return fmt.Errorf("the packet %q is not allowed: want pairs of hexadecimal digits", digits)
			}
			out, err := p.ParsePacketOut(payload, args[:len(args)-1])
			if err != nil {
				return err
			}
			return t.asPrimary(ctx, func(ctx context.Context, s *session.Session, c *session.Client, refused <-chan error) error {
				if err := s.PacketOut(out); err != nil {
					return err
				}
				// The stream has no answer to a packet that was taken. A call after it is answered once
				// the switch has seen the packet, or close to that.
				if _, err := c.Version(ctx); err != nil && !session.Unimplemented(err) {
					return err
				}
				select {
				case err := <-refused:
					return fmt.Errorf("the switch refused the packet: %w", err)
				case <-time.After(100 * time.Millisecond):
					_, err := fmt.Fprintf(t.Out, "sent %d bytes\n", len(payload))
					return err
				}
			})
		}),
	}
}
