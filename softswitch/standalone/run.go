package standalone

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials"

	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/internal/tlsfiles"
	"github.com/headgate/headgate/internal/version"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/softswitch/port"
)

// Main runs `headgate switch` until ctx ends. args are the arguments after it.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err = fmt.Fprint(stdout, Usage())
		return err
	case err != nil:
		return err
	case f.version:
		_, err = fmt.Fprintln(stdout, version.String())
		return err
	case f.jsonVers:
		_, err = fmt.Fprintln(stdout, JSONVersion)
		return err
	}
	spare := spareHeap()
	defer runtime.KeepAlive(spare)
	return f.options.Run(ctx, stdout, stderr)
}

// Run runs a switch with the options until ctx ends.
func (o *Options) Run(ctx context.Context, stdout, stderr io.Writer) error {
	log, stdout, closeLog, err := o.logger(stdout, stderr)
	if err != nil {
		return err
	}
	// A switch has no configuration file to reload, and must not end with its terminal.
	ended := onSignal(syscall.SIGHUP, func() {
		log.Info("SIGHUP: a switch has no file to read again, so it continues; SIGTERM ends it")
	})
	err = o.run(ctx, stdout, log)
	ended()
	return errors.Join(err, closeLog())
}

// onSignal calls f at each signal s. Calling end stops it.
func onSignal(s os.Signal, f func()) (end func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, s)
	go func() {
		defer close(done)
		for range signals {
			f()
		}
	}()
	return func() { signal.Stop(signals); close(signals); <-done }
}

func (o *Options) run(ctx context.Context, stdout io.Writer, log *slog.Logger) error {
	if err := service.Profile(ctx, o.Profile, log); err != nil {
		return err
	}
	if o.InterfaceWait > 0 {
		if err := o.appear(ctx, net.InterfaceByName); err != nil {
			return err
		}
	}
	sw, err := o.build(stdout, log)
	if err != nil {
		return err
	}
	return o.drive(ctx, sw, stdout, log)
}

// drive runs a switch that build made. Meanwhile it prints statistics and serves metrics, if the
// options ask for them.
func (o *Options) drive(ctx context.Context, sw *softswitch.Realtime, stdout io.Writer, log *slog.Logger) error {
	if o.Stats {
		ended := onSignal(syscall.SIGUSR1, func() { o.print(sw, stdout) })
		defer func() { ended(); o.print(sw, stdout) }()
	}
	if at, err := service.Metrics(ctx, o.Metrics, metrics{sw, o.Times}, log); err != nil {
		return errors.Join(err, closed(sw))
	} else if at != nil {
		log.Info("metrics", "address", at)
	}
	service.Ready(ctx, log, sw.Turned)
	err := sw.Run(ctx)
	o.summarize(sw, log)
	return err
}

// build makes the switch and starts its P4Runtime server. The switch is then ready to run.
func (o *Options) build(stdout io.Writer, log *slog.Logger) (*softswitch.Realtime, error) {
	for _, note := range o.Ignored {
		log.Info(note)
	}
	for _, note := range o.NoEffect {
		log.Warn(note)
	}
	sw, err := softswitch.NewRealtime(softswitch.Config{
		Name:     fmt.Sprintf("device %d", o.DeviceID),
		DeviceID: o.DeviceID,
		CPUPort:  o.CPUPort,
		DropPort: o.DropPort,
		Traffic:  o.Traffic,
		PFC:      o.PFC,
		Tracer:   o.Tracer,
		Times:    o.Times,
		Log:      log,
	})
	if err != nil {
		return nil, err
	}
	if err := o.start(sw, stdout, log); err != nil {
		return nil, errors.Join(err, closed(sw))
	}
	return sw, nil
}

// closed closes everything that a switch has opened and not run yet.
func closed(sw *softswitch.Realtime) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return sw.Run(ended)
}

