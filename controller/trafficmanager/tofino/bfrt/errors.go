package bfrt

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt/bfrtpb"
)

// ChangeError is a change that the server refused.
type ChangeError struct {
	Change  Change
	Code    codes.Code
	Message string
}

// WriteError are the changes of a batch that were refused; the others were carried out.
type WriteError []ChangeError

func (e WriteError) Error() string {
	const most = 5
	var lines []string
	for i, c := range e {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(e)-most))
			break
		}
		lines = append(lines, fmt.Sprintf("%v: %v: %s", c.Change, c.Code, c.Message))
	}
	return strings.Join(lines, "; ")
}

// writeError takes the errors of single updates from a failed Write, whose details have one
// for each update up to the last that failed. Without details it returns err itself.
func writeError(changes []Change, err error) error {
	var list WriteError
	for i, d := range status.Convert(err).Details() {
		e, ok := d.(*pb.Error)
		if !ok || i >= len(changes) {
			return err
		}
		if c := codes.Code(e.GetCanonicalCode()); c != codes.OK {
			list = append(list, ChangeError{changes[i], c, e.GetMessage()})
		}
	}
	if len(list) == 0 {
		return err
	}
	return list
}

// readError adds what a failed Read says about each row, under err's code.
func readError(rows []Row, err error) error {
	st := status.Convert(err)
	var lines []string
	for i, d := range st.Details() {
		e, ok := d.(*pb.Error)
		if ok && i < len(rows) && codes.Code(e.GetCanonicalCode()) != codes.OK {
			lines = append(lines, fmt.Sprintf("%s: %v: %s", rows[i].Name(), codes.Code(e.GetCanonicalCode()), e.GetMessage()))
		}
	}
	if len(lines) == 0 {
		return err
	}
	return status.Error(st.Code(), strings.Join(lines, "; "))
}
