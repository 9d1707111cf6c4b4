package sonic

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/headgate/headgate/headroom"
)

// yaml returns a policy as sections of a fabric file.
func (p *policy) yaml() []byte {
	var w bytes.Buffer
	h := p.mmu
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
	for dscp, class := range p.class {
		if queue := p.queue[class]; class != 0 || queue != 0 {
			fmt.Fprintf(&classes, "    - {dscp: %d, class: %d, queue: %d}\n", dscp, class, queue)
		}
	}
	if classes.Len() > 0 {
		w.WriteString("qos:\n  classes:\n" + classes.String())
	}
	if d := p.watchdog; d.DetectionTime > 0 {
		fmt.Fprintf(&w, "pfc_watchdog: {detection_time: %v, restoration_time: %v, action: %s}\n", d.DetectionTime, d.RestorationTime, d.Action)
	}
	return w.Bytes()
}
