package cli

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
)

// level translates BMv2's log levels.
func level(name string) (slog.Level, error) {
	switch name {
	case "trace", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	case "off":
		return math.MaxInt, nil
	}
	return 0, fmt.Errorf("--log-level %q: want trace, debug, info, warn, error or off", name)
}

// logger returns the log that the options ask for: the console's, a file's, or warnings on
// standard error. The returned function closes it.
func (o *Options) logger(stdout, stderr io.Writer) (*slog.Logger, func() error, error) {
	min, err := level(o.LogLevel)
	if err != nil {
		return nil, nil, err
	}
	out, done := stderr, func() error { return nil }
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
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: min})), done, nil
}
