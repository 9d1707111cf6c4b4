package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"
)

// repository is the repository's top folder.
const repository = ".."

// others are programs of other projects that the documents call.
var others = []string{
	"[", "jobs", "cmp", "python3", "head", "iperf3", "apt", "cat", "cd", "cp", "curl", "echo", "systemctl", "git", "gnmi_cli", "grep", "ip", "kill", "mkdir", "mktemp", "ping", "printf", "rm", "sed", "seq", "simple_switch_grpc", "sleep", "sysctl", "wait",
	"./ns3", "csg-htsim/sim/datacenter/htsim_roce",
}

// before holds, by program, the number of words before the command that the program runs.
var before = []struct {
	words string
	count int
}{{"sudo", 1}, {"time", 1}, {"timeout", 2}, {"ip netns exec", 4}}

// Each command in the documents exists: the command line accepts ours, make has the target, and
// benchmarks and files are there.
func TestDocumentedCommands(t *testing.T) {
	files, err := filepath.Glob(repository + "/docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range append(files, repository+"/README.md", repository+"/CONTRIBUTING.md", repository+"/deploy/README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, snippet := range snippets(string(text)) {
			for _, args := range calls(t, file, snippet) {
				seen++
				if err := checkCall(args); err != nil {
					t.Errorf("%s: %s: %v", file, strings.Join(args, " "), err)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d commands found", seen)
	}
}

// The check finds commands that do not exist.
func TestDocumentedCommandsBite(t *testing.T) {
	for _, line := range []string{
		"bin/headgate get nothing", "headgate run --nosuch 1", "make nothing", `make run ARGS="--nosuch"`, "frobnicate x",
		"go test -bench Nothing ./headroom", "go test ./controller -nosuch", "go test -bench Call ./nothing", "mininet/nothing.py", "headgate stf one-argument",
		"timeout 3 headgate nothing", "ip netns exec h1 headgate host --nosuch", "f() { frobnicate; }; f",
	} {
		if !slices.ContainsFunc(calls(t, "line", line), func(args []string) bool { return checkCall(args) != nil }) {
			t.Errorf("%q was taken", line)
		}
	}
}

var (
	fenced = regexp.MustCompile("(?ms)^```(sh|console)\n(.*?)^```")
	inline = regexp.MustCompile("`((?:sudo )?(?:headgate|bin/headgate|make|go test|HEADGATE_BMV2=1 go test) [^`\n]+)`")
	prompt = regexp.MustCompile(`(?m)^\$ (.*)$`)
)

// snippets returns the shell text of a document: blocks of commands, the lines behind a
// prompt, and commands in the running text.
func snippets(text string) []string {
	var list []string
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		if m[1] == "sh" {
			list = append(list, m[2])
			continue
		}
		for _, line := range prompt.FindAllStringSubmatch(m[2], -1) {
			list = append(list, line[1])
		}
	}
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(strings.ReplaceAll(m[1], "…", ""), `\|`, "|"))
	}
	return list
}

// calls returns the words of each simple command in a shell text, without calls of functions that
// the text declares.
func calls(t *testing.T, file, text string) [][]string {
	t.Helper()
	functions := map[string]bool{}
	parsed, err := syntax.NewParser().Parse(strings.NewReader(text), file)
	if err != nil {
		t.Errorf("%s: %q: %v", file, text, err)
		return nil
	}
	var list [][]string
	syntax.Walk(parsed, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok {
			functions[f.Name.Value] = true
		}
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			var args []string
			for _, w := range call.Args {
				args = append(args, word(w))
			}
			if !functions[args[0]] {
				list = append(list, args)
			}
		}
		return true
	})
	return list
}

// word returns a word without its quotes; words that the shell would compute become "1".
func word(w *syntax.Word) string {
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				add(p.Parts)
			default:
				b.WriteByte('1')
			}
		}
	}
	add(w.Parts)
	return b.String()
}

func checkCall(args []string) error {
	for _, b := range before {
		if strings.HasPrefix(strings.Join(args, " "), b.words+" ") && len(args) > b.count {
			args = args[b.count:]
		}
	}
	switch name := args[0]; {
	case name == "headgate" || name == "bin/headgate":
		return checkHeadgate(args[1:])
	case name == "make":
		return checkMake(args[1:])
	case name == "go" && len(args) > 1 && args[1] == "test":
		return checkBenchmark(args[2:])
	case name == "go" && len(args) > 2 && args[1] == "run":
		_, err := os.Stat(filepath.Join(repository, args[2], "main.go"))
		return err
	case strings.HasPrefix(name, "mininet/"), strings.HasPrefix(name, "examples/"):
		_, err := os.Stat(filepath.Join(repository, name))
		return err
	case slices.Contains(others, name):
		return nil
	}
	return fmt.Errorf("no such command")
}

// checkHeadgate parses a command line as the program would. It does not check values that the
// reader replaces.
func checkHeadgate(args []string) error {
	c, rest, err := NewRoot().Find(args)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	if slices.Contains(rest, "--help") {
		return nil
	}
	if c.DisableFlagParsing {
		return nil
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	left := c.Flags().Args()
	if c.HasSubCommands() && len(left) > 0 {
		return fmt.Errorf("%s has no subcommand %q", c.Name(), left[0])
	}
	if len(left) == 0 {
		return nil // the text mentions the command without running it
	}
	return c.ValidateArgs(left)
}

func checkMake(args []string) error {
	makefile, err := os.ReadFile(repository + "/Makefile")
	if err != nil {
		return err
	}
	flags := pflag.NewFlagSet("make", pflag.ContinueOnError)
	dir := flags.StringP("directory", "C", "", "")
	if err := flags.Parse(args); err != nil || *dir != "" {
		return err // a file of another project
	}
	target := ""
	for _, a := range flags.Args() {
		if name, value, ok := strings.Cut(a, "="); ok {
			if name == "ARGS" && target == "run" {
				if err := checkHeadgate(append([]string{"run"}, strings.Fields(value)...)); err != nil {
					return err
				}
			}
			continue
		}
		if target = a; !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(a) + `:`).Match(makefile) {
			return fmt.Errorf("the Makefile has no target %s", a)
		}
	}
	return nil
}

// checkBenchmark looks for the package, for its benchmarks of these names, and for its flags in the
// command.
func checkBenchmark(args []string) error {
	var names, dir string
	var own []string
	for i, a := range args {
		switch {
		case a == "-bench" && i+1 < len(args):
			names = args[i+1]
		case strings.HasPrefix(a, "./"):
			dir = strings.TrimSuffix(a, "/...")
		case dir != "":
			own = append(own, strings.TrimPrefix(a, "-"))
		}
	}
	tests, err := filepath.Glob(filepath.Join(repository, dir, "*_test.go"))
	if err != nil || len(tests) == 0 {
		return fmt.Errorf("no tests in %s", dir)
	}
	var text []byte
	for _, f := range tests {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		text = append(text, b...)
	}
	for _, name := range strings.Split(names, "|") {
		if names != "" && !regexp.MustCompile(`func Benchmark\w*`+name).Match(text) {
			return fmt.Errorf("no benchmark %s in %s", name, dir)
		}
	}
	for _, f := range own {
		if !bytes.Contains(text, fmt.Appendf(nil, "flag.Bool(%q", f)) {
			return fmt.Errorf("no flag -%s in %s", f, dir)
		}
	}
	return nil
}
