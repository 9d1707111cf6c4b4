package sonic

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/jsonfile"
	"github.com/headgate/headgate/units"
)

var update = flag.Bool("update", false, "rewrite golden files")

// link is a link of the switch to a host, as text of the file.
type link struct {
	port        uint32
	rate, delay string
}

// fabric returns a fabric file with one switch at 1/1000 of line rate.
func fabric(links []link, sections string) string {
	var b strings.Builder
	b.WriteString("name: f\nscale: 1000\nswitches:\n  - {name: s1, device_id: 1, address: \"127.0.0.1:9559\", target: embedded}\nhosts:\n")
	for i := range links {
		fmt.Fprintf(&b, "  - {name: h%d, ipv4: 10.0.%d.%d}\n", i, i/200, i%200+1)
	}
	b.WriteString("links:\n")
	for i, l := range links {
		fmt.Fprintf(&b, "  - {a: \"s1:%d\", b: h%d, rate: %s, delay: %s}\n", l.port, i, l.rate, l.delay)
	}
	return b.String() + sections
}

func parse(text string) (*config.Config, error) {
	var sections []config.Section
	for _, f := range []*feature.Feature{buffer.New(nil), qos.New(nil), pfcwatchdog.New(nil)} {
		sections = append(sections, f.Section)
	}
	return config.Parse("f.yaml", []byte(text), nil, sections...)
}

func must(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

func encode(t *testing.T, db DB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jsonfile.Encode(&b, db); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var two = []link{{1, "100Mbps", "200ns"}, {3, "40Mbps", "2us"}}

const classes = "qos: {classes: [{dscp: 24, class: 3}, {dscp: 26, class: 4, queue: 5}, {dscp: 48, class: 6, queue: 6}]}\n"

// goldens are sections, each with the tables that they are exported as.
var goldens = map[string]string{
	"sih":      classes + "buffer: {policy: sih, size: 16MB, lossless: [3, 4], private: 3KB, lossy_private: 1KB, headroom: 60KB, alpha: 1/16, resume_gap: 3KB}\n",
	"static":   classes + "buffer: {policy: static, size: 16MB, lossless: [3], threshold: 400KB, mtu: 9216B}\n",
	"adaptive": "buffer: {policy: adaptive, size: 4MB, lossless: [0], alpha: 2}\npfc_watchdog: {detection_time: 150ms, restoration_time: 2s, action: forward}\n",
	"ecn": strings.Replace(classes, "classes:", "ecn: [{queue: 3, rate: 40Gbps, kmin: 100KB, kmax: 200KB, pmax: 0.07}, {queue: 3, rate: 100Gbps, kmin: 1MB, kmax: 10MB, pmax: 1}, {queue: 5, kmin: 64B, kmax: 64B, pmax: 0.05}], classes:", 1) +
		"buffer: {policy: sih, size: 16MB, lossless: [3], headroom: 120KB}\n",
	"oversubscribed": classes + "buffer: {policy: oversubscribed, size: 16MB, lossless: [3], headroom: 60KB}\npfc_watchdog: {detection_time: 400ms}\n",
}

func TestGolden(t *testing.T) {
	for name, sections := range goldens {
		c := must(t, fabric(two, sections))
		db, warnings, err := Export(c, &c.Switches[0], Options{Lanes: 4})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %q", name, err, warnings)
			continue
		}
		got, file := encode(t, db), "testdata/"+name+".json"
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, diff)
		}
		again(t, c, db)
	}
}

// again imports tables into a fabric and exports them; the result must be equal.
func again(t *testing.T, c *config.Config, db DB) {
	t.Helper()
	text, _, _ := strings.Cut(string(c.Source), "\nqos:")
	text, _, _ = strings.Cut(text, "\nbuffer:")
	found, err := Import("db.json", "s1", encode(t, db), false)
	if err != nil || len(found.Left) > 0 {
		t.Errorf("%v, %+v\n%s", err, found, c.Source)
		return
	}
	back := must(t, withPorts(text, found.Ports)+"\n"+string(found.Sections))
	twice, warnings, err := Export(back, &back.Switches[0], Options{Lanes: 4})
	if diff := cmp.Diff(db, twice); err != nil || len(warnings) > len(buffer.LowHeadroom(back, &back.Switches[0])) || diff != "" {
		t.Errorf("%v, %q, after\n%s\nof\n%s\n(-exported +imported and exported)\n%s", err, warnings, found.Sections, c.Source, diff)
	}
}

