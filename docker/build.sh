#!/usr/bin/env bash
# Builds the images iggy-replicate, iggy-sandbox and, when asked for, prometheus: each FROM scratch, out of one program
# and the libraries that it loads. Needs no registry and no network (prometheus comes from this system's package).
#
#   docker/build.sh [BIN_FOLDER] [--prometheus]
#
# The same binaries make the same layers: times are fixed, nothing depends on the clock.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=build/bin
prometheus=no
for word in "$@"; do
  case $word in
    --prometheus) prometheus=yes ;;
    *) bin=$word ;;
  esac
done
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# add_program ROOT PATH NAME: the program as /usr/bin/NAME, its libraries where its loader looks for them.
add_program() {
  local root=$1 program=$2 name=$3 library
  install -D --mode=0755 "$program" "$root/usr/bin/$name"
  ! command -v llvm-strip-19 >/dev/null || llvm-strip-19 --strip-debug "$root/usr/bin/$name"
  while read -r library; do
    install -D --mode=0755 "$library" "$root$library"
  done < <(ldd "$program" | grep -o '/[^ ]*')
}

# What a process needs from a system: names, users, authorities, folders.
add_system() {
  local root=$1
  mkdir -p "$root/etc/ssl/certs" "$root/tmp"
  chmod 1777 "$root/tmp"
  printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
  printf 'root:x:0:0::/:/none\niggy:x:65532:65532::/state:/none\n' >"$root/etc/passwd"
  printf 'root:x:0:\niggy:x:65532:\n' >"$root/etc/group"
  install --mode=0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
}

# build_image NAME: from docker/NAME.Dockerfile and $stage/NAME/.
build_image() {
  local name=$1
  mkdir "$stage/$name/state"
  find "$stage/$name" -exec touch --no-dereference --date=@0 {} +
  docker build --quiet --tag "$name:local" --file "docker/$name.Dockerfile" "$stage/$name" >"$stage/log" 2>&1 || { cat "$stage/log" >&2; exit 1; }
  docker image inspect --format "$name:local {{.Size}} bytes" "$name:local"
}

add_system "$stage/iggy-replicate/root"
add_program "$stage/iggy-replicate/root" "$bin/iggy-replicate" iggy-replicate
build_image iggy-replicate

add_system "$stage/iggy-sandbox/root"
add_program "$stage/iggy-sandbox/root" "$bin/iggy-sandbox" iggy-sandbox
add_program "$stage/iggy-sandbox/root" "$bin/iggy-load" iggy-load
build_image iggy-sandbox

if [[ $prometheus == yes ]]; then
  add_system "$stage/prometheus/root"
  add_program "$stage/prometheus/root" /usr/bin/prometheus prometheus
  build_image prometheus
fi
