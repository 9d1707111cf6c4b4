package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/units"
)

// Frames asks each embedded switch for the largest frame that each of its interfaces takes. It compares these
// with buffer.mtu and with the other end of each link. Interfaces of other targets and of hosts are unknown.
func Frames(ctx context.Context, c *config.Config, dirs confine.Dirs) []Finding {
	list, known := make([]Finding, len(c.Switches)), make([]map[uint32]units.Bytes, len(c.Switches))
	var group errgroup.Group
	group.SetLimit(16)
	for i := range c.Switches {
		group.Go(func() error {
			s := &c.Switches[i]
			list[i] = Finding{Area: "MTU", Subject: s.Name, Verdict: Info, Text: NotChecked + "the target " + string(s.Target) + " does not show its interfaces"}
			if s.Target != config.Embedded {
				return nil
			}
			var err error
			if known[i], err = frames(ctx, s, dirs); err != nil {
				list[i].Text = NotChecked + "its interfaces were not shown: " + err.Error()
				return nil
			}
			list[i].judge(known[i], c, s)
			return nil
		})
	}
	_ = group.Wait() // no function fails
	at := func(e config.Endpoint) units.Bytes {
		i := slices.IndexFunc(c.Switches, func(s config.Switch) bool { return s.Name == e.Node })
		if i < 0 {
			return 0
		}
		return known[i][e.Port]
	}
	for _, l := range c.Links {
		if a, b := at(l.A), at(l.B); a > 0 && b > 0 && a != b {
			list = append(list, Finding{
				Area: "MTU", Subject: l.Name, Verdict: Warn, Text: fmt.Sprintf("%v takes frames of %d B, and %v of %d B: longer frames are lost", l.A, a, l.B, b),
				Remedy: "give both interfaces one MTU: ip link set dev NAME mtu N",
			})
		}
	}
	return append(list, Finding{Area: "MTU", Subject: "hosts", Verdict: Info, Text: NotChecked + "hosts do not report the MTU of their interfaces: see ip link there"})
}

func frames(ctx context.Context, s *config.Switch, dirs confine.Dirs) (map[uint32]units.Bytes, error) {
	creds, err := session.Credentials(s.TLS, dirs)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(s.Address, creds)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path := &gpb.Path{Elem: []*gpb.PathElem{{Name: "interfaces"}, {Name: "interface"}, {Name: "state"}, {Name: "mtu"}}}
	r, err := gpb.NewGNMIClient(conn).Get(ctx, &gpb.GetRequest{Path: []*gpb.Path{path}, Encoding: gpb.Encoding_PROTO})
	by := map[uint32]units.Bytes{}
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound:
		return by, nil // no port has an interface
	default:
		return nil, err
	}
	for _, n := range r.GetNotification() {
		for _, u := range n.GetUpdate() {
			if e := u.GetPath().GetElem(); len(e) == len(path.Elem) {
				if port, err := strconv.ParseUint(e[1].GetKey()["name"], 10, 32); err == nil {
					by[uint32(port)] = units.Bytes(u.GetVal().GetUintVal())
				}
			}
		}
	}
	return by, nil
}

// judge compares the interfaces of a switch with the largest frame that its buffer is sized for. buffer.mtu may
// mean that a frame or that an MTU has this length, so both are right.
func (f *Finding) judge(by map[uint32]units.Bytes, c *config.Config, s *config.Switch) {
	var short, long, none []string
	want, ok := s.LargestFrame()
	for _, p := range ports(c, s) {
		port, most := strconv.FormatUint(uint64(p), 10), by[p]
		switch {
		case most == 0:
			none = append(none, port)
		case most < want:
			short = append(short, fmt.Sprintf("%s takes %d B", port, most))
		case most-gnmi.EthernetHeader > want:
			long = append(long, fmt.Sprintf("%s takes %d B", port, most))
		}
	}
	if len(none) > 0 {
		f.Text = NotChecked + "no interface is known of ports " + strings.Join(none, ", ")
		return
	}
	if !ok {
		f.Text = NotChecked + "without a buffer policy there is no limit for the length of frames"
		return
	}
	f.Verdict, f.Text = OK, fmt.Sprintf("the interfaces of all ports take frames of buffer.mtu, %v", want)
	if len(short)+len(long) > 0 {
		f.Verdict, f.Text, f.Remedy = Warn, fmt.Sprintf("buffer.mtu is %d B, and the interface of port %s", want, strings.Join(append(short, long...), ", of port ")), "set buffer.mtu to what the interfaces take, or ip link set dev NAME mtu N"
		if len(long) > 0 {
			f.Text += ": the headroom is too small for longer frames"
		} else {
			f.Text += ": longer frames are lost"
		}
	}
}

func ports(c *config.Config, s *config.Switch) []uint32 {
	var list []uint32
	for _, l := range c.Links {
		for _, e := range []config.Endpoint{l.A, l.B} {
			if e.Node == s.Name {
				list = append(list, e.Port)
			}
		}
	}
	slices.Sort(list)
	return list
}