// withPorts adds a list of ports to the file's switch; "" adds none.
func withPorts(text, ports string) string {
	if ports != "" {
		ports = ", ports: " + ports
	}
	return regexp.MustCompile("target: embedded[^\n]*").ReplaceAllLiteralString(text, "target: embedded"+ports+"}")
}

// TestOwnPorts: ports' own settings and queues' weights survive export and import.
func TestOwnPorts(t *testing.T) {
	links := []link{{1, "100Mbps", "200ns"}, {2, "100Mbps", "200ns"}, {3, "100Mbps", "200ns"}, {5, "40Mbps", "2us"}}
	const qos = "qos: {classes: [{dscp: 24, class: 3}, {dscp: 26, class: 4, queue: 5}, {dscp: 48, class: 6}], weights: [%s], port_maps: [{switch: s1, port: 2, dscp: 26, class: 0}, {switch: s1, port: 2, dscp: 1, class: 3}]}\n"
	const buffer = "buffer: {policy: %s, size: 16MB, lossless: [3, 4], private: 3KB, headroom: 60KB, lossy_private: 1KB}\n"
	for weights, want := range map[string]string{"{queue: 0, weight: 600}, {queue: 3, weight: 200}": "3", "{queue: 0, weight: 7}": "7", "{queue: 0, weight: 1000}, {queue: 3, weight: 7}": ""} {
		for _, policy := range []string{"sih", "static, threshold: 100KB"} {
			c := must(t, withPorts(fabric(links, fmt.Sprintf(qos, weights)+fmt.Sprintf(buffer, policy)), "[{number: 2, lossless: [3], headroom: 90KB}, {number: 5, headroom: 80KB}]"))
			db, _, err := Export(c, &c.Switches[0], Options{Lanes: 4})
			if want == "" {
				if err == nil || !strings.Contains(err.Error(), "qos.weights: is [1000 0 0 7 0 0 0 0], want weights in a proportion of numbers up to 100") {
					t.Errorf("%s: %v", weights, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range [][3]string{
				{tableQoSOf("Ethernet4"), "pfc_enable", "3"}, {tableQoSOf("Ethernet4"), "dscp_to_tc_map", "headgate_Ethernet4"}, {tableQoSOf("Ethernet8"), "dscp_to_tc_map", "headgate"},
				{"DSCP_TO_TC_MAP|headgate_Ethernet4", "26", "0"}, {"DSCP_TO_TC_MAP|headgate_Ethernet4", "1", "3"}, {"DSCP_TO_TC_MAP|headgate", "26", "5"},
				{"BUFFER_PG|Ethernet4|3", "profile", "headgate_100000_40m_90000"}, {"BUFFER_PG|Ethernet8|3-4", "profile", "pg_lossless_100000_40m_profile"},
				{"BUFFER_PROFILE|headgate_100000_40m_90000", "xoff", "90000"}, {"BUFFER_PROFILE|pg_lossless_40000_400m_profile", "xoff", "80000"},
				{"BUFFER_POOL|ingress_lossless_pool", "xoff", "490000"}, {"BUFFER_POOL|ingress_lossless_pool", "size", "15510000"},
				{"QUEUE|Ethernet0|0", "scheduler", "headgate_weight_" + want}, {"QUEUE|Ethernet0|6", "scheduler", "headgate_strict"}, {"SCHEDULER|headgate_weight_" + want, "weight", want},
			} {
				table, key, _ := strings.Cut(x[0], "|")
				if got := db[table][key][x[1]]; got != x[2] {
					t.Errorf("%s: %s|%s is %q, want %q", policy, x[0], x[1], got, x[2])
				}
			}
			again(t, c, db)
		}
	}
}

func tableQoSOf(port string) string { return tablePortQoS + "|" + port }

// TestVendorsProfiles: after an import with the vendor's profiles, a switch's headroom is checked
// against them.
func TestVendorsProfiles(t *testing.T) {
	c := must(t, fabric(two, goldens["sih"]))
	db, _, err := Export(c, &c.Switches[0], Options{Lanes: 4})
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := buffer.ParseProfiles("p.ini", "100000 300m 18432 18432 555555\n")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Import("db.json", "s1", encode(t, db), false, profiles...)
	if err != nil {
		t.Fatal(err)
	}
	back := must(t, fabric(two, string(found.Sections)))
	if got := buffer.LowHeadroom(back, &back.Switches[0]); len(got) == 0 || !strings.Contains(got[len(got)-1], "555555 B") {
		t.Errorf("%q, after\n%s", got, found.Sections)
	}
}

// For every policy that can be exported, import gives the same policy back.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 6))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	exported := 0
	for range 200 {
		var links []link
		for i := range 1 + r.IntN(4) {
			links = append(links, link{uint32(1 + 2*i), pick("25Mbps", "100Mbps", "100Mbps", "400Mbps"), fmt.Sprintf("%dns", 5*(1+r.IntN(400)))})
		}
		policy := pick("static", "dt", "sih", "adaptive", "oversubscribed")
		var b strings.Builder
		fmt.Fprintf(&b, "buffer:\n  policy: %s\n  size: %dB\n  mtu: %dB\n", policy, 1_000_000+r.IntN(60_000_000), 68+r.IntN(9149))
		fmt.Fprintf(&b, "  private: %dB\n  lossy_private: %dB\n  resume_gap: %dB\n  lossless: [%s]\n", r.IntN(5000), r.IntN(5000), r.IntN(5000), pick("0", "3", "3, 4", "0, 7"))
		if r.IntN(2) == 0 {
			fmt.Fprintf(&b, "  headroom: %dB\n", r.IntN(200_000))
		}
		switch policy {
		case "static":
			fmt.Fprintf(&b, "  threshold: %dB\n", 1+r.IntN(500_000))
		case "oversubscribed":
			fmt.Fprintf(&b, "  share: %d\n", 1+r.IntN(1000))
			fallthrough
		default:
			fmt.Fprintf(&b, "  alpha: %s\n", pick("1/256", "1/8", "1", "64"))
		}
		fmt.Fprintf(&b, "qos: {classes: [{dscp: %d, class: 3, queue: %d}, {dscp: 40, class: 4, queue: 4}, {dscp: 63, class: 7}]}\n", r.IntN(40), r.IntN(8))
		text := fabric(links, b.String())
		if r.IntN(2) == 0 {
			text = withPorts(text, fmt.Sprintf("[{number: 1, headroom: %dB}]", 1+r.IntN(400_000)))
		}
		c, err := parse(text)
		if err != nil {
			continue // such as too little headroom
		}
		db, _, err := Export(c, &c.Switches[0], Options{Lanes: 4})
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		exported++
		again(t, c, db)
	}
	if exported < 40 {
		t.Errorf("only %d policies were valid", exported)
	}
}

// Settings that SONiC lacks are refused by name, or exported as the nearest setting.
func TestUnlike(t *testing.T) {
	const policy = "buffer: {policy: dt, size: 16MB, lossless: [3]"
	for name, c := range map[string]struct {
		links    []link
		sections string
		field    string
		nearest  string // "" where there is none
	}{
		"no policy":      {two, "", "buffer.policy: is off", ""},
		"shared":         {two, classes + strings.Replace(policy, "dt", "dsh", 1) + "}", "buffer.policy: is dsh", "a shared headroom pool"},
		"victims":        {two, classes + strings.Replace(policy, "dt", "spfc", 1) + "}", "buffer.policy: is spfc", "dt"},
		"both":           {two, classes + strings.Replace(policy, "dt", "dsh+spfc", 1) + "}", "buffer.policy: is dsh+spfc", "a shared headroom pool"},
		"alpha":          {two, classes + policy + ", alpha: 1/512}", "buffer.alpha: is 1/512", "1/256"},
		"quanta":         {two, classes + policy + ", pause_quanta: 100}", "buffer.pause_quanta: is 100", "what the switch has"},
		"frames":         {two, classes + policy + ", mtu: 10KB}", "buffer.mtu: is 10KB", ""},
		"half a Mbps":    {[]link{{1, "1500bps", "1us"}}, classes + policy + "}", "links[0].rate: is 1.5Kbps", ""},
		"part of metres": {[]link{{1, "100Mbps", "7ns"}}, classes + policy + "}", "links[0].delay: is 7ns", "2m"},
		"no cable":       {[]link{{1, "100Mbps", "0ns"}}, classes + policy + "}", "links[0].delay: is 0", "1m"},
		"two queues":     {two, "qos: {classes: [{dscp: 1, class: 3}, {dscp: 2, class: 3, queue: 2}]}\n" + policy + "}", "qos.classes[1].queue: is 2 for DSCP 2", ""},
		"a quick dog":    {two, classes + policy + "}\npfc_watchdog: {detection_time: 50ms}", "pfc_watchdog.detection_time: is 50ms", "100ms"},
		"a share":        {two, classes + policy + "}\npfc_watchdog: {detection_time: 1s, share: 1}", "pfc_watchdog.share: is 1", "the chip's"},
		"another queue": {two, strings.Replace(classes, "class: 3", "class: 3, queue: 2", 1) + policy + "}\npfc_watchdog: {detection_time: 1s}",
			"pfc_watchdog.detection_time: is 1s, and class 3 has queue 2", ""},
		"a longer cable": {[]link{{1, "100Mbps", "7ns"}}, classes + policy + fmt.Sprintf(", headroom: %dB}", headroom.Link{Rate: 100 * units.Gbps, Delay: 7 * units.Nanosecond, MTU: 1500, Response: headroom.Processing}.Required()),
			"links[0].delay: is 7ns", "-"},
	} {
		f := must(t, fabric(c.links, c.sections+"\n"))
		_, _, err := Export(f, &f.Switches[0], Options{Lanes: 4})
		if err == nil || !strings.Contains(err.Error(), ": "+c.field) {
			t.Errorf("%s: %v, want %q", name, err, c.field)
		}
		db, warnings, err := Export(f, &f.Switches[0], Options{Lanes: 4, Approximate: true})
		switch c.nearest {
		case "":
			if err == nil || !strings.Contains(err.Error(), ": "+c.field) {
				t.Errorf("%s: approximately %v, want %q", name, err, c.field)
			}
		case "-":
			if err == nil || !strings.Contains(err.Error(), "is exported as dt, which this switch cannot have") {
				t.Errorf("%s: approximately %v", name, err)
			}
		default:
			if err != nil || len(warnings) == 0 || !strings.Contains(warnings[0], c.field) || !strings.Contains(warnings[0], "exported as "+c.nearest) {
				t.Errorf("%s: approximately %v, %q, want %q", name, err, warnings, c.nearest)
			} else if _, err := Import("db.json", "s1", encode(t, db), true); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Shared headroom is exported as a shared headroom pool and imported again.
func TestSharedPool(t *testing.T) {
	const sections = "buffer:\n  policy: dsh\n  size: 16000000B\n  lossless: [3, 4]\n  mtu: 1500B\n  private: 0B\n  lossy_private: 0B\n  resume_gap: 0B\n  headroom: 60000B\n  alpha: 1\n"
	c := must(t, fabric(two, sections+"qos: {classes: [{dscp: 24, class: 3}, {dscp: 26, class: 4}]}\n"))
	db, _, err := Export(c, &c.Switches[0], Options{Lanes: 4, Approximate: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := db[tablePool][ingressPool]; got["xoff"] != "120000" || got["size"] != "15880000" {
		t.Errorf("%v, want a pool with 60000 of headroom for each port", got)
	}
	found, err := Import("db.json", "s1", encode(t, db), true)
	if err != nil || len(found.Warnings) != 1 || !strings.Contains(found.Warnings[0], "imported as policy dsh") || !strings.HasPrefix(string(found.Sections), sections) {
		t.Errorf("%v, %+v\n%s", err, found, found.Sections)
	}
}

// Classes without PFC may have several queues: each pair of class and queue is a traffic class.
func TestTrafficClasses(t *testing.T) {
	text := fabric(two, "qos: {classes: [{dscp: 8, class: 0, queue: 1}, {dscp: 46, class: 0, queue: 5}, {dscp: 26, class: 3}, {dscp: 5, class: 5}]}\nbuffer: {policy: sih, size: 16MB, lossless: [3], headroom: 60KB}\n")
	c := must(t, text)
	db, _, err := Export(c, &c.Switches[0], Options{Lanes: 4})
	if err != nil {
		t.Fatal(err)
	}
	for dscp, want := range map[string][3]string{"0": {"0", "0", "0"}, "8": {"1", "0", "1"}, "46": {"6", "0", "5"}, "26": {"3", "3", "3"}, "5": {"5", "5", "5"}} {
		tc := db[tableDSCP][mapName][dscp]
		if got := [3]string{tc, db[tableTCPG][mapName][tc], db[tableTCQueue][mapName][tc]}; got != want {
			t.Errorf("DSCP %s has traffic class, priority group and queue %q, want %q", dscp, got, want)
		}
	}
	again(t, c, db)
}

// The switch's own ports are found by their indices, or by their lanes if a port is broken out.
func TestPorts(t *testing.T) {
	c := must(t, fabric(two, goldens["sih"]))
	for name, x := range map[string]struct {
		ports string
		want  map[string]map[string]string
	}{
		"index": {`{"Ethernet8": {"index": "3", "lanes": "9,10", "adv_speeds": ["all"]}, "etp1": {"index": "1", "lanes": "7"}}`,
			map[string]map[string]string{"etp1": {"index": "1", "lanes": "7", "mtu": "1500", "speed": "100000"}, "Ethernet8": {"index": "3", "lanes": "9,10", "mtu": "1500", "speed": "40000"}}},
		"breakout": {`{"Ethernet10": {"index": "2", "lanes": "10"}, "Ethernet9": {"index": "2", "lanes": "9", "speed": "25000"}, "Ethernet0": {"index": "1", "lanes": "1,2"}, "Bridge": {}}`,
			map[string]map[string]string{"Ethernet0": {"index": "1", "lanes": "1,2", "mtu": "1500", "speed": "100000"}, "Ethernet10": {"index": "2", "lanes": "10", "mtu": "1500", "speed": "40000"}}},
		"no index": {`{"Ethernet1": {"lanes": "2"}, "Ethernet2": {"lanes": "3"}, "Ethernet0": {"lanes": "1"}}`,
			map[string]map[string]string{"Ethernet0": {"lanes": "1", "mtu": "1500", "speed": "100000"}, "Ethernet2": {"lanes": "3", "mtu": "1500", "speed": "40000"}}},
		"fewer": {`{"Ethernet0": {"index": "1", "lanes": "1"}}`, nil},
	} {
		own, err := ReadPorts("db.json", []byte(`{"PORT": `+x.ports+`, "VLAN": 1}`))
		if err != nil {
			t.Fatal(err)
		}
		db, _, err := Export(c, &c.Switches[0], Options{Switch: own})
		if (err == nil) != (x.want != nil) || err != nil && !strings.Contains(err.Error(), "port 3 of s1") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(x.want, db["PORT"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	own, _ := ReadPorts("db.json", []byte(`{"PORT": {"Ethernet0": {"index": "1", "lanes": "1", "speed": "25000"}, "Ethernet8": {"index": "3", "lanes": "9", "speed": "40000"}}}`))
	if _, warnings, err := Export(c, &c.Switches[0], Options{Switch: own}); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "Ethernet0 of the switch has a speed of 25000") {
		t.Errorf("%v, %q, want another speed named", err, warnings)
	}
}

func golden(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
