package experiment

import (
	"math"
	"strings"
	"testing"
)

// Parse reads an experiment at its default scale.
func Parse(file string, text []byte) (*File, error) { return parse(file, text, false) }

func TestJudge(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		claim Claim
		v     float64
		want  Verdict
	}{
		{Claim{paper: 10, within: 0.1, than: nan}, 11, Agrees},
		{Claim{paper: 10, within: 0.1, than: nan}, 11.1, Disagrees},
		{Claim{paper: 0.5, within: 0.1, than: 1}, 0.7, Direction},
		{Claim{paper: 0.5, within: 0.1, than: 1}, 1.2, Disagrees},
		{Claim{paper: 0.5, within: 0.1, than: 1}, 1, Disagrees},
		{Claim{paper: -10, within: 0.1, than: nan}, -9, Agrees},
		{Claim{paper: 0, within: 0.1, than: nan}, 0, Agrees},
		{Claim{paper: nan, above: 2, below: nan}, 2, Disagrees},
		{Claim{paper: nan, above: 2, below: nan}, 1.9, Disagrees},
		{Claim{paper: nan, above: nan, below: 2}, 2.1, Disagrees},
		{Claim{paper: nan, above: 1, below: 2}, 1.5, Agrees},
		{Claim{paper: 10, within: 0.1, than: nan}, nan, NoValue},
		{Claim{paper: nan, above: 1, below: 2}, nan, NoValue},
	} {
		if got := c.claim.judge(c.v); got != c.want {
			t.Errorf("%s: %g %s, want %s", c.claim.text(), c.v, got, c.want)
		}
	}
}

const claimed = `
topology: {kind: star, hosts: 2, host: {rate: 100Gbps, delay: 1us}}
flows: [{kind: flow, from: h0, to: h1, size: 10KB}]
run: {until: 100us, stop_when_done: true}
measures: [{name: FCT, what: fct}, {name: lost, what: drops}, {name: cycle, what: deadlock}]
variants: [{name: near, set: {}}, {name: far, set: {topology: {host: {delay: 10us}}}}]
figure: {paper: headgate, number: "1"}
seeds: 2
claims:
`

func TestClaims(t *testing.T) {
	f, err := Parse("claimed.yaml", []byte(claimed+`
  - {name: further is later, variant: far, measure: FCT, over: {variant: near}, above: 8, below: 9}
  - {name: nothing is lost, variant: near, measure: lost, paper: 0, within: 0}
  - {name: no deadlock has a time, variant: near, measure: cycle, above: 0}
  - {name: half, variant: far, measure: FCT, over: {variant: near}, paper: 0.5, within: 0.1}
`))
	if err != nil {
		t.Fatal(err)
	}
	rep, err := (&Batch{File: f, Seed: 1, Seeds: f.Seeds, Shards: 1}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Verdict{Agrees, Agrees, NoValue, Disagrees}
	for i, j := range rep.Judgements {
		if j.Verdict != want[i] || j.Verdict != NoValue && j.Seeds != 2 {
			t.Errorf("%s: %s (%s), %d seeds, want %s of 2", j.Claim, j.Verdict, j.OursText(), j.Seeds, want[i])
		}
	}
	if got := Sum(rep.Judgements); got != "2 agrees, 1 disagrees, 1 no value" {
		t.Errorf("Sum = %q", got)
	}
	dir := t.TempDir()
	rec, err := f.Record(rep)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Write(dir); err != nil {
		t.Error(err)
	}
}

func TestClaimFaults(t *testing.T) {
	for text, want := range map[string]string{
		"- {name: a, variant: near, measure: FCT}":                                     "has neither paper nor a bound",
		"- {name: a, variant: near, measure: FCT, paper: 1, within: 0.1, above: 2}":    "has both paper and a bound",
		"- {name: a, variant: near, measure: FCT, paper: 1}":                           "within",
		"- {name: a, variant: mid, measure: FCT, above: 1}":                            `is "mid", want one of near, far`,
		"- {name: a, variant: near, measure: FTC, above: 1}":                           `is "FTC", want one of FCT, lost, cycle`,
		"- {name: a, variant: near, measure: FCT, over: {variant: mid}, above: 1}":     "claims[0].over.variant",
		"- {name: a, variant: near, measure: FCT, paper: 1, within: 0.1, tolerant: 1}": "tolerant",
		"- {name: a, line: near, measure: FCT, above: 1}":                              "which no variant with an x is on",
	} {
		_, err := Parse("claimed.yaml", []byte(claimed+"  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestFull: the section full is merged over the file, and the check covers it.
func TestFull(t *testing.T) {
	text := []byte(claimed[:strings.Index(claimed, "claims")] + "full: {topology: {hosts: 4}}\n")
	for full, hosts := range map[bool]int{false: 2, true: 4} {
		f, err := parse("claimed.yaml", text, full)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Plans[0].Graph.Hosts; got != hosts {
			t.Errorf("full %v: %d hosts, want %d", full, got, hosts)
		}
	}
	if _, err := parse("claimed.yaml", []byte(tinyFile), true); err == nil {
		t.Error("a file without a section full is run at full scale")
	}
}

// TestClaimAlongALine: a claim about a line uses the line's least, greatest or mean number over x.
func TestClaimAlongALine(t *testing.T) {
	head := claimed[:strings.Index(claimed, "variants")]
	f, err := Parse("line.yaml", []byte(head+`
axes:
  - {name: size, points: [{name: small, set: {flows: {"*": {size: 1KB}}}}, {name: large, set: {flows: {"*": {size: 9KB}}}}]}
  - {name: delay, points: [{name: 1us, x: 1, set: {}}, {name: 10us, x: 10, set: {topology: {host: {delay: 10us}}}}]}
claims:
  - {name: least, line: large, measure: FCT, over: {line: small}, below: 1.05}
  - {name: greatest, line: large, measure: FCT, take: greatest, over: {line: small}, above: 1.1}
  - {name: mean, line: large, measure: FCT, take: mean, over: {line: small}, above: 1}
  - {name: one, variant: large 1us, measure: FCT, over: {variant: small 10us}, below: 0.2}
`))
	if err != nil {
		t.Fatal(err)
	}
	rep, err := (&Batch{File: f, Seed: 1, Seeds: 1, Shards: 1}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range rep.Judgements {
		if j.Verdict != Agrees {
			t.Errorf("%s: %s, %s", j.Claim, j.OursText(), j.Verdict)
		}
	}
	if least, greatest, mean := *rep.Judgements[0].Ours, *rep.Judgements[1].Ours, *rep.Judgements[2].Ours; math.Abs(mean-(least+greatest)/2) > 1e-9 {
		t.Errorf("the mean of %g and %g is %g", least, greatest, mean)
	}
}

const tinyFile = `
topology: {kind: star, hosts: 2, host: {rate: 100Gbps, delay: 1us}}
flows: [{kind: flow, from: h0, to: h1, size: 10KB}]
run: {until: 100us}
`
