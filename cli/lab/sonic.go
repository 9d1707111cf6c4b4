package lab

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/buffer/sonic"
	"github.com/headgate/headgate/internal/jsonfile"
)

func newSonicCommand() *cobra.Command {
	return command.OneOf(&cobra.Command{Use: "sonic", Short: "Translate buffer policies to and from SONiC's CONFIG_DB"}, newSonicExportCommand(), newSonicImportCommand())
}

type sonicExport struct {
	sonic.Options
	file, sw, output, ports string
}

func newSonicExportCommand() *cobra.Command {
	var f sonicExport
	c := &cobra.Command{
		Use:   "export -f fabric.yaml --switch NAME",
		Short: "Write the buffer policy of a switch as a part of SONiC's CONFIG_DB",
		Long: `Write the buffer policy of a switch as a part of SONiC's CONFIG_DB, with the maps of classes, PFC
and its watchdog. What SONiC does not have is an error, or with --approximate a warning. No
controller is asked.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "configuration `file` of the fabric, - for standard input")
	fl.StringVar(&f.sw, "switch", "", "`name` of the switch in the fabric file")
	fl.StringVarP(&f.output, "out", "o", "", "`file` to write instead of standard output")
	fl.BoolVar(&f.Approximate, "approximate", false, "export the nearest value where SONiC lacks one")
	fl.IntVar(&f.Lanes, "lanes", 4, "lanes of a port, 1 to 8: port n is Ethernet((n-1)*lanes)")
	fl.StringVar(&f.ports, "ports", "", "CONFIG_DB `file` of the SONiC switch: port n is its PORT with index n, instead of --lanes")
	command.Require(c, "file")
	command.Require(c, "switch")
	return c
}

func (f *sonicExport) run(c *cobra.Command) error {
	if f.Lanes < 1 || f.Lanes > 8 {
		return fmt.Errorf("--lanes: %d is not allowed: want 1 to 8", f.Lanes)
	}
	file, text, err := command.ReadConfig(c.InOrStdin(), f.file)
	if err != nil {
		return err
	}
	fabric, err := command.ParseConfig(file, text)
	if err != nil {
		return err
	}
	s := fabric.Switch(f.sw)
	if s == nil {
		return fmt.Errorf("--switch: %q is no switch of %s", f.sw, file)
	}
	if f.ports != "" {
		file, text, err := command.ReadConfig(c.InOrStdin(), f.ports)
		if err != nil {
			return err
		}
		if f.Switch, err = sonic.ReadPorts(file, []byte(text)); err != nil {
			return err
		}
	}
	db, warnings, err := sonic.Export(fabric, s, f.Options)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(c.ErrOrStderr(), "headgate: warning: %s: %s\n", file, command.Clean(w))
	}
	var out bytes.Buffer
	if err := jsonfile.Encode(&out, db); err != nil {
		return err
	}
	if f.output != "" {
		return os.WriteFile(f.output, out.Bytes(), 0o644)
	}
	_, err = io.Copy(c.OutOrStdout(), &out)
	return err
}

func newSonicImportCommand() *cobra.Command {
	var name, sw, vendor string
	var approximate bool
	c := &cobra.Command{
		Use:   "import -f config_db.json",
		Short: "Write the buffer settings of SONiC's CONFIG_DB as sections of a fabric file",
		Long: `Write the buffer settings of SONiC's CONFIG_DB as sections of a fabric file: its buffer policy, the classes
of packets and the PFC watchdog. What the sections cannot say of them is an error, or with --approximate a
warning. What else its tables of buffers and classes have is not taken, and named on standard error with
the reason. Tables of other purposes are not looked at. Settings that
differ by port come first, as a comment: they belong in the list ports of the switch.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, text, err := command.ReadConfig(c.InOrStdin(), name)
			if err != nil {
				return err
			}
			var profiles []buffer.HeadroomProfile
			if vendor != "" {
				ini, err := os.ReadFile(vendor)
				if err != nil {
					return err
				}
				if profiles, err = buffer.ParseProfiles(vendor, string(ini)); err != nil {
					return err
				}
			}
			found, err := sonic.Import(file, sw, []byte(text), approximate, profiles...)
			if err != nil {
				return err
			}
			for _, w := range found.Warnings {
				fmt.Fprintf(c.ErrOrStderr(), "headgate: warning: %s: %s\n", file, command.Clean(w))
			}
			for _, l := range found.Left {
				fmt.Fprintf(c.ErrOrStderr(), "headgate: not taken: %s: %s\n", file, command.Clean(l))
			}
			if found.Ports != "" {
				fmt.Fprintf(c.OutOrStdout(), "# switches[], %s:\n#   ports: %s\n", sw, found.Ports)
			}
			_, err = c.OutOrStdout().Write(found.Sections)
			return err
		},
	}
	c.Flags().StringVarP(&name, "file", "f", "", "CONFIG_DB `file` of the SONiC switch, - for standard input")
	c.Flags().StringVar(&sw, "switch", "switch1", "`name` of the switch in the fabric file, where ports differ")
	c.Flags().BoolVar(&approximate, "approximate", false, "import the nearest value where Headgate lacks one")
	c.Flags().StringVar(&vendor, "profiles", "", "the vendor's pg_profile_lookup.ini, a `file` with rows for buffer.headroom_profiles")
	command.Require(c, "file")
	return c
}
