import sys
import pathlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    item.failed = getattr(item, "failed", False) or report.failed


@pytest.fixture
def lab(request):
    """A fresh folder and the processes of one test."""
    lab = harness.Lab(request.node.name)
    yield lab
    lab.close(failed=getattr(request.node, "failed", False))
