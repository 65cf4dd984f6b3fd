#!/usr/bin/env bash
# Rehearses three disasters in containers with `iggy-replicate drill`, and prints its reports: the upstream is killed, its
# network is cut, it is killed while the downstream stands still. Twice the old primary comes back, and the way back is
# taken. Beside it runs a link with load that the drills must not touch: it loses its upstream three times as well, and
# catches up by itself.
#
#   docker/drill.sh [BIN_FOLDER]        MESSAGES=60000 RATE=1000 SEED=1 by default
#
# The verb runs on this machine and reaches the brokers by their containers' addresses. Takes down what was brought up,
# also when it fails. Exit code 0: each drill's numbers held; nothing lost, nothing twice, nothing out of order. 77: there
# is no Docker here.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${1:-build/bin}
messages=${MESSAGES:-60000} rate=${RATE:-1000} seed=${SEED:-1}
project=iggy-drill-$$
begun=$SECONDS
export TOPICS="orders/*"

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
# The address of a container in the network of its own name.
address() { docker inspect --format "{{(index .NetworkSettings.Networks \"${project}_$1\").IPAddress}}" "$(container "$1")"; }
url() { echo "iggy://iggy:iggy@$(address "$1"):8090"; }

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

# drill ID FLAGS…: one rehearsal, on streams of its own. Its report is what this script is for.
drill() {
  local id=$1
  shift
  mkdir "$scratch/$id"
  "$bin/iggy-replicate" drill --upstream "$(url upstream)" --downstream "$(url downstream)" --id "$id" \
    --folder "$scratch/$id" --seed "$seed" --load-for 5 --after-for 2 --read-timeout 3s --consumer-interval 1s \
    --max-rpo-seconds 5 --max-rto-seconds 30 "$@" || { tail -n 20 "$scratch/$id"/*.log >&2; fail "drill $id: see its report"; }
}

say "Images are built out of $bin, from nothing else."
docker/build.sh "$bin"
say "Two clusters and the link start."
compose up -d upstream downstream >/dev/null
compose run --rm --no-deps load manage --url iggy://iggy:iggy@upstream:8090 create-topic orders events --partitions 4 >/dev/null
compose up -d appliance >/dev/null
wait_until 60 "the link runs" replicate health --ready
start_writer first "$messages" 0
wait_until 60 "it writes" journal_holds first 1000

say "What would be lost now, as the link says; and how right such a prediction is, by heartbeats through a link beside it."
replicate drill --predict
# At 100 messages a second what is 0.1 s old is within the ten messages that may be wrong.
compose run --rm --no-deps drill --predict --heartbeat 5 --rate 100

say "1. The upstream is killed (SIGKILL), and comes back: keep its orphans."
drill killed --kill-container "$(container upstream)" --failback keep

say "2. The upstream's network is cut: connections hang, nothing says that it is gone."
drill cut --kill-command "docker network disconnect ${project}_upstream $(container upstream)"
docker network connect --alias upstream "${project}_upstream" "$(container upstream)"
"$bin/iggy-replicate" drill --upstream "$(url upstream)" --downstream "$(url downstream)" --cleanup cut

say "3. The upstream is killed while the downstream stands still (docker pause) for 3 s, and comes back: rebuild it."
drill paused --failback rebuild --restart-command "docker start $(container upstream)" --kill-command \
  "docker pause $(container downstream); docker kill $(container upstream); (sleep 3; docker unpause $(container downstream)) >/dev/null 2>&1 &"

say "The link beside the drills: its upstream was gone three times."
wait_until 180 "the writer is done" writer_done first
wait_until 120 "the link has caught up" lag_is 0
compare || fail "the sides differ"
replicate verify
replicate events | tail -n 8
journal_of first >"$scratch/first"
compose run --rm --no-deps load read --url iggy://iggy:iggy@downstream:8090 --stream orders --topic events |
  tr -d '\r' | grep -v ^summary >"$scratch/downstream"
docker/rpo.py "$scratch/downstream" "$scratch/first" || fail "acknowledged messages are lost"
say "Done: three disasters measured; beside them nothing was lost, nothing twice, nothing out of order."
