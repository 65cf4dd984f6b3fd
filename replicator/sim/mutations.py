#!/usr/bin/env python3
"""Breaks the core in one place at a time, and tells which seed of the simulation finds it.

    make sim-mutations [ONLY=name] [SEEDS=400]

Each mutation is a text of one source file and another one in its place, where mutant("NAME") is true. The changed
copies are compiled into a program of their own, build/mutations/sim_test; the product and its tests never contain
them. A text that is no longer there, or there twice, ends the script: a mutation that does nothing proves nothing.
"""
import json
import os
import re
import shlex
import subprocess
import sys

PARTITION = "replicator/partition/"
# name, file, text, what stands in its place, what it means
MUTATIONS = [
    ("commit_unanswered", PARTITION + "partition_pipeline.cc",
     "  if (!ack) {\n",
     "  if (!ack && mutant(\"commit_unanswered\")) co_return std::nullopt;\n  if (!ack) {\n",
     "a send that nobody answered counts as acknowledged"),
    ("any_end", PARTITION + "partition_pipeline.cc",
     "if (!ack->known || ack->end != predicted) {",
     "if (!mutant(\"any_end\") && (!ack->known || ack->end != predicted)) {",
     "an acknowledgment at another end than predicted is taken"),
    ("anchor_off_by_one", PARTITION + "partition_pipeline.cc",
     "commit.ranges.push_back({first.offset, down_end_, count, true});",
     "commit.ranges.push_back({first.offset, down_end_ + (mutant(\"anchor_off_by_one\") ? 1 : 0), count, true});",
     "the offset map is off by one"),
    ("poll_unchecked", PARTITION + "partition_reader.cc",
     "if (!here || base::digest_of(records.front()) != tail_->digest) {",
     "if (!mutant(\"poll_unchecked\") ? !here || base::digest_of(records.front()) != tail_->digest : records.empty()) {",
     "the first message of a poll is not compared with the last one polled"),
    ("gap_unseen", PARTITION + "partition_reader.cc",
     "  if (contiguous < records.size()) {\n",
     "  if (mutant(\"gap_unseen\")) contiguous = records.size();\n  if (contiguous < records.size()) {\n",
     "a poll that jumps over offsets is taken as it is"),
    ("commit_before_flush", PARTITION + "partition_flush.cc",
     "  if (!sink_.flushes()) {",
     "  if (!sink_.flushes() || mutant(\"commit_before_flush\")) {",
     "what has to be flushed is committed before that"),
    ("no_settle", PARTITION + "resync.cc",
     "  if (after_uncertain) {",
     "  if (after_uncertain && !mutant(\"no_settle\")) {",
     "nothing is waited for after a send of unknown outcome"),
    ("absence_is_evidence", PARTITION + "resync.cc",
     "  return clock_.now() - since >= options_.confirm_for;",
     "  return mutant(\"absence_is_evidence\") || clock_.now() - since >= options_.confirm_for;",
     "what was absent once is believed to be gone"),
    ("history_not_compared", PARTITION + "resync_upstream.cc",
     "anchor_upstream_ = base::digest_of(found->record()) == anchor.digest ? Content::kSame : Content::kOther;",
     "anchor_upstream_ = mutant(\"history_not_compared\") || base::digest_of(found->record()) == anchor.digest "
     "? Content::kSame : Content::kOther;",
     "the message at the anchor is not compared upstream"),
    ("ledger_row_forgotten", PARTITION + "resync_upstream.cc",
     "  if (named < watermark) {",
     "  if (mutant(\"ledger_row_forgotten\")) close_gaps_.clear();\n"
     "  if (named < watermark && !mutant(\"ledger_row_forgotten\")) {",
     "an accepted loss gets no ledger row"),
    ("ledger_row_not_reported", PARTITION + "resync_upstream.cc",
     "  if (up_begin < up_end) gaps_.push_back(gap(up_begin, up_end, std::move(cause), std::move(detail)));",
     "  if (up_begin < up_end && !mutant(\"ledger_row_forgotten\"))\n"
     "    gaps_.push_back(gap(up_begin, up_end, std::move(cause), std::move(detail)));",
     ""),
    ("hole_taken", PARTITION + "resync_upstream.cc",
     "  const bool at_the_front = **oldest >= next_readable && retention_possible();",
     "  if (mutant(\"hole_taken\")) {\n    next_.watermark = next_readable;\n    co_return ResyncOutcome(Ready{});\n  }\n"
     "  const bool at_the_front = **oldest >= next_readable && retention_possible();",
     "what is missing at the watermark is skipped in silence"),
    ("lost_tail_unseen", PARTITION + "resync_downstream.cc",
     "  if (lost) {\n",
     "  if (lost && mutant(\"lost_tail_unseen\")) next_.down_end = down_.end;\n"
     "  if (lost && !mutant(\"lost_tail_unseen\")) {\n",
     "a downstream that lost its tail is gone on with"),
    ("step_back_off_by_one", PARTITION + "resync_downstream.cc",
     "    watermark = up_offset + 1;\n    down_end = down_offset + 1;",
     "    watermark = up_offset + (mutant(\"step_back_off_by_one\") ? 2 : 1);\n    down_end = down_offset + 1;",
     "the watermark is put back one message too little"),
    ("tail_unchecked", PARTITION + "resync_downstream.cc",
     "  std::uint64_t own_duplicates = 0;\n",
     "  std::uint64_t own_duplicates = 0;\n"
     "  if (mutant(\"tail_unchecked\")) {\n    next_.down_end = std::max(next_.down_end, down_.end);\n"
     "    co_return ResyncOutcome(Ready{});\n  }\n",
     "the downstream's tail is not looked at"),
    ("ids_not_compared", PARTITION + "resync_downstream.cc",
     "{ return base::digest_of(record) == digest; };",
     "{ return mutant(\"ids_not_compared\") || base::digest_of(record) == digest; };",
     "a tail is adopted without comparing"),
    ("adopt_off_by_one", PARTITION + "resync_downstream.cc",
     "        next_.watermark = match->offset + 1;",
     "        next_.watermark = match->offset + (mutant(\"adopt_off_by_one\") && up_.end > match->offset + 1 ? 2 : 1);",
     "after an adopted tail one message is left out"),
    ("duplicates_uncounted", PARTITION + "resync_downstream.cc",
     "        added_.duplicates += 1;",
     "        added_.duplicates += mutant(\"duplicates_uncounted\") ? 0 : 1;",
     "own messages that landed twice are not counted"),
    ("older_after_newer", PARTITION + "resync_downstream.cc",
     "    if (down_.messages_count > 0) {\n      auto step = recreated(fmt::format(\"downstream holds",
     "    if (down_.messages_count > 0 && !mutant(\"older_after_newer\")) {\n"
     "      auto step = recreated(fmt::format(\"downstream holds",
     "a send that landed in a purged copy is followed by older messages"),
    ("stale_commit", PARTITION + "committer.cc",
     "    error_ = applied.error().to_string();\n",
     "    error_ = applied.error().to_string();\n"
     "    if (mutant(\"stale_commit\")) {\n"
     "      for (const auto& [key, pending] : std::exchange(in_store_, {}))\n"
     "        if (pending.listener != nullptr) pending.listener->on_committed(pending.commit);\n"
     "      co_return;\n    }\n",
     "a commit that failed counts as done"),
    ("record_not_heeded", "replicator/link/supervisor.cc",
     "  if (marker_->may_send()) return base::ok();",
     "  if (marker_->may_send() || mutant(\"record_not_heeded\")) return base::ok();",
     "the link's record is written, and not heeded before a send"),
]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
OUT = os.path.join(BUILD, "mutations")
MUTANT = """#include <cstdlib>
#include <string_view>
bool mutant(std::string_view name);
bool mutant(std::string_view name) {
  static const char* const chosen = std::getenv("MUTATION");
  return chosen != nullptr && name == chosen;
}
"""


