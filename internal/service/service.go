// Package service has the common parts of the long-running programs (controller, switch, host): logging,
// profiling, and reporting to systemd that they are ready and alive.
package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready tells systemd, for units of Type=notify with WatchdogSec= (systemd.service(5), sd_notify(3)),
// how the program is; without systemd it does nothing. It reports that the program does its work from now on. Where the unit has a watchdog, it also
// reports, twice in the watchdog's time, that the program is alive, for as long as ctx has not ended and
// healthy returns nil within half the watchdog's time, when its context ends; a nil healthy is always well. systemd
// restarts a program that stops reporting.
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
