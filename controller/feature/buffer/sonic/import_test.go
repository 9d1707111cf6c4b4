package sonic

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ordinary(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/ordinary/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOrdinary: import takes what it can from the output of SONiC's own templates for a switch's defaults,
// and names everything else.
func TestOrdinary(t *testing.T) {
	for _, name := range []string{"shared", "own"} {
		text := []byte(ordinary(t, name))
		_, err := Import("db.json", "s1", text, false)
		if err == nil {
			t.Errorf("%s: imported though it means something else", name)
			continue
		}
		found, nearest := Import("db.json", "s1", text, true)
		if nearest != nil {
			t.Errorf("%s: %v", name, nearest)
			continue
		}
		got := fmt.Sprintf("refused:\n%v\nwarnings:\n%s\nleft:\n%s\nsections:\n%s", err, strings.Join(found.Warnings, "\n"), strings.Join(found.Left, "\n"), found.Sections)
		file := "testdata/ordinary/" + name + ".txt"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, diff)
		}
		must(t, fabricOf(t, text, found))
	}
}

// fabricOf returns a fabric file with a CONFIG_DB's ports and the sections imported from it.
func fabricOf(t *testing.T, text []byte, found *Imported) string {
	t.Helper()
	r := newImporter(text, true)
	r.links()
	var links []link
	for _, name := range r.ports {
		metres := 0
		for _, row := range r.db[tableCable] {
			if metres == 0 {
				_, _ = fmt.Sscanf(row[name], "%dm", &metres)
			}
		}
		links = append(links, link{r.portNumber(name), r.db[tablePort][name]["speed"] + "Kbps", fmt.Sprintf("%dns", metres*5)})
	}
	return withPorts(fabric(links, string(found.Sections)), found.Ports)
}

