"""Answers of the command `npumesh` for programs (docs/json.md).

The command is NPUMESH_COMMAND; else `npumesh` in the folder bin or launch near the library; else in
PATH. `main` becomes the command: pip makes a program of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, Optional, Sequence

from ._library import library_path, prefix
from .errors import InvalidArgumentError, IoError, NotFoundError, NpumeshError, PeerLostError
from .errors import WaitTimeoutError

__all__ = ["compare_dumps", "read_records"]


def find_command() -> str:
    """The path of the command. Errors: NotFoundError."""
    named = os.environ.get("NPUMESH_COMMAND")
    if named:
        return named
    folder = os.path.dirname(os.path.abspath(library_path()))
    for up in ("..", "../.."):
        for place in ("bin", "launch"):
            path = os.path.normpath(os.path.join(folder, up, place, "npumesh"))
            if os.access(path, os.X_OK):
                return path
    found = shutil.which("npumesh")
    if found is None:
        raise NotFoundError("the command npumesh is not in PATH; set NPUMESH_COMMAND to it")
    return found


def _ask(words: Sequence[str], timeout: float) -> Dict[str, Any]:
    """What the command says. Errors: exit codes above 1, with the command's words."""
    command = [find_command(), *words, "--json"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=timeout, check=False, env=_environment())
    except FileNotFoundError:
        raise NotFoundError(f"{command[0]}: there is no such command") from None
    except subprocess.TimeoutExpired:
        raise WaitTimeoutError(f"{' '.join(command)}: no answer within {timeout} s") from None
    if done.returncode in (0, 1):
        return json.loads(done.stdout)
    raise _error_of(done.returncode, done.stdout, done.stderr)


def _environment() -> Dict[str, str]:
    """Without what makes a process a rank: the command is no rank."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}


def _error_of(code: int, output: str, complaint: str) -> NpumeshError:
    try:
        text = json.loads(output)["error"]
    except (ValueError, KeyError):
        text = complaint.strip() or f"the command ended with {code}"
    kind = {2: InvalidArgumentError, 3: InvalidArgumentError, 4: IoError, 5: PeerLostError}
    error = kind.get(code, NpumeshError)(text)
    error.exit_code = code
    return error


def compare_dumps(seen: Any, expected: Any, *, model: Any = None, out: Any = None,
                  step: Optional[int] = None, rtol: Optional[float] = None,
                  atol: Optional[float] = None, reorder: bool = False,
                  timeout: float = 600) -> Dict[str, Any]:
    """`npumesh dump compare`: the first operator at which two dumps part, as docs/json.md says.

    `expected`: a dump, or a folder of .npy files. `model`: the graph that ran, for the order of
    operators. `out`: an existing folder for tables and a page; None: the working folder.
    `["verdict"]` is "same", "differ" or "sharded".
    """
    words = ["dump", "compare", os.fspath(seen), os.fspath(expected)]
    options = {"--model": model, "--out": out, "--step": step, "--rtol": rtol, "--atol": atol}
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)]
    return _ask(words + (["--reorder"] if reorder else []), timeout)


def read_records(folder: Any, *, timeout: float = 60) -> Dict[str, Any]:
    """`npumesh record`: what the flight records that `World(record=folder)` wrote say, as
    docs/json.md says. `["verdict"]` is "good" or "wrong"; `["look_first_at"]` names ranks and the
    cause."""
    return _ask(["record", os.fspath(folder)], timeout)


def main() -> int:
    """`npumesh` where pip has installed it: becomes the command of this package. The Python of this
    package and the programs beside it (mpirun, where MPI is a wheel, too) come first in PATH."""
    try:
        command = os.path.join(prefix(), "bin", "npumesh")
        path = os.environ.get("PATH", os.defpath)
        beside = os.path.dirname(sys.executable)
        if beside not in path.split(os.pathsep):
            os.environ["PATH"] = beside + os.pathsep + path
        os.execv(command, ["npumesh", *sys.argv[1:]])
    except NpumeshError as error:
        print(f"npumesh: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"npumesh: {command}: {error.strerror}", file=sys.stderr)
        return 3
