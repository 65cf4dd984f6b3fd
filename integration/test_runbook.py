"""docs/RUNBOOK.md as written: its commands run in one shell, in order; what they end with must be what it says.

Lines `<!-- … -->` are what the world does meanwhile: shell as well, with the functions of PRELUDE.
RUNBOOK_PASTE=1 writes the output of this run into the page.
"""

import os
import re
import subprocess

import harness
from harness import BIN, SOURCES

PAGE = SOURCES / "docs/RUNBOOK.md"

# No `set -e`: a command that fails is part of the story.
PRELUDE = r"""
set -m
export COLUMNS=80 PATH="$BIN:$PATH"
fail() { echo "runbook: $*" >&2; exit 99; }
eventually() { local i; for ((i = 0; i < 300; i++)); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; fail "in vain: $*"; }
# cluster NAME VERSION: keeps port and data over a crash. Sets URL_OLD, URL_NEW.
declare -A port pid
cluster() {
  rm -f "$1.ports"
  iggy-sandbox --server "$2" --messages-required-to-save 1 --data "$1.data" --listen "127.0.0.1:${port[$1]:-0}" --port-file "$1.ports" >>"$1.log" 2>&1 &
  pid[$1]=$!
  eventually test -s "$1.ports"
  read -r port[$1] _ <"$1.ports"
  printf -v "URL_${1^^}" 'iggy://iggy:iggy@127.0.0.1:%s' "${port[$1]}"
}
freeze() { kill -STOP "${pid[$1]}"; }
thaw() { kill -CONT "${pid[$1]}"; }
crash() { kill -KILL "${pid[$1]}"; wait "${pid[$1]}" 2>/dev/null; }
lags() { iggy-replicate lag -o json | python3 -c 'import json,sys
print(*{p.get("lag", {}).get("messages", "unknown") for p in json.load(sys.stdin).get("partitions", [])})'; }
lag_is() { [[ $(lags) == "$1" ]]; }
caught_up() { eventually lag_is 0; }
lag_unknown() { eventually lag_is unknown; }
consumer_is() { [[ $(iggy-replicate consumers -o json | python3 -c 'import json,sys
print(*{c["state"] for c in json.load(sys.stdin).get("consumers", [])})') == "$1" ]]; }
lag_is_137() { [[ $(iggy-replicate failover --dry-run --yes -o json | python3 -c 'import json,sys; print(json.load(sys.stdin)["loss"]["messages"])') == 137 ]]; }
end() { local name; for name in "${!pid[@]}"; do kill -KILL "${pid[$name]}"; done; kill -KILL $(jobs -p) ; } 2>/dev/null
trap end EXIT
"""


def steps(text):
    """(command, shown) in order; `shown` is None for what the world does, else the lines pasted below the command."""
    found, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append((line[2:], []))
        elif inside:
            found[-1][1].append(line)
        elif hidden := re.fullmatch(r"<!-- (.*) -->", line):
            found.append((hidden[1], None))
    return found


def run(folder, commands):
    """Output lines of each command."""
    script = PRELUDE + "".join(f"echo '=== {number}'\n{{ {command}\n}} 2>&1\n" for number, command in enumerate(commands))
    environment = {
        **os.environ,
        "BIN": str(BIN.resolve()),
        "IGGY_REPLICATE_ADMIN_METRICS_ADDRESS": "off",
        "IGGY_REPLICATE_ADMIN": (admin := f"127.0.0.1:{harness.free_port()}"),
        "IGGY_REPLICATE_ADMIN_ADDRESS": admin,
    }
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, text=True, capture_output=True, timeout=120)
    assert done.returncode != 99, done.stdout + done.stderr
    parts = re.split(r"^=== \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(parts) == len(commands), done.stdout + done.stderr
    return [part.replace(f"{folder}/", "").rstrip("\n").splitlines() for part in parts]


def paste(text, outputs):
    lines, inside, left = [], False, iter(outputs)
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```console"
        if inside and not line.startswith(("$ ", "```")):
            continue
        lines.append(line)
        if inside and line.startswith("$ "):
            lines += [shown.rstrip() for shown in next(left)]
    return "\n".join(lines) + "\n"


def test_the_runbook_as_written(lab):
    text = PAGE.read_text()
    story = steps(text)
    outputs = run(lab.folder, [command for command, _ in story])
    shown = [output for output, (_, pasted) in zip(outputs, story) if pasted is not None]
    if os.environ.get("RUNBOOK_PASTE"):
        PAGE.write_text(paste(text, shown))
        return
    for (command, pasted), output in zip(story, outputs):
        if pasted is None:
            continue
        codes = [line for line in output if line.startswith("exit code")]
        assert codes == [line for line in pasted if line.startswith("exit code")], f"{command}:\n" + "\n".join(output)
        # Headings and verdicts are the same; ids, digests, times and the width of their columns are not.
        fixed = lambda lines: [" ".join(line.split()) for line in lines if re.fullmatch(r"[A-Z /]+|[a-z_]+|\d+|.*=\d+ .*=\d+.*", line)]
        assert fixed(output) == fixed(pasted), f"{command}:\n" + "\n".join(output)
