package store

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// changing is an etcd whose own leader changes at the n-th request.
type changing struct {
	clientv3.KV
	n int
}

func (c *changing) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if c.n--; c.n <= 0 {
		return nil, rpctypes.ErrLeaderChanged
	}
	return &clientv3.GetResponse{Header: &pb.ResponseHeader{}, Kvs: []*mvccpb.KeyValue{{Value: []byte("1")}}}, nil
}

// A member that cannot read the state gives up leadership, so that it stands for election again and
// does not exit.
func TestLeadEndsWhereStateCannotBeRead(t *testing.T) {
	for n := 1; n <= 2; n++ {
		client := clientv3.NewCtxClient(t.Context())
		client.KV = &changing{n: n}
		var why error
		_, err := OpenReplicated(t.Context(), Lead{Client: client, Lost: func(err error) { why = err }}, Options{})
		if err == nil || !errors.Is(why, rpctypes.ErrLeaderChanged) {
			t.Errorf("the answer before number %d is the last: error %v, the lead ended for %v", n, err, why)
		}
	}
}
