package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// GetBuffers shows each switch's buffer, its ingress ports and what is wrong there.
func GetBuffers(ctx context.Context, e *Env) error {
	r, err := e.fabric().ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		return err
	}
	only := &pb.ListSwitchesResponse{}
	for _, s := range r.GetSwitches() {
		only.Switches = append(only.Switches, &pb.SwitchStatus{Name: s.GetName(), State: s.GetState(), Buffer: s.GetBuffer()})
	}
	return e.print(only, func(w io.Writer) { drawBuffers(w, e, only.GetSwitches()) })
}

func drawBuffers(w io.Writer, e *Env, switches []*pb.SwitchStatus) {
	row(w, "SWITCH", "POLICY", "PRIVATE", "SHARED", "HEADROOM", "INSURANCE", "PEAK SHARED", "PEAK RESERVED", "THRESHOLD", "ALARMS", "POLLED")
	for _, s := range switches {
		b := s.GetBuffer()
		used, size, peak := b.GetUsed(), b.GetSize(), b.GetPeak()
		if len(b.GetPorts()) == 0 {
			row(w, s.GetName(), b.GetPolicy(), "", "", "", "", "", "", "", "", "")
			continue
		}
		row(w, s.GetName(), b.GetPolicy(), share(used.GetPrivateBytes(), size.GetPrivateBytes()), share(used.GetSharedBytes(), size.GetSharedBytes()),
			share(used.GetHeadroomBytes(), size.GetHeadroomBytes()), share(used.GetInsuranceBytes(), size.GetInsuranceBytes()),
			units.Bytes(peak.GetSharedBytes()), units.Bytes(peak.GetHeadroomBytes()+peak.GetInsuranceBytes()),
			units.Bytes(b.GetThresholdBytes()), len(b.GetAlarms()), since(e.ago(b.GetTime())))
	}
	drawPortBuffers(w, switches)
	drawAlarms(w, e, switches)
}

func since(ago string) string {
	if ago == "" {
		return "never"
	}
	return ago + " ago"
}

// share writes what is in use of a pool.
func share(used, size uint64) string {
	if size == 0 && used == 0 {
		return ""
	}
	return fmt.Sprintf("%v of %v", units.Bytes(used), units.Bytes(size))
}

func drawPortBuffers(w io.Writer, switches []*pb.SwitchStatus) {
	head := false
	for _, s := range switches {
		for _, p := range s.GetBuffer().GetPorts() {
			if !head {
				_, _ = fmt.Fprintln(w)
				row(w, "SWITCH", "PORT", "PEER", "PAUSED", "FOR IN ALL", "PAUSE", "RESUME", "REFRESH", "MOST LATE", "HOLDS", "STATE", "LOSSLESS DROPS")
				head = true
			}
			row(w, s.GetName(), p.GetPort(), p.GetPeer(), classes(p), nanoseconds(sum(p.GetPausedNs())),
				p.GetPauseFrames(), p.GetResumeFrames(), p.GetRefreshFrames(), nanoseconds(p.GetRefreshMostLateNs()),
				units.Bytes(sum(p.GetPrivateBytes())+sum(p.GetSharedBytes())+sum(p.GetHeadroomBytes())), victim(p.GetVictim()), sum(p.GetLosslessDrops()))
		}
	}
}

func victim(is bool) string {
	if is {
		return "victim"
	}
	return "normal"
}

// classes lists what a port has paused.
func classes(p *pb.PortBufferStatus) string {
	if p.GetPortPaused() {
		return "port"
	}
	var list []string
	for c := range 8 {
		if p.GetPausedClasses()>>c&1 != 0 {
			list = append(list, strconv.Itoa(c))
		}
	}
	return strings.Join(list, ",")
}

func sum(list []uint64) uint64 {
	total := uint64(0)
	for _, n := range list {
		total += n
	}
	return total
}

func drawAlarms(w io.Writer, e *Env, switches []*pb.SwitchStatus) {
	head := false
	for _, s := range switches {
		for _, a := range s.GetBuffer().GetAlarms() {
			if !head {
				_, _ = fmt.Fprintln(w)
				row(w, "SWITCH", "ALARM", "PORT", "CLASS", "SINCE", "FOR", "DETAIL")
				head = true
			}
			class := ""
			if a.Class != nil {
				class = strconv.Itoa(int(a.GetClass()))
			}
			row(w, s.GetName(), a.GetKind(), a.GetPort(), class, a.GetSince().AsTime().Local().Format(time.TimeOnly), e.ago(a.GetSince()), a.GetText())
		}
	}
}
