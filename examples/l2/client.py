#!/usr/bin/python3
"""Make an L2 switch of any P4Runtime switch that runs l2.p4, as client/main.go does.

    PYTHONPATH=/path/to/tutorials/utils examples/l2/client.py 127.0.0.1:9559 06:00:0a:00:00:01=1 06:00:0a:00:00:02=2

p4runtime_lib is p4lang/tutorials' library; it needs grpcio and the p4 package of P4Runtime.
"""

import os
import sys

from p4runtime_lib import bmv2, helper

HERE = os.path.dirname(os.path.abspath(__file__))
GROUP = 1


def main(address, hosts):
    info = helper.P4InfoHelper(os.path.join(HERE, "l2.p4info.txtpb"))
    switch = bmv2.Bmv2SwitchConnection(name="l2", address=address, device_id=0)
    switch.MasterArbitrationUpdate()
    switch.SetForwardingPipelineConfig(p4info=info.p4info, bmv2_json_file_path=os.path.join(HERE, "l2.json"))
    ports = []
    for host in hosts:
        mac, port = host.split("=")
        ports.append(int(port))
        switch.WriteTableEntry(info.buildTableEntry(
            table_name="L2Ingress.dmac", match_fields={"dst_addr": mac},
            action_name="L2Ingress.forward", action_params={"port": int(port)}))
    switch.WritePREEntry(info.buildMulticastGroupEntry(GROUP, [{"egress_port": p, "instance": 1} for p in sorted(ports)]))
    switch.WriteTableEntry(info.buildTableEntry(
        table_name="L2Ingress.dmac", match_fields={"dst_addr": "ff:ff:ff:ff:ff:ff"},
        action_name="L2Ingress.flood", action_params={"group": GROUP}))
    entries = sum(len(r.entities) for r in switch.ReadTableEntries(info.get_tables_id("L2Ingress.dmac")))
    print(f"{entries} entries, broadcasts to ports {sorted(ports)}")
    switch.shutdown()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: client.py ADDRESS MAC=PORT...")
    main(sys.argv[1], sys.argv[2:])
