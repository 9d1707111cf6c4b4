package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// MaxFile is the largest fabric file that is read, in bytes.
const MaxFile = 8 << 20

// Parse reads a fabric file's text. On any fault the configuration is nil and the error an
// *Error with all of them. The file name is for messages only.
func Parse(file string, text []byte) (*Config, error) { return parse(file, text, nil) }

// override is a value of the environment or of a flag that replaces one of the file's.
type override struct{ path, value, origin string }

func parse(file string, text []byte, overrides []override) (*Config, error) {
	d := &decoder{lines: map[string]int{}}
	c := &Config{Source: bytes.Clone(text), File: file, lines: d.lines}
	root, line, why := document(text)
	if why != "" {
		d.add(line, "", "%s", why)
		return nil, d.err(file)
	}
	buffers := &bufferSections{switches: map[int]*yaml.Node{}}
	c.read(d, root, buffers)
	buffers.read(d, c)
	for _, o := range overrides {
		c.override(d, o)
	}
	c.defaults(d)
	if len(d.found) == 0 {
		c.check(&d.faults)
	}
	if err := d.err(file); err != nil {
		return nil, err
	}
	return c, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): *`)

// document returns the top mapping of the only document, or what is wrong and where.
func document(text []byte) (*yaml.Node, int, string) {
	if len(text) > MaxFile {
		return nil, 0, fmt.Sprintf("is %d bytes long, at most %d are allowed", len(text), MaxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, 0, "is empty, want a mapping with at least name and switches"
		}
		return yamlFault(err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, second.Line, "a second YAML document starts here, want one"
	case !errors.Is(err, io.EOF):
		return yamlFault(err)
	}
	return doc.Content[0], 0, ""
}

func yamlFault(err error) (*yaml.Node, int, string) {
	msg, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = strings.Replace(msg, m[0], "", 1)
	}
	return nil, line, "not YAML: " + msg
}

func (c *Config) read(d *decoder, root *yaml.Node, buffers *bufferSections) {
	d.object(root, "", []field{
		{"name", true, func(n *yaml.Node, p string) { c.Name = d.word(n, p) }},
		{"scale", false, func(n *yaml.Node, p string) { c.Scale = int64(d.uint(n, p, 1, 1_000_000)) }},
		{"switches", true, func(n *yaml.Node, p string) {
			d.list(n, p, func(n *yaml.Node, p string) {
				c.Switches = append(c.Switches, readSwitch(d, n, p, func(n *yaml.Node, _ string) { buffers.switches[len(c.Switches)] = n }))
			})
		}},
		{"hosts", false, func(n *yaml.Node, p string) {
			d.list(n, p, func(n *yaml.Node, p string) { c.Hosts = append(c.Hosts, readHost(d, n, p)) })
		}},
		{"links", false, func(n *yaml.Node, p string) {
			d.list(n, p, func(n *yaml.Node, p string) { c.Links = append(c.Links, readLink(d, n, p)) })
		}},
		{"qos", false, func(n *yaml.Node, p string) { c.QoS = readQoS(d, n, p) }},
		{"soze", false, func(n *yaml.Node, p string) { c.Soze = readSoze(d, n, p) }},
		{"buffer", false, func(n *yaml.Node, _ string) { buffers.fabric = n }},
		{"pacc", false, func(n *yaml.Node, p string) { c.PACC = readPACC(d, n, p) }},
		{"prioplus", false, func(n *yaml.Node, p string) { c.PrioPlus = readPrioPlus(d, n, p) }},
		{"applications", false, func(n *yaml.Node, p string) {
			d.list(n, p, func(n *yaml.Node, p string) { c.Applications = append(c.Applications, readApplication(d, n, p)) })
		}},
		{"controller", false, func(n *yaml.Node, p string) { d.object(n, p, c.Controller.fields(d)) }},
	})
}

func readHost(d *decoder, n *yaml.Node, path string) Host {
	var v Host
	d.object(n, path, []field{
		{"name", true, func(n *yaml.Node, p string) { v.Name = d.word(n, p) }},
		{"ipv4", true, func(n *yaml.Node, p string) { v.IPv4 = d.ipv4(n, p) }},
		{"mac", false, func(n *yaml.Node, p string) { v.MAC = d.mac(n, p) }},
	})
	return v
}

func readLink(d *decoder, n *yaml.Node, path string) Link {
	var v Link
	d.object(n, path, []field{
		{"name", false, func(n *yaml.Node, p string) { v.Name = d.text(n, p, "a name") }},
		{"a", true, func(n *yaml.Node, p string) { v.A = readEndpoint(d, n, p) }},
		{"b", true, func(n *yaml.Node, p string) { v.B = readEndpoint(d, n, p) }},
		{"rate", true, func(n *yaml.Node, p string) { v.Rate = d.rate(n, p) }},
		{"delay", false, func(n *yaml.Node, p string) { v.Delay = d.time(n, p, 0, units.Second) }},
	})
	if v.Name == "" {
		v.Name = v.A.String() + "-" + v.B.String()
	}
	return v
}

// String prints the endpoint as the file writes it.
func (e Endpoint) String() string {
	if e.Port == 0 {
		return e.Node
	}
	return e.Node + ":" + strconv.FormatUint(uint64(e.Port), 10)
}

func readEndpoint(d *decoder, n *yaml.Node, path string) Endpoint {
	const want = `"switch:port" with a port from 1 to 509, or a host's name`
	s, ok := d.scalar(n, path, want)
	if !ok {
		return Endpoint{}
	}
	node, port, hasPort := strings.Cut(s, ":")
	number, err := strconv.ParseUint(port, 10, 32)
	if !isWord(node) || hasPort && (err != nil || number < 1 || number > maxPort) {
		d.add(n.Line, path, "is %q, want %s", clip(s), want)
		return Endpoint{}
	}
	return Endpoint{Node: node, Port: uint32(number)}
}

