#!/bin/sh
# Sets the weight of a flow and prints what happens in the fabric: client.sh HOST:PORT CA_FILE TOKEN_FILE.
# grpcurl asks the controller itself for its API, by reflection: a viewer's or operator's token is needed.
# go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
set -e
TOKEN=$(cat "$3")
export TOKEN # the environment hides the token: every user of the machine can see arguments

call() { grpcurl -cacert "$ca" -expand-headers -H 'authorization: Bearer ${TOKEN}' "$@"; }

server=$1 ca=$2
call -H "headgate-request-id: $(cat /proc/sys/kernel/random/uuid)" -d '{
  "flow": {"srcIpv4": "10.0.1.1", "dstIpv4": "10.0.2.1", "srcPort": 4242, "dstPort": 4791},
  "weight": 2, "application": "web"
}' "$server" headgate.v1.WeightService/SetWeight
call -d '{"recent": 10}' "$server" headgate.v1.FabricService/WatchEvents
