package standalone

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

type flowLaw func(spec agent.FlowSpec) (law.Law, error)

// kinds are the laws that --law can name: all but those that want telemetry of every hop,
// which frames on the wire do not carry here; `headgate sim` has them.
func kinds() (list []registry.Kind) {
	for _, k := range registry.Kinds {
		if !k.Needs.INT {
			list = append(list, k)
		}
	}
	return list
}

// lawKind returns the kind of --law; prioplus is short for prioplus-swift.
func (o *Options) lawKind() (*registry.Kind, error) {
	name := o.Law
	if name == "prioplus" {
		name = "prioplus-swift"
	}
	k := registry.Find(name)
	if k == nil || k.Needs.INT {
		names := []string{"prioplus"}
		for _, k := range kinds() {
			names = append(names, k.Name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("--law %q: want %s", o.Law, param.OneOf(names))
	}
	return k, nil
}

// params returns the parameters from --param and from other flags.
func (o *Options) params(k *registry.Kind) (map[string]string, error) {
	values := map[string]string{}
	for _, s := range o.Params {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--param %q: want NAME=VALUE", s)
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("--param %q: %s is given twice", s, name)
		}
		values[name] = value
	}
	flags := map[string]string{}
	switch {
	case k.Name == "soze":
		exact := func(v int64, unit string) string { return strconv.FormatInt(v, 10) + unit }
		flags = map[string]string{
			"p": exact(int64(o.Soze.P), "ps"), "k": exact(int64(o.Soze.K), "ps"), "alpha": exact(int64(o.Soze.Alpha), "bps"),
			"beta": exact(int64(o.Soze.Beta), "bps"), "m": strconv.FormatFloat(o.Soze.M, 'g', -1, 64),
		}
	case k.Needs.Channel:
		flags["level"] = o.Level
	}
	for name, value := range flags {
		if given, twice := values[name]; twice {
			return nil, fmt.Errorf("--param %s=%s: want --%s %s", name, given, name, given)
		}
		values[name] = value
	}
	return values, nil
}

func (o *Options) flowLaw() (flowLaw, error) {
	k, err := o.lawKind()
	if err != nil {
		return nil, err
	}
	values, err := o.params(k)
	if err != nil {
		return nil, err
	}
	if k.Needs.BaseRTT && o.BaseRTT <= 0 {
		return nil, fmt.Errorf("--base-rtt %v: --law %s wants the round trip of an empty path, more than 0", o.BaseRTT, o.Law)
	}
	if err := o.checkChannels(k); err != nil {
		return nil, err
	}
	m, err := k.Maker(values)
	if err != nil {
		return nil, fmt.Errorf("--law %s: --param %w", o.Law, err)
	}
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return func(spec agent.FlowSpec) (law.Law, error) {
		f := law.Flow{
			Rate: o.payloadRate(), BaseRTT: o.BaseRTT, MSS: o.MSS, Size: spec.Size, Deadline: spec.Deadline,
			Weight: spec.Weight, Scale: o.Scale, Rand: rng,
		}
		if k.Needs.Channel {
			f.Target, f.Limit = spec.Channel.Target, spec.Channel.Limit
		}
		return m.NewLaw(f)
	}, nil
}

// payloadRate is how fast full packets carry payload over the link.
func (o *Options) payloadRate() units.Rate {
	return units.Rate(float64(o.Rate) * float64(o.MSS) / float64(o.MSS+units.Bytes(packet.Overhead(o.IP))))
}

func (o *Options) scaled(t units.Time) units.Time { return units.Time(float64(t) * o.Scale) }

// LawsHelp describes the laws and their parameters.
func LawsHelp() string {
	return "Laws of --law and their parameters for --param, named as in files of `headgate sim`. Times are the papers',\nwhich are multiplied by --scale:\n" + registry.Help(kinds()) + "  prioplus: short for prioplus-swift\n"
}
