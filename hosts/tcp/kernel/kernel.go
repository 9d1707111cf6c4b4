//go:build linux

package kernel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Root is Headgate's folder in bpffs, at the usual mount point of bpffs.
const Root = "/sys/fs/bpf/headgate"

// Cgroup is a cgroup. Its connections, and those of all cgroups below it, are governed.
type Cgroup struct {
	Path  string // its folder in a cgroup v2 file system
	Class uint32 // class of the cgroup's connections
}

// Config selects the programs to attach.
type Config struct {
	// Name distinguishes several Kernels on one machine, for example one per network namespace. It
	// names a folder in Root and, unless it is "", is part of the congestion controls' names.
	Name    string
	Cgroups []Cgroup
}

// Kernel is the set of programs and maps in the kernel. Any goroutine may call its methods.
type Kernel struct {
	maps    programMaps
	names   [3]string
	Adopted bool // Open found it running
}

// laws names the congestion control of each law. The congestion control's map in the object has the same name.
var laws = map[Law]string{Soze: "soze", PrioPlus: "prioplus"}

func (l Law) String() string { return laws[l] }

// controlName returns the name of a law's congestion control: at most 15 letters, digits, dots and underscores.
func controlName(l Law, name string) string {
	if name == "" {
		return laws[l]
	}
	b := []byte(laws[l][:4] + "." + name)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.') {
			b[i] = '_'
		}
	}
	return string(b[:min(len(b), 15)])
}

// Open adopts the programs that the same version left running with the same configuration. If
// there are none it loads and attaches them.
func Open(cfg Config) (*Kernel, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("locked memory: %w", err)
	}
	k := &Kernel{}
	for l := range laws {
		k.names[l] = controlName(l, cfg.Name)
	}
	dir := filepath.Join(Root, cfg.folder())
	version := sha256.Sum256(fmt.Appendf(bytes.Clone(_ProgramBytes), "%+v", cfg.Cgroups))
	mine := filepath.Join(dir, hex.EncodeToString(version[:8]))
	if _, err := os.Stat(filepath.Join(mine, last)); err == nil {
		if k.maps, err = pinnedMaps(mine); err != nil {
			return nil, fmt.Errorf("%s: %w: remove it by headgate host tcp --detach", mine, err)
		}
		k.Adopted = true
		return k, nil
	}
	// Existing sockets keep their congestion control until they are closed, even if it is
	// replaced.
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(mine, 0o700); err != nil {
		return nil, fmt.Errorf("%s: %w: is bpffs mounted there?", Root, err)
	}
	if err := k.load(cfg, mine); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return k, nil
}

func (c *Config) folder() string {
	if c.Name == "" {
		return "all"
	}
	return "host-" + filepath.Base(c.Name)
}

// Detach removes the programs and maps that Open left for a name. Connections that begin
// afterwards are not governed.
func Detach(name string) error {
	c := Config{Name: name}
	dir := filepath.Join(Root, c.folder())
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: nothing is attached", dir)
	}
	return os.RemoveAll(dir)
}

func pinnedMaps(dir string) (m programMaps, err error) {
	for name, at := range map[string]**ebpf.Map{"parameters": &m.Parameters, "classes": &m.Classes, "marks": &m.Marks, "orders": &m.Orders, "flows": &m.Flows} {
		if *at, err = ebpf.LoadPinnedMap(filepath.Join(dir, name), nil); err != nil {
			return m, err
		}
	}
	return m, nil
}

// last is the name of the pin that load makes last. If it exists, all others do.
const last = "parameters"

// removal is how long the kernel may take to remove a congestion control after its pinned link is gone.
const removal = 2 * time.Second

