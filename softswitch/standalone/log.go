package standalone

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
)

// levels are BMv2's log levels.
var levels = map[string]slog.Level{
	"trace": slog.LevelDebug, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError, "off": math.MaxInt,
}

func level(name string) (slog.Level, error) {
	l, ok := levels[name]
	if !ok {
		return 0, fmt.Errorf("--log-level %q: want trace, debug, info, warn, error or off", name)
	}
	return l, nil
}

// logger returns the log that the options ask for: to the console, to a file, or warnings only to
// standard error. The returned function closes it.
func (o *Options) logger(stdout, stderr io.Writer) (*slog.Logger, func() error, error) {
	min, err := level(o.LogLevel)
	if err != nil {
		return nil, nil, err
	}
	out, done := stderr, func() error { return nil }
	if o.Tracer != nil {
		min = slog.LevelDebug
	}
	switch {
	case o.LogConsole:
		out = stdout
	case o.LogFile != "":
		file, err := os.Create(o.LogFile)
		if err != nil {
			return nil, nil, fmt.Errorf("--log-file: %w", err)
		}
		out, done = file, file.Close
	default:
		min = max(min, slog.LevelWarn)
	}
	return o.LogFormat.Log(out, min), done, nil
}