func (o *Options) start(sw *softswitch.Realtime, stdout io.Writer, log *slog.Logger) error {
	if err := o.attach(sw, stdout, log); err != nil {
		return err
	}
	if err := o.limit(sw); err != nil {
		return err
	}
	if o.Program != "" {
		if err := o.load(sw); err != nil {
			return err
		}
	}
	creds, err := o.TLS.credentials(log)
	if err != nil {
		return err
	}
	addr, err := sw.ServeGRPC(o.GRPCAddr, creds)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Server listening on %s\n", addr)
	return err
}

// attach opens the interfaces, or files in their place.
func (o *Options) attach(sw *softswitch.Realtime, stdout io.Writer, log *slog.Logger) error {
	kind := ""
	if o.UseFiles {
		kind = " (files)"
		source, ports, err := port.OpenFiles(o.Interfaces, time.Duration(o.Wait)*time.Second)
		if err != nil {
			return fmt.Errorf("--use-files: %w", err)
		}
		sw.AddSource(source)
		for _, p := range o.Interfaces {
			if err := sw.AddPort(p, o.Rates[p.Number], ports[p.Number]); err != nil {
				return err
			}
		}
	} else if err := o.attachInterfaces(sw, log); err != nil {
		return err
	}
	for _, p := range o.Interfaces {
		if _, err := fmt.Fprintf(stdout, "Adding interface %s as port %d%s\n", p.Name, p.Number, kind); err != nil {
			return err
		}
	}
	if o.PcapDir != "" {
		capture, err := port.NewCapture(o.PcapDir, o.Interfaces)
		if err != nil {
			return fmt.Errorf("--pcap: %w", err)
		}
		sw.SetCapture(capture)
	}
	return nil
}

// attachInterfaces opens the interfaces. It uses one reader for every two processors, because the
// frames' senders need the other processors.
func (o *Options) attachInterfaces(sw *softswitch.Realtime, log *slog.Logger) error {
	events, err := port.OpenLinkEvents()
	if err != nil {
		return err
	}
	sw.SetLinkEvents(events)
	var users *port.IfaceUsers
	if o.Driver == "auto" {
		if users, err = port.OpenIfaceUsers(); err != nil {
			return err
		}
		sw.SetUsers(users)
	}
	open := func(p port.Named) (port.Port, port.Source, error) {
		driver, source, err := o.open(p, users, log)
		if err != nil {
			return nil, nil, err
		}
		if o, ok := driver.(interface{ OnOffload(func()) }); ok {
			o.OnOffload(func() {
				log.Info("a sender leaves checksums to its interface (offload): the switch completes them; said once a port", "port", p.Number, "interface", p.Name)
			})
		}
		return driver, source, nil
	}
	sw.SetOpener(open)
	var sources []port.Source
	for _, p := range o.Interfaces {
		driver, source, err := open(p)
		if err != nil {
			return fmt.Errorf("--interface %d@%s: %w", p.Number, p.Name, err)
		}
		sources = append(sources, source)
		if err := sw.AddPort(p, o.Rates[p.Number], driver); err != nil {
			return errors.Join(err, driver.Close())
		}
		if !driver.Up() {
			log.Warn("interface is down", "port", p.Number, "interface", p.Name)
		}
	}
	for _, source := range port.Gather(sources, max(1, runtime.GOMAXPROCS(0)/2), o.BusyPoll) {
		sw.AddSource(source)
	}
	return nil
}

// open opens an interface with the driver that the options name.
func (o *Options) open(p port.Named, users *port.IfaceUsers, log *slog.Logger) (port.Port, port.Source, error) {
	switch o.Driver {
	case "auto":
		return port.OpenBest(p, users)
	case "afpacket":
		return port.OpenInterface(p)
	}
	driver, source, err := port.OpenXDP(p)
	if err != nil {
		return nil, nil, fmt.Errorf("--port-driver xdp: %w", err)
	}
	if m, ok := driver.(interface{ Mode() string }); ok {
		log.Info("AF_XDP", "port", p.Number, "interface", p.Name, "mode", m.Mode())
	}
	return driver, source, nil
}

func (o *Options) limit(sw *softswitch.Realtime) error {
	for _, l := range o.Limits {
		for _, p := range o.Interfaces {
			if l.Port != AllPorts && l.Port != int(p.Number) {
				continue
			}
			if err := sw.SetQueueLimit(p.Number, l.Queue, l.Limit); err != nil {
				return fmt.Errorf("--queue-limit: %w", err)
			}
		}
	}
	return nil
}

