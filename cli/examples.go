package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are lines for the help of commands that have none of their own, by the command's path.
var examples = map[string]string{
	"apply": `headgate apply -f fabric.yaml -m "twice the budget of storage"
headgate apply -f fabric.yaml --confirm 5m`,
	"audit":           "headgate audit export audit.jsonl\nheadgate audit verify audit.jsonl",
	"audit export":    "headgate audit export audit.jsonl",
	"audit verify":    "headgate audit verify audit.jsonl",
	"confirm":         "headgate confirm",
	"controller":      "headgate controller -f /etc/headgate/fabric.yaml",
	"delete":          "headgate delete weight --flow 10.0.1.1:20001,10.0.4.2:50151",
	"delete weight":   "headgate delete weight --flow 10.0.1.1:20001,10.0.4.2:50151",
	"delete priority": "headgate delete priority storage 3",
	"doctor":          "headgate doctor\nheadgate doctor -f fabric.yaml -o json",
	"explain":         "headgate explain links.rate\nheadgate explain policy.grants\nheadgate explain --schema",
	"get":             "headgate get switches\nheadgate get links -o wide\nheadgate get weights --app storage -o json",
	"get audit":       "headgate get audit -n 20",
	"get fabric":      "headgate get fabric\nheadgate get fabric --config",
	"get flows":       "headgate get flows\nheadgate get flows -o wide",
	"get links":       "headgate get links -o wide",
	"get predictions": "headgate get predictions",
	"get priorities":  "headgate get priorities",
	"get status":      "headgate get status --feature buffer",
	"get switch":      "headgate get switch leaf1 --recent 20",
	"get switches":    "headgate get switches -o wide",
	"get weights":     "headgate get weights --app storage",
	"history":         "headgate history\nheadgate history 3",
	"pacc":            "headgate pacc margin --rate 100Gbps",
	"pacc margin":     "headgate pacc margin --rate 100Gbps --beta1 0.05 --beta2 0.1 --interval 80us",
	"replace":         "headgate replace member c2",
	"replace member":  "headgate replace member c2",
	"rollback":        "headgate rollback 3 --confirm 5m",
	"run":             "headgate run --for 20s\nheadgate run --scenario dsh --variant sih,dsh --plot dsh.svg",
	"set":             "headgate set weight --flow 10.0.1.1:20001,10.0.4.2:50151 4\nheadgate set link leaf1 spine1 down",
	"set budget":      "headgate set budget storage 16",
	"set link":        "headgate set link leaf1 spine1 down",
	"set priority":    "headgate set priority storage 3",
	"set weight":      "headgate set weight --flow 10.0.1.1:20001,10.0.4.2:50151 --app storage 4",
	"sim":             "headgate sim list\nheadgate sim run dsh-14 --out results",
	"sim check":       "headgate sim check mine.yaml",
	"sim cycles":      "headgate sim cycles dsh-14 --any-k-failures 1",
	"sim explain":     "headgate sim explain flows.load\nheadgate sim explain measures.what\nheadgate sim explain laws.swift\nheadgate sim explain --schema",
	"sim figures":     "headgate sim figures --shard 0/2",
	"sim laws":        "headgate sim laws",
	"sim list":        "headgate sim list -o json",
	"sim merge":       "headgate sim merge results",
	"sim new":         "headgate sim new mine.yaml\nheadgate sim new mine.yaml --from dsh-14",
	"sim run":         "headgate sim run dsh-14 --seeds 3 --out results",
	"sonic":           "headgate sonic export -f fabric.yaml --switch leaf1",
	"sonic export":    "headgate sonic export -f fabric.yaml --switch leaf1 --out leaf1.json",
	"sonic import":    "headgate sonic import -f config_db.json",
	"soze":            "headgate soze margin --rate 100Gbps --weights 8",
	"soze margin":     "headgate soze margin --rate 100Gbps --weights 8",
	"spfc":            "headgate spfc margin --bursts 29",
	"spfc margin":     "headgate spfc margin --bursts 29 --k 5",
	"state":           "headgate state check /var/lib/headgate/state.db",
	"state backup":    "headgate state backup backup.db\nheadgate state backup /var/lib/headgate/state.db backup.db",
	"state check":     "headgate state check backup.db",
	"state restore":   "headgate state restore backup.db /var/lib/headgate/state.db",
	"stf":             "headgate stf program.json test.stf",
	"switch":          "headgate switch --device-id 1 -i 1@veth1 -i 2@veth2 --no-p4 -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510",
	"version":         "headgate version -o json",
	"watch":           "headgate watch events\nheadgate watch telemetry --switch leaf1",
	"watch events":    "headgate watch events -n 50",
	"watch flows":     "headgate watch flows",
	"watch telemetry": "headgate watch telemetry --switch leaf1,spine1",
	"watch weights":   "headgate watch weights --app storage",
}

// addExamples gives each command the example of its path, if it has none.
func addExamples(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if text := examples[path]; c.Example == "" && text != "" {
			c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
		}
		addExamples(c)
	}
}
