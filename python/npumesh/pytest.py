"""A plug-in of pytest: tests on worlds of N ranks, and torch_npu of npumesh in the place of a mock.

    @pytest.mark.npumesh(ranks=4)
    def test_sum(npumesh_world):
        total = npumesh_world.all.all_reduce(np.float32([npumesh_world.rank]))
        assert total.tolist() == [6]

Each rank of a test with the mark is a process of pytest for this one test; the test passes when it
passes on all of them. pip makes pytest find the plug-in; otherwise `-p npumesh.pytest` does. It
loads nothing until a test asks for it (docs/python.md).
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Generator, List, NamedTuple, Optional
from unittest import mock

import pytest

from .errors import NotFoundError, NpumeshError

_MARK = "npumesh"
# What makes this process one rank of a test: the file for its reports.
_REPORTS = "NPUMESH_PYTEST_REPORTS"
_TIMEOUT = 300.0  # seconds for all ranks of a test

# What a message says of a part of torch_npu that npumesh lacks.
_LACKS = re.compile(r"torch_npu[\w.]*: there is no '([^']+)'|module 'torch_npu[\w.]*' has no attribute '([^']+)'"
                    r"|No module named '(torch_npu[\w.]*)'")


def pytest_addoption(parser: Any) -> None:
    parser.addini("npumesh_torch_npu", "torch_npu of npumesh takes the place of a mock (true, false)",
                  type="bool", default=False)
    parser.getgroup("npumesh").addoption(
        "--npumesh-torch-npu", action="store_true", default=False,
        help="torch_npu of npumesh takes the place of a mock; what it lacks fails by its name")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "npumesh(ranks=1, timeout=300): the test runs on so many ranks, each a "
                                       "process of this host")
    if config.getoption("--npumesh-torch-npu") or config.getini("npumesh_torch_npu"):
        config.pluginmanager.register(_TorchNpu(), "npumesh-torch-npu")


# ---- ranks ----


_failed = pytest.StashKey[str]()  # of a test whose call has failed: how


@pytest.fixture
def npumesh_world(request: Any) -> Generator[Any, None, None]:
    """The World of this rank, with 64 MiB of device memory unless NPUMESH_HBM_SIZE says otherwise. Closed
    after the test; where the test has failed the other ranks are told, so that none waits for this one."""
    from .world import World

    options = {} if "NPUMESH_HBM_SIZE" in os.environ else {"NPUMESH_HBM_SIZE": "64M"}
    world = World(options)
    yield world
    failed = request.node.stash.get(_failed, "")
    if not failed:
        world.close()
        return
    try:  # the test has its error; that of the end is not the cause
        world.fail(failed)
        world.close()
    except NpumeshError:
        pass


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, None]:
    outcome = yield
    if call.when == "call" and outcome.get_result().failed:
        item.stash[_failed] = f"{item.name}: {_crash(outcome.get_result())}"


class _Ended(NamedTuple):
    """How a rank ended: its code, what it printed, and the reports of its test's phases."""

    code: int
    printed: str
    reports: List[Dict[str, str]]

    def outcome(self) -> str:
        """"passed", "skipped" or "failed"; a rank without a report has failed."""
        outcomes = [report["outcome"] for report in self.reports]
        if self.code != 0 or not outcomes or "failed" in outcomes:
            return "failed"
        return "skipped" if "skipped" in outcomes else "passed"

    def words(self) -> str:
        """Why it did not pass: a line, and the details below it."""
        told = [report for report in self.reports if report["outcome"] != "passed"]
        if told:
            return told[0]["crash"] + "\n" + "\n".join(report["text"] for report in told)
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}\n{self.printed}"
        return f"ended with {self.code} before its test had a result\n{self.printed}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: Any, nextitem: Any) -> Optional[bool]:
    """A test with several ranks runs in their processes; here it has one call, which waits for them."""
    mark = item.get_closest_marker(_MARK)
    ranks = _ranks_of(mark) if mark else 1
    if ranks == 1 or _REPORTS in os.environ:
        return None
    timeout = float(mark.kwargs.get("timeout", _TIMEOUT))
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    started = time.time()
    outcome, words = _verdict(_run_ranks(item, ranks, timeout), ranks)
    longrepr: Any = words or None
    if outcome == "skipped":
        longrepr = (str(item.path), item.location[1], words)
    report = pytest.TestReport(
        nodeid=item.nodeid, location=item.location, keywords={name: 1 for name in item.keywords},
        outcome=outcome, longrepr=longrepr, when="call", duration=time.time() - started)
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_logreport(report: Any) -> None:
    """A rank writes its reports down for the process that started it."""
    path = os.environ.get(_REPORTS)
    if path is None:
        return
    text = "" if isinstance(report.longrepr, tuple) else report.longreprtext
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"outcome": report.outcome, "crash": _crash(report), "text": text}) + "\n")


