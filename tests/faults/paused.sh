# Two leaves joined by one cable, lossless. Two hosts of leaf1 send to a slower host of leaf2, so leaf2
# pauses leaf1, and leaf1 pauses its hosts. The cable fails and recovers meanwhile. The test that
# embeds this sets TMPDIR and HEADGATE.
{ mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && ip link add probe type veth && ip link delete probe; } || exit 77
export HEADGATE_SERVER=unix:$TMPDIR/headgate.sock
cd $TMPDIR
cat > fabric.yaml <<END
name: paused
scale: 1000
switches:
  - {name: leaf1, device_id: 1, address: "127.0.0.1:9551", target: embedded}
  - {name: leaf2, device_id: 2, address: "127.0.0.1:9552", target: embedded}
hosts: [{name: h1, ipv4: 10.0.1.1}, {name: h2, ipv4: 10.0.1.2}, {name: h3, ipv4: 10.0.2.1}]
links:
  - {a: "leaf1:1", b: h1, rate: 20Mbps, delay: 2us}
  - {a: "leaf1:2", b: h2, rate: 20Mbps, delay: 2us}
  - {a: "leaf2:1", b: h3, rate: 5Mbps, delay: 2us}
  - {a: "leaf1:3", b: "leaf2:3", rate: 20Mbps, delay: 2us}
qos:
  classes:
    - {dscp: 24, class: 3, queue: 3}
    - {dscp: 48, class: 6, queue: 6}
buffer: {policy: dsh, size: 4MB, lossless: [3], headroom: 300KB}
controller: {listen: "127.0.0.1:9600", metrics: "127.0.0.1:9601", probe_interval: 100ms, probe_timeout: 900ms, flap_hold: "off"}
END

ip link add leaf1-3 type veth peer name leaf2-3
ip link set leaf1-3 up
ip link set leaf2-3 up
host() {
    ip netns add $1
    ip link add $2 type veth peer name eth0 address $4 netns $1
    ip link set $2 up
    ip -n $1 link set lo up
    ip -n $1 link set eth0 up
    ip -n $1 address add $3/32 dev eth0
}
host h1 leaf1-1 10.0.1.1 06:00:0a:00:01:01
host h2 leaf1-2 10.0.1.2 06:00:0a:00:01:02
host h3 leaf2-1 10.0.2.1 06:00:0a:00:02:01

leaf() {
    local n=$1
    shift
    $HEADGATE switch --device-id $n --no-p4 "$@" --pfc --queue-limit 4MB --log-file leaf$n.log \
        -- --grpc-server-addr 127.0.0.1:955$n --cpu-port 510 --priority-queues 8 > /dev/null &
}
leaf 1 -i 1@leaf1-1 -i 2@leaf1-2 -i 3@leaf1-3 --port-rate 1=20Mbps --port-rate 2=20Mbps --port-rate 3=20Mbps
leaf 2 -i 1@leaf2-1 -i 3@leaf2-3 --port-rate 1=5Mbps --port-rate 3=20Mbps
$HEADGATE controller -f fabric.yaml --socket ${HEADGATE_SERVER#unix:} --insecure-loopback=viewer > controller.log 2>&1 &
for i in $(seq 300); do
    [ "$($HEADGATE get switches 2>/dev/null | grep -cw ready)" = 2 ] && break
    [ $i -lt 300 ] || { echo "not both switches are ready:"; $HEADGATE get switches; exit 1; }
    sleep 0.2
done

agent() {
    local name=$1
    shift
    ip netns exec $name $HEADGATE host --interface eth0 --name $name --rate 20Mbps --law none --pfc-class 24=3 \
        --controller $HEADGATE_SERVER "$@" > $name.log 2>&1 &
}
agent h3 --listen-only
agent h1 --flow dst=10.0.2.1,dscp=24
agent h2 --flow dst=10.0.2.1,dscp=24

# metric NAME SWITCH prints the sum over all ports of the switch.
metric() {
    exec 3<> /dev/tcp/127.0.0.1/9601
    printf 'GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
    awk -v name="headgate_$1{" -v at="switch=\"$2\"" 'index($0, name) == 1 && index($0, at) { sum += $2 } END { printf "%d", sum }' <&3
    exec 3>&-
}
acked() { $HEADGATE get flows -o json | awk -F'"' '/"acked_bytes"/ { sum += $4 } END { printf "%d", sum }'; }
until [ "$(metric pfc_paused leaf2)" -ge 1 ]; do sleep 0.05; done
echo "paused 1"
before=$(acked)
sleep 3
flowing=$(($(acked) - before))
echo "before $flowing"
echo "dropped-before $(metric pfc_lossless_dropped_packets_total leaf1) $(metric pfc_lossless_dropped_packets_total leaf2)"
for i in $(seq 10); do
    until [ "$(metric pfc_paused leaf2)" -ge 1 ]; do sleep 0.05; done
    ip link set leaf1-3 down
    sleep 0.0$((RANDOM % 10))
    ip link set leaf1-3 up
    sleep 0.5
done
# A frame lost on the cable makes the sender repeat all later frames (go-back-N), 6 s of this queue. So the
# rate counts as recovered when it holds for 9 s.
good=0
for i in $(seq 3 3 60); do
    last=$(acked)
    sleep 3
    after=$(($(acked) - last))
    good=$((2 * after >= flowing ? good + 1 : 0))
    [ $good = 3 ] && break
done
echo "recovered $((i - 3 * good))"
echo "after $after"
echo "dropped $(metric pfc_lossless_dropped_packets_total leaf1) $(metric pfc_lossless_dropped_packets_total leaf2)"
echo "pauses $(metric pfc_pause_frames_total leaf1) $(metric pfc_pause_frames_total leaf2)"
$HEADGATE get flows
