package northbound

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestListWeightsInPages: the pages have each flow once, in the order of a single large answer, although flows begin
// and end between them.
func TestListWeightsInPages(t *testing.T) {
	r := start(t)
	set := func(host, port int) {
		t.Helper()
		key := &pb.FlowKey{SrcIpv4: fmt.Sprintf("10.0.%d.1", host), DstIpv4: "10.0.9.1", SrcPort: uint32(port), DstPort: 50151}
		if _, err := r.weight().SetWeight(t.Context(), &pb.SetWeightRequest{Flow: key, Application: "a", Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 25 {
		set(i%5, 255+i)
	}
	all, err := r.weight().ListWeights(t.Context(), &pb.ListWeightsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, f := range all.GetFlows() {
		want = append(want, f.GetFlow().String())
	}
	token, sizes := "", []int{}
	for {
		p, err := r.weight().ListWeights(t.Context(), &pb.ListWeightsRequest{PageSize: 10, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		if (len(p.GetBudgets()) > 0) != (token == "") {
			t.Errorf("page %d has budgets %v", len(sizes), p.GetBudgets())
		}
		sizes = append(sizes, len(p.GetFlows()))
		for _, f := range p.GetFlows() {
			got = append(got, f.GetFlow().String())
		}
		if token = p.GetNextPageToken(); token == "" {
			break
		}
		set(0, 1) // before every later page
	}
	if !slices.Equal(got, want) || !slices.Equal(sizes, []int{10, 10, 5}) {
		t.Errorf("pages of %v hold\n%v, want\n%v", sizes, got, want)
	}
	_, err = r.weight().ListWeights(t.Context(), &pb.ListWeightsRequest{PageToken: "!"})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "page_token") {
		t.Errorf("page_token !: %v", err)
	}
}
