#!/bin/bash
# Installs the package in a clean Debian, starts what the units start, and removes it again: nothing may be
# left. As root, with debootstrap: deploy/deb/clean-root.sh PACKAGE.deb [DIRECTORY of an earlier debootstrap]
set -euo pipefail
deb=$(realpath "$1")
[ $(id -u) = 0 ] || { echo "needs root, for chroot and namespaces"; exit 77; }
if [ $# -gt 1 ]; then
    root=$(realpath "$2")
else
    root=$(mktemp -d)
    chmod 755 "$root" # it is the root of users without privileges, too
    trap 'rm -rf --one-file-system "$root"' EXIT
    debootstrap --variant=minbase bookworm "$root" > "$root.log" || { cat "$root.log"; exit 1; }
fi

# The script runs in namespaces of its own: no traffic leaves, and all processes end with the shell.
export root deb
unshare --mount --net --pid --fork --kill-child bash -euo pipefail <<'END'
ip link set lo up
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
cp "$deb" "$root/run/headgate.deb"
inside() { chroot "$root" env -u HEADGATE_SERVER PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
files() { (cd "$root" && find . -xdev -path ./proc -prune -o -path ./run -prune -o -path './var/log/*' -prune -o -path './var/lib/dpkg/*' -prune -o -path './var/cache/*' -prune -o -print) | sort; }
start() { sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/$1.service"; }
fail() { echo "$*"; exit 1; }

files > "$root/run/before"
inside dpkg -i /run/headgate.deb
inside headgate --version
[ "$(start headgate-controller | cut -d' ' -f1)" = /usr/bin/headgate ] || fail "the unit starts another program"
zcat "$root/usr/share/man/man1/headgate-controller.1.gz" | grep -q SYNOPSIS || fail "no man page"

# systemd would make these for the units: an unprivileged user and its directories.
install -d -o 65534 -g 65534 "$root/var/lib/headgate" "$root/run/headgate"
cat > "$root/etc/headgate/fabric.yaml" <<'YAML'
name: clean
switches: [{name: s1, device_id: 1, address: "127.0.0.1:9559", target: embedded}]
hosts: [{name: h1, ipv4: 10.0.0.1}]
links: [{a: "s1:1", b: h1, rate: 1Gbps}]
controller: {metrics: "off"}
YAML
ip link add eth1 type veth peer name eth2
ip link set eth1 up
ip link set eth2 up
ARGS="--device-id 1 --no-p4 -i 1@eth1 -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510 --priority-queues 8"
chroot "$root" $(start headgate-switch@ | sed "s|\$ARGS|$ARGS|") > "$root/run/switch.log" 2>&1 &
switch=$!
command=$(start headgate-controller)
chroot --userspec=65534:65534 "$root" $command > "$root/run/controller.log" 2>&1 &
controller=$!
for i in $(seq 100); do
    inside headgate --server unix:/run/headgate/headgate.sock get switches 2> "$root/run/err" | grep -w ready && break
    [ $i -lt 100 ] || { cat "$root/run/err" "$root/run/controller.log" "$root/run/switch.log"; fail "s1 is not ready"; }
    sleep 0.2
done
inside headgate --server unix:/run/headgate/headgate.sock doctor || true
kill $controller && wait $controller || fail "the controller ended with $?"
kill $switch && wait $switch || fail "the switch ended with $?"
[ -s "$root/var/lib/headgate/state.db" ] || fail "no state was kept"

inside dpkg -r headgate
files | diff "$root/run/before" - | grep '^>' | grep -v -e ' ./etc/headgate' -e ' ./var/lib/headgate' && fail "dpkg -r left these"
[ -s "$root/var/lib/headgate/state.db" ] && [ -s "$root/etc/headgate/fabric.yaml" ] || fail "dpkg -r took the state or the configuration"
rm "$root/etc/headgate/fabric.yaml"
inside dpkg --purge headgate
files | diff "$root/run/before" - || fail "dpkg --purge left these, or took them"
echo "the package leaves nothing"
END
