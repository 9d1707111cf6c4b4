// Package web serves a page that shows the fabric: its topology with queues, pauses, victims and
// switches' states as they are now, what a click on one of them explains, and the last events. It only
// reads, and all of it is in the binary.
package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/headgate/headgate/controller/events"
	"github.com/headgate/headgate/controller/view"
)

// Source is what is shown.
type Source interface {
	Fabric() view.Fabric
	Switches() []view.Switch
	Events() *events.Bus[view.Event]
}

//go:embed page
var page embed.FS

// state is what the page reads twice a second.
type state struct {
	Name       string       `json:"name"`
	Generation uint64       `json:"generation"`
	Time       time.Time    `json:"time"`
	Switches   []node       `json:"switches"`
	Hosts      []host       `json:"hosts"`
	Links      []link       `json:"links"`
	Events     []view.Event `json:"events"` // the last, newest last
}

type node struct {
	Name    string    `json:"name"`
	Address string    `json:"address"`
	State   string    `json:"state"`
	Err     string    `json:"error,omitempty"`
	Since   time.Time `json:"since"`
	Entries int       `json:"entries"`
	Tables  []table   `json:"tables"`
}

type host struct {
	Name string `json:"name"`
	IPv4 string `json:"ipv4"`
}

type link struct {
	A     end    `json:"a"`
	B     end    `json:"b"`
	Rate  uint64 `json:"rate"` // bit/s
	State string `json:"state"`
}

type end struct {
	Node string `json:"node"`
	Port uint32 `json:"port,omitempty"`
}

// table is a feature's, with the words of `headgate get status` and the names of the metrics.
type table struct {
	Name    string   `json:"name"`
	Keys    []string `json:"keys"`
	Heads   []string `json:"heads"`
	Metrics []string `json:"metrics"`
	Rows    []row    `json:"rows"`
}

type row struct {
	Keys    []string   `json:"keys"`
	Texts   []string   `json:"texts"`
	Numbers []*float64 `json:"numbers"` // in base units; null for a text and for what is unknown
}

// Handler serves the page at / and what it shows at /fabric.json.
func Handler(src Source, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", secured(http.FileServerFS(files)))
	mux.HandleFunc("GET /fabric.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if err := json.NewEncoder(w).Encode(now(src)); err != nil {
			log.Debug("a browser went away", "error", err)
		}
	})
	return mux
}

// secured lets the page load nothing from elsewhere.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// now gathers the state. Lists are never null, so that the page need not ask.
func now(src Source) state {
	f := src.Fabric()
	s := state{Name: f.Name, Generation: f.Generation, Time: time.Now(), Switches: []node{}, Hosts: []host{}, Links: []link{}, Events: last(src.Events())}
	for _, h := range f.Hosts {
		s.Hosts = append(s.Hosts, host{h.Name, h.IPv4})
	}
	for _, l := range f.Links {
		s.Links = append(s.Links, link{end{l.A.Node, l.A.Port}, end{l.B.Node, l.B.Port}, l.RateBPS, linkState(l.State)})
	}
	for _, sw := range src.Switches() {
		n := node{Name: sw.Name, Address: sw.Address, State: sw.State.String(), Err: sw.Err, Since: sw.Since, Entries: sw.Entries, Tables: []table{}}
		for _, t := range sw.Status {
			n.Tables = append(n.Tables, tableOf(t))
		}
		s.Switches = append(s.Switches, n)
	}
	return s
}

func last(bus *events.Bus[view.Event]) []view.Event {
	sub := bus.Subscribe(events.Options[view.Event]{Recent: 200})
	defer sub.Close()
	list, _ := sub.Take()
	if list == nil {
		return []view.Event{}
	}
	return list
}

func linkState(s view.PortState) string {
	return map[view.PortState]string{view.PortUp: "up", view.PortDown: "down"}[s]
}

func tableOf(s view.Status) table {
	t := table{Name: s.Feature + " " + s.Name, Keys: list(s.Keys), Heads: []string{}, Metrics: []string{}, Rows: []row{}}
	for _, c := range s.Columns {
		t.Heads, t.Metrics = append(t.Heads, c.Head), append(t.Metrics, c.Metric)
	}
	for _, r := range s.Rows {
		out := row{Keys: list(r.Keys), Texts: make([]string, len(r.Values)), Numbers: make([]*float64, len(r.Values))}
		for i, v := range r.Values {
			if n, ok := view.Number(v); ok {
				out.Numbers[i] = &n
			}
			out.Texts[i] = text(v)
		}
		t.Rows = append(t.Rows, out)
	}
	return t
}

// list is never null in JSON.
func list(words []string) []string { return append([]string{}, words...) }

// text is a value for people; "" is unknown.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.Format(time.TimeOnly)
	}
	return fmt.Sprint(v)
}
