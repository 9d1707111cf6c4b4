package gnmi

import (
	"context"
	"strings"
	"testing"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// path reads a path such as a/b[k=v]/c.
func path(text string) *gpb.Path {
	p := &gpb.Path{}
	for word := range strings.SplitSeq(text, "/") {
		e := &gpb.PathElem{}
		name, keys, ok := strings.Cut(word, "[")
		if e.Name = name; ok {
			e.Key = map[string]string{}
			for pair := range strings.SplitSeq(strings.TrimSuffix(keys, "]"), "][") {
				k, v, _ := strings.Cut(pair, "=")
				e.Key[k] = v
			}
		}
		if word != "" {
			p.Elem = append(p.Elem, e)
		}
	}
	return p
}

// TestGet: the leaves that a path selects, in each encoding.
func TestGet(t *testing.T) {
	s := &server{source: fabric()}
	for _, c := range []struct {
		target, prefix, path string
		encoding             gpb.Encoding
		want                 []string // TARGET PATH VALUE
	}{
		{"leaf1", "", "interfaces/interface[name=1]/state/oper-status", gpb.Encoding_PROTO, []string{`leaf1 /interfaces/interface[name=1]/state/oper-status string_val:"UP"`}},
		{"leaf1", "", "openconfig-interfaces:interfaces/interface[name=1]/state/counters/out-octets", gpb.Encoding_PROTO,
			[]string{`leaf1 /interfaces/interface[name=1]/state/counters/out-octets uint_val:10`}},
		{"leaf1", "", "interfaces/interface[name=1]/state/counters/out-octets", gpb.Encoding_JSON_IETF,
			[]string{`leaf1 /interfaces/interface[name=1]/state/counters/out-octets json_ietf_val:"\"10\""`}},
		{"leaf1", "", "interfaces/interface[name=1]/state/counters/out-octets", gpb.Encoding_JSON,
			[]string{`leaf1 /interfaces/interface[name=1]/state/counters/out-octets json_val:"10"`}},
		{"*", "", "qos/buffer/state/threshold", gpb.Encoding_PROTO, []string{`spine1 /qos/buffer/state/threshold uint_val:5`}},
		{"", "", "*/interface/*/oper-status", gpb.Encoding_PROTO, []string{
			`leaf1 /interfaces/interface[name=1]/state/oper-status string_val:"UP"`, `leaf1 /interfaces/interface[name=2]/state/oper-status string_val:"DOWN"`,
			`spine1 /interfaces/interface[name=1]/state/oper-status string_val:"UP"`,
		}},
		{"spine1", "", ".../victim", gpb.Encoding_PROTO, []string{`spine1 /qos/interfaces/interface[interface-id=1]/pfc/state/victim bool_val:false`}},
		{"spine1", "qos/interfaces", "interface[interface-id=*]/output/queues/queue[name=7]/state", gpb.Encoding_JSON_IETF, []string{
			`spine1 /qos/interfaces/interface[interface-id=1]/output/queues/queue[name=7]/state json_ietf_val:"{\"headgate-buffer:queue-len\":\"0\",\"openconfig-qos:name\":\"7\"}"`,
		}},
		{"spine1", "", "interfaces", gpb.Encoding_JSON_IETF, []string{
			`spine1 /interfaces json_ietf_val:"{\"openconfig-interfaces:interface\":[{\"name\":\"1\",\"state\":{\"counters\":{\"out-octets\":\"30\"},\"name\":\"1\",\"oper-status\":\"UP\"}}]}"`,
		}},
		{"spine1", "", "qos/interfaces/interface/pfc/classes", gpb.Encoding_JSON_IETF, []string{
			`spine1 /qos/interfaces/interface[interface-id=1]/pfc/classes json_ietf_val:"{\"headgate-buffer:class\":[{\"class\":3,\"state\":{\"class\":3,\"headroom-bytes\":\"1500\"}}]}"`,
		}},
		{"leaf1", "", "qos/interfaces/interface/output/queues/queue/state/name", gpb.Encoding_PROTO, []string{
			`leaf1 /qos/interfaces/interface[interface-id=1]/output/queues/queue[name=7]/state/name string_val:"7"`,
			`leaf1 /qos/interfaces/interface[interface-id=2]/output/queues/queue[name=7]/state/name string_val:"7"`,
		}},
	} {
		r := &gpb.GetRequest{Prefix: path(c.prefix), Path: []*gpb.Path{path(c.path)}, Encoding: c.encoding}
		r.Prefix.Target = c.target
		got, err := s.Get(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		var lines []string
		for _, n := range got.GetNotification() {
			for _, u := range n.GetUpdate() {
				lines = append(lines, n.GetPrefix().GetTarget()+" "+pathText(u.GetPath().GetElem())+" "+strings.Join(strings.Fields(u.GetVal().String()), " "))
			}
		}
		check(t, c.path, lines, c.want...)
	}
}

// TestBothElements: OpenConfig's own client also sends a path in its old form.
func TestBothElements(t *testing.T) {
	both := path("interfaces/interface[name=1]/state/oper-status")
	both.Element = []string{"interfaces", "interface[name=1]", "state", "oper-status"} //lint:ignore SA1019 gnmi_cli sends it
	got, err := (&server{source: fabric()}).Get(t.Context(), &gpb.GetRequest{Prefix: &gpb.Path{Target: "leaf1"}, Path: []*gpb.Path{both}})
	if err != nil || len(got.GetNotification()[0].GetUpdate()) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestGetAll: a request without a path gets all state; a request for configuration gets nothing.
func TestGetAll(t *testing.T) {
	s := &server{source: fabric()}
	for kind, want := range map[gpb.GetRequest_DataType]bool{gpb.GetRequest_ALL: true, gpb.GetRequest_STATE: true, gpb.GetRequest_CONFIG: false} {
		got, err := s.Get(t.Context(), &gpb.GetRequest{Type: kind})
		if err != nil || len(got.GetNotification()) != 2 {
			t.Fatalf("%v: %v, %v", kind, got, err)
		}
		if updates := got.GetNotification()[0].GetUpdate(); (len(updates) == 1) != want {
			t.Errorf("%v: %v", kind, updates)
		}
	}
}

// TestRefused: each error names the field, its value and the allowed values.
func TestRefused(t *testing.T) {
	s := &server{source: fabric(), running: context.Background()}
	good := &gpb.Subscription{Path: path(operPath)}
	many := make([]*gpb.Path, maxPaths+1)
	get := func(r *gpb.GetRequest) error { _, err := s.Get(t.Context(), r); return err }
	sub := func(change func(*gpb.SubscriptionList)) error {
		r := list("", gpb.SubscriptionList_STREAM, good)
		change(r.GetSubscribe())
		_, err := s.follow(t.Context(), r.GetSubscribe())
		return err
	}
	one := func(o *gpb.Subscription) error {
		return sub(func(l *gpb.SubscriptionList) { o.Path = good.Path; l.Subscription = []*gpb.Subscription{good, o} })
	}
	_, set := s.Set(t.Context(), &gpb.SetRequest{})
	for _, c := range []struct {
		err  error
		code codes.Code
		want string
	}{
		{set, codes.Unimplemented, "headgate apply"},
		{get(&gpb.GetRequest{Encoding: gpb.Encoding_ASCII}), codes.Unimplemented, "encoding: ASCII is not served: want JSON, JSON_IETF or PROTO"},
		{get(&gpb.GetRequest{UseModels: []*gpb.ModelData{{Name: "acl"}}}), codes.Unimplemented, `use_models[0]: "acl"`},
		{get(&gpb.GetRequest{Path: many}), codes.InvalidArgument, "path: 129 of them: want at most 128"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{nil, path("interfaces/interface[nom=1]")}}), codes.InvalidArgument, "path[1]: /interfaces/interface[nom=1]: no list has such keys"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{path("interfaces[x=1]")}}), codes.InvalidArgument, "x=1"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{path("...[x=1]/state")}}), codes.InvalidArgument, `"..." with keys: want none`},
		{get(&gpb.GetRequest{Path: []*gpb.Path{{Elem: []*gpb.PathElem{{Name: "qos"}, {}}}}}), codes.InvalidArgument, "/qos/: element 1 has no name"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{path("system")}}), codes.Unimplemented, "path[0]: /system: the models that are served have no such path"},
		{sub(func(l *gpb.SubscriptionList) { l.Subscription[0] = &gpb.Subscription{Path: path("system")} }), codes.Unimplemented, "/system"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{nil, path("interfaces/interface[name=9]")}}), codes.NotFound, "path[1]: /interfaces/interface[name=9]: nothing is known of it now"},
		{get(&gpb.GetRequest{Prefix: &gpb.Path{Target: "leaf1"}, Path: []*gpb.Path{path("qos/buffer/state/threshold")}}), codes.NotFound, "/qos/buffer/state/threshold"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{path("*/*[name=9]")}}), codes.NotFound, "name=9"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{path(".../state/...")}}), codes.InvalidArgument, `2 times "..."`},
		{get(&gpb.GetRequest{Path: []*gpb.Path{path(strings.Repeat("a/", 33))}}), codes.InvalidArgument, "33 elements: want at most 32"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{{Origin: "cli"}}}), codes.InvalidArgument, `path[0]: origin "cli": want openconfig, or none`},
		{get(&gpb.GetRequest{Prefix: &gpb.Path{Origin: "openconfig"}, Path: []*gpb.Path{{Origin: "openconfig"}}}), codes.InvalidArgument, "stands in the prefix as well"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{{Target: "leaf1"}}}), codes.InvalidArgument, "want it in the prefix"},
		{get(&gpb.GetRequest{Path: []*gpb.Path{{Element: []string{"interfaces"}}}}), codes.InvalidArgument, "gNMI before 0.4"},
		{get(&gpb.GetRequest{Prefix: &gpb.Path{Target: "leaf9"}}), codes.NotFound, `prefix.target: "leaf9" is not allowed: want one of leaf1, spine1, or * for all`},
		{sub(func(l *gpb.SubscriptionList) { l.Prefix.Target = "x" }), codes.NotFound, "prefix.target"},
		{sub(func(l *gpb.SubscriptionList) { l.Subscription = nil }), codes.InvalidArgument, "subscribe.subscription: none"},
		{sub(func(l *gpb.SubscriptionList) { l.Mode = 9 }), codes.InvalidArgument, "subscribe.mode: 9"},
		{one(&gpb.Subscription{Mode: 9}), codes.InvalidArgument, "subscribe.subscription[1].mode: 9"},
		{one(&gpb.Subscription{SampleInterval: 5}), codes.InvalidArgument, "subscribe.subscription[1].sample_interval: 5 ns: want 0, or 100ms to 24h0m0s"},
		{one(&gpb.Subscription{HeartbeatInterval: 1 << 63}), codes.InvalidArgument, "heartbeat_interval: 9223372036854775808 ns"},
	} {
		if status.Code(c.err) != c.code || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %v with %q", c.err, c.code, c.want)
		}
	}
	st := subscribe(t.Context(), fabric(), &gpb.SubscribeRequest{Request: &gpb.SubscribeRequest_Poll{}})
	if err := <-st.done; status.Code(err) != codes.InvalidArgument {
		t.Errorf("a poll at first: %v", err)
	}
}

func TestCapabilities(t *testing.T) {
	c, err := (&server{}).Capabilities(t.Context(), nil)
	if err != nil || !strings.HasPrefix(c.GetGNMIVersion(), "0.") || len(c.GetSupportedModels()) != 5 {
		t.Errorf("%v, %v", c, err)
	}
	known := map[string]bool{}
	for _, m := range c.GetSupportedModels() {
		known[m.GetName()] = true
	}
	for _, l := range Leaves {
		for _, e := range l.elems {
			if !known[e.module] {
				t.Errorf("%s is of the model %q, which Capabilities do not name", e.name, e.module)
			}
		}
	}
}
