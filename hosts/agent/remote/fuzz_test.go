package remote

import (
	"log/slog"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/units"
)

// FuzzCommand: the host either refuses or obeys a controller's command, and can still report afterwards.
func FuzzCommand(f *testing.F) {
	_, key := owned(f)
	flow := command(key, 1).GetWeight().GetFlow()
	for _, c := range []*headgatev1.HostCommand{
		command(key, 5), command(key, math.NaN()), command(key, math.Inf(1)), command(key, -1), {},
		{Refused: "no budget", Weight: &headgatev1.FlowWeight{Flow: flow}},
		{Channel: &headgatev1.FlowChannel{Flow: flow, Channel: &headgatev1.Channel{}}},
		{Channel: &headgatev1.FlowChannel{Flow: flow, Refused: "none"}},
		{Channel: &headgatev1.FlowChannel{}}, {Weight: &headgatev1.FlowWeight{Flow: &headgatev1.FlowKey{SrcIpv4: "::1", SrcPort: 1 << 20}}},
	} {
		text, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &headgatev1.HostCommand{}
		if proto.Unmarshal(text, c) != nil {
			return
		}
		do, _ := owned(t)
		a := &attachment{
			opts:     Options{Host: "h1", Do: DoFrom(do), Log: slog.New(slog.DiscardHandler), BaseRTT: units.Microsecond},
			channels: map[agent.FlowKey]*headgatev1.Channel{}, wanted: map[agent.FlowKey]float64{}, seen: map[agent.FlowKey]units.Bytes{},
		}
		_ = a.obey(t.Context(), c)
		report, err := a.report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proto.Marshal(report); err != nil {
			t.Errorf("after %v: %v", c, err)
		}
	})
}
