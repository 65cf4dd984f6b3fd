"""What is deployed beside the program: alert rules (docker/prometheus/test.sh runs them), dashboard, systemd unit. Each names
only what exists."""

import json
import os
import re
import shutil
import subprocess
import urllib.request

import pytest

import harness
from harness import REPLICATE, SOURCES, STREAM, TOPIC, wait_until
from steps import *

ALERTS = SOURCES / "docker/prometheus/alerts.yml"
ALERT_TESTS = SOURCES / "docker/prometheus/alerts_test.yml"
DASHBOARD = SOURCES / "docker/grafana/iggy-replicate.json"
UNIT = SOURCES / "config/iggy-replicate@.service"
METRIC = re.compile(r"\biggy_replicate_[a-z_]+\b")


def program(name, package):
    """The path of a program that only these tests need. In CI it has to be there."""
    path = shutil.which(name)
    if not path and os.environ.get("CI"):
        pytest.fail(f"no {name}: package {package} is missing (cmake/packages.txt)")
    if not path:
        pytest.skip(f"no {name} here (package {package})")
    return path


def documented():
    """Metrics of docs/METRICS.md, each with its meaning. A C++ test compares that page with what is exported."""
    rows = re.findall(r"^\| `(iggy_replicate_\w+)` \|.*\| (.*) \|$", (SOURCES / "docs/METRICS.md").read_text(), re.MULTILINE)
    assert rows
    return dict(rows)


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions(panel):
    return [target["expr"] for target in panel["targets"]]


# ----------------------------------------------------------------------------------------------------------------------
# Alert rules


def test_every_alert_is_shown_firing_and_quiet():
    alerts = re.findall(r"^ *- alert: (\w+)$", ALERTS.read_text(), re.MULTILINE)
    assert alerts and len(set(alerts)) == len(alerts)
    cases = re.split(r"^- name: ", ALERT_TESTS.read_text(), flags=re.MULTILINE)[1:]
    for alert in alerts:
        about = [case for case in cases if re.search(rf"alertname: {alert}$", case, re.MULTILINE)]
        assert any("exp_labels" in case for case in about), f"no test sees {alert} fire"
        assert any("exp_alerts: []" in case for case in about), f"no test sees {alert} stay quiet"


def test_alert_rules_name_only_metrics_that_exist():
    named = set(METRIC.findall(ALERTS.read_text()))
    assert named and named <= documented().keys(), named - documented().keys()


# ----------------------------------------------------------------------------------------------------------------------
# Dashboard


def test_dashboard_is_well_formed():
    board = json.loads(DASHBOARD.read_text())
    assert board["uid"] and board["title"] and board["schemaVersion"] >= 36
    variables = {variable["name"] for variable in board["templating"]["list"]}
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in panels():
        assert panel["title"] and panel["type"] in ("stat", "timeseries", "table"), panel
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, f"{panel['title']} overlaps"
        taken |= cells
        references = [target["refId"] for target in panel["targets"]]
        assert references and len(set(references)) == len(references)
        for expression in expressions(panel):
            assert set(re.findall(r"\$(\w+)", expression)) <= variables, expression
            assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")


def test_dashboard_names_what_a_live_link_exports(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.9.0-edge.5", messages=100)
    address = wait_until("metrics are up", lambda: re.search(r"metrics on (http://[^/]+)/", appliance.log_since(appliance.begin)))

    def samples():
        with urllib.request.urlopen(address.group(1) + "/metrics", timeout=10) as reply:
            text = reply.read().decode()
        return {line.split("{")[0].split(" ")[0]: line for line in text.splitlines() if line and not line.startswith("#")}

    live = wait_until("the lag is known", lambda: (now := samples()) and "iggy_replicate_lag_seconds" in now and now)
    meaning = documented()
    for panel in panels():
        for expression in expressions(panel):
            for metric in METRIC.findall(expression):
                assert metric in meaning, f"{panel['title']}: no such metric: {metric}"
                assert metric in live or "absent" in meaning[metric], f"{panel['title']}: no sample of {metric}"
                if f"{metric}{{stream=~" in expression and metric in live:
                    assert f'stream="{STREAM}",topic="{TOPIC}"' in live[metric]


# ----------------------------------------------------------------------------------------------------------------------
# systemd


def test_unit_is_accepted_by_systemd(lab):
    analyze = program("systemd-analyze", "systemd")
    unit = lab.folder / "iggy-replicate@orders.service"
    # It verifies that the program is there.
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/iggy-replicate", REPLICATE))
    done = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr.strip(), done.stdout + done.stderr


def test_unit_names_flags_that_exist(lab):
    command = re.search(r"^ExecStart=\S+ run (.*)$", UNIT.read_text(), re.MULTILINE).group(1)
    known = lab.call([REPLICATE, "run", "--help"]).stdout
    flags = re.findall(r"--[a-z-]+", command)
    assert flags and all(re.search(rf"{flag}\b", known) for flag in flags)
