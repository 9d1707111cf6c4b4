// Package doctor looks for problems outside a fabric's configuration: clocks, addresses, certificates,
// versions, missing capabilities of targets. A verdict covers only what was really checked. The other findings
// say that something was not checked, and why.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/internal/confine"
)

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Info Verdict = "INFO" // nothing is wrong, or nothing could be checked
	Warn Verdict = "WARN"
	Fail Verdict = "FAIL"
)

// NotChecked begins the text of a check that was not made; the reason follows.
const NotChecked = "not checked: "

// Finding is the result of one check.
type Finding struct {
	Area    string  `json:"area"`
	Subject string  `json:"subject"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`             // the finding, or why there is none
	Remedy  string  `json:"remedy,omitempty"` // the remedy
}

// Bounds of the difference between two clocks.
const (
	warnOffset = time.Second // events of two machines get out of order
	failOffset = time.Minute // certificates and tokens are refused
)

// Clock compares the controller's time with this machine's. there is the controller's answer, which it gave
// between asked and answered by this machine's clock.
func Clock(there, asked, answered time.Time) Finding {
	offset := max(asked.Sub(there), there.Sub(answered), 0)
	return clockOf("controller", offset,
		fmt.Sprintf("differs from this machine's by %v at least", offset.Round(time.Millisecond)),
		fmt.Sprintf("no difference from this machine's was seen, to within %v", answered.Sub(asked).Round(time.Millisecond)))
}

// clockOf judges how far two clocks are apart.
func clockOf(subject string, offset time.Duration, differs, same string) Finding {
	f := Finding{Area: "clock", Subject: subject, Verdict: OK, Text: same}
	switch {
	case offset >= failOffset:
		f.Verdict = Fail
	case offset >= warnOffset:
		f.Verdict = Warn
	default:
		return f
	}
	f.Text, f.Remedy = differs, "run chrony or another client of NTP on both"
	return f
}

// HostClocks compares the clocks of the hosts that are attached with the controller's, by when they sent
// their last reports and when these came.
func HostClocks(hosts []*pb.HostReport) []Finding {
	var list []Finding
	for _, h := range hosts {
		subject := "host " + h.GetHost()
		if h.GetSent() == nil || h.GetTime() == nil {
			list = append(list, Finding{Area: "clock", Subject: subject, Verdict: Info, Text: NotChecked + "this version of the host's agent does not report its time"})
			continue
		}
		offset, differs := h.GetSent().AsTime().Sub(h.GetTime().AsTime()), "is ahead of the controller's by %v at least"
		if offset < 0 {
			offset, differs = -offset, "is behind the controller's by %v, or less if its report was delayed"
		}
		offset = offset.Round(time.Millisecond)
		within := max((offset + 10*time.Millisecond - 1).Truncate(10*time.Millisecond), 10*time.Millisecond) // hosts with small offsets share one row
		list = append(list, clockOf(subject, offset, fmt.Sprintf(differs, offset), fmt.Sprintf("no difference from the controller's was seen, to within %v", within)))
	}
	if len(list) == 0 {
		list = []Finding{{Area: "clock", Subject: "hosts", Verdict: Info, Text: NotChecked + "no host is attached"}}
	}
	return list
}

// Build compares the controller's build with this command's.
func Build(there, here string) Finding {
	f := Finding{Area: "versions", Subject: "controller", Verdict: OK, Text: there}
	if there != here {
		f.Verdict, f.Remedy = Warn, "install the same on both: this command is "+here
	}
	return f
}

