// Package service has the common parts of the long-running programs (controller, switch, host): logging,
// profiling, and reporting to systemd that they are ready and alive.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready reports to systemd that the program is ready, and then that it is alive; without systemd it does
// nothing. It is for units of Type=notify with WatchdogSec= (systemd.service(5), sd_notify(3)). If the unit has
// a watchdog, Ready reports twice in the watchdog's time until ctx ends, as long as healthy returns nil.
// healthy's context ends after half the watchdog's time; a nil healthy is always well. systemd restarts a
// program that stops reporting.
func Ready(ctx context.Context, log *slog.Logger, healthy func(context.Context) error) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		log.Warn("systemd was not told of readiness", "error", err)
		return
	}
	if healthy == nil {
		healthy = func(context.Context) error { return nil }
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not served", "error", err)
		return
	}
	if every > 0 {
		go alive(ctx, log, every/2, healthy)
	}
}

func alive(ctx context.Context, log *slog.Logger, every time.Duration, healthy func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		asked, cancel := context.WithTimeout(ctx, every)
		err := healthy(asked)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Error("not healthy: systemd will restart this process", "error", err)
		} else if _, err := daemon.SdNotify(false, daemon.SdNotifyWatchdog); err != nil {
			log.Warn("systemd's watchdog was not told", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

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

// Set parses the user's value.
func (f *Format) Set(s string) error {
	if s != "text" && Format(s) != JSON {
		return errors.New("want text or json")
	}
	*f = Format(s)
	return nil
}

func (f *Format) String() string { return string(cmp.Or(*f, "text")) }

// Type is pflag's name of the value in the usage.
func (*Format) Type() string { return "format" }

// ListenUnix listens on a Unix socket. It replaces a socket that a killed process left behind. It fails if
// another process listens there, or if the path is not a socket; the file then stays as it is.
func ListenUnix(ctx context.Context, path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: another process listens there", path)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s: want a path where nothing is, or a socket: there is %v", path, info.Mode())
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}
