"""Talks to the admin API by reflection alone: no generated code, no file of this project.

  admin_client.py ADDRESS METHOD [--token TOKEN] [--ca FILE] [JSON]

METHOD `services` lists what the server offers. Others are a method of the admin service; its reply is printed as JSON, the
first one of a stream. A refused call prints its status code and sentence, and ends with 1.
"""

import argparse
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "iggy.replicate.admin.v1.Admin"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("method")
    parser.add_argument("request", nargs="?", default="{}")
    parser.add_argument("--token")
    parser.add_argument("--ca")
    flags = parser.parse_args()
    if flags.ca:
        channel = grpc.secure_channel(flags.address, grpc.ssl_channel_credentials(open(flags.ca, "rb").read()))
    else:
        channel = grpc.insecure_channel(flags.address)
    database = ProtoReflectionDescriptorDatabase(channel)
    try:
        if flags.method == "services":
            print("\n".join(database.get_services()))
            return 0
        pool = descriptor_pool.DescriptorPool(database)
        method = pool.FindServiceByName(SERVICE).methods_by_name[flags.method]
        request = json_format.Parse(flags.request, message_factory.GetMessageClass(method.input_type)())
        reply_class = message_factory.GetMessageClass(method.output_type)
        path = f"/{SERVICE}/{flags.method}"
        metadata = [("authorization", f"Bearer {flags.token}")] if flags.token else []
        kind = channel.unary_stream if method.server_streaming else channel.unary_unary
        call = kind(path, type(request).SerializeToString, reply_class.FromString)
        reply = call(request, timeout=10, metadata=metadata)
        if method.server_streaming:
            reply = next(iter(reply))
        print(json_format.MessageToJson(reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True))
        return 0
    except grpc.RpcError as refused:
        print(f"{refused.code().name}: {refused.details()}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
