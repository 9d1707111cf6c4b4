package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/headgate/headgate/sim/experiment"
)

// Progress draws one line on a terminal, and nothing elsewhere.
type Progress struct {
	w    io.Writer // nil when it is no terminal
	last time.Time
	used bool
}

func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	if !ok {
		return &Progress{}
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return &Progress{}
	}
	return &Progress{w: w}
}

// Update is called with the batch's lock held, so calls do not overlap.
func (p *Progress) Update(now experiment.Progress) {
	if p.w == nil || time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last, p.used = time.Now(), true
	left := "–"
	if now.Left > 0 {
		left = fmt.Sprintf("%v, until %s", now.Left.Round(time.Second), time.Now().Add(now.Left).Format(time.TimeOnly))
	}
	fmt.Fprintf(p.w, "\r\x1b[K%d of %d runs, %.0f %%, about %s left", now.Done, now.Runs, 100*now.Part, left)
}

func (p *Progress) Clear() {
	if p.used {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