func (o *Options) load(sw *softswitch.Realtime) error {
	program, err := os.ReadFile(o.Program)
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	var info []byte
	if o.P4Info != "" {
		if info, err = os.ReadFile(o.P4Info); err != nil {
			return fmt.Errorf("--p4info: %w", err)
		}
	}
	if err := sw.Server().LoadPipeline(info, program); err != nil {
		return fmt.Errorf("program %s: %w", o.Program, err)
	}
	return nil
}

// credentials returns the TLS credentials, or nil without TLS. The files are read again for each
// connection.
func (t *TLSOptions) credentials(log *slog.Logger) (credentials.TransportCredentials, error) {
	if !t.Enabled {
		return nil, nil
	}
	files := tlsfiles.Files{CA: t.CA, Cert: t.Cert, Key: t.Key, Prefix: "--grpc-server-", CAName: "cacert", Read: os.ReadFile}
	if t.ClientAuth {
		files.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c, err := tlsfiles.Server(files, log, "h2")
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(c), nil
}

func (o *Options) summarize(sw *softswitch.Realtime, log *slog.Logger) {
	st := sw.Stats()
	log.Info("switch", "pipelines", st.Pipelines, "withoutPipeline", st.NoPipeline, "unknownPort", st.UnknownPort,
		"passes", st.Recirculated, "passesDropped", st.RecirculationsDropped, "unfinishedRounds", st.Unfinished)
	if c := sw.Server().Stats(); c != (p4rt.Stats{}) {
		log.Info("P4Runtime", "packetInsDropped", c.PacketInDropped, "digestsDropped", c.DigestDropped, "idleDropped", c.IdleDropped,
			"errorsDropped", c.ErrorDropped, "packetOutsWithoutMetadata", c.PacketOutPartial)
	}
	for _, p := range sw.PortStats() {
		log.Info("port", "port", p.Port, "interface", p.Name,
			"rxFrames", p.RxFrames, "txFrames", p.TxFrames, "queueDrops", p.Queues.Dropped().Packets,
			"rxOverruns", p.Driver.RxOverruns, "rxTruncated", p.Driver.RxTruncated, "txErrors", p.Driver.TxErrors,
			"rxChecksumsCompleted", p.Driver.RxCompleted, "rxSegmentsCut", p.Driver.RxSplit)
		if pfc := p.PFC; pfc != (softswitch.PFCStats{}) {
			log.Info("PFC", "port", p.Port, "interface", p.Name, "frames", pfc.Frames, "pauses", pfc.Pauses, "resumes", pfc.Resumes,
				"storms", pfc.Storms, "droppedInStorms", pfc.StormDropped, "pauseTimes", p.Queues.PauseTimes(), "ignored", pfc.Ignored, "malformed", pfc.Malformed, "otherMACControl", pfc.Other)
		}
	}
}

// appear waits until all interfaces exist, for at most --interface-wait. Containers and virtual
// machines get their interfaces after their programs have started.
func (o *Options) appear(ctx context.Context, find func(name string) (*net.Interface, error)) error {
	if o.UseFiles {
		return nil
	}
	end := time.NewTimer(o.InterfaceWait)
	defer end.Stop()
	for _, p := range o.Interfaces {
		for {
			_, err := find(p.Name)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-end.C:
				return fmt.Errorf("--interface %d@%s: %w, not after --interface-wait %v either", p.Number, p.Name, err, o.InterfaceWait)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

// spareBytes is the size of spareHeap, 32 MB. A Write of a thousand updates leaves some 0.4 MB of
// garbage. An idle switch uses none of the 32 MB.
const spareBytes = 32 << 20

// spareHeap returns memory that the caller keeps and never touches, so that no physical memory
// backs it. The garbage collector runs when the heap has doubled and counts this memory, so a
// small switch does not collect after every few megabytes of messages. spareHeap returns nil if
// the environment sets GOGC or GOMEMLIMIT.
func spareHeap() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, spareBytes)
}
