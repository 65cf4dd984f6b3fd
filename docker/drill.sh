#!/usr/bin/env bash
# Rehearses three disasters in containers and prints what they cost: the upstream is killed under load, its network is
# cut, the downstream stands still. What was really acknowledged comes from the writer's own fsynced journal.
#
#   docker/drill.sh [BIN_FOLDER]        MESSAGES=80000 RATE=4000 SEED=1 by default
#
# Takes down what it brought up, also when it fails. Exit code 0: nothing lost, nothing twice, nothing out of order. 77: there is no Docker here.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${1:-build/bin}
messages=${MESSAGES:-80000} rate=${RATE:-4000} seed=${SEED:-1}
project=iggy-drill-$$
begun=$SECONDS

say() { printf '%3d s  %s\n' $((SECONDS - begun)) "$*"; }
fail() {
  echo "drill: $*" >&2
  exit 1
}

if ! docker version >/dev/null 2>&1 || ! command -v docker-compose >/dev/null; then
  echo "drill: needs Docker Engine (running, and the right to use it) and docker-compose" >&2
  exit 77
fi

compose() { docker-compose --project-name "$project" --file docker/compose.yml "$@" 2> >(grep -vE '^(Creating|Starting|Stopping|Removing|Killing|Pausing|Unpausing|Recreating|Network|Volume)' >&2 || true); }
replicate() { compose exec -T appliance /usr/bin/iggy-replicate "$@"; }
container() { echo "${project}_$1_1"; }

take_down() {
  local code=$?
  if ((code != 0)); then compose logs --tail 30 appliance >&2 || true; fi
  rm -rf "$scratch"
  compose down --volumes --timeout 5 >/dev/null 2>&1 || true
  exit "$code"
}
scratch=$(mktemp -d)
trap take_down EXIT

# wait_until SECONDS WHAT COMMAND…: asks again and again; the deadline is a failure.
wait_until() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "waited in vain until $what"
    sleep 0.2
  done
}

lag_messages() { replicate lag -o json | python3 -c 'import json,sys
rows=json.load(sys.stdin)["partitions"]
lags=[row.get("lag",{}).get("messages") for row in rows]
print("unknown" if not rows or None in lags else sum(map(int,lags)))'; }
lag_is() { [[ $(lag_messages) == "$1" ]]; }

# start_writer NAME COUNT FIRST: in the background, its journal on the load volume.
start_writer() {
  compose run -d --no-deps --name "${project}_$1" load write --url iggy://iggy:iggy@upstream:8090 --stream orders \
    --topic events --create --partitions 4 --count "$2" --first-seq "$3" --rate "$rate" --batch 50 --size 100-2000 \
    --headers kinds --seed "$seed" --journal "/state/$1.journal" --retry >/dev/null
}
writer_done() { [[ $(docker inspect --format '{{.State.Running}}' "${project}_$1") == false ]]; }
journal_holds() { (($(journal_of "$1" | wc -l) >= $2)); }
journal_of() { docker cp "${project}_$1:/state/$1.journal" - | tar -xO; }

# compare: both sides, message by message, read by a client that is not the appliance's.
compare() {
  compose run --rm --no-deps load compare --a iggy://iggy:iggy@upstream:8090 --b iggy://iggy:iggy@downstream:8090 \
    --stream orders --topic events
}
downstream_digests() {
  compose run --rm --no-deps load read --url iggy://iggy:iggy@downstream:8090 --stream orders --topic events |
    tr -d '\r' | grep -v ^summary
}

say "Images are built out of $bin, from nothing else."
docker/build.sh "$bin"
say "Two clusters and the link start."
compose up -d upstream downstream >/dev/null
compose run --rm --no-deps load manage --url iggy://iggy:iggy@upstream:8090 create-topic orders events --partitions 4 >/dev/null
compose up -d appliance >/dev/null
wait_until 60 "the link runs" replicate health --ready

say "1. The upstream is killed (SIGKILL) under load, $rate messages/s."
start_writer first "$messages" 0
wait_until 60 "it writes" journal_holds first $((messages / 8))
before=$(lag_messages)
docker kill "$(container upstream)" >/dev/null
killed=$SECONDS killed_at=$(date +%s.%N) # after it: the time that it cost is an upper bound
wait_until 30 "the lag is unknown" lag_is unknown
say "   Seen: the lag was $before messages, and is unknown now."
journal_of first >"$scratch/first"
downstream_digests >"$scratch/downstream"
docker/rpo.py "$scratch/downstream" --killed-at "$killed_at" "$scratch/first"
docker start "$(container upstream)" >/dev/null
wait_until 120 "the writer is done" writer_done first
wait_until 120 "the link has caught up" lag_is 0
say "   The upstream is back after $((SECONDS - killed)) s of disaster and load; the link caught up by itself."
compare || fail "the sides differ after the kill"

say "2. The upstream's network is cut for 10 s under load, then restored."
start_writer second $((messages / 4)) "$messages"
wait_until 60 "it writes" journal_holds second 1
docker network disconnect "${project}_upstream" "$(container appliance)"
sleep 10 # the length of the outage
docker network connect --alias appliance "${project}_upstream" "$(container appliance)"
wait_until 120 "the writer is done" writer_done second
wait_until 120 "the link has caught up" lag_is 0
compare || fail "the sides differ after the cut"

say "3. The downstream stands still (docker pause) for 10 s under load."
start_writer third $((messages / 4)) $((messages + messages / 4))
wait_until 60 "it writes" journal_holds third 1
docker pause "$(container downstream)" >/dev/null
sleep 10 # the length of the outage
docker unpause "$(container downstream)" >/dev/null
wait_until 120 "the writer is done" writer_done third
wait_until 120 "the link has caught up" lag_is 0
compare || fail "the sides differ after the pause"

replicate events | tail -n 12
for name in first second third; do journal_of "$name" >"$scratch/$name"; done
downstream_digests >"$scratch/downstream"
docker/rpo.py "$scratch/downstream" "$scratch/first" "$scratch/second" "$scratch/third" || fail "acknowledged messages are lost"
say "Done: three disasters, nothing lost that the upstream still had, nothing twice, nothing out of order."