def _crash(report: Any) -> str:
    """What happened, in a line: of a skipped test the reason."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longreprtext).partition("\n")[0]


def _ranks_of(mark: Any) -> int:
    ranks = mark.kwargs.get("ranks", mark.args[0] if mark.args else 1)
    if not isinstance(ranks, int) or ranks < 1:
        raise pytest.UsageError(f"mark npumesh: ranks is {ranks!r}; expected a number from 1 on")
    return ranks


def _verdict(ended: List[_Ended], ranks: int) -> Any:
    """The outcome of the test, and the words of the ranks that did not pass; equal words once."""
    outcomes = [each.outcome() for each in ended]
    wanted = "failed" if "failed" in outcomes else "skipped" if "skipped" in outcomes else "passed"
    if wanted == "passed":
        return wanted, ""
    said: Dict[str, List[str]] = {}
    for rank, each in enumerate(ended):
        if outcomes[rank] == wanted:
            said.setdefault(each.words(), []).append(str(rank))
    if wanted == "skipped":
        return wanted, next(iter(said)).partition("\n")[0]
    # Those that lost another rank say nothing of the cause.
    order = sorted(said.items(), key=lambda each: "PeerLostError: " in each[0].partition("\n")[0])
    return wanted, "\n".join(f"rank {', '.join(who)} of {ranks}: {words}" for words, who in order)


def _run_ranks(item: Any, ranks: int, timeout: float) -> List[_Ended]:
    """Runs the one test on so many ranks and waits for all of them."""
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        processes = [_start(item, rank, ranks, port, folder) for rank in range(ranks)]
        deadline = time.monotonic() + timeout
        for process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                for each in processes:
                    each.kill()
        return [_Ended(process.wait(), _read(os.path.join(folder, f"{rank}.out")),
                       [json.loads(line) for line in _read(os.path.join(folder, f"{rank}.json")).splitlines()])
                for rank, process in enumerate(processes)]


def _start(item: Any, rank: int, ranks: int, port: int, folder: str) -> "subprocess.Popen[bytes]":
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    # What torchrun sets for this rank on one host.
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, _REPORTS: os.path.join(folder, f"{rank}.json")}
    environment.update({name: str(value) for name, value in told.items()})
    config = item.config
    # Of options only those that decide what the test is.
    more = {"npumesh-torch-npu": "--npumesh-torch-npu", "xdist": "-n0", "_cov": "--no-cov"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "npumesh.pytest",
             "--rootdir", str(config.rootpath), *(["-c", str(config.inipath)] if config.inipath else []),
             *(option for plugin, option in more.items() if config.pluginmanager.hasplugin(plugin)),
             item.nodeid]
    with open(os.path.join(folder, f"{rank}.out"), "wb") as output:
        return subprocess.Popen(words, cwd=str(config.rootpath), env=environment, stdout=output,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# ---- torch_npu in the place of a mock ----


class _TorchNpu:
    """Puts npumesh's torch_npu where tests import torch_npu, and says at the end what it lacks."""

    def __init__(self) -> None:
        self._lacking: Dict[str, List[str]] = {}  # what is not there: tests that asked for it
        self._mocks = 0
        self._install()

    def _install(self) -> None:
        os.environ.setdefault("NPUMESH_TORCH_NPU", "own")
        folder = _packages()
        if folder not in sys.path:
            sys.path.insert(0, folder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torch_npu"]:
            if isinstance(sys.modules[name], mock.NonCallableMock):
                del sys.modules[name]
                self._mocks += 1
        try:
            __import__("torch_npu")
        except ImportError as error:
            raise pytest.UsageError(f"--npumesh-torch-npu: {error}") from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """The project may have put a mock there since."""
        self._install()

    def pytest_report_header(self) -> str:
        import torch_npu  # type: ignore

        return f"torch_npu: of npumesh, {os.path.dirname(torch_npu.__file__)}"

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.failed:
            return
        for found in _LACKS.finditer(report.longreprtext):
            name = next(group for group in found.groups() if group)
            tests = self._lacking.setdefault(name, [])
            if report.nodeid not in tests:
                tests.append(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._mocks:
            terminalreporter.write_line(f"npumesh: {self._mocks} mocks of torch_npu were replaced")
        for name, tests in sorted(self._lacking.items()):
            count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
            terminalreporter.write_line(f"npumesh: torch_npu lacks {name} ({count}, first {tests[0]})")


def _packages() -> str:
    """The folder of torch_npu: in the prefix, or beside this package."""
    from ._library import prefix

    try:
        installed = os.path.join(prefix(), "lib", "python3", "dist-packages")
    except NotFoundError:
        installed = ""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (installed, beside):
        if os.path.isdir(os.path.join(folder, "torch_npu")):
            return folder
    raise pytest.UsageError(f"--npumesh-torch-npu: neither {installed} nor {beside} has torch_npu")
