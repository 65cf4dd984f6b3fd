"""The official Python client 0.8.0 beside a link: through_0_8.py write|read URL [COUNT [FIRST]]. Writes 300 messages (COUNT, numbered from FIRST), or reads 300 back as JSON."""

import asyncio
import json
import os
import sys

from apache_iggy import IggyClient, PollingStrategy, SendMessage

COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 300
FIRST = int(sys.argv[4]) if len(sys.argv) > 4 else 0
BATCH = 50 if COUNT < 5000 else 1000


async def write(client):
    if FIRST == 0:
        await client.create_stream("official")
        await client.create_topic("official", "topic", partitions_count=2)
    for start in range(FIRST, FIRST + COUNT, BATCH):
        batch = [SendMessage(f"from 0.8 {i} \u2713") for i in range(start, min(start + BATCH, FIRST + COUNT))]
        await client.send_messages("official", "topic", 1, batch)


async def read(client):
    seen = []
    while len(seen) < COUNT:
        batch = await client.poll_messages("official", "topic", 1, PollingStrategy.Offset(len(seen)), BATCH * 2, False)
        assert batch, f"{len(seen)} of {COUNT} messages"
        seen += [{"id": str(m.id()), "payload": m.payload().decode()} for m in batch]
    print(json.dumps(seen))


async def main(verb, url):
    client = IggyClient.from_connection_string(url)
    await client.connect()
    await {"write": write, "read": read}[verb](client)


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2]), 60))
# The client has no way to be closed: its heartbeat would abort the interpreter on its way out.
sys.stdout.flush()
os._exit(0)
