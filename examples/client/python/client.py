"""Sets the weight of a flow and prints what happens in the fabric.

client.py HOST:PORT CA_FILE TOKEN_FILE. It needs Debian's python3-grpcio, python3-protobuf and protobuf-compiler-grpc."""
import importlib
import pathlib
import subprocess
import sys
import tempfile
import uuid

import grpc

root, code = str(pathlib.Path(__file__).resolve().parents[3]), tempfile.mkdtemp()
subprocess.run(["protoc", "-I" + root, "--python_out=" + code, "--grpc_python_out=" + code,
                "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin",
                "api/headgate/v1/headgate.proto", "api/headgate/v1/status.proto"], check=True)
sys.path.insert(0, code)
api = importlib.import_module("api.headgate.v1.headgate_pb2")
services = importlib.import_module("api.headgate.v1.headgate_pb2_grpc")

server, ca, token = sys.argv[1:]
credentials = grpc.composite_channel_credentials(
    grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes()),
    grpc.access_token_call_credentials(pathlib.Path(token).read_text().strip()))
flow = api.FlowKey(src_ipv4="10.0.1.1", dst_ipv4="10.0.2.1", src_port=4242, dst_port=4791)
request_id = [("headgate-request-id", str(uuid.uuid4()))]  # a repeated call with the same id changes nothing

with grpc.secure_channel(server, credentials) as channel:
    weights = services.WeightServiceStub(channel)
    for attempt in range(10):
        try:
            answer = weights.SetWeight(api.SetWeightRequest(flow=flow, weight=2, application="web"),
                                       metadata=request_id, timeout=15, wait_for_ready=True)
            break
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.UNAVAILABLE or attempt == 9:
                raise
    print("weight", answer.weight, flush=True)
    for e in services.FabricServiceStub(channel).WatchEvents(api.WatchEventsRequest(recent=10)):
        print(e.time.ToDatetime(), e.kind, e.subject, e.message, flush=True)
