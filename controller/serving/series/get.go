package series

import (
	"cmp"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
)

// Query says which samples are wanted, as pb.GetSeriesRequest does.
type Query struct {
	Node    string
	Port    uint32
	Flow    weights.Key // the only one; zero for all
	After   time.Time
	Busiest int // 0 for all
}

// Get returns samples. It reports false where the fabric has no such node.
func (r *Recorder) Get(q Query) (*pb.GetSeriesResponse, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isSwitch, known := r.nodes[q.Node]
	if q.Node != "" && !known {
		return nil, false
	}
	out := &pb.GetSeriesResponse{FlowsLeftOut: uint64(r.leftOut)}
	var at []int // indices of the times to return, oldest first
	for i := max(0, r.count-len(r.times)); i < r.count; i++ {
		if t := r.times[i%len(r.times)]; t.After(q.After) {
			at = append(at, i%len(r.times))
			out.Times = append(out.Times, timestamppb.New(t))
		}
	}
	if q.Flow == (weights.Key{}) {
		ports := r.ports
		if q.Node != "" || q.Port != 0 {
			ports = nil
			for _, p := range r.ports {
				if (q.Node == "" || isSwitch && p.Node == q.Node || !isSwitch && p.peer == q.Node) && (q.Port == 0 || p.Port == q.Port) {
					ports = append(ports, p)
				}
			}
		}
		for _, p := range busiest(ports, q.Busiest, (*port).load) {
			out.Ports = append(out.Ports, &pb.PortSeries{
				Switch: p.Node, Port: p.Port, Peer: p.peer, LinkBps: p.linkBPS,
				RateBps: pick(p.values[portRate], at), QueueBytes: pick(p.values[portQueue], at),
				PauseShare: pick(p.values[portPause], at), CnpsPerS: pick(p.values[portCNPs], at),
			})
		}
	}
	if q.Port != 0 {
		return out, true
	}
	var flows []*flow
	for k, f := range r.running {
		if (q.Node == "" || f.from == q.Node || f.to == q.Node) && (q.Flow == weights.Key{} || q.Flow == k) {
			flows = append(flows, f)
		}
	}
	slices.SortFunc(flows, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), a.Key.Src().Compare(b.Key.Src()), a.Key.Dst().Compare(b.Key.Dst()))
	})
	for _, f := range busiest(flows, q.Busiest, func(f *flow) float64 { return mean(f.values[flowRate]) }) {
		src, dst := f.Key.Src(), f.Key.Dst()
		out.Flows = append(out.Flows, &pb.FlowSeries{
			Flow: &pb.FlowKey{SrcIpv4: src.Addr().String(), DstIpv4: dst.Addr().String(), SrcPort: uint32(src.Port()), DstPort: uint32(dst.Port())},
			Host: f.Host, Weight: f.Weight, Law: f.Law,
			RateBps: pick(f.values[flowRate], at), ShareBps: pick(f.values[flowShare], at),
		})
	}
	return out, true
}

// load is the mean of a port's load and pause share.
func (p *port) load() float64 {
	return mean(p.values[portRate])/float64(max(p.linkBPS, 1)) + mean(p.values[portPause])
}

// mean returns the mean of the known values, or 0 if there are none.
func mean(values []float32) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if v := float64(v); !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// busiest returns the n of a list that by finds the most of, in the order of the list; all where n is 0.
func busiest[T comparable](list []T, n int, by func(T) float64) []T {
	if n == 0 || len(list) <= n {
		return list
	}
	most := make(map[T]float64, len(list))
	for _, v := range list {
		most[v] = by(v)
	}
	order := slices.Clone(list)
	slices.SortStableFunc(order, func(a, b T) int { return cmp.Compare(most[b], most[a]) })
	for _, v := range order[n:] {
		delete(most, v)
	}
	var out []T
	for _, v := range list {
		if _, is := most[v]; is {
			out = append(out, v)
		}
	}
	return out
}

// pick returns the values at the places given.
func pick(values []float32, at []int) []float32 {
	out := make([]float32, len(at))
	for i, j := range at {
		out[i] = values[j]
	}
	return out
}
