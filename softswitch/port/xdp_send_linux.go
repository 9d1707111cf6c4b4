package port

import "golang.org/x/sys/unix"

func (q *xdpPort) Send(frame []byte) {
	if len(frame) < linkHeader || len(frame) > q.longest {
		q.txErrors.Add(1)
		return
	}
	if len(q.free) == 0 {
		q.reap()
	}
	if len(q.free) == 0 {
		_ = q.Flush()
		q.reap()
	}
	if len(q.free) == 0 { // the interface is slower than the switch
		q.txErrors.Add(1)
		return
	}
	s := &q.sockets
	addr := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	copy(s.umem[addr:], frame)
	s.send.push(unix.XDPDesc{Addr: addr, Len: uint32(len(frame))})
	if s.send.unpublished() >= batchFrames {
		_ = q.Flush()
	}
}

// Flush sends the frames that Send kept. While the interface is down, the frames in the ring wait,
// and further frames are dropped and counted.
func (q *xdpPort) Flush() error {
	s := &q.sockets
	if q.detached {
		if q.kick(); q.detached {
			q.discard()
			return nil
		}
	}
	if s.send.unpublished() > 0 {
		s.send.publish()
	}
	if s.send.pending() > 0 {
		if !q.txWorker.Load().takes(q) {
			q.kick()
		}
		q.reap()
	}
	return nil
}

// kick makes the kernel send the frames in the ring. One system call may send only a part of them.
func (q *xdpPort) kick() {
	s := &q.sockets
	q.detached = false
	for left := s.send.pending(); left > 0 && s.send.needsWakeup(); {
		errno := q.submit()
		now := s.send.pending()
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.ENETDOWN || errno == unix.ENXIO:
			q.detached = true
			return
		case now == left:
			return // the kernel's buffers are full: the next Flush tries again
		case refused(errno):
			q.txErrors.Add(1)
		}
		left = now
	}
}

// reap frees the chunks of frames that the kernel has sent.
func (q *xdpPort) reap() {
	c := &q.sockets.completion
	n := c.ready()
	if n == 0 {
		return
	}
	for range n {
		q.free = append(q.free, c.pop())
	}
	c.done()
}

// discard drops the frames that were not published.
func (q *xdpPort) discard() {
	r := &q.sockets.send
	for range r.unpublished() {
		r.next--
		q.free = append(q.free, r.at(r.next).Addr)
		q.txErrors.Add(1)
	}
}
