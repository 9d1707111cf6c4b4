// Package web serves a page that shows the fabric: its topology with loads, queues, pauses, victims and switches'
// states as they are now and in the last ten minutes, flows beside their shares, events, and what was applied. The
// page only reads, and all of it is in the binary.
package web

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
)

// API is the part of the controller's API that the page shows.
type API struct {
	Fabric pb.FabricServiceServer
	Hosts  pb.HostServiceServer
	Events *events.Bus[*pb.Event]
}

//go:embed page
var page embed.FS

// recentEvents is how many events the page shows at most.
const recentEvents = 200

// state is the answer that the page reads every second: the API's messages as JSON.
type state struct {
	Time     time.Time         `json:"time"`
	Fabric   json.RawMessage   `json:"fabric"` // the fabric without its configuration
	Switches []json.RawMessage `json:"switches"`
	Reports  []json.RawMessage `json:"reports"` // reports of the attached hosts
	Events   []json.RawMessage `json:"events"`  // the last, newest last
}

// Files serves the page's files at / and, below /login and /logout, what login does. They say nothing of the fabric.
func Files(login http.Handler) http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("/", http.FileServerFS(files))
	mux.Handle("/login", login)
	mux.Handle("/login/", login)
	mux.Handle("/logout", login)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; form-action 'self'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

// Data serves what the page shows: the state at /api/fabric, and GetSeries and ListHistory, whose requests are JSON
// in the parameter request, at /api/series and /api/history.
func Data(api API, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/fabric", func(w http.ResponseWriter, r *http.Request) {
		s, err := api.now(r.Context())
		answer(w, log, s, err)
	})
	mux.HandleFunc("GET /api/series", method(log, &pb.GetSeriesRequest{}, api.Fabric.GetSeries))
	mux.HandleFunc("GET /api/history", method(log, &pb.ListHistoryRequest{}, api.Fabric.ListHistory))
	return mux
}

// method serves a method of the API; empty is an empty request of the method's type.
func method[Q, A proto.Message](log *slog.Logger, empty Q, call func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request := proto.Clone(empty).(Q)
		if text := r.FormValue("request"); text != "" {
			if err := protojson.Unmarshal([]byte(text), request); err != nil {
				answer(w, log, nil, status.Errorf(codes.InvalidArgument, "request: %v", err))
				return
			}
		}
		m, err := call(r.Context(), request)
		var text json.RawMessage
		if err == nil {
			text, err = pb.JSON(m)
		}
		answer(w, log, text, err)
	}
}

// answer writes the answer to a request.
func answer(w http.ResponseWriter, log *slog.Logger, v any, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		code := http.StatusInternalServerError
		switch status.Code(err) {
		case codes.InvalidArgument:
			code = http.StatusBadRequest
		case codes.NotFound:
			code = http.StatusNotFound
		}
		http.Error(w, status.Convert(err).Message(), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.Debug("a browser got no answer", "error", err)
	}
}

// now gathers the state. Lists are never null, so that the page need not ask.
func (a API) now(ctx context.Context) (s state, err error) {
	message := func(m proto.Message) json.RawMessage {
		text, failed := pb.JSON(m)
		err = cmp.Or(err, failed)
		return text
	}
	fabric, err := a.Fabric.GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return s, err
	}
	switches, err := a.Fabric.ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		return s, err
	}
	flows, err := a.Hosts.ListFlows(ctx, &pb.ListFlowsRequest{})
	if err != nil {
		return s, err
	}
	fabric.Config = ""
	s = state{Time: time.Now(), Fabric: message(fabric), Switches: []json.RawMessage{}, Reports: []json.RawMessage{}, Events: []json.RawMessage{}}
	for _, sw := range switches.GetSwitches() {
		s.Switches = append(s.Switches, message(sw))
	}
	for _, r := range flows.GetHosts() {
		s.Reports = append(s.Reports, message(r))
	}
	for _, e := range a.Events.Recent(recentEvents, nil) {
		s.Events = append(s.Events, message(e))
	}
	return s, err
}