// Values that the sections cannot express give an error with table, key and field. Other tables are
// ignored.
func TestImportFaults(t *testing.T) {
	own, shared, sih := ordinary(t, "own"), ordinary(t, "shared"), golden(t, "sih")
	if _, err := Import("db.json", "s1", []byte(strings.Replace(sih, "{", `{"VLAN": [1], `, 1)), false); err != nil {
		t.Errorf("another table: %v", err)
	}
	for name, c := range map[string]struct{ text, old, new, want string }{
		"no JSON":             {sih, "{", "", "is no JSON object"},
		"more JSON":           {sih, "{", "{} {", "is no JSON object"},
		"a list":              {sih, `"PORT": {`, `"PORT": [], "X": {`, "PORT: is not an object of rows"},
		"a number":            {sih, `"size": "3000"`, `"size": 3000`, "BUFFER_PROFILE|pg_lossless_100000_40m_profile|size: is 3000, want a string"},
		"null":                {sih, `"size": "3000"`, `"size": null`, "|size: is null, want a string"},
		"no amount":           {sih, `"size": "3000"`, `"size": "3 KB"`, `|size: is "3 KB", want 0 to 2000000000`},
		"another xon":         {sih, `"xon": "0"`, `"xon": "18432"`, `BUFFER_PROFILE|pg_lossless_100000_40m_profile|xon: is 18432, want at most 0`},
		"another alpha":       {sih, `"dynamic_th": "-4"`, `"dynamic_th": "1"`, `BUFFER_PROFILE|ingress_lossy_profile|dynamic_th: is 1, want dynamic_th -4`},
		"alphas of ports":     {sih, `"dynamic_th": "-4",` + "\n" + `      "pool": "ingress_lossless_pool",` + "\n" + `      "size": "3000"`, `"dynamic_th": "6", "pool": "ingress_lossless_pool", "size": "3000"`, `_40m_profile|dynamic_th: is 6, want -4 as BUFFER_PROFILE|pg_lossless_40000`},
		"too much alpha":      {sih, `"dynamic_th": "-4"`, `"dynamic_th": "8"`, `|dynamic_th: is "8", want -8 to 7`},
		"shared xoff":         {sih, `"xoff": "240000"`, `"xoff": "120000"`, `BUFFER_POOL|ingress_lossless_pool|xoff: is 120000, want 240000`},
		"no pool":             {sih, `"pool": "ingress_lossless_pool"`, `"pool": "x"`, `BUFFER_PROFILE|ingress_lossy_profile|pool: is "x", want a row of BUFFER_POOL`},
		"an egress pool":      {sih, `"type": "ingress"`, `"type": "egress"`, `BUFFER_POOL|ingress_lossless_pool|type: is "egress", want ingress or both`},
		"no mode":             {sih, `"mode": "dynamic"`, `"mode": "quiet"`, `BUFFER_POOL|ingress_lossless_pool|mode: is "quiet", want dynamic or static`},
		"no PFC":              {sih, `"pfc_enable": "3,4"`, `"pfc_enable": "8"`, `PORT_QOS_MAP|Ethernet0|pfc_enable: is "8", want classes under PFC`},
		"no PFC at all":       {ordinaryPFC(sih, ""), "{", "{", `PORT_QOS_MAP: has no port with PFC: Ethernet0 Ethernet8 (no pfc_enable)`},
		"another database":    {`{"BUFFER_PG_TABLE:Ethernet0:3-4": {"type": "hash", "value": {"profile": "x"}}}`, "{", "{", `is a dump of another database, with the key "BUFFER_PG_TABLE:Ethernet0:3-4", want that of CONFIG_DB`},
		"a dump of a list":    {`{"PORT|Ethernet0": {"type": "list", "value": ["x"]}}`, "{", "{", `is a dump of a database, whose key "PORT|Ethernet0" has ["x"] as value`},
		"many ports":          {strings.ReplaceAll(sih, `"speed"`, `"speeds"`), "{", "{", `PORT|Ethernet0 Ethernet8|speed: is missing, want 1 to`},
		"other classes":       {sih, `"pfc_enable": "3,4"`, `"pfc_enable": "3"`, `PORT_QOS_MAP|Ethernet0|pfc_enable: lacks 4, which DSCP 26 has by the port's maps and other ports have, want it`},
		"a cable":             {sih, `"Ethernet0": "40m"`, `"Ethernet0": "40"`, `CABLE_LENGTH|AZURE|Ethernet0: is "40", want 1m`},
		"another PG":          {sih, `"Ethernet0|0-2"`, `"Ethernet0|0-3"`, `BUFFER_PG|Ethernet0|3-4: has priority group 3, which "Ethernet0|0-3" has as well`},
		"half a PG":           {sih, `"Ethernet0|3-4"`, `"Ethernet0|4-4"`, `BUFFER_PG|Ethernet0|3|profile: is missing, want a profile with xoff`},
		"no PG":               {sih, `"Ethernet0|0-2"`, `"Ethernet0|2-0"`, "BUFFER_PG|Ethernet0|2-0: is no priority group"},
		"a lossy PG":          {sih, `"xoff": "60000"`, `"x": "60000"`, `_40m_profile|xoff: is missing, want the headroom of priority group 3`},
		"headroom for others": {sih, `"pool": "ingress_lossless_pool"`, `"xoff": "9", "pool": "ingress_lossless_pool"`, `ingress_lossy_profile|xoff: is 9, want none`},
		"computed":            {own, `[BUFFER_PROFILE|pg_lossless_100000_5m_profile]`, `NULL`, `|profile: is "NULL", want a row of BUFFER_PROFILE: the switch computes it`},
		"no size of a pool":   {own, `"size": "5000000",`, ``, "BUFFER_POOL|ingress_lossless_pool|size: is missing, want 0"},
		"headroom of nothing": {own, `"size": "60000"`, `"size": "100"`, `_5m_profile|size: is 100, want at least xoff, which is 40000`},
		"PFC of another PG":   {own, `"3": "3",` + "\n" + `   "4": "4"` + "\n", `"3": "2"` + "\n", `PFC_PRIORITY_TO_PRIORITY_GROUP_MAP|AZURE|3: is "2", want 3`},
		"PFC of a queue":      {shared, `"MAP_PFC_PRIORITY_TO_QUEUE": {` + "\n" + `  "AZURE": {`, `"MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": {"3": "2", "4": "4"}, "B": {`, "MAP_PFC_PRIORITY_TO_QUEUE|AZURE|3: is 2, and DSCP 26 has queue 3"},
		"no map":              {shared, `"dscp_to_tc_map": "AZURE"`, `"dscp_to_tc_map": "A"`, `PORT_QOS_MAP|Ethernet0|dscp_to_tc_map: is "A", want a row of DSCP_TO_TC_MAP`},
		"another class":       {shared, `"26": "3"`, `"26": "1"`, "DSCP_TO_TC_MAP: leads no DSCP to priority group 3"},
		"class 16":            {shared, `"26": "3"`, `"26": "16"`, `DSCP_TO_TC_MAP|AZURE|26: is "16", want 0 to 15`},
		"one dog":             {shared, `"Ethernet48": {` + "\n" + `   "action"`, `"Ethernet99": {"action"`, "PFC_WD|Ethernet48: is missing, want a watchdog at all ports"},
		"another dog":         {shared, `"detection_time": "200"`, `"detection_time": "300"`, "PFC_WD|Ethernet0|detection_time: is 300, want 200 as PFC_WD|Ethernet4"},
		"a quick dog":         {shared, `"detection_time": "200"`, `"detection_time": "20"`, `PFC_WD|Ethernet0|detection_time: is "20", want 100 to 5000`},
		"a wild dog":          {shared, `"action": "drop"`, `"action": "bite"`, `PFC_WD|Ethernet0|action: is "bite", want drop, forward or alert`},
		"no WRED_PROFILE":     {golden(t, "ecn"), `"wred_profile": "ecn_64_64_5"`, `"wred_profile": "x"`, `QUEUE|Ethernet0|5|wred_profile: is "x", want a row of WRED_PROFILE`},
		"marks that fall":     {golden(t, "ecn"), `"green_max_threshold": "10000000"`, `"green_max_threshold": "9"`, `WRED_PROFILE|ecn_1000000_10000000_100|green_max_threshold: is "9", want 1000000 to`},
		"marks of a port":     {strings.ReplaceAll(golden(t, "ecn"), `"speed": "40000"`, `"speed": "100000"`), "{", "{", `QUEUE|Ethernet8|3|wred_profile: is marking from 100000 to 200000, want from 1000000 to 10000000`},
		"frames":              {shared, `"mtu": "9100"`, `"mtu": "1500"`, "PORT|Ethernet0|mtu: is 1500, want 9100 as PORT|Ethernet4|mtu"},
	} {
		if !strings.Contains(c.text, c.old) {
			t.Errorf("%s: the file has no %s", name, c.old)
		}
		_, err := Import("db.json", "s1", []byte(strings.Replace(c.text, c.old, c.new, 1)), false)
		if err == nil || !strings.Contains(err.Error(), "db.json: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func ordinaryPFC(text, classes string) string {
	return strings.ReplaceAll(text, `"pfc_enable": "3,4"`, `"pfc_enable": "`+classes+`"`)
}

func tables(t *testing.T, text string) (db DB) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &db); err != nil {
		t.Fatal(err)
	}
	return db
}

