package sonic

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/headroom"
)

// sections returns the policy as sections of a fabric file.
func (r *importer) sections(profiles []buffer.HeadroomProfile) []byte {
	var w bytes.Buffer
	h, d := r.h, r.dog
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
	for i, p := range profiles {
		if i == 0 {
			w.WriteString("  headroom_profiles:\n")
		}
		fmt.Fprintf(&w, "    - {rate: %v, delay: %v, headroom: %dB}\n", p.Rate, p.Delay, p.Headroom)
	}
	lists := map[string][]string{}
	for _, k := range r.class {
		if k.Class != 0 || k.Queue != 0 {
			lists["classes"] = append(lists["classes"], fmt.Sprintf("dscp: %d, class: %d, queue: %d", k.DSCP, k.Class, k.Queue))
		}
	}
	for _, m := range r.maps {
		lists["port_maps"] = append(lists["port_maps"], fmt.Sprintf("switch: %q, port: %d, dscp: %d, class: %d", m.Switch, m.Port, m.DSCP, m.Class))
	}
	for queue, weight := range r.weight {
		if weight > 0 {
			lists["weights"] = append(lists["weights"], fmt.Sprintf("queue: %d, weight: %d", queue, weight))
		}
	}
	for _, k := range r.ecn {
		rate := ""
		if k.Rate != 0 {
			rate = fmt.Sprintf("rate: %v, ", k.Rate)
		}
		lists["ecn"] = append(lists["ecn"], fmt.Sprintf("queue: %d, %skmin: %dB, kmax: %dB, pmax: %v", k.Queue, rate, k.KMin, k.KMax, k.PMax))
	}
	if len(lists) > 0 {
		w.WriteString("qos:\n")
	}
	for _, key := range []string{"classes", "port_maps", "weights", "ecn"} {
		for i, row := range lists[key] {
			if i == 0 {
				fmt.Fprintf(&w, "  %s:\n", key)
			}
			fmt.Fprintf(&w, "    - {%s}\n", row)
		}
	}
	if d.DetectionTime > 0 {
		fmt.Fprintf(&w, "pfc_watchdog: {detection_time: %v, restoration_time: %v, action: %s}\n", d.DetectionTime, d.RestorationTime, d.Action)
	}
	return w.Bytes()
}

// portItems returns the settings that differ by port, as the key ports of a switch.
func (r *importer) portItems() string {
	var items []string
	for i, port := range r.ports {
		item := fmt.Sprintf("number: %d", r.portNumber(port))
		if own := r.own[i]; own != r.h.Lossless {
			item += fmt.Sprintf(", lossless: [%s]", strings.ReplaceAll(list(own), ",", ", "))
		}
		if phi := r.h.Ports[i].Headroom; phi > 0 {
			item += fmt.Sprintf(", headroom: %dB", phi)
		}
		if strings.Contains(item, ",") {
			items = append(items, "{"+item+"}")
		}
	}
	if items == nil {
		return ""
	}
	return "[" + strings.Join(items, ", ") + "]"
}
