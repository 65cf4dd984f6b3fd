"""The official Python client 0.8.0 against the sandbox as server 0.8.0: client_0_8.py PATH_OF_IGGY_SANDBOX"""

import asyncio
import json
import sys

from apache_iggy import IggyClient, PollingStrategy, SendMessage

from sandbox import sandbox_for

PAYLOADS = [f"message {i}" for i in range(250)]


async def main(broker):
    client = IggyClient.from_connection_string(broker.url)
    await client.connect()
    await client.ping()
    await client.create_stream("stream")
    await client.create_topic("stream", "topic", partitions_count=3)

    topic = await client.get_topic("stream", "topic")
    assert (topic.name, topic.partitions_count, topic.messages_count) == ("topic", 3, 0)
    assert await client.get_topic("stream", "none") is None
    assert await client.get_stream("none") is None

    for start in range(0, len(PAYLOADS), 50):
        await client.send_messages("stream", "topic", 1, [SendMessage(p) for p in PAYLOADS[start : start + 50]])

    seen = []
    while True:
        batch = await client.poll_messages("stream", "topic", 1, PollingStrategy.Offset(len(seen)), 70, False)
        if not batch:
            break
        assert [m.offset() for m in batch] == list(range(len(seen), len(seen) + len(batch)))
        assert all(m.id() != 0 for m in batch), "this server replaces id 0"
        seen += [m.payload().decode() for m in batch]
    assert seen == PAYLOADS

    first = await client.poll_messages("stream", "topic", 1, PollingStrategy.First(), 3, True)
    following = await client.poll_messages("stream", "topic", 1, PollingStrategy.Next(), 3, True)
    assert [m.offset() for m in first + following] == [0, 1, 2, 3, 4, 5]
    assert await client.poll_messages("stream", "topic", 0, PollingStrategy.First(), 3, False) == []

    # Retention takes the front: a poll below the floor jumps.
    broker.control("trim stream topic 1 before=100")
    jumped = await client.poll_messages("stream", "topic", 1, PollingStrategy.Offset(5), 1, False)
    assert jumped[0].offset() == 100

    state = json.loads(broker.control("state"))
    assert state["streams"][0]["topics"][0]["partitions"][1]["next_offset"] == len(PAYLOADS)


with sandbox_for("0.8.0", sys.argv[1]) as started:
    asyncio.run(asyncio.wait_for(main(started), 60))
print("ok")
