#!/usr/bin/env bash
# The demo: two small clusters of different Iggy generations, a writer, and the link between them. The link is killed in
# the middle, then the downstream; at the end both sides are compared message by message.
#
#   integration/demo.sh           stops everything at its end
#   integration/demo.sh --keep    leaves it running, to look around
#
# Needs a build (`make demo` makes it first). Exit code: 0 when both sides are equal, 1 when not.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly BIN=${ITEST_BIN:-build/bin}
readonly MESSAGES=40000 RATE=4000
keep=no
case "${1:-}" in
  "") ;;
  --keep) keep=yes ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

bold='' dim='' good='' bad='' plain=''
if [[ -t 1 ]]; then bold=$'\e[1m' dim=$'\e[2m' good=$'\e[32m' bad=$'\e[31m' plain=$'\e[0m'; fi
readonly begin=$SECONDS
step() { printf '%s%2d s%s  %s%s%s\n' "$dim" $((SECONDS - begin)) "$plain" "$bold" "$1" "$plain"; }
say() { printf '      %s\n' "$1"; }
die() {
  printf '%sdemo: %s%s\n' "$bad" "$1" "$plain" >&2
  tail -n 5 "$folder"/*.log >&2
  exit 1
}

folder=$(mktemp -d "${TMPDIR:-/tmp}/iggy-replicate-demo.XXXXXX")
declare -A pid=()
finish() {
  local code=$?
  if [[ $code == 0 && $keep == yes ]]; then return; fi
  for name in "${!pid[@]}"; do kill -KILL "${pid[$name]}" 2>/dev/null || true; done
  wait 2>/dev/null || true  # without a line per killed job
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

# start NAME COMMAND…: in the background, with a log of its own.
start() {
  local name=$1
  shift
  "$@" >>"$folder/$name.log" 2>&1 &
  pid[$name]=$!
}
# kill_hard NAME: SIGKILL, as a crash is. The shell's own line about it is noise.
kill_hard() {
  kill -KILL "${pid[$1]}"
  wait "${pid[$1]}" 2>/dev/null || true
}
# eventually SECONDS WHAT COMMAND…
eventually() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || die "$what: not after ${deadline}s"
    sleep 0.1
  done
}

# start_cluster NAME VERSION [PORT CONTROL_PORT]; sets port[NAME] and control[NAME].
declare -A port=() control=()
start_cluster() {
  rm -f "$folder/$1.ports"
  start "$1" "$BIN/iggy-sandbox" --server "$2" --data "$folder/$1" --port-file "$folder/$1.ports" \
    --listen "127.0.0.1:${3:-0}" --control "127.0.0.1:${4:-0}"
  eventually 10 "$1 listens" test -e "$folder/$1.ports"
  read -r "port[$1]" "control[$1]" <"$folder/$1.ports"
}
start_link() {
  : >"$folder/link.log"
  start link "$BIN/iggy-replicate" run --upstream "$upstream" --downstream "$downstream" --topics 'orders/*' \
    --state "$folder/link.db" --admin-address 127.0.0.1:0 --metrics-address 127.0.0.1:0 \
    --retry-initial-backoff 100ms --confirm-for 1s --reconcile-interval 1s
  eventually 10 "the link answers" grep -q 'admin API on' "$folder/link.log"
  admin=$(sed -n 's/.*admin API on //p' "$folder/link.log" | head -n 1)
}
replicate() { "$BIN/iggy-replicate" "$@" --admin "$admin"; }
# Sum of a field of all partitions.
total() { replicate status -o json | sed -n "s/^ *\"$1\": \"\([0-9]*\)\",*$/\1/p" | awk '{ sum += $1 } END { print sum + 0 }'; }
committed() { [[ $(total committed) -ge $1 ]]; }
# summaries URL: partition, messages, digest.
summaries() { "$BIN/iggy-load" read --url "$1" --stream orders --topic events --quiet | awk '{ print $2, $3, $6 }'; }

for program in iggy-replicate iggy-sandbox iggy-load; do
  [[ -x $BIN/$program ]] || { echo "demo: $BIN/$program is missing: make build" >&2; exit 1; }
done

step "Two clusters start: a 0.8 one (upstream) and a 0.9 one (downstream)."
start_cluster upstream 0.8.0
start_cluster downstream 0.9.0
readonly upstream=iggy://iggy:iggy@127.0.0.1:${port[upstream]} downstream=iggy://iggy:iggy@127.0.0.1:${port[downstream]}
say "They are test brokers that speak these versions' protocols, not Apache Iggy."

step "A writer begins: $MESSAGES messages into topic orders/events, 4 partitions, $RATE a second."
start writer "$BIN/iggy-load" write --url "$upstream" --stream orders --topic events --create --partitions 4 \
  --count "$MESSAGES" --rate "$RATE" --batch 50 --size 100-2000 --headers kinds --journal "$folder/journal" --retry
say "It notes every message that the upstream acknowledged in a journal of its own."

step "The link starts and copies upstream → downstream."
start_link
eventually 20 "the first messages arrive" committed 8000

step "The link is killed (SIGKILL) with $(wc -l <"$folder/journal") messages written, and started again."
kill_hard link
sleep 0.5
start_link
say "It reads the downstream's tail first, and sends only what is not there."
eventually 20 "the link goes on" committed 20000

step "The downstream is killed (SIGKILL), and started again a second later."
say "Its acknowledgments come from memory: the newest messages are gone with it."
kill_hard downstream
sleep 1
start_cluster downstream 0.9.0 "${port[downstream]}" "${control[downstream]}"
say "The link sees which messages are missing, and sends those again."

wait "${pid[writer]}" || die "the writer failed"
unset 'pid[writer]'
step "The writer is done: $(sed 's/ bytes.*//' "$folder/writer.log"). The link catches up."
eventually 30 "the link catches up" committed "$(summaries "$upstream" | awk '{ sum += $2 } END { print sum }')"
eventually 10 "the lag is known" eval 'replicate lag >/dev/null'

echo
replicate lag
echo
replicate events -n 100 | grep -A 1 -E 'downstream_lost_tail|adopted_own_tail' || true
echo
printf '%-9s  %19s  %-32s  %s\n' PARTITION 'MESSAGES UP / DOWN' 'DIGEST OF ALL MESSAGES, IN ORDER' 'BOTH SIDES'
while read -r partition count digest _ count_down digest_down; do
  verdict="${good}equal${plain}"
  [[ $count == "$count_down" && $digest == "$digest_down" ]] || verdict="${bad}DIFFERENT${plain}"
  printf '%-9s  %19s  %-32s  %s\n' "$partition" "$count / $count_down" "$digest" "$verdict"
done < <(paste -d ' ' <(summaries "$upstream") <(summaries "$downstream"))

echo
result=0
differences=$("$BIN/iggy-load" compare --a "$upstream" --b "$downstream" --stream orders --topic events) || result=1
say "$(tail -n 1 <<<"$differences")"
if [[ $result == 0 ]]; then
  step "${good}Nothing lost, nothing copied twice, nothing out of order.${plain}"
else
  step "${bad}The two sides differ.${plain}"
  say "$differences"
  exit 1
fi

echo
if [[ $keep == yes ]]; then
  echo "Still running. Try next:"
else
  echo "Everything is stopped now. After \`integration/demo.sh --keep\`, try next (with the ports that it prints):"
fi
cat <<TEXT
  $BIN/iggy-replicate status --watch --admin $admin
  $BIN/iggy-load write --url $upstream --stream orders --topic events --count 100000 --rate 2000
  $BIN/iggy-load compare --a $upstream --b $downstream --stream orders --topic events
TEXT
if [[ $keep == yes ]]; then
  echo "Stop it with: kill ${pid[link]} ${pid[upstream]} ${pid[downstream]}; rm -r $folder"
fi
