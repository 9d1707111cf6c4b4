package softswitch

import (
	"bytes"

	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/units"
)

// The P4Runtime server calls the methods in this file. They only post functions to the driver, so
// any goroutine may call them, even within PacketIn and Digest.
var _ p4rt.Device = (*Switch)(nil)

// Commit implements p4rt.Device. The next packet is the first that cfg processes.
func (s *Switch) Commit(cfg *p4rt.Pipeline) {
	s.driver.post(func() {
		s.mu.Lock()
		s.dataplane.install(cfg.Instance)
		s.mu.Unlock()
		s.log.Debug("pipeline runs", "switch", s.name)
	})
}

// PacketOut implements p4rt.Device. The frame enters the switch by the CPU port.
func (s *Switch) PacketOut(frame []byte) {
	frame = bytes.Clone(frame)
	s.driver.post(func() {
		s.mu.Lock()
		s.dataplane.receive(s.cpu, frame, s.driver.time())
		s.mu.Unlock()
	})
}

// Now implements p4rt.Device.
func (s *Switch) Now() units.Time { return s.driver.time() }

// portState reports to the P4Runtime server that port n went up or down. The server updates the
// action selector groups whose members watch the port, and gNMI streams report the change. The
// call waits for a write in progress, so the caller must not hold the lock.
func (s *Switch) portState(n uint32, up bool) {
	if !up {
		s.mu.Lock()
		s.dataplane.lostCarrier(n, s.driver.time())
		s.mu.Unlock()
		s.driver.post(func() {}) // makes the driver compute the time of the next event again
	}
	s.tellFollowers()
	if err := s.server.SetPortState(n, up); err != nil {
		s.log.Error("groups do not follow the port's state", "switch", s.name, "port", n, "up", up, "err", err)
	}
}
