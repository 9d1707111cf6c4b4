// Package tcp is `headgate host tcp`. It governs the TCP connections of a machine's applications,
// which need no change for it. Package kernel runs the laws inside Linux; this package reports the
// connections to the controller as flows of the host and passes the controller's orders on. Start
// reading at Run and Agent.
package tcp
