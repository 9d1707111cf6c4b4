# A fabric of two spines, two leaves and four hosts. Each fault happens while four pings run. The
# test that embeds this sets TMPDIR, HEADGATE and TARGET (embedded or bmv2).
{ mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && ip link add probe type veth && ip link delete probe; } || exit 77
cd $TMPDIR
export HEADGATE_SERVER=unix:$TMPDIR/api.sock
limit() {
    cat > $1 <<END
name: faults
switches:
  - {name: leaf1,  device_id: 1, address: "127.0.0.1:9551", target: $TARGET}
  - {name: leaf2,  device_id: 2, address: "127.0.0.1:9552", target: $TARGET}
  - {name: spine1, device_id: 3, address: "127.0.0.1:9553", target: $TARGET}
  - {name: spine2, device_id: 4, address: "127.0.0.1:9554", target: $TARGET}
hosts: [{name: h1, ipv4: 10.0.1.1}, {name: h2, ipv4: 10.0.1.2}, {name: h3, ipv4: 10.0.2.1}, {name: h4, ipv4: 10.0.2.2}]
links:
  - {a: "leaf1:1", b: h1, rate: 1Gbps}
  - {a: "leaf1:2", b: h2, rate: 1Gbps}
  - {a: "leaf2:1", b: h3, rate: 1Gbps}
  - {a: "leaf2:2", b: h4, rate: 1Gbps}
  - {a: "leaf1:3", b: "spine1:1", rate: 1Gbps}
  - {a: "leaf1:4", b: "spine2:1", rate: 1Gbps}
  - {a: "leaf2:3", b: "spine1:2", rate: 1Gbps}
  - {a: "leaf2:4", b: "spine2:2", rate: 1Gbps}
qos: {queue_limit: $2}
controller: {metrics: "off", state: "$TMPDIR/state.db"}
END
}
limit one.yaml 1MB
limit two.yaml 2MB

cable() {
    ip link add $1 type veth peer name $2
    ip link set $1 up
    ip link set $2 up
}
cable leaf1-3 spine1-1
cable leaf1-4 spine2-1
cable leaf2-3 spine1-2
cable leaf2-4 spine2-2
host() {
    ip netns add $1
    ip link add $2 type veth peer name eth0 address $4 netns $1
    ip link set $2 up
    ip -n $1 link set lo up
    ip -n $1 link set eth0 up
    ip -n $1 address add $3/32 dev eth0
    ip -n $1 route add 10.0.0.254 dev eth0
    ip -n $1 route add default via 10.0.0.254
    ip -n $1 neighbour add 10.0.0.254 lladdr 02:00:00:00:00:fe dev eth0
}
host h1 leaf1-1 10.0.1.1 06:00:0a:00:01:01
host h2 leaf1-2 10.0.1.2 06:00:0a:00:01:02
host h3 leaf2-1 10.0.2.1 06:00:0a:00:02:01
host h4 leaf2-2 10.0.2.2 06:00:0a:00:02:02

declare -A pid id=([leaf1]=1 [leaf2]=2 [spine1]=3 [spine2]=4)
start() {
    local ports="-i 1@$1-1 -i 2@$1-2" n=${id[$1]}
    case $1 in leaf*) ports="$ports -i 3@$1-3 -i 4@$1-4" ;; esac
    if [ $TARGET = bmv2 ]; then
        simple_switch_grpc --device-id $n --no-p4 $ports --thrift-port $((9090 + n)) -- --grpc-server-addr 127.0.0.1:955$n --cpu-port 510 --priority-queues 8 >> $1.log 2>&1 &
    else
        $HEADGATE switch --device-id $n --no-p4 $ports --log-file $1.log -- --grpc-server-addr 127.0.0.1:955$n --cpu-port 510 --priority-queues 8 > /dev/null &
    fi
    pid[$1]=$!
}
controller() {
    $HEADGATE controller -f one.yaml --socket $TMPDIR/api.sock >> controller.log 2>&1 &
    pid[controller]=$!
}
kills() { kill -KILL ${pid[$1]}; wait ${pid[$1]} 2>/dev/null || true; }
ready() {
    for i in $(seq 300); do
        [ "$($HEADGATE get switches 2>/dev/null | grep -cw ready)" = 4 ] && return
        sleep 0.2
    done
    echo "not all switches are ready:"; $HEADGATE get switches; exit 1
}
for s in leaf1 leaf2 spine1 spine2; do start $s; done
controller
ready

# fault NAME COMMAND… pings while the command runs, and for two seconds more.
fault() {
    local name=$1 i=0 list=
    shift
    for pair in "h1 10.0.2.1" "h1 10.0.2.2" "h2 10.0.2.1" "h2 10.0.2.2"; do
        ip netns exec ${pair% *} ping -D -i 0.01 ${pair#* } > ping$i 2>&1 &
        list="$list $!"
        i=$((i + 1))
    done
    sleep 1
    "$@"
    ready
    sleep 2
    echo; echo "== $name"
    echo "ended $(date +%s.%N)"
    kill -INT $list
    wait $list || true
    for i in 0 1 2 3; do echo; cat ping$i; done
}
killed() { kills $1; sleep 10; start $1; sleep 1; }
frozen() { kill -STOP ${pid[$1]}; sleep 20; kill -CONT ${pid[$1]}; sleep 1; }
midapply() {
    for i in $(seq 20); do
        $HEADGATE apply -f two.yaml > /dev/null 2>&1 &
        local apply=$!
        sleep 0.0$((RANDOM % 10))
        kills controller
        wait $apply || true
        controller
        until $HEADGATE get fabric > /dev/null 2>&1; do sleep 0.05; done
    done
    ready
    $HEADGATE apply -f one.yaml > /dev/null
    $HEADGATE plan -f one.yaml > /dev/null || { echo "the switches do not hold what was applied"; exit 1; }
}
cut() { ip link set $1 down; sleep 5; ip link set $1 up; sleep 1; }
flaps() { for i in $(seq 10); do ip link set $1 down; sleep 0.2; ip link set $1 up; sleep 0.2; done; }

fault "nothing" sleep 3
fault "the controller is killed in mid-apply 20 times" midapply
fault "a cable of spine1 is cut for 5 s" cut leaf1-3
fault "a cable of spine2 is cut for 5 s" cut leaf1-4
fault "a cable flaps 10 times" flaps leaf1-3
fault "a cable of spine2 is cut for 5 s, while spine1's is held" cut leaf1-4
fault "spine1 is killed, back after 10 s" killed spine1
fault "spine1 is frozen for 20 s" frozen spine1
fault "leaf2 is killed, back after 10 s" killed leaf2
