package firstfabric

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// block is a block of commands with the output that the page shows after it.
type block struct {
	line     int // of the page
	commands string
	output   []string
}

// read returns the blocks of a page. A block of output belongs to the commands before it.
func read(text string) ([]block, error) {
	var list []block
	language := ""
	for i, line := range strings.Split(text, "\n") {
		rest, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && language != "":
			language = ""
		case fence && rest == "":
			return nil, fmt.Errorf("line %d: a block without a language", i+1)
		case fence && rest == "console" && len(list) == 0:
			return nil, fmt.Errorf("line %d: output without commands", i+1)
		case fence:
			if language = rest; language == "sh" {
				list = append(list, block{line: i + 1})
			}
		case language == "sh":
			list[len(list)-1].commands += line + "\n"
		case language == "console" && strings.TrimSpace(line) != "" && line != "…":
			list[len(list)-1].output = append(list[len(list)-1].output, line)
		}
	}
	if language != "" {
		return nil, fmt.Errorf("a block of %s has no end", language)
	}
	return list, nil
}

// missing returns the first line of the page's output that the printed lines lack, in order; nil if they have
// all. Other lines may be between them. Numbers, with their units, and the width of gaps may differ; "…" matches
// any words.
func (b block) missing(printed string) []string {
	lines := strings.Split(printed, "\n")
	for _, want := range b.output {
		pattern := loose(want)
		for len(lines) > 0 && !pattern.MatchString(lines[0]) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return []string{want}
		}
		lines = lines[1:]
	}
	return nil
}

// measured matches a number or a clock's time, alone or after a name, with or without a unit: "32.4ms",
// "time=1.09", "09:00:50.232". It does not match addresses, which have more dots.
var measured = regexp.MustCompile(`^((?:[a-z]+=)?)(?:[0-9]+(?:\.[0-9]+)?|[0-9:]+\.[0-9]+)[A-Za-zµ]*(,?)$`)

// loose returns a pattern for a line of output.
func loose(line string) *regexp.Regexp {
	words := strings.Fields(line)
	for i, w := range words {
		if w == "…" {
			words[i] = ".*"
		} else if m := measured.FindStringSubmatch(w); m != nil {
			words[i] = m[1] + `[0-9][0-9:.]*[A-Za-zµ]*` + m[2]
		} else {
			words[i] = regexp.QuoteMeta(w)
		}
	}
	return regexp.MustCompile(`^\s*` + strings.Join(words, `\s+`) + `\s*$`)
}

func TestRead(t *testing.T) {
	blocks, err := read("text\n```sh\nls\nls -l\n```\n```text\nno\n```\n```console\na  1.5ms\n…\nb x=2, 10.0.0.1\n```\n```sh\nid\n```\n")
	if err != nil || len(blocks) != 2 || blocks[0].commands != "ls\nls -l\n" || len(blocks[0].output) != 2 || blocks[1].line != 14 {
		t.Fatalf("%+v, %v", blocks, err)
	}
	for printed, want := range map[string]string{
		"other\n  a 12s\nother\nb x=2.5KB, 10.0.0.1": "",
		"b x=2, 10.0.0.1\na 1ms":                     "b x=2, 10.0.0.1", // the order counts
		"a 1ms\nb x=2, 10.0.0.2":                     "b x=2, 10.0.0.1", // addresses count
		"a ms\nb x=2, 10.0.0.1":                      "a  1.5ms",
		"":                                           "a  1.5ms",
	} {
		if got := strings.Join(blocks[0].missing(printed), ""); got != want {
			t.Errorf("%q lacks %q, want %q", printed, got, want)
		}
	}
	if p := loose("leaf1 ready 0s …"); !p.MatchString("leaf1  ready  1s  1/4, 3 unknown  -") || p.MatchString("leaf1 down 1s unknown -") {
		t.Error("the words for … are not any words")
	}
	for _, bad := range []string{"```\nls\n```\n", "```console\na\n```\n", "```sh\nls\n"} {
		if _, err := read(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
