"""The official Python client 0.9.0 beside a link: through_0_9.py write|read URL [COUNT [FIRST]]. Writes 300 messages (COUNT, numbered from FIRST) with ids and headers of every
kind, or reads 300 back as JSON (headers only as their number: the kinds are compared by write's own reading)."""

import asyncio
import json
import os
import sys

from apache_iggy import Consumer, HeaderKey, HeaderValue, IggyClient, PollingStrategy, SendMessage

COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 300
FIRST = int(sys.argv[4]) if len(sys.argv) > 4 else 0
BATCH = 50 if COUNT < 5000 else 1000
HEADERS = {
    HeaderKey.String("raw"): HeaderValue.Raw(b"\x00\xff\x01"),
    HeaderKey.String("string"): HeaderValue.String("h\u00e9llo"),
    HeaderKey.String("bool"): HeaderValue.Bool(True),
    HeaderKey.String("int8"): HeaderValue.Int8(-8),
    HeaderKey.String("int16"): HeaderValue.Int16(-1600),
    HeaderKey.String("int32"): HeaderValue.Int32(-320000),
    HeaderKey.String("int64"): HeaderValue.Int64(-(2**40)),
    HeaderKey.String("int128"): HeaderValue.Int128(-(2**100)),
    HeaderKey.String("uint8"): HeaderValue.UnsignedInt8(200),
    HeaderKey.String("uint16"): HeaderValue.UnsignedInt16(60000),
    HeaderKey.String("uint32"): HeaderValue.UnsignedInt32(2**31),
    HeaderKey.String("uint64"): HeaderValue.UnsignedInt64(2**63),
    HeaderKey.String("uint128"): HeaderValue.UnsignedInt128(2**127),
    HeaderKey.String("float32"): HeaderValue.Float32(0.5),
    HeaderKey.String("float64"): HeaderValue.Float64(-1.25),
    HeaderKey.UnsignedInt16(7): HeaderValue.String("a key that is no string"),
}


async def write(client):
    if FIRST == 0:
        await client.create_stream("official")
        await client.create_topic("official", "topic", partitions_count=2)
    for start in range(FIRST, FIRST + COUNT, BATCH):
        batch = [
            SendMessage(f"from 0.9 {i} \u2713", id=2**127 + i, user_headers=HEADERS if i % 10 == 0 else None)
            for i in range(start, min(start + BATCH, FIRST + COUNT))
        ]
        await client.send_messages("official", "topic", 1, batch)


async def read(client):
    messages = []
    while len(messages) < COUNT:
        batch = await client.poll_messages(
            "official",
            "topic",
            consumer=Consumer.Single("reader"),
            polling_strategy=PollingStrategy.Offset(len(messages)),
            count=BATCH * 2,
            auto_commit=False,
            partition_id=1,
        )
        assert batch, f"{len(messages)} of {COUNT} messages"
        messages += batch
    seen = []
    for message in messages:
        headers = dict(message.user_headers() or {})
        assert headers in ({}, HEADERS), "header kinds or values changed on the way"
        seen.append({"id": str(message.id()), "payload": message.payload().decode(), "headers": len(headers)})
    print(json.dumps(seen))


async def main(verb, url):
    client = IggyClient.from_connection_string(url)
    await client.connect()
    await {"write": write, "read": read}[verb](client)


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2]), 60))
# The client has no way to be closed: its heartbeat would abort the interpreter on its way out.
sys.stdout.flush()
os._exit(0)
