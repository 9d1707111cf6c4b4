package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/pflag"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// shared are the flags that all hosts of a fabric must agree on, by the law that uses them; "" is for flags of all
// laws.
var shared = map[string][]string{
	"":         {"udp-port", "lossless"},
	"soze":     {"p", "k", "alpha", "beta", "m", "maxqd-unit"},
	"prioplus": {"base-rtt"},
}

// family names the group of shared parameters that the configured law uses, "" for none.
func (o *Options) family() string {
	k, err := o.lawKind()
	switch {
	case err != nil:
	case k.Needs.MaxQD:
		return "soze"
	case k.Needs.Channel:
		return "prioplus"
	}
	return ""
}

// awaits reports whether the flows have to wait for the controller, because they need a parameter that no flag gives.
func (o *Options) awaits() bool {
	needs := []string{"udp-port"}
	if law := o.family(); law != "" {
		needs = append(needs, shared[law]...)
	}
	return o.Controller != "" && !o.adopted && len(o.Flows) > 0 && o.flags != nil &&
		slices.ContainsFunc(needs, func(name string) bool { return !o.flags.Changed(name) })
}

// awaitsBase reports whether no law can be made before the controller has been heard.
func (o *Options) awaitsBase(k *registry.Kind) bool {
	return k.Needs.BaseRTT && o.BaseRTT == 0 && o.awaits()
}

func notYet(agent.FlowSpec) (law.Law, error) {
	return nil, errors.New("the controller has not sent the fabric's parameters")
}

// fabric gets the fabric's parameters for a process.
type fabric struct {
	o   *Options
	d   driver
	log *slog.Logger
	// known is closed once the flows may start; err, why they cannot, is then set.
	known chan struct{}
	err   error
}

// newFabric returns a fabric; it is already known if the flows need not wait for the controller.
func newFabric(o *Options, d driver, log *slog.Logger) *fabric {
	f := &fabric{o: o, d: d, log: log, known: make(chan struct{})}
	if !o.awaits() {
		close(f.known)
	}
	return f
}

// adopt takes the fabric's parameters, as remote.Options has it.
func (f *fabric) adopt(ctx context.Context, list []*headgatev1.HostParameter) error {
	var err error
	// The laws read the options on the agent's goroutine.
	if ended := f.d.Do(ctx, func(a *agent.Agent, now units.Time) { err = f.o.adopt(a, now, list, f.log) }); ended != nil {
		return ended
	}
	select {
	case <-f.known:
	default:
		f.err = err
		close(f.known)
	}
	return err
}

// adopt sets the flags that were not given to the fabric's parameters, and says which were given
// otherwise.
func (o *Options) adopt(a *agent.Agent, now units.Time, list []*headgatev1.HostParameter, log *slog.Logger) error {
	changed, err := Adopt(o.flags, o.family(), list, log)
	changed = changed || !o.adopted
	o.adopted = true
	errs := []error{err}
	a.Ignore(now, o.lossy())
	if err := a.SetShimPort(o.UDPPort); errors.Is(err, agent.ErrRunning) {
		was := a.Config().ShimPort
		log.Warn("the fabric has another UDP port than this host's flows; they keep theirs until the process is restarted", "flows", was, "fabric", o.UDPPort)
		o.UDPPort = was
	} else if err != nil {
		errs = append(errs, fmt.Errorf("the fabric's --udp-port: %w", err))
	}
	if !changed && errors.Join(errs...) == nil {
		return nil // the running flows keep their laws' state
	}
	unit, err := maxqd.NewUnit(o.Unit)
	if err = errors.Join(append(errs, err, o.checkLaw())...); err != nil {
		return fmt.Errorf("the fabric's parameters: %w", err)
	}
	create, err := o.flowLaw()
	if err != nil {
		return err
	}
	return a.Adopt(now, unit, create)
}

// lossy returns the classes whose PAUSE has no effect.
func (o *Options) lossy() units.Classes {
	if o.IgnorePFC {
		return 0xff
	}
	return ^o.Lossless
}

// Adopt sets the flags that were not given to the fabric's parameters of a law, and logs which were given
// otherwise. changed says whether a flag has another value now; the error names each value that a flag refuses.
func Adopt(flags *pflag.FlagSet, law string, list []*headgatev1.HostParameter, log *slog.Logger) (changed bool, err error) {
	var errs []error
	for _, p := range list {
		if p.GetLaw() != law && p.GetLaw() != "" || !slices.Contains(shared[p.GetLaw()], p.GetName()) {
			continue
		}
		flag := flags.Lookup(p.GetName())
		switch {
		case flag == nil:
			continue
		case flag.Changed:
			if mine := flag.Value.String(); mine != p.GetValue() {
				log.Warn("a parameter given to this host differs from the fabric's", "flag", "--"+p.GetName(), "given", mine, "fabric", p.GetValue())
			}
			continue
		}
		before := flag.Value.String()
		if err := flag.Value.Set(p.GetValue()); err != nil {
			errs = append(errs, fmt.Errorf("the fabric's --%s: %w", p.GetName(), err))
			_ = flag.Value.Set(before) // numbers out of range are set all the same
		}
		changed = changed || flag.Value.String() != before
	}
	return changed, errors.Join(errs...)
}
