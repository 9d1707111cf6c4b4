package sonic

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// models holds the parts of the models that SONiC's sonic_yang loader uses: the module of each
// table, and the leaves of its lists. A table of maps has, in each row, a list with a key and a
// value.
var models = map[string]struct {
	module string
	keys   []string // of the list
	inner  []string // of the list in a row
}{
	tablePool:    {"sonic-buffer-pool", []string{"name"}, nil},
	tableProfile: {"sonic-buffer-profile", []string{"name"}, nil},
	tablePG:      {"sonic-buffer-pg", []string{"port", "pg_num"}, nil},
	tableQueue:   {"sonic-buffer-queue", []string{"port", "qindex"}, nil},
	tablePort:    {"sonic-port", []string{"name"}, nil},
	tableCable:   {"sonic-cable-length", []string{"name"}, []string{"port", "length"}},
	tablePortQoS: {"sonic-port-qos-map", []string{"ifname"}, nil},
	tableDSCP:    {"sonic-dscp-tc-map", []string{"name"}, []string{"dscp", "tc"}},
	tableTCQueue: {"sonic-tc-queue-map", []string{"name"}, []string{"tc", "qindex"}},
	tableTCPG:    {"sonic-tc-priority-group-map", []string{"name"}, []string{"tc", "pg"}},
	tablePFC:     {"sonic-pfc-priority-queue-map", []string{"name"}, []string{"pfc_priority", "qindex"}},
	tableWRED:    {"sonic-wred-profile", []string{"name"}, nil},
	tableEgress:  {"sonic-queue", []string{"ifname", "qindex"}, nil},
	tablePFCWD:   {"sonic-pfcwd", []string{"ifname"}, nil},
}

// numbers are leaves of at most 32 bits, which RFC 7951 encodes as JSON numbers. Wider ones are strings.
var numbers = []string{"dynamic_th", "index", "mtu", "speed", "tc", "detection_time", "restoration_time", watchdogEvery}

func leaf(name, value string) any {
	if slices.Contains(numbers, name) {
		return json.Number(value)
	}
	return value
}

// instance encodes tables as an instance of the models.
func instance(t *testing.T, db DB) []byte {
	t.Helper()
	top := map[string]any{}
	for table, rows := range db {
		m, known := models[table]
		if !known {
			t.Fatalf("no model of %s", table)
		}
		var list []any
		for key, fields := range rows {
			entry := map[string]any{}
			parts := strings.Split(key, "|")
			for i, k := range m.keys {
				entry[k] = leaf(k, parts[i])
			}
			var inner []any
			for field, value := range fields {
				if m.inner == nil {
					entry[field] = leaf(field, value)
				} else {
					inner = append(inner, map[string]any{m.inner[0]: leaf(m.inner[0], field), m.inner[1]: leaf(m.inner[1], value)})
				}
			}
			if inner != nil {
				entry[table] = inner
			}
			list = append(list, entry)
		}
		top[m.module+":"+m.module] = map[string]any{table: map[string]any{table + "_LIST": list}}
	}
	text, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestYANG checks the golden files against SONiC's own models, and checks that the models find
// errors.
func TestYANG(t *testing.T) {
	lint, err := exec.LookPath("yanglint")
	folder := os.Getenv("HEADGATE_SONIC_YANG")
	if err != nil || folder == "" {
		t.Skip("want yanglint (Debian's libyang-tools) and HEADGATE_SONIC_YANG, the folder of SONiC's models; docs/operate/sonic.md says how to make it")
	}
	all, err := filepath.Glob(folder + "/*.yang")
	if err != nil || len(all) < len(models) {
		t.Fatalf("%s has %d models, want SONiC's: %v", folder, len(all), err)
	}
	check := func(db DB) (string, error) {
		data := filepath.Join(t.TempDir(), "data.json")
		if err := os.WriteFile(data, instance(t, db), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"-p", folder, "-t", "config"}, all...) // all of them, in the loader's form
		out, err := exec.Command(lint, append(args, data)...).CombinedOutput()
		if i := bytes.Index(out, []byte("libyang err")); i >= 0 {
			out = out[i:] // warnings about the models
		}
		return string(out), err
	}
	load := func(name string) DB {
		db, faults := read([]byte(golden(t, name)), owned...)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		return db
	}
	for name := range goldens {
		if out, err := check(load(name)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	for name, c := range map[string]struct {
		want  string
		spoil func(DB)
	}{
		"α of 2^8":                 {"dynamic_th", func(db DB) { db[tableProfile][ingressLossy]["dynamic_th"] = "8" }},
		"a pool that is not there": {"other", func(db DB) { db[tableProfile][ingressLossy]["pool"] = "other" }},
		"a port that is not there": {"Ethernet8", func(db DB) { delete(db[tablePort], "Ethernet8") }},
		"no lanes":                 {"lanes", func(db DB) { delete(db[tablePort]["Ethernet0"], "lanes") }},
		"a cable in feet":          {"Invalid cable length", func(db DB) { db[tableCable][cables]["Ethernet0"] = "40ft" }},
		"a class 16":               {"Invalid Traffic Class", func(db DB) { db[tableDSCP][mapName]["3"] = "16" }},
		"a PFC class 8":            {"pfc_enable", func(db DB) { db[tablePortQoS]["Ethernet0"]["pfc_enable"] = "8" }},
		"an unknown field":         {"shape", func(db DB) { db[tablePool][egressPool]["shape"] = "round" }},
		"a quick watchdog":         {"detection_time", func(db DB) { db[tablePFCWD]["Ethernet0"]["detection_time"] = "50" }},
	} {
		db := load("adaptive")
		c.spoil(db)
		if out, err := check(db); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, %s, want an error of %s", name, err, out, c.want)
		}
	}
}
