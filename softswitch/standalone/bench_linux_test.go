package standalone

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/softswitch/port"
)

const benchFrame = 128

// start runs a switch with flags until the benchmark's end.
func start(b *testing.B, args ...string) func() uint64 {
	b.Helper()
	f, err := parse(args)
	if err != nil {
		b.Fatal(err)
	}
	sw, err := f.options.build(io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sw.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return func() uint64 { return sw.PortStats()[1].TxFrames }
}

// BenchmarkPcapFiles is the switch with the echo program from pcap file to pcap file.
func BenchmarkPcapFiles(b *testing.B) {
	json := "../testdata/echo.json"
	if data, err := os.ReadFile(json); err != nil {
		b.Fatal(err)
	} else {
		b.Chdir(b.TempDir())
		if err := os.WriteFile("echo.json", data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"a_in.pcap", "b_in.pcap"} {
		file, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		w := pcapgo.NewWriter(file)
		if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
			b.Fatal(err)
		}
		f := make([]byte, benchFrame)
		f[5] = 2
		for i := 0; name == "a_in.pcap" && i < b.N; i++ {
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.UnixMicro(int64(i)), CaptureLength: len(f), Length: len(f)}, f); err != nil {
				b.Fatal(err)
			}
		}
		file.Close()
	}
	b.ReportAllocs()
	b.ResetTimer()
	sent := start(b, "-i", "1@a", "-i", "2@b", "--use-files", "0", "echo.json", "--", "--grpc-server-addr", listen)
	for sent() < uint64(b.N) {
		time.Sleep(time.Millisecond)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}

// BenchmarkVeth is the switch with the echo program between two veth pairs, with the load
// made and received on the same machine.
func BenchmarkVeth(b *testing.B) {
	pairs := veth.New(b, 2)
	start(b, "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "../testdata/echo.json", "--", "--grpc-server-addr", listen)
	tx, _, err := port.OpenInterface(port.Named{Name: pairs[0].Host})
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Close()
	rx, source, err := port.OpenInterface(port.Named{Name: pairs[1].Host})
	if err != nil {
		b.Fatal(err)
	}
	defer rx.Close()
	ctx, cancel := context.WithCancel(b.Context())
	got, done := make(chan int, 1024), make(chan error, 1)
	go func() {
		done <- source.Run(ctx, func(b *port.Batch) { got <- len(b.Frames); b.Release() })
		close(got)
	}()
	f := make([]byte, benchFrame)
	f[5] = 2
	b.ReportAllocs()
	b.ResetTimer()
	under, lost := 0, 0
	for range b.N {
		tx.Send(f)
		for under++; under >= 256; {
			if err := tx.Flush(); err != nil {
				b.Fatal(err)
			}
			select {
			case n := <-got:
				under -= n
			case <-time.After(100 * time.Millisecond):
				lost, under = lost+under, 0
			}
		}
	}
	b.ReportMetric(float64(b.N-lost)/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(lost), "lost")
	cancel()
	for range got { // let the source end
	}
	<-done
}
