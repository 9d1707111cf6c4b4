package operator

import (
	"github.com/headgate/headgate/cli/command"

	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// print writes a message in the env's format. table writes it as a table.
func (e *env) print(m proto.Message, table func(w io.Writer)) error {
	if e.Format == Table {
		return e.table(table)
	}
	text, err := pb.JSON(m)
	if err != nil {
		return err
	}
	return e.raw(text)
}

// raw writes JSON in the env's format, which is JSON or YAML.
func (e *env) raw(text []byte) error {
	if e.Format == JSON {
		var out bytes.Buffer
		if err := json.Indent(&out, text, "", "  "); err != nil {
			return err
		}
		_, err := fmt.Fprintln(e.Out, out.String())
		return err
	}
	text, err := toYAML(text)
	if err == nil {
		_, err = e.Out.Write(text)
	}
	return err
}

// line writes one message of a stream: JSON as a line, YAML as a document.
func (e *env) line(m proto.Message) error {
	text, err := pb.JSON(m)
	if err != nil {
		return err
	}
	if e.Format == YAML {
		if text, err = toYAML(text); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "---\n%s", text)
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s\n", text)
	return err
}

// toYAML keeps the order of the fields. JSON is YAML already; only its style changes.
func toYAML(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	var plain func(n *yaml.Node)
	plain = func(n *yaml.Node) {
		n.Style = 0
		for _, c := range n.Content {
			plain(c)
		}
	}
	plain(&doc)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// table aligns the output of draw in columns. draw separates cells by tabs.
func (e *env) table(draw func(w io.Writer)) error {
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	draw(w)
	return w.Flush()
}

// row writes the cells of one line.
func row(w io.Writer, cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = command.Clean(fmt.Sprint(c))
		if text[i] == "" {
			text[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(w, strings.Join(text, "\t"))
}

func flowText(k *pb.FlowKey) string {
	if k == nil {
		return ""
	}
	port := func(p uint32) string { return strconv.FormatUint(uint64(p), 10) }
	return net.JoinHostPort(k.GetSrcIpv4(), port(k.GetSrcPort())) + "," + net.JoinHostPort(k.GetDstIpv4(), port(k.GetDstPort()))
}

func nanoseconds(n uint64) units.Time { return units.Time(n) * units.Nanosecond }

func endpoint(e *pb.Endpoint) string {
	if e.GetPort() == 0 {
		return e.GetNode()
	}
	return fmt.Sprintf("%s:%d", e.GetNode(), e.GetPort())
}

// at formats the time of a log entry, in the local time zone.
func at(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02 15:04:05.000")
}

func clock(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format("15:04:05.000")
}

// ago formats the time since t, to the second.
func (e *env) ago(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return max(0, e.Now().Sub(t.AsTime())).Truncate(time.Second).String()
}
