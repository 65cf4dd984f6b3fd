"""The official Python client 0.9.0 against the sandbox as server 0.9.0: client_0_9.py PATH_OF_IGGY_SANDBOX"""

import asyncio
import json
import sys

from apache_iggy import Consumer, Durability, HeaderKey, HeaderValue, IggyClient, PollingStrategy, SendMessage

from sandbox import sandbox_for

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


async def main(broker):
    client = IggyClient.from_connection_string(broker.url)
    await client.connect()
    await client.ping()
    keys = [option.key for option in await client.describe_options("topic")]
    assert "durability" in keys and "enforce_fsync" not in keys, keys

    await client.create_stream("stream")
    await client.create_topic("stream", "topic", partitions_count=2, durability=Durability.PERSISTED)
    topic = await client.get_topic("stream", "topic")
    assert (topic.name, topic.partitions_count, topic.messages_count) == ("topic", 2, 0)
    assert await client.get_topic("stream", "none") is None

    async def poll(strategy, count, partition=1, commit=False):
        return await client.poll_messages(
            "stream",
            "topic",
            consumer=Consumer.Single("reader"),
            polling_strategy=strategy,
            count=count,
            auto_commit=commit,
            partition_id=partition,
        )

    answer = await client.send_messages(
        "stream",
        "topic",
        1,
        [
            SendMessage("plain"),
            SendMessage(b"bytes \x00\xff", id=2**128 - 1),
            SendMessage("with headers", user_headers=HEADERS, id=7),
        ],
    )
    assert [(c.partition_id, c.base_offset) for c in answer.confirmations] == [(1, 0)]
    answer = await client.send_messages("stream", "topic", 1, [SendMessage(f"more {i}", id=100 + i) for i in range(200)])
    assert answer.confirmations[0].base_offset == 3

    messages = await poll(PollingStrategy.Offset(0), 1000)
    assert [m.offset() for m in messages] == list(range(203))
    assert messages[0].payload() == b"plain"
    assert (messages[1].payload(), messages[1].id()) == (b"bytes \x00\xff", 2**128 - 1)
    assert messages[2].id() == 7
    assert dict(messages[2].user_headers()) == HEADERS
    assert messages[202].payload() == b"more 199"

    # Cut in the middle of a stored batch.
    middle = await poll(PollingStrategy.Offset(50), 3)
    assert [(m.offset(), m.id()) for m in middle] == [(50, 147), (51, 148), (52, 149)]
    first = await poll(PollingStrategy.First(), 3, commit=True)
    following = await poll(PollingStrategy.Next(), 3, commit=True)
    assert [m.offset() for m in first + following] == [0, 1, 2, 3, 4, 5]
    assert await poll(PollingStrategy.First(), 3, partition=0) == []

    broker.control("trim stream topic 1 before=60")
    assert [m.offset() for m in await poll(PollingStrategy.Offset(5), 2)] == [60, 61]

    await client.create_partitions("stream", "topic", 1)
    assert (await client.get_topic("stream", "topic")).partitions_count == 3
    await client.purge_topic("stream", "topic")
    assert (await client.get_topic("stream", "topic")).messages_count == 0
    assert (await client.get_stats()).messages_count == 0
    state = json.loads(broker.control("state"))
    assert state["streams"][0]["topics"][0]["partitions"][1]["next_offset"] == 0
    await client.delete_topic("stream", "topic")
    await client.delete_stream("stream")
    assert await client.get_streams() == []


with sandbox_for("0.9.0", sys.argv[1]) as started:
    asyncio.run(asyncio.wait_for(main(started), 60))
print("ok")
