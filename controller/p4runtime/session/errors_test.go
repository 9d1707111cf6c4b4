package session

import (
	"errors"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A Read fails with UNKNOWN and one detail per request; the details have the real codes.
func TestReadError(t *testing.T) {
	with := func(list ...codes.Code) error {
		st := status.New(codes.Unknown, "some requests failed")
		for _, c := range list {
			var err error
			if st, err = st.WithDetails(&p4v1.Error{CanonicalCode: int32(c), Message: c.String()}); err != nil {
				t.Fatal(err)
			}
		}
		return st.Err()
	}
	plain := errors.New("plain")
	for _, tt := range []struct {
		err  error
		want codes.Code
	}{
		{with(codes.NotFound), codes.NotFound},
		{with(codes.OK, codes.Unimplemented, codes.NotFound), codes.Unimplemented},
		{with(codes.OK), codes.Unknown},
		{with(), codes.Unknown},
		{status.Error(codes.Unavailable, "gone"), codes.Unavailable},
	} {
		if got := status.Code(readError(tt.err)); got != tt.want {
			t.Errorf("%v: code %v, want %v", tt.err, got, tt.want)
		}
	}
	if got := readError(plain); got != plain {
		t.Errorf("a plain error becomes %v", got)
	}
}