// Listeners says whether the addresses that the controller would listen at are free. answers says
// that a controller answers already.
func Listeners(ctx context.Context, c *config.Config, answers bool) []Finding {
	var list []Finding
	for _, a := range []struct{ key, address string }{{"listen", c.Controller.Listen}, {"metrics", c.Controller.Metrics}} {
		if a.address == "off" {
			continue
		}
		f := Finding{Area: "ports", Subject: "controller." + a.key + " " + a.address, Verdict: OK, Text: "is free"}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.address)
		switch {
		case err == nil:
			_ = l.Close()
		case errors.Is(err, syscall.EADDRINUSE) && answers:
			f.Verdict, f.Text = Info, NotChecked+"is taken; a controller answers, but it may not be the process that listens here"
		case errors.Is(err, syscall.EADDRINUSE):
			f.Verdict, f.Text, f.Remedy = Warn, "is taken by a process, and no controller answered", "find it by `ss -ltnp`, or choose another address"
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			f.Verdict, f.Text = Info, NotChecked+"is an address of another machine"
		default:
			f.Verdict, f.Text, f.Remedy = Fail, err.Error(), "choose an address of this machine, and a port above 1023 without root"
		}
		list = append(list, f)
	}
	return list
}

const patience = 3 * time.Second

// Switches asks each switch's P4Runtime server, from this machine, for its version and its program.
func Switches(ctx context.Context, c *config.Config, dirs confine.Dirs) []Finding {
	list := make([]Finding, len(c.Switches))
	var group errgroup.Group
	group.SetLimit(16)
	for i := range c.Switches {
		group.Go(func() error {
			list[i] = ask(ctx, &c.Switches[i], dirs)
			return nil
		})
	}
	_ = group.Wait() // no function fails
	return list
}

func ask(ctx context.Context, s *config.Switch, dirs confine.Dirs) Finding {
	f := Finding{Area: "switches", Subject: s.Name + " at " + s.Address, Verdict: OK}
	creds, err := session.Credentials(s.TLS, dirs)
	if err != nil {
		f.Verdict, f.Text, f.Remedy = Fail, err.Error(), "see certificates"
		return f
	}
	client, stop, err := session.Dial(s.Address, s.DeviceID, creds)
	if err != nil {
		f.Verdict, f.Text, f.Remedy = Fail, err.Error(), "correct the address"
		return f
	}
	defer func() { _ = stop() }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := client.Version(ctx)
	switch {
	case err == nil:
		f.Text = "answers, P4Runtime " + v
	case session.Unimplemented(err):
		f.Text = "answers, but does not report its version of P4Runtime"
	default:
		f.Verdict, f.Text = Fail, "does not answer from this machine: "+err.Error()
		f.Remedy = "start the switch, or correct address and tls; the controller may reach it although this machine, in another network, does not"
	}
	return f
}

// Controller checks the controller's switches: their sessions and missing capabilities.
func Controller(switches []*pb.SwitchStatus) []Finding {
	var list []Finding
	for _, s := range switches {
		f := Finding{Area: "controller", Subject: s.GetName(), Verdict: OK, Text: pb.Word(s.GetState())}
		switch s.GetState() {
		case pb.SwitchStatus_STATE_READY:
			f.Text += fmt.Sprintf(", runs the wanted program %016x", s.GetProgram())
		case pb.SwitchStatus_STATE_BACKUP, pb.SwitchStatus_STATE_RECONCILING:
			f.Verdict = Warn
			f.Remedy = "wait, or look at `headgate get switch " + s.GetName() + "`"
		default:
			f.Verdict = Fail
			f.Remedy = "see `headgate get switch " + s.GetName() + "`"
		}
		if s.GetError() != "" {
			f.Text += ": " + s.GetError()
		}
		list = append(list, f)
		for _, c := range s.GetCapabilities() {
			if !c.GetSupported() {
				list = append(list, Finding{Area: "capabilities", Subject: s.GetName(), Verdict: Info, Text: "its target cannot " + c.GetName() + ": " + c.GetDetail()})
			}
		}
	}
	return list
}

// Lossless reports settings of each switch's lossless classes that do not have the effect that they
// seem to have.
func Lossless(c *config.Config) (list []Finding) {
	for i := range c.Switches {
		s := &c.Switches[i]
		for _, text := range buffer.Warnings(c, s) {
			list = append(list, Finding{Area: "lossless", Subject: s.Name, Verdict: Warn, Text: text, Remedy: "correct the field; `headgate explain KEY` lists the allowed values"})
		}
	}
	return list
}