def mutated(path):
    with open(os.path.join(ROOT, path)) as file:
        text = file.read()
    for name, where, old, new, _ in MUTATIONS:
        if where != path:
            continue
        if text.count(old) != 1:
            sys.exit(f"{name}: its text stands {text.count(old)} times in {path}")
        text = text.replace(old, new)
    return "#include <string_view>\nbool mutant(std::string_view name);\n" + text


def write(path, text):
    if os.path.exists(path):
        with open(path) as file:
            if file.read() == text:
                return False
    with open(path, "w") as file:
        file.write(text)
    return True


def build():
    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(BUILD, "compile_commands.json")) as file:
        commands = {os.path.relpath(each["file"], ROOT): each for each in json.load(file)}
    objects = []
    paths = sorted({where for _, where, _, _, _ in MUTATIONS})
    for path, text in [("mutant.cc", MUTANT)] + [(path, mutated(path)) for path in paths]:
        source = os.path.join(OUT, os.path.basename(path))
        objects.append(source[:-3] + ".o")
        if not write(source, text) and os.path.exists(objects[-1]):
            continue
        like = commands[path if path in commands else paths[0]]
        command = shlex.split(like["command"])
        at = command.index("-o")
        command[at + 1] = objects[-1]
        command[command.index("-c") + 1] = source
        subprocess.run(command, cwd=like["directory"], check=True)
    # Linked as sim_test is, with these objects first: what they define is not taken from a library.
    lines = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", "sim_test"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    link = re.sub(r"^: && | && :$", "", lines[-1])
    command = shlex.split(link)
    at = command.index("-o")
    command[at + 1] = os.path.join(OUT, "sim_test")
    command[at + 2:at + 2] = objects
    subprocess.run(command, cwd=BUILD, check=True)


def hunt(name, first, seeds):
    """The first seed that fails, and how; none when all pass."""
    environment = dict(os.environ, MUTATION=name, SIM_FIRST=str(first), SIM_SEEDS=str(seeds), SIM_FAILURES="1")
    run = subprocess.run([os.path.join(OUT, "sim_test"), "--gtest_filter=Sim.Random*"], env=environment,
                         capture_output=True, text=True)
    seed = re.search(r"SIM_SEED=(\d+)", run.stdout)
    if run.returncode == 0:
        return None
    if seed is None:  # a broken invariant ended the process
        begun = re.findall(r"^seed (\d+)$", run.stderr, re.M)
        return (begun[-1] if begun else "?", (run.stderr.strip().splitlines() or ["ended"])[-1])
    return (seed.group(1), re.search(r'Which is: "(.*)"', run.stdout).group(1))


def main():
    only = os.environ.get("ONLY", "")
    seeds = int(os.environ.get("SEEDS") or 400)
    build()
    if (found := hunt("none", 1, 20)) is not None:
        sys.exit(f"fails without a mutation: {found}")
    survived = 0
    for name, _, _, _, meaning in MUTATIONS:
        if not meaning or (only and name != only):
            continue
        found = hunt(name, int(os.environ.get("FIRST") or 1), seeds)
        survived += found is None
        print(f"| `{name}` | {meaning} | " + (f"{found[0]} | {found[1]} |" if found else "**survives** | |"),
              flush=True)
    sys.exit(1 if survived else 0)


main()
