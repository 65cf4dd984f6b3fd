#!/usr/bin/env python3
"""What a disaster cost: messages that the writer saw acknowledged and that are not downstream.

rpo.py JOURNAL DOWNSTREAM KILLED_AT: a journal of `iggy-load write`, the lines of `iggy-load read`, seconds since the Unix epoch.
Compared by digest (id, origin time, headers, payload), per partition. In seconds: from the newest message that is
downstream, by its origin time, to the disaster; 0 for a partition that lost nothing. All by the clock of one machine.
"""

import sys


def main(journal, downstream, killed_at):
    copied, newest = {}, {}
    for line in open(downstream):
        words = line.split()
        partition = int(words[0])
        copied.setdefault(partition, set()).add(words[6])
        newest[partition] = max(newest.get(partition, 0), int(words[3]) / 1e6)
    acknowledged, unknown = {}, 0
    for line in open(journal):
        words = line.split()
        if line.endswith("\n") and len(words) == 5:
            acknowledged.setdefault(int(words[0]), []).append(words[4])
        elif line.endswith("\n"):  # `? …`: of unknown outcome
            unknown += 1
    lost = {partition: sum(digest not in copied.get(partition, set()) for digest in digests) for partition, digests in acknowledged.items()}
    ages = [killed_at - newest[partition] if partition in newest else float("inf") for partition, count in lost.items() if count]
    total = sum(map(len, acknowledged.values()))
    print(f"       Had it not come back: {sum(lost.values())} of {total} acknowledged messages would be lost (RPO), at worst {max(lost.values(), default=0)} in one partition;")
    print(f"       in time at most {max(ages, default=0):.3f} s. {unknown} more were sent and never answered.")


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
