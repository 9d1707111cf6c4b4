package tofino

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	"github.com/headgate/headgate/units"
)

func client(t *testing.T, s *Server, program string) *bfrt.Client {
	t.Helper()
	schema, err := bfrt.Load("tofino1", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := bfrt.New(bfrt.Options{Address: s.Addr(), Program: program, Schema: schema})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func pool(name string, cells uint64) bfrt.Change {
	return bfrt.Change{Operation: bfrt.Modify, Row: bfrt.Row{
		Table: "tm.pool.cfg", Pipe: bfrt.AllPipes, Key: bfrt.Fields{{Name: "pool", Value: name}},
		Data: bfrt.Fields{{Name: "size_cells", Value: uint64(cells)}},
	}}
}

// TestWriteErrors: the error names the refused changes of a batch; the others were made.
func TestWriteErrors(t *testing.T) {
	s := NewServer(t, "tofino1")
	c := client(t, s, Program)
	s.Hook(func(ch bfrt.Change) error {
		if strings.HasPrefix(ch.Row.Key.Text("pool"), "EG") {
			return status.Error(codes.ResourceExhausted, "no cells")
		}
		return nil
	})
	batch := []bfrt.Change{pool("IG_APP_POOL_0", 10), pool("EG_APP_POOL_0", 20), pool("IG_APP_POOL_1", 30), pool("EG_APP_POOL_1", 40), pool("IG_APP_POOL_2", 50)}
	err := c.Write(t.Context(), batch)
	var refused bfrt.WriteError
	if !errors.As(err, &refused) || len(refused) != 2 || refused[0].Change.String() != batch[1].String() || refused[1].Change.String() != batch[3].String() || refused[1].Code != codes.ResourceExhausted {
		t.Fatalf("%v", err)
	}
	if want := "modify tm.pool.cfg pool=EG_APP_POOL_0 → size_cells=20: ResourceExhausted: "; !strings.Contains(err.Error(), want) {
		t.Errorf("%q is not in %v", want, err)
	}
	if n := len(s.Writes()); n != 3 {
		t.Errorf("%d written, want 3", n)
	}
	// If one change is outside the schema, nothing of the batch is sent.
	var field *units.FieldError
	if err := c.Write(t.Context(), append(batch, pool("IG_APP_POOL_9", 1))); !errors.As(err, &field) || field.Field != "pool" || len(s.Writes()) != 0 {
		t.Errorf("%v", err)
	}
	if err := c.Write(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestRead reads one row, some fields of a row, a whole table, and an answer of several messages.
func TestRead(t *testing.T) {
	s := NewServer(t, "tofino1")
	c := client(t, s, Program)
	ask := func(table string, key ...bfrt.Named) bfrt.Row {
		return bfrt.Row{Table: table, Pipe: bfrt.AllPipes, Key: key}
	}
	rows, err := c.Read(t.Context(), ask("tm.cfg"), ask("tm.port.buffer"), ask("tm.pool.cfg", pool("EG_APP_POOL_3", 0).Row.Key...))
	if err != nil || len(rows) != 1+288+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows[0].Data.Uint("cell_size_bytes") != 80 || rows[288].Key.Uint("dev_port") != 3<<7+71 || rows[289].Data.Uint("size_cells") != 0x3000 {
		t.Errorf("%v\n%v\n%v", rows[0], rows[288], rows[289])
	}
	some := ask("tm.cfg")
	some.Data = bfrt.Fields{{Name: "total_cells"}}
	if rows, err = c.Read(t.Context(), some); err != nil || len(rows) != 1 || rows[0].Data.String() != "total_cells=266240" {
		t.Errorf("%v %v", rows, err)
	}
	group := bfrt.Row{Table: "tm.ppg.cfg", Pipe: 2, Key: bfrt.Fields{{Name: "ppg_id", Value: uint64(9)}}}
	if _, err = c.Read(t.Context(), group); err == nil || !strings.Contains(err.Error(), "tm.ppg.cfg pipe 2 ppg_id=9: NotFound") || len(s.Refused()) != 1 {
		t.Errorf("no such group: %v", err)
	}
}

// TestComesBack: many goroutines use the client while it subscribes again after a restart of the
// server.
func TestComesBack(t *testing.T) {
	s := NewServer(t, "tofino1")
	c := client(t, s, Program)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if err := c.Write(ctx, []bfrt.Change{pool(fmt.Sprintf("IG_APP_POOL_%d", i), 100)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s.Stop()
		short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		if _, err := c.Read(short, bfrt.Row{Table: "tm.cfg", Pipe: bfrt.AllPipes}); err == nil {
			t.Error("read without a server")
		}
		stop()
		s.Restart()
	}
}

// TestWrongProgram: the chip runs another program than the configured one.
func TestWrongProgram(t *testing.T) {
	s := NewServer(t, "tofino1")
	c := client(t, s, "tna_counter")
	if err := c.Write(t.Context(), []bfrt.Change{pool("IG_APP_POOL_0", 1)}); status.Code(errors.Unwrap(err)) != codes.NotFound || len(s.Refused()) != 1 {
		t.Error(err)
	}
}

// TestOwnDeadline: each caller waits only until its own deadline while another one waits for the
// server.
func TestOwnDeadline(t *testing.T) {
	s := NewServer(t, "tofino1")
	c := client(t, s, Program)
	s.Stop()
	patient, end := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := c.Read(patient, bfrt.Row{Table: "tm.cfg"})
		first <- err
	}()
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := c.Read(ctx, bfrt.Row{Table: "tm.cfg"}); err == nil {
			t.Error("read without a server")
		}
		cancel()
	}
	select {
	case err := <-first:
		t.Errorf("the patient caller gave up: %v", err)
	default:
	}
	end()
	if err := <-first; err == nil {
		t.Error("read without a server")
	}
}
