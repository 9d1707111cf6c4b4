package aimd

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; Visit says what each is.
type Params struct {
	LineRate                units.Rate
	BaseRTT                 units.Time
	MSS                     units.Bytes
	Delay                   units.Time
	Increase, InitialWindow units.Bytes
	Decrease                float64
	PerAck                  bool
}

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.AtLeast(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "delay", &p.Delay, f.Stretch(20*units.Microsecond), param.Above(0), "queueing delay beyond which the window shrinks; default Söze's 20us (§5.3.1)")
	param.Of(s, "increase", &p.Increase, p.MSS, param.Above(0), "what the window grows by in a round trip; default one packet")
	param.Of(s, "decrease", &p.Decrease, 0.125, param.Between(0, 1), "part of the window that a decrease takes; Söze's text has lost it")
	param.Of(s, "per_ack", &p.PerAck, false, param.Any, "step with each acknowledgement in place of once per round trip")
	param.Of(s, "initial_window", &p.InitialWindow, 10*p.MSS, param.AtLeast(p.MSS), "window of a flow that starts; default ten packets (RFC 6928)")
}