// A port without PFC is left out with one note, for any reason. A PORT without mtu has 9100.
func TestWithoutPFC(t *testing.T) {
	const port = "Ethernet8"
	text := strings.ReplaceAll(golden(t, "sih"), `"240000"`, `"120000"`)
	for why, edit := range map[string]func(DB){
		"no pfc_enable":     func(db DB) { db[tablePortQoS][port] = map[string]string{"pfc_enable": ""} },
		"no PORT_QOS_MAP":   func(db DB) { delete(db[tablePortQoS], port) },
		"admin_status down": func(db DB) { db[tablePort][port]["admin_status"] = "down" },
		"cable 0m":          func(db DB) { db[tableCable][cables][port] = "0m" },
		"a profile of size 0": func(db DB) {
			db[tableProfile]["zero"] = map[string]string{"pool": ingressPool, "size": "0", "static_th": "0"}
			db[tablePG][port+"|3-4"]["profile"] = "zero"
		},
	} {
		db := tables(t, text)
		edit(db)
		found, err := Import("db.json", "s1", encode(t, db), false)
		if at := "ports without PFC: Ethernet8 (" + why + "): the policy is that of the other ports"; err != nil || found.Left[0] != at {
			t.Errorf("%v, %+v, want %s", err, found, at)
		}
	}
	found, err := Import("db.json", "s1", []byte(strings.ReplaceAll(text, `"mtu": "1500"`, `"pfc_asym": "on"`)), true)
	if err != nil || !strings.Contains(string(found.Sections), "mtu: 9100B") {
		t.Errorf("%v without mtu", err)
	} else if want := "PORT|Ethernet0 Ethernet8|pfc_asym: is on, "; !strings.HasPrefix(found.Left[0], want) {
		t.Errorf("%q, want %q", found.Left, want)
	}
}

// A dump of the database imports like the file of its tables.
func TestDump(t *testing.T) {
	dump := map[string]any{"CONFIG_DB_INITIALIZED": map[string]any{"type": "string", "value": "1"}}
	for table, rows := range tables(t, golden(t, "oversubscribed")) {
		for key, row := range rows {
			row[empty] = empty
			dump[table+"|"+key] = map[string]any{"type": "hash", "value": row, "ttl": -0.001}
		}
	}
	text, err := json.Marshal(dump)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Import("db.json", "s1", []byte(golden(t, "oversubscribed")), false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Import("db.json", "s1", text, false)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// The imported file is a valid fabric with the same ports. If it can be exported, the export equals the import.
func FuzzImport(f *testing.F) {
	for name := range goldens {
		f.Add([]byte(golden(f, name)), false)
	}
	f.Add([]byte(`{"PORT_QOS_MAP": {"": {"pfc_enable": "3"}}}`), false)
	f.Add([]byte(ordinary(f, "shared")), true)
	f.Add([]byte(ordinary(f, "own")), true)
	f.Fuzz(func(t *testing.T, text []byte, approximate bool) {
		found, err := Import("db.json", "s1", text, approximate)
		if err != nil {
			return
		}
		c, err := parse(fabricOf(t, text, found))
		if err != nil {
			t.Fatalf("%v\n%s", err, found.Sections)
		}
		db, _, err := Export(c, &c.Switches[0], Options{Lanes: 4})
		if err != nil {
			return // such as a class with two queues
		}
		again, err := Import("db.json", "s1", encode(t, db), true)
		if err != nil {
			t.Fatalf("%v\n%s", err, found.Sections)
		}
		if diff := cmp.Diff(string(found.Sections), string(again.Sections)); diff != "" || len(again.Left) > 0 {
			t.Errorf("%s\n%q", diff, again.Left)
		}
	})
}
