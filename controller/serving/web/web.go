// Package web serves a page that shows the fabric: its topology with queues, pauses, victims and
// switches' states as they are now, what a click on one of them explains, and the last events. It only
// reads, and all of it is in the binary.
package web

import (
	"cmp"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/serving/northbound"
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

// state is what the page reads twice a second: the API's messages as JSON.
type state struct {
	Time     time.Time         `json:"time"`
	Fabric   json.RawMessage   `json:"fabric"` // without its configuration
	Switches []json.RawMessage `json:"switches"`
	Events   []json.RawMessage `json:"events"` // the last, newest last
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
		s, err := now(src)
		if err == nil {
			err = json.NewEncoder(w).Encode(s)
		}
		if err != nil {
			log.Debug("a browser got no answer", "error", err)
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
func now(src Source) (s state, err error) {
	message := func(m proto.Message) json.RawMessage {
		text, failed := pb.JSON(m)
		err = cmp.Or(err, failed)
		return text
	}
	f := northbound.FabricToProto(src.Fabric())
	f.Config = ""
	s = state{Time: time.Now(), Fabric: message(f), Switches: []json.RawMessage{}, Events: []json.RawMessage{}}
	for _, sw := range src.Switches() {
		s.Switches = append(s.Switches, message(northbound.SwitchToProto(sw)))
	}
	sub := src.Events().Subscribe(events.Options[view.Event]{Recent: 200})
	defer sub.Close()
	list, _ := sub.Take()
	for _, e := range list {
		s.Events = append(s.Events, message(northbound.EventToProto(e)))
	}
	return s, err
}
