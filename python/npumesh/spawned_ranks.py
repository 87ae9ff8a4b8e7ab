"""Ranks of torch.multiprocessing.spawn: each process that it starts knows its rank before it takes a
device, as under torchrun.
"""

from __future__ import annotations

import functools
import importlib
import os
import socket
from typing import Any, Callable, Dict


class _Ranked:
    """The function that a process is started for, with the variables by which ranks meet."""

    def __init__(self, function: Callable[..., Any], size: int, port: int) -> None:
        self.function = function
        self.size = size
        self.port = port

    def variables(self, rank: int) -> Dict[str, str]:
        """What torchrun sets for this rank on one host."""
        ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": self.size, "LOCAL_WORLD_SIZE": self.size,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": self.port}
        return {name: str(value) for name, value in ranks.items()}

    def __call__(self, rank: int, *arguments: Any) -> Any:
        for name, value in self.variables(rank).items():
            os.environ.setdefault(name, value)
        return self.function(rank, *arguments)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install() -> None:
    """From now on torch.multiprocessing.spawn and start_processes give ranks to what they start: process i
    of n is rank i of n on this host. Variables that the caller or the function sets go before; a caller
    that is a rank itself (RANK is set) starts processes as torch does. A second call does nothing."""
    package = importlib.import_module("torch.multiprocessing")
    module = importlib.import_module("torch.multiprocessing.spawn")
    start = module.start_processes
    if getattr(start, "gives_ranks", False):
        return

    @functools.wraps(start)
    def start_processes(fn: Callable[..., Any], args: Any = (), nprocs: int = 1, *rest: Any,
                        **named: Any) -> Any:
        if "RANK" not in os.environ and nprocs > 1:
            fn = _Ranked(fn, nprocs, _free_port())
        return start(fn, args, nprocs, *rest, **named)

    setattr(start_processes, "gives_ranks", True)
    for holder in (package, module):
        setattr(holder, "start_processes", start_processes)
