package gnmi

import (
	"testing"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// FuzzGet: every request is either refused with a status, or answered with leaves that a request for the same
// path alone also returns.
func FuzzGet(f *testing.F) {
	for _, p := range []string{"", operPath, "qos/.../state", "*/*[name=*]", "interfaces/interface[name=1][x=2]", "a:b/c[d=e]"} {
		text, err := proto.Marshal(&gpb.GetRequest{Path: []*gpb.Path{path(p)}, Encoding: gpb.Encoding_JSON_IETF, Prefix: &gpb.Path{Target: "leaf1"}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	s := &server{source: fabric()}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &gpb.GetRequest{}
		if proto.Unmarshal(text, r) != nil {
			return
		}
		got, err := s.Get(t.Context(), r)
		if err != nil {
			if _, ok := status.FromError(err); !ok {
				t.Fatalf("no status: %v", err)
			}
			return
		}
		if _, err := proto.Marshal(got); err != nil {
			t.Fatal(err)
		}
		for _, n := range got.GetNotification() {
			for _, u := range n.GetUpdate() {
				again, err := s.Get(t.Context(), &gpb.GetRequest{Prefix: n.GetPrefix(), Path: []*gpb.Path{u.GetPath()}, Encoding: r.GetEncoding()})
				if err != nil || len(again.GetNotification()) != 1 || len(again.GetNotification()[0].GetUpdate()) != 1 {
					t.Fatalf("%v selects %v, %v", u.GetPath(), again, err)
				}
				if v := again.GetNotification()[0].GetUpdate()[0]; !proto.Equal(v, u) {
					t.Fatalf("%v is %v by itself", u, v)
				}
			}
		}
	})
}

// FuzzSubscribe: a list of subscriptions is either refused with a status, or can be followed.
func FuzzSubscribe(f *testing.F) {
	for _, r := range []*gpb.SubscribeRequest{
		list("leaf1", gpb.SubscriptionList_STREAM, &gpb.Subscription{Path: path(operPath), Mode: gpb.SubscriptionMode_SAMPLE, SampleInterval: 1e9}),
		list("*", gpb.SubscriptionList_ONCE, &gpb.Subscription{Path: path("..."), HeartbeatInterval: 1e10}, &gpb.Subscription{}),
	} {
		text, err := proto.Marshal(r.GetSubscribe())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	s := &server{source: fabric()}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := &gpb.SubscriptionList{}
		if proto.Unmarshal(text, l) != nil {
			return
		}
		follower, err := s.follow(t.Context(), l)
		if err != nil {
			if _, ok := status.FromError(err); !ok {
				t.Fatalf("no status: %v", err)
			}
			return
		}
		defer follower.close()
		synced := false
		follower.send = func(r *gpb.SubscribeResponse) error {
			if _, err := proto.Marshal(r); err != nil || synced {
				t.Fatalf("%v after sync %v: %v", r, synced, err)
			}
			synced = r.GetSyncResponse()
			return nil
		}
		if err := follower.once(); err != nil || !synced {
			t.Fatalf("%v, sync %v", err, synced)
		}
	})
}
