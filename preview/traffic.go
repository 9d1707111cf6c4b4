package preview

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/units"
)

// Traffic is what hosts do in a preview: the sections packet, cnp_gap, noise, laws, flows, events and run of
// an experiment (docs/simulator.md), with the names of the fabric's hosts. Times are at line rate, as
// links[].delay is.
type Traffic struct {
	Name string // for people
	File string // whose folder has the traces, for messages
	Text []byte
	// Notes are what is not known of it.
	Notes []string
}

// ReadTraffic reads a file of traffic: YAML, or a trace of flows as CSV, whose flows follow a law.
func ReadTraffic(name, law string) (Traffic, error) {
	switch ext := filepath.Ext(name); ext {
	case ".yaml", ".yml":
		text, err := os.ReadFile(name)
		return Traffic{Name: name, File: name, Text: text}, err
	case ".csv":
		last, err := lastStart(name)
		if err != nil {
			return Traffic{}, fmt.Errorf("%s: %w", name, err)
		}
		text := fmt.Sprintf("flows: [{kind: trace, file: %q, law: %s}]\n", filepath.Base(name), law)
		return Traffic{Name: name, File: name, Text: run(text, law, 4*last+10*units.Millisecond)}, nil
	default:
		return Traffic{}, fmt.Errorf("--traffic: %q has the ending %q, want .yaml, .yml, or .csv for a trace of flows", name, ext)
	}
}

// run adds what is not about flows.
func run(flows, law string, until units.Time) []byte {
	if strings.HasPrefix(law, "dcqcn") {
		flows += "cnp_gap: 50us\n" // DCQCN's N (Zhu et al., SIGCOMM 2015, §3.1)
	}
	return []byte(flows + fmt.Sprintf("run: {until: %v, stop_when_done: true}\n", until))
}

// lastStart returns when the last flow of a trace starts.
func lastStart(name string) (last units.Time, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.Comment, c.TrimLeadingSpace, c.ReuseRecord = '#', true, true
	head, err := c.Read()
	if err != nil {
		return 0, fmt.Errorf("no line of column names: %w", err)
	}
	at := slices.Index(head, "start")
	if at < 0 {
		return 0, errors.New("line 1: no column start")
	}
	for {
		line, err := c.Read()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		start, err := units.ParseTime(line[at])
		if err != nil || start > units.Second {
			n, _ := c.FieldPos(at)
			return 0, fmt.Errorf("line %d: start: is %q, want a time up to 1s", n, line[at])
		}
		last = max(last, start)
	}
}

// DefaultLaw is the law that hosts of a configuration are taken to follow where nobody says so: dcqcn-vendor,
// as NICs have it, where switches mark packets or send notifications, else none, the link's rate.
func DefaultLaw(c *config.Config) string {
	if len(qos.Of(c).ECN) > 0 || pacc.Of(c).Enabled {
		return "dcqcn-vendor"
	}
	return "none"
}
