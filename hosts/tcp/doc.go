// Package tcp is `headgate host tcp`. It controls the rates of TCP connections of unmodified applications on a
// machine. Package kernel runs the laws inside Linux; this package reports the connections to the controller as
// flows of the host and passes the controller's orders on. Start reading at Run and Agent.
package tcp
