package sonic

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
)

// sections returns a policy as sections of a fabric file.
func sections(h headroom.Config, class [dscps]qos.Class, ecn []qos.ECN, d pfcwatchdog.Config) []byte {
	var w bytes.Buffer
	fmt.Fprintf(&w, "buffer:\n  policy: %s\n  size: %dB\n  lossless: [%s]\n  mtu: %dB\n", h.Policy, h.Buffer, strings.ReplaceAll(list(h.Lossless), ",", ", "), h.MTU)
	fmt.Fprintf(&w, "  private: %dB\n  lossy_private: %dB\n  resume_gap: %dB\n", h.Private, h.LossyPrivate, h.ResumeGap)
	if h.Headroom > 0 {
		fmt.Fprintf(&w, "  headroom: %dB\n", h.Headroom)
	}
	if h.Policy == headroom.Oversubscribed {
		fmt.Fprintf(&w, "  share: %d\n", h.Share)
	}
	if h.Policy == headroom.Static {
		fmt.Fprintf(&w, "  threshold: %dB\n", h.Threshold)
	} else {
		fmt.Fprintf(&w, "  alpha: %v\n", h.Alpha)
	}
	var classes strings.Builder
	for _, k := range class {
		if k.Class != 0 || k.Queue != 0 {
			fmt.Fprintf(&classes, "    - {dscp: %d, class: %d, queue: %d}\n", k.DSCP, k.Class, k.Queue)
		}
	}
	if classes.Len() > 0 || len(ecn) > 0 {
		w.WriteString("qos:\n")
	}
	if classes.Len() > 0 {
		w.WriteString("  classes:\n" + classes.String())
	}
	for i, k := range ecn {
		if i == 0 {
			w.WriteString("  ecn:\n")
		}
		rate := ""
		if k.Rate != 0 {
			rate = fmt.Sprintf("rate: %v, ", k.Rate)
		}
		fmt.Fprintf(&w, "    - {queue: %d, %skmin: %dB, kmax: %dB, pmax: %v}\n", k.Queue, rate, k.KMin, k.KMax, k.PMax)
	}
	if d.DetectionTime > 0 {
		fmt.Fprintf(&w, "pfc_watchdog: {detection_time: %v, restoration_time: %v, action: %s}\n", d.DetectionTime, d.RestorationTime, d.Action)
	}
	return w.Bytes()
}
