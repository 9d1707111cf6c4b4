package p4

import (
	"context"
	"slices"
	"strings"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
)

// patience is how long a shell's completion waits for the switch.
const patience = time.Second

// info returns the P4Info that names are completed from; nil when the switch does not answer soon.
func info(cmd *cobra.Command) *p4configv1.P4Info {
	t, err := newTarget(cmd)
	if err != nil {
		return nil
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	t.Timeout = min(t.Timeout, patience)
	p, err := t.pipeline(ctx)
	if err != nil {
		return nil
	}
	return p.Info()
}

type preambled interface{ GetPreamble() *p4configv1.Preamble }

// names returns the aliases of objects, which are the shortest names that are unique.
func names[T preambled](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		if out[i] = v.GetPreamble().GetAlias(); out[i] == "" {
			out[i] = v.GetPreamble().GetName()
		}
	}
	return out
}

// pick returns the completions among words: those that begin with typed.
func pick(words []string, typed string) ([]string, cobra.ShellCompDirective) {
	words = command.Matching(words, typed)
	directive := cobra.ShellCompDirectiveNoFileComp
	if len(words) > 0 && strings.HasSuffix(words[0], "=") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return words, directive
}

// completeName completes the first argument with the names that objects returns for a kind.
func completeName(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return pick(objects(info(cmd), kind), typed)
	}
}

func completeRead(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	i := info(cmd)
	switch {
	case len(args) == 0:
		return pick(append(pipeline.KindNames(), names(i.GetTables())...), typed)
	case len(args) == 1:
		return pick(objects(i, args[0]), typed)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// objects returns the names of the objects that entities of a kind belong to.
func objects(i *p4configv1.P4Info, kind string) []string {
	switch kind {
	case "table", "default":
		return names(i.GetTables())
	case "member", "group":
		return names(i.GetActionProfiles())
	case "counter":
		return names(i.GetCounters())
	case "meter":
		return names(i.GetMeters())
	case "register":
		return names(i.GetRegisters())
	case "digest":
		return names(i.GetDigests())
	}
	return nil
}

// completeWrite completes insert|modify|delete, a kind or table, its keys, its actions and their parameters.
func completeWrite(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return pick([]string{"insert", "modify", "delete"}, typed)
	}
	i, args := info(cmd), args[1:]
	if len(args) == 0 {
		return pick(append(pipeline.KindNames(), names(i.GetTables())...), typed)
	}
	if len(args) == 1 && len(objects(i, args[0])) > 0 {
		return pick(objects(i, args[0]), typed)
	}
	if args[0] == "table" || args[0] == "default" {
		args = args[1:]
	}
	t := slices.IndexFunc(i.GetTables(), func(t *p4configv1.Table) bool {
		return t.GetPreamble().GetName() == args[0] || strings.HasSuffix("."+t.GetPreamble().GetName(), "."+args[0])
	})
	if t < 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return pick(completions(i, i.GetTables()[t], args[1:]), typed)
}

func completions(i *p4configv1.P4Info, t *p4configv1.Table, given []string) []string {
	has := func(name string) bool {
		return slices.ContainsFunc(given, func(w string) bool { return strings.HasPrefix(w, name+"=") })
	}
	called := ""
	for _, w := range given {
		if !strings.Contains(w, "=") {
			called = w
		}
	}
	var words []string
	if called == "" {
		for _, f := range t.GetMatchFields() {
			if !has(f.GetName()) {
				words = append(words, f.GetName()+"=")
			}
		}
	}
	for _, a := range i.GetActions() {
		if !slices.ContainsFunc(t.GetActionRefs(), func(r *p4configv1.ActionRef) bool { return r.GetId() == a.GetPreamble().GetId() }) {
			continue
		}
		switch name := names([]*p4configv1.Action{a})[0]; {
		case called == "" && t.GetImplementationId() == 0:
			words = append(words, name)
		case called == name || called == a.GetPreamble().GetName():
			for _, q := range a.GetParams() {
				if !has(q.GetName()) {
					words = append(words, q.GetName()+"=")
				}
			}
		}
	}
	if called == "" && t.GetImplementationId() != 0 {
		words = append(words, "member=", "group=")
	}
	for _, f := range t.GetMatchFields() {
		m := f.GetMatchType()
		if (m == p4configv1.MatchField_TERNARY || m == p4configv1.MatchField_RANGE || m == p4configv1.MatchField_OPTIONAL) && !has("priority") {
			words = append(words, "priority=")
			break
		}
	}
	return words
}
