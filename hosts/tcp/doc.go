// Package tcp is `headgate host tcp`: it governs the TCP connections that a machine's applications begin, which
// need no change for it, by the laws that package kernel runs inside Linux, and makes them flows of the host
// towards the controller.
package tcp
