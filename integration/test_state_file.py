"""The state file while it is used, and damaged at many places: it is noticed, or it is harmless; never a wrong copy.

A full and a read-only folder, other damage, and a second process are in test_faults.py; each call of SQLite failing or being
killed is in state/store_crash_test.cc.
"""

import shutil
import sqlite3

import pytest

import harness
from harness import REPLICATE, STREAM, TOPIC, wait_until
from steps import *


def said_at_its_end(appliance, code=1):
    assert appliance.wait(10) == code
    return " ".join(appliance.log_since(appliance.begin).split())


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "copying"])
def test_state_file_removed_while_in_use(lab, idle):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=100)
    copy = lab.folder / "kept.db"
    assert lab.call([REPLICATE, "state", "backup", "--state", appliance.state, copy]).returncode == 0
    for path in lab.folder.glob("appliance.db*"):
        if path.suffix != ".lock":
            path.unlink()
    if not idle:
        write(upstream, 100, seed=7)
    said = said_at_its_end(appliance)
    assert "appliance.db: the state file was removed while it was in use" in said and "backup" in said, said
    # The backup is behind by what was copied since; the downstream's own tail tells.
    copy.rename(appliance.state)
    appliance.start()
    wait_copied(appliance, 100 if idle else 200)
    assert_same(downstream, digests(read(upstream)[0]))


def test_state_file_replaced_while_in_use(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=100)
    copy = lab.folder / "old.db"
    assert lab.call([REPLICATE, "state", "backup", "--state", appliance.state, copy]).returncode == 0
    write(upstream, 50, seed=7)
    wait_copied(appliance, 150)
    copy.rename(appliance.state)
    said = said_at_its_end(appliance)
    assert "the state file was replaced while it was in use" in said, said
    for suffix in ("-wal", "-shm"):
        (lab.folder / f"appliance.db{suffix}").unlink(missing_ok=True)
    appliance.start()
    wait_copied(appliance, 150)
    assert_same(downstream, digests(read(upstream)[0]))


def test_lock_file_removed_while_in_use(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.9.0", messages=100)
    (lab.folder / "appliance.db.lock").unlink()
    said = said_at_its_end(appliance)
    assert "appliance.db.lock: the lock file was removed" in said and "start again" in said, said
    write(upstream, 50, seed=7)
    appliance.start()
    wait_copied(appliance, 150)
    assert_same(downstream, digests(read(upstream)[0]))


def test_state_file_locked_by_another_program(lab):
    """A backup script that holds a write transaction: copying stops after a bound, says so, and goes on."""
    upstream, downstream, appliance = pair(
        lab, "0.9.0", "0.8.0", messages=100, uncommitted_batches_max=3, batch_bytes="64KiB"
    )
    other = sqlite3.connect(appliance.state, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write(upstream, 3000, size=500, batch=50, first_seq=100)
    wait_until("status says that the file can't be written", lambda: appliance.ask("status")["link"]["store_error"])
    wait_row(appliance, "copying stops", lambda row: "the state file" in row["waits_for"])
    assert row_of(appliance)["committed"] == "100" and int(row_of(appliance)["acked"]) < 3100
    other.execute("ROLLBACK")
    other.close()
    wait_copied(appliance, 3100)
    assert_same(downstream, digests(read(upstream)[0]))


class Damage:
    """A file of 400 committed messages: each damaged copy of it either ends the run or copies exactly.
    Without the record downstream, which refuses an older file whatever is in it."""

    def __init__(self, lab):
        self.upstream, self.downstream, self.appliance = pair(lab, "0.9.0", "0.8.0", messages=400, marker="off")
        assert self.appliance.stop() == 0
        self.good = self.appliance.state.read_bytes()

    def run(self, content):
        """True when the damage was noticed."""
        for path in self.appliance.lab.folder.glob("appliance.db*"):
            path.unlink()
        self.appliance.state.write_bytes(content)
        code, said = run_once(self.appliance.lab, self.appliance, "--until-caught-up")
        if code == 0:
            assert_same(self.downstream, digests(read(self.upstream)[0]))
            return False
        said = " ".join(said.split())
        assert code == 1 and "appliance.db" in said and ("backup" in said or "restore" in said), (code, said)
        assert len(read(self.downstream)[0]) == 400
        return True


def test_flipped_bits_are_noticed_or_harmless(lab):
    damage = Damage(lab)
    # Most pages are nearly empty: the header is hit for certain, the rest by chance.
    for at in [0] + [lab.random.randrange(len(damage.good)) for _ in range(15)]:
        content = bytearray(damage.good)
        content[at] ^= 1 << lab.random.randrange(8)  # each bit: SqliteStoreOpen.EveryFlippedBitIsDetectedOrHarmless
        assert damage.run(content) or at > 0, "a spoiled header was not noticed"
    assert not damage.run(damage.good)


def test_truncated_file_is_noticed(lab):
    damage = Damage(lab)
    pages = len(damage.good) // 4096
    sizes = {0, 1, 15, 16, 99, 100, 512, len(damage.good) - 1} | {4096 * page for page in range(1, pages)}
    for size in sorted(sizes):
        assert damage.run(damage.good[:size]), f"{size} of {len(damage.good)} bytes"
    assert not damage.run(damage.good)


def test_modes_of_the_state_file(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=10)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in lab.folder.glob("appliance.db*")}
    assert {"appliance.db", "appliance.db-wal", "appliance.db-shm", "appliance.db.lock"} <= set(modes)
    assert set(modes.values()) == {"0o600"}, modes
    assert appliance.stop() == 0
    # A folder in which others may write is one in which they may replace the file.
    lab.folder.chmod(0o777)
    check = lab.call(
        [REPLICATE, "check", f"--upstream={upstream.url}", f"--downstream={downstream.url}", f"--state={appliance.state}"]
    )
    lab.folder.chmod(0o700)
    assert re.search(r"WARN\s+state\s+folder|folder.*others", " ".join(check.stdout.split())), check.stdout
