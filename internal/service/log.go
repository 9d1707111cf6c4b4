package service

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
)

// Format is how a program writes its log: as "text" (key=value, the zero value) or as "json", one
// object a line. It is a pflag.Value.
type Format string

// JSON is one object a line.
const JSON Format = "json"

// FormatUsage describes the flag --log-format.
const FormatUsage = "`FORMAT` of the log: text, or json, one object a line"

// Log returns a log of messages of a level and above.
func (f Format) Log(out io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if f == JSON {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// Set parses what the user gave.
func (f *Format) Set(s string) error {
	if s != "text" && Format(s) != JSON {
		return errors.New("want text or json")
	}
	*f = Format(s)
	return nil
}

func (f *Format) String() string { return string(cmp.Or(*f, "text")) }

// Type is what pflag shows where the usage names no value.
func (*Format) Type() string { return "format" }
