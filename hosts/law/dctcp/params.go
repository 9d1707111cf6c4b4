package dctcp

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; Visit says what each is.
type Params struct {
	LineRate                           units.Rate
	MSS                                units.Bytes
	Gain                               float64
	Increase, InitialWindow, MaxWindow units.Bytes

	Deadline               units.Time // above 0 makes the law D2TCP
	Size                   units.Bytes
	MinUrgency, MaxUrgency float64
}

// Visit visits the parameters of DCTCP.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "gain", &p.Gain, 1.0/16, param.AboveTo(0, 1), "g of alpha's moving average (DCTCP §3.1, RFC 8257 §4.2)")
	param.Of(s, "increase", &p.Increase, p.MSS, param.Above(0), "what the window grows by in a round trip without marks; default one packet")
	param.Of(s, "initial_window", &p.InitialWindow, 10*p.MSS, param.AtLeast(p.MSS), "window of a flow that starts, which doubles per round trip until the first mark or loss; default ten packets (RFC 6928)")
	param.Of(s, "max_window", &p.MaxWindow, 0, param.AtLeast(0), "bound of the window; 0B for none")
	if p.MaxWindow > 0 && p.MaxWindow < p.InitialWindow {
		s.Fault("max_window", p.MaxWindow, "want at least initial_window, %v, or 0B for no bound", p.InitialWindow)
	}
}

// VisitD2TCP visits the parameters of a flow with a deadline.
func (p *Params) VisitD2TCP(s *param.Set, f *law.Flow) {
	p.Visit(s, f)
	param.Of(s, "deadline", &p.Deadline, f.Deadline, param.Above(0), "how long after its start the flow wants to be done; default the flow's own deadline")
	param.Path(s, "size", &p.Size, f.Size, param.Above(0))
	param.Of(s, "min_urgency", &p.MinUrgency, 0.5, param.AboveTo(0, 1), "least d (D2TCP §3.2.3)")
	param.Of(s, "max_urgency", &p.MaxUrgency, 2, param.From(1, 100), "largest d (D2TCP §3.2.3)")
}

func (p *Params) check() error {
	if p.Deadline != 0 {
		return param.Check(p.VisitD2TCP)
	}
	return param.Check(p.Visit)
}
