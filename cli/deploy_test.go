package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/softswitch/standalone"
)

// TestDeployedCommands checks that the command line accepts the commands in deploy/ (systemd,
// Kubernetes, containerlab).
func TestDeployedCommands(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join("../deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var lines []string
	units, err := filepath.Glob("../deploy/systemd/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/headgate (.*)$`)
	for _, u := range units {
		found := start.FindStringSubmatch(read("systemd/" + filepath.Base(u)))
		if found == nil {
			t.Fatalf("%s starts nothing", u)
		}
		lines = append(lines, strings.TrimSuffix(strings.ReplaceAll(found[1], "%i", "eth0"), " $ARGS"))
	}
	var lab struct {
		Topology struct {
			Nodes map[string]struct{ Image, Cmd string }
		}
	}
	if err := yaml.Unmarshal([]byte(read("containerlab/leaf-spine.clab.yml")), &lab); err != nil {
		t.Fatal(err)
	}
	for _, n := range lab.Topology.Nodes {
		if n.Image == "" {
			lines = append(lines, n.Cmd)
		}
	}
	for dec := yaml.NewDecoder(strings.NewReader(read("kubernetes/headgate.yaml"))); ; {
		var object struct {
			Spec struct {
				Template struct {
					Spec struct{ Containers []struct{ Args []string } }
				}
			}
		}
		if dec.Decode(&object) != nil {
			break
		}
		for _, c := range object.Spec.Template.Spec.Containers {
			lines = append(lines, strings.Join(c.Args, " "))
		}
	}
	if len(lines) != 3+4+1 {
		t.Errorf("%d command lines: %q", len(lines), lines)
	}
	for _, line := range lines {
		args := strings.Fields(line)
		err := checkHeadgate(args)
		if args[0] == "switch" { // it parses its flags itself; --version ends it after that
			err = standalone.Main(t.Context(), append([]string{"--version"}, args[1:]...), io.Discard, io.Discard)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}

	fabric := "../deploy/containerlab/fabric.yaml"
	if _, err := config.Load(config.Options{File: fabric, Sections: controller.Sections()}); err != nil {
		t.Error(err)
	}
}
