#!/usr/bin/env python3
"""What a disaster cost: messages that the writer saw acknowledged and that are not downstream.

rpo.py JOURNAL DOWNSTREAM: a journal of `iggy-load write`, the lines of `iggy-load read`. Compared by digest (id, origin time,
headers, payload), per partition.
"""

import sys


def main(journal, downstream):
    copied = {}
    for line in open(downstream):
        words = line.split()
        copied.setdefault(int(words[0]), set()).add(words[6])
    acknowledged = {}
    for line in open(journal):
        words = line.split()
        if line.endswith("\n") and len(words) == 5:  # not `? …`: of unknown outcome
            acknowledged.setdefault(int(words[0]), []).append(words[4])
    lost = {partition: sum(digest not in copied.get(partition, set()) for digest in digests) for partition, digests in acknowledged.items()}
    total = sum(map(len, acknowledged.values()))
    print(f"       Had it not come back: {sum(lost.values())} of {total} acknowledged messages would be lost (RPO), at worst {max(lost.values(), default=0)} in one partition.")


main(*sys.argv[1:])
