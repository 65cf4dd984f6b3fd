#!/usr/bin/env bash
# Shows each alert rule firing, and staying quiet. 77: promtool is not here (Debian package prometheus).
set -euo pipefail
cd "$(dirname "$0")"
command -v promtool >/dev/null || {
  echo "alert rules: needs promtool, of the package prometheus" >&2
  exit 77
}
promtool check rules alerts.yml
promtool test rules alerts_test.yml