func readApplication(d *decoder, n *yaml.Node, path string) Application {
	var v Application
	d.object(n, path, []field{
		{"name", true, func(n *yaml.Node, p string) { v.Name = d.word(n, p) }},
		{"budget", true, func(n *yaml.Node, p string) {
			v.Budget = d.float(n, p, positive, "a finite number above zero")
		}},
	})
	return v
}

func positive(v float64) bool { return v > 0 }

func (c *Controller) fields(d *decoder) []field {
	return []field{
		{"listen", false, func(n *yaml.Node, p string) { c.Listen = d.hostPort(n, p) }},
		{"metrics", false, func(n *yaml.Node, p string) {
			if n.Value == "off" {
				c.Metrics = "off"
				return
			}
			c.Metrics = d.hostPort(n, p)
		}},
		{"election_id", false, func(n *yaml.Node, p string) { c.ElectionID = d.uint(n, p, 1, 1<<63-1) }},
		{"state", false, func(n *yaml.Node, p string) { c.State = d.text(n, p, "a file name") }},
		{"poll_interval", false, func(n *yaml.Node, p string) {
			c.PollInterval = d.wall(n, p, time.Millisecond, time.Hour, true)
		}},
		{"probe_interval", false, func(n *yaml.Node, p string) {
			c.ProbeInterval = d.wall(n, p, 10*time.Millisecond, time.Hour, true)
		}},
		{"probe_timeout", false, func(n *yaml.Node, p string) {
			c.ProbeTimeout = d.wall(n, p, 20*time.Millisecond, time.Hour, false)
		}},
		{"unreachable_after", false, func(n *yaml.Node, p string) {
			c.UnreachableAfter = d.wall(n, p, 100*time.Millisecond, 24*time.Hour, true)
		}},
		{"resync_interval", false, func(n *yaml.Node, p string) {
			c.ResyncInterval = d.wall(n, p, time.Second, 24*time.Hour, true)
		}},
	}
}

// override reads one value of controller.* as if the file said it.
func (c *Config) override(d *decoder, o override) {
	key := strings.TrimPrefix(o.path, "controller.")
	f := findField(c.Controller.fields(d), key)
	if f == nil {
		d.add(0, o.origin, "overrides %s, which cannot be overridden", o.path)
		return
	}
	f.read(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: o.value}, o.origin)
}
