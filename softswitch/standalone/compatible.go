package standalone

import "github.com/spf13/pflag"

// compat is a flag of BMv2 that has no effect in this switch. The switch accepts it, so that
// scripts work, and logs that it has no effect. If the flag asks for something that the switch
// does not do, the switch refuses it.
type compat struct {
	name    string
	target  bool // belongs after --
	bare    bool // takes no value
	refused bool
	why     string
}

func compatible() []compat {
	return []compat{
		{name: "thrift-port", why: "there is no Thrift service: rates and limits are --port-rate and --queue-limit"},
		{name: "nanolog", why: "there is no nanomsg log"},
		{name: "notifications-addr", why: "notifications go by P4Runtime"},
		{name: "log-flush", bare: true, why: "every log line is written at once"},
		{name: "log-file-max-size", why: "log files are not rotated"},
		{name: "log-file-max-files", why: "log files are not rotated"},
		{name: "max-port-count", why: "the number of ports is not limited"},
		{name: "debugger", bare: true, why: "there is no debugger"},
		{name: "debugger-addr", why: "there is no debugger"},
		{name: "dump-packet-data", why: "packets are not dumped: use --pcap"},
		{name: "disable-swap", target: true, bare: true, why: "a pipeline can always be replaced"},
		{name: "max-mc-groups", target: true, why: "the number of multicast groups is not limited"},
		{name: "max-l1-entries", target: true, why: "the number of replicas is not limited"},
		{name: "max-l2-entries", target: true, why: "the number of replicas is not limited"},
		{name: "packet-in", refused: true, why: "frames over nanomsg are not supported: use --interface or --use-files"},
		{name: "restore-state", refused: true, why: "restoring state from a file is not supported: push it by P4Runtime"},
		{name: "dp-grpc-server-addr", target: true, refused: true, why: "frames over gRPC are not supported: use --interface or --use-files"},
	}
}

// add adds the flag to a set, hidden from the usage.
func (c compat) add(set *pflag.FlagSet) {
	if c.bare {
		set.Bool(c.name, false, "")
	} else {
		set.String(c.name, "", "")
	}
	set.Lookup(c.name).Hidden = true
}
