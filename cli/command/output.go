package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/sim/experiment"
)

// Format is the format of results.
type Format string

// The formats.
const (
	Table Format = "table"
	wide  Format = "wide" // a Table with more columns
	JSON  Format = "json"
	YAML  Format = "yaml"
)

var formats = []string{string(Table), string(wide), string(JSON), string(YAML)}

// AddOutputFlag adds -o to a command and its subcommands.
func AddOutputFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringP("output", "o", string(Table), "`format` of the output: table, wide (more columns where there are any), json or yaml; also HEADGATE_OUTPUT")
	CompleteFlag(cmd, "output", formats...)
}

// Output is where results go, in which format.
type Output struct {
	Format Format
	Wide   bool // a Table has all columns
	Out    io.Writer
}

// OutputOf returns a command's Output, in the format that -o or HEADGATE_OUTPUT names; a Table if the command
// has no -o.
func OutputOf(cmd *cobra.Command) (Output, error) {
	v, err := Settings(cmd)
	if err != nil {
		return Output{}, err
	}
	o := Output{Format: Format(v.GetString("output")), Out: cmd.OutOrStdout()}
	switch {
	case o.Format == "":
		o.Format = Table
	case o.Format == wide:
		o.Format, o.Wide = Table, true
	case !slices.Contains(formats, string(o.Format)):
		return o, fmt.Errorf("--output: %q is not allowed: want table, wide, json or yaml", o.Format)
	}
	return o, nil
}

// Print writes a value in the format that -o of a command asks for. table writes it as a table.
func Print(cmd *cobra.Command, v any, table func(w io.Writer)) error {
	o, err := OutputOf(cmd)
	if err != nil {
		return err
	}
	return o.Value(v, table)
}

// Value writes a value as JSON or YAML, or has table write it.
func (o Output) Value(v any, table func(w io.Writer)) error {
	if o.Format == Table {
		return o.Tabs(table)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return o.Raw(text.Bytes())
}

// Tabs aligns the output of draw in columns. draw separates cells by tabs.
func (o Output) Tabs(draw func(w io.Writer)) error {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	draw(w)
	return w.Flush()
}

// Raw writes JSON as JSON or YAML.
func (o Output) Raw(text []byte) error {
	if o.Format == JSON {
		var out bytes.Buffer
		if err := json.Indent(&out, bytes.TrimSpace(text), "", "  "); err != nil {
			return err
		}
		_, err := fmt.Fprintln(o.Out, out.String())
		return err
	}
	text, err := toYAML(text)
	if err == nil {
		_, err = o.Out.Write(text)
	}
	return err
}

// Line writes one message of a stream: JSON as a line, YAML as a document.
func (o Output) Line(text []byte) (err error) {
	if o.Format == YAML {
		if text, err = toYAML(text); err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Out, "---\n%s", text)
		return err
	}
	_, err = fmt.Fprintf(o.Out, "%s\n", bytes.TrimSpace(text))
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

// Row writes the cells of one line.
func Row(w io.Writer, cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = Clean(fmt.Sprint(c))
		if text[i] == "" {
			text[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(w, strings.Join(text, "\t"))
}

// Progress draws one line on a terminal, and nothing elsewhere.
type Progress struct {
	w    io.Writer // nil when it is no terminal
	last time.Time
	used bool
}

func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	if !ok {
		return &Progress{}
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return &Progress{}
	}
	return &Progress{w: w}
}

// Update is called with the batch's lock held, so calls do not overlap.
func (p *Progress) Update(now experiment.Progress) {
	if p.w == nil || time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last, p.used = time.Now(), true
	left := "–"
	if now.Left > 0 {
		left = fmt.Sprintf("%v, until %s", now.Left.Round(time.Second), time.Now().Add(now.Left).Format(time.TimeOnly))
	}
	fmt.Fprintf(p.w, "\r\x1b[K%d of %d runs, %.0f %%, about %s left", now.Done, now.Runs, 100*now.Part, left)
}

func (p *Progress) Clear() {
	if p.used {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
