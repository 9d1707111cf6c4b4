package p4

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/headgate/headgate/cli/command"
)

func newPortCommand() *cobra.Command {
	return command.OneOf(&cobra.Command{
		Use: "port", Short: "Add and remove ports of an embedded switch while it runs",
		Example: "  headgate p4 port add 3@veth6\n  headgate p4 port remove 3",
	},
		&cobra.Command{
			Use: "add PORT@INTERFACE", Short: "Give a port an interface, a new port if there is none of that number", Args: cobra.ExactArgs(1),
			Example: "  headgate p4 port add 3@veth6",
			RunE: run(func(ctx context.Context, t *target, args []string) error {
				number, name, _ := strings.Cut(args[0], "@")
				if _, err := strconv.ParseUint(number, 10, 32); err != nil || name == "" {
					return fmt.Errorf("%q is not allowed: want PORT@INTERFACE, such as 3@veth6", args[0])
				}
				path := interfacePath(number)
				path.Elem = append(path.Elem, &gpb.PathElem{Name: "config"}, &gpb.PathElem{Name: "description"})
				return t.set(ctx, &gpb.SetRequest{Update: []*gpb.Update{{Path: path, Val: &gpb.TypedValue{Value: &gpb.TypedValue_StringVal{StringVal: name}}}}},
					fmt.Sprintf("port %s is interface %s", number, name))
			}),
		},
		&cobra.Command{
			Use: "remove PORT", Short: "Take the interface from a port, which stays without a carrier", Args: cobra.ExactArgs(1),
			Example: "  headgate p4 port remove 3",
			RunE: run(func(ctx context.Context, t *target, args []string) error {
				if _, err := strconv.ParseUint(args[0], 10, 32); err != nil {
					return fmt.Errorf("%q is not allowed: want the number of a port", args[0])
				}
				return t.set(ctx, &gpb.SetRequest{Delete: []*gpb.Path{interfacePath(args[0])}}, fmt.Sprintf("port %s has no interface", args[0]))
			}),
		},
	)
}

func interfacePath(port string) *gpb.Path {
	return &gpb.Path{Elem: []*gpb.PathElem{{Name: "interfaces"}, {Name: "interface", Key: map[string]string{"name": port}}}}
}

// set makes a gNMI Set and prints the new state.
func (t *target) set(ctx context.Context, r *gpb.SetRequest, done string) error {
	conn, err := grpc.NewClient(t.Address, t.creds, grpc.WithNoProxy())
	if err != nil {
		return t.named(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	if _, err := gpb.NewGNMIClient(conn).Set(ctx, r); err != nil {
		return t.named(err)
	}
	_, err = fmt.Fprintln(t.Out, done)
	return err
}