func (k *Kernel) load(cfg Config, dir string) error {
	shared, err := part(nil, "", func(*ebpf.CollectionSpec) error { return nil })
	if err != nil {
		return err
	}
	defer shared.Close()
	for l, name := range laws {
		c, err := part(shared.Maps, name, func(s *ebpf.CollectionSpec) error { return rename(s.Maps[name], name, k.names[l]) })
		if err != nil {
			return err
		}
		on, err := link.AttachStructOps(link.StructOpsOptions{Map: c.Maps[name]})
		for end := time.Now().Add(removal); errors.Is(err, unix.EEXIST) && time.Now().Before(end); time.Sleep(removal / 100) {
			on, err = link.AttachStructOps(link.StructOpsOptions{Map: c.Maps[name]})
		}
		c.Close()
		if errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("a congestion control %q is there already: is another agent running, or one of another name?", k.names[l])
		}
		if err := pinLink(on, err, filepath.Join(dir, "law-"+name)); err != nil {
			return fmt.Errorf("congestion control %s: %w", k.names[l], err)
		}
	}
	for i, g := range cfg.Cgroups {
		c, err := part(shared.Maps, sockops, func(s *ebpf.CollectionSpec) error { return s.Variables["cgroup_class"].Set(g.Class) })
		if err != nil {
			return err
		}
		on, err := link.AttachCgroup(link.CgroupOptions{Path: g.Path, Attach: ebpf.AttachCGroupSockOps, Program: c.Programs[sockops]})
		c.Close()
		if err := pinLink(on, err, filepath.Join(dir, fmt.Sprintf("cgroup-%d", i))); err != nil {
			return fmt.Errorf("cgroup %s: %w", g.Path, err)
		}
	}
	for _, name := range []string{"classes", "marks", "orders", "flows", last} {
		if err := shared.Maps[name].Pin(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	k.maps, err = pinnedMaps(dir)
	return err
}

// sockops is the name of the program that load attaches to cgroups.
const sockops = "headgate"

// part loads the part of the object with the given name, over shared maps: a law, the sockops program, or, for "",
// neither. The laws cannot be in one collection, because the library finds a congestion control's programs by the
// operation that they implement.
func part(shared map[string]*ebpf.Map, name string, change func(*ebpf.CollectionSpec) error) (*ebpf.Collection, error) {
	spec, err := loadProgram()
	if err != nil {
		return nil, err
	}
	if err := change(spec); err != nil {
		return nil, err
	}
	for p := range spec.Programs {
		of, _, _ := strings.Cut(p, "_")
		if mine := name != "" && (strings.HasPrefix(name, of) || of == "law" && name != sockops); !mine {
			delete(spec.Programs, p)
		}
	}
	replace := map[string]*ebpf.Map{}
	for m, s := range spec.Maps {
		switch {
		case s.Type == ebpf.StructOpsMap && m != name:
			delete(spec.Maps, m)
		case s.Type != ebpf.StructOpsMap && !strings.HasPrefix(m, ".") && shared != nil:
			replace[m] = shared[m]
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replace})
	if err != nil {
		return nil, explain(err)
	}
	return c, nil
}

func pinLink(l link.Link, err error, path string) error {
	if err != nil {
		return err
	}
	return errors.Join(l.Pin(path), l.Close()) // the pin keeps the link alive
}

func rename(m *ebpf.MapSpec, old, name string) error {
	field := make([]byte, 16)
	copy(field, old)
	value, ok := m.Contents[0].Value.([]byte)
	at := bytes.Index(value, field)
	if !ok || at < 0 {
		return fmt.Errorf("congestion control %s: its name is not in the object", old)
	}
	clear(value[at : at+len(field)])
	copy(value[at:], name)
	return nil
}

// explain adds the last lines of the verifier's log to the error for a refused program.
func explain(err error) error {
	if v := new(ebpf.VerifierError); errors.As(err, &v) {
		return fmt.Errorf("the kernel refuses the program: %w\n%+v", err, v)
	}
	return fmt.Errorf("the kernel refuses the program: %w", err)
}

// NetnsCookie returns the cookie of the network namespace at path, or of the calling thread's if
// path is "".
func NetnsCookie(path string) (uint64, error) {
	type result struct {
		cookie uint64
		err    error
	}
	done := make(chan result)
	go func() { // on a thread of its own, which ends with the goroutine
		var r result
		r.cookie, r.err = netnsCookie(path)
		done <- r
	}()
	r := <-done
	return r.cookie, r.err
}

// Supported returns an error that names the feature that the kernel lacks. It mounts bpffs if that is not
// mounted.
func Supported() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	var major, minor int
	release := unix.ByteSliceToString(u.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err == nil && (major < 6 || major == 6 && minor < 4) {
		return fmt.Errorf("kernel %s: want Linux 6.4 or later, which has links of struct_ops (header options came with 5.10, congestion controls in eBPF with 5.6)", release)
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Errorf("the kernel does not export its types: want CONFIG_DEBUG_INFO_BTF: %w", err)
	}
	var s unix.Statfs_t
	if at := filepath.Dir(Root); unix.Statfs(at, &s) != nil || s.Type != unix.BPF_FS_MAGIC {
		if err := unix.Mount("bpf", at, "bpf", 0, ""); err != nil {
			return fmt.Errorf("%s is no bpffs, and none can be mounted there: %w", at, err)
		}
	}
	return nil
}

// netnsCookie returns the cookie of a network namespace. It locks its thread for good if it enters
// another namespace.
func netnsCookie(path string) (uint64, error) {
	if path != "" {
		runtime.LockOSThread()
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, fmt.Errorf("network namespace %s: %w", path, err)
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return 0, fmt.Errorf("network namespace %s: %w", path, err)
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(s)
	return unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}
