#!/usr/bin/env bash
# Installs the packages of cmake/packages.txt that are missing. Changes nothing, and needs no rights, when all are there.
#
# Debian 12 has them all in its main and updates repositories. Ubuntu 24.04 has packages of the same names: untested.
# Exit codes: 0 all there; 1 apt-get failed; 2 can't install on this system, and what is needed was printed.
set -euo pipefail
cd "$(dirname "$0")/.."

only_ci='/\[ci\]/d'
[[ -z ${CI:-} ]] || only_ci='s/\[ci\]//'
mapfile -t wanted <<<"$(sed -e 's/#.*//' -e "$only_ci" -e 's/[[:space:]]//g' -e '/^$/d' cmake/packages.txt)"

stop() {
  {
    echo "setup: $1"
    echo "Needed, by their Debian 12 names: ${wanted[*]}"
    echo "That is: clang 19 (or newer, or g++ 13 or newer), CMake 3.25, Ninja, and these libraries with their headers."
    echo "When they are there, build without this step: cmake --preset dev && cmake --build build"
  } >&2
  exit 2
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  stop "this is not Debian or Ubuntu: install the packages below with this system's package manager."
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$status" == installed* ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || stop "not root, and no sudo. As root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet --option DPkg::Lock::Timeout=300 "$@"
}
install() { apt install --yes --no-install-recommends "${missing[@]}"; }

# A fresh image has no package lists, an old one has stale ones.
if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
  apt update
  install
elif ! install; then
  apt update
  install
fi
