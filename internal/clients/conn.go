package clients

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxConns is the number of connections that a listener may have open, if the process may open enough
// files.
const maxConns = 4096

// refusedEvery is the interval at which the log reports refused connections.
const refusedEvery = time.Minute

// Options say how to limit a listener.
type Options struct {
	Name   string       // the listener's name in metrics and the log
	Most   int          // connections; 0 means 4096, or an eighth of the files that the process may open where that is less
	Budget *Budget      // nil: Process
	Log    *slog.Logger // nil: slog.Default
}

// Limit returns a listener that closes connections beyond the limit at once. On a Unix socket a
// quarter of the limit is reserved for root and the user of the process.
func Limit(l net.Listener, o Options) net.Listener {
	o.Budget, o.Log = cmp.Or(o.Budget, Process), cmp.Or(o.Log, slog.Default())
	if o.Most == 0 {
		o.Most = maxConns
		var files syscall.Rlimit
		if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
			o.Most = int(min(maxConns, max(files.Cur/8, 16)))
		}
	}
	o.Budget.mu.Lock()
	defer o.Budget.mu.Unlock()
	if o.Budget.served[o.Name] == nil {
		o.Budget.served[o.Name] = &served{}
	}
	return &listener{Listener: l, Options: o, served: o.Budget.served[o.Name]}
}

// served counts the connections of all listeners of a name.
type served struct {
	open    atomic.Int64
	refused atomic.Uint64
}

type listener struct {
	net.Listener
	Options
	served *served
	open   atomic.Int64

	mu   sync.Mutex // guards what follows
	said time.Time  // when the log last reported refusals
	more uint64     // refusals since
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, listener: l, budget: l.Budget}
		most := l.Most
		if cred, err := Caller(raw); cred != nil || err != nil {
			if c.owner = cred != nil && (cred.Uid == 0 || int(cred.Uid) == os.Geteuid()); !c.owner {
				most -= most / 4
			}
		}
		if l.open.Add(1) <= int64(most) {
			l.served.open.Add(1)
			l.Budget.add(c)
			return c, nil
		}
		l.open.Add(-1)
		_ = raw.Close()
		l.refuse(raw, most)
	}
}

// refuse counts a refusal and logs it, alone or later together with others.
func (l *listener) refuse(c net.Conn, most int) {
	l.served.refused.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more++; time.Since(l.said) < refusedEvery {
		return
	}
	l.Log.Warn("connections are refused: the limit of open connections is reached", "listener", l.Name, "limit", most, "refused", l.more, "last", c.RemoteAddr().String())
	l.said, l.more = time.Now(), 0
}

// Caller returns the kernel's credentials of the process at the other end of a Unix socket, nil for another
// connection. c may be a connection of a limited listener.
func Caller(c net.Conn) (*unix.Ucred, error) {
	if limited, ok := c.(*conn); ok {
		c = limited.Conn
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return nil, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("credentials of the socket's other end: %w", failed)
	}
	return cred, nil
}

// conn is a connection, with the messages that wait to be written to it.
type conn struct {
	net.Conn // nil for calls over connections that no limited listener accepted
	listener *listener
	budget   *Budget
	owner    bool

	mu          sync.Mutex // guards what follows, and all outs and calls of the connection
	first, last *out       // oldest first
	waiting     int64      // bytes
	receiving   int64      // bytes of messages that have arrived in part
	closed      bool
}

// addr is the address of the other end, by which calls find their connection.
type addr struct {
	net.Addr
	conn *conn
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return addr{c.Conn.RemoteAddr(), c} }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	if first {
		c.budget.used.Add(-c.waiting)
		c.budget.receiving.Add(-c.receiving)
		c.waiting, c.first, c.last = 0, nil, nil
	}
	c.mu.Unlock()
	if first {
		c.budget.remove(c)
		if c.listener != nil {
			c.listener.open.Add(-1)
			c.listener.served.open.Add(-1)
		}
	}
	if c.Conn == nil {
		return nil
	}
	return c.Conn.Close()
}

// endUnread ends the streams from which nothing was read for Unread. It reports whether the connection
// must end, because nothing of an ended call's answer was read.
func (c *conn) endUnread(now time.Time) (end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o := c.first; o != nil && now.Sub(o.since) > Unread; o = o.next {
		switch call := o.call; {
		case now.Sub(call.taken) <= Unread:
		case call.live:
			call.end(now)
			close(call.unread)
			c.budget.unread.Add(1)
		default:
			end = true
		}
	}
	return end
}
