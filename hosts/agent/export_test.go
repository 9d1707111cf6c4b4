package agent

// Hold holds a flow, or releases it; see Agent.Hold.
func (h *Host) Hold(key FlowKey, held bool) error {
	err := h.Agent.Hold(h.loop.Now(), key, held)
	h.pump()
	return err
}
