#!/usr/bin/env python3
"""What a disaster cost: messages that the writer saw acknowledged and that are not downstream.

rpo.py DOWNSTREAM [--killed-at SECONDS] JOURNAL…: the lines of `iggy-load read`, journals of `iggy-load write`, seconds since
the Unix epoch. Compared by digest (id, origin time, headers, payload), per partition. In seconds: from the newest message that
is downstream, by its origin time, to the disaster; 0 for a partition that lost nothing. All by the clock of one machine.
Exit code 1 when anything is lost and no disaster was named.
"""

import argparse
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("downstream")
    parser.add_argument("journals", nargs="+")
    parser.add_argument("--killed-at", type=float)
    arguments = parser.parse_args()
    copied, newest = {}, {}
    for line in open(arguments.downstream):
        words = line.split()
        partition = int(words[0])
        copied.setdefault(partition, set()).add(words[6])
        newest[partition] = max(newest.get(partition, 0), int(words[3]) / 1e6)
    acknowledged, unknown = {}, 0
    for journal in arguments.journals:
        for line in open(journal):
            words = line.split()
            if line.endswith("\n") and len(words) == 5:
                acknowledged.setdefault(int(words[0]), []).append(words[4])
            elif line.endswith("\n"):  # `? …`: of unknown outcome
                unknown += 1
    lost = {partition: sum(digest not in copied.get(partition, set()) for digest in digests) for partition, digests in acknowledged.items()}
    total = sum(map(len, acknowledged.values()))
    if arguments.killed_at is None:
        print(f"       By the writer's journals: {sum(lost.values())} of {total} acknowledged messages are not downstream.")
        return 1 if total == 0 or sum(lost.values()) else 0
    ages = [arguments.killed_at - newest[partition] if partition in newest else float("inf") for partition, count in lost.items() if count]
    print(f"       Had it not come back: {sum(lost.values())} of {total} acknowledged messages would be lost (RPO), at worst {max(lost.values(), default=0)} in one partition;")
    print(f"       in time at most {max(ages, default=0):.3f} s. {unknown} more were sent and never answered.")
    return 0


sys.exit(main())
