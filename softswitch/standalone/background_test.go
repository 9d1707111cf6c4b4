package standalone

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// TestBackground: lines are written in order, also those that wait at the end. While nobody reads,
// lines that exceed the backlog are lost, and the log says how many.
func TestBackground(t *testing.T) {
	out, in := io.Pipe()
	b := newBackground(in)
	log := slog.New(slog.NewTextHandler(b, nil))
	b.start(log)
	const size = 100
	for sent := range 4 * backlog / size {
		if _, err := fmt.Fprintf(b, "%*d\n", size-1, sent); err != nil {
			t.Fatal(err)
		}
	}
	if !b.behind() {
		t.Error("the log is not behind")
	}
	read := make(chan []byte)
	go func() {
		text, _ := io.ReadAll(out)
		read <- text
	}()
	b.close()
	in.Close()
	text := <-read
	lines := bytes.Count(text, []byte("\n"))
	_, told, ok := strings.Cut(string(text), "lines=")
	var lost int
	if _, err := fmt.Sscan(told, &lost); !ok || err != nil || lines-1+lost != 4*backlog/size || lost < 2*backlog/size {
		t.Errorf("%d lines and %d lost, want %d, and at most two backlogs written", lines-1, lost, 4*backlog/size)
	}
	for i, line := range strings.Split(string(text[:backlog/2]), "\n")[:backlog/2/size] {
		if want := fmt.Sprintf("%*d", size-1, i); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
}
