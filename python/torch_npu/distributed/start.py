"""How ranks meet: the backend's name, and a store for ranks that mpirun has started."""

from __future__ import annotations

import os
import socket
import sys
from datetime import timedelta
from typing import Any, Callable, Dict, Iterator, Optional

import numpy as np
import torch.distributed as dist

from .. import _C, _engine
from .._say import no_effect
from .group import ProcessGroupHCCL

# Variables of torch, and those of launchers of MPI that say the same.
_LAUNCHERS = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
}


def _launched() -> Optional[Dict[str, str]]:
    """What MPI's launcher says of this process, by torch's names; None without a launcher."""
    said = {}
    for name, sources in _LAUNCHERS.items():
        values = [os.environ[source] for source in sources if source in os.environ]
        if not values:
            return None
        said[name] = values[0]
    return said


def _create(options: Any, backend_options: Any = None) -> ProcessGroupHCCL:
    if getattr(backend_options, "hccl_config", None):
        no_effect("ProcessGroupHCCL.Options.hccl_config")
    return ProcessGroupHCCL(options.group_rank, options.group_size,
                            options.global_ranks_in_group, options.group_id or "group")


_ADDRESS_BYTES = 256


def _meeting_store(rank: int, size: int, timeout: timedelta) -> Any:
    """A store on rank 0; the other ranks learn its address by the engine."""
    everyone = _engine.world().all
    address = np.zeros(_ADDRESS_BYTES, np.uint8)
    store = None
    if rank == 0:
        one_host = _engine.world().info.node_count == 1
        host = "127.0.0.1" if one_host else socket.gethostbyname(socket.gethostname())
        store = dist.TCPStore(host, 0, size, True, timeout, wait_for_workers=False,
                              use_libuv=False)
        said = f"{host} {store.port}".encode()
        address[:len(said)] = np.frombuffer(said, np.uint8)
    everyone.broadcast(address, root=0)
    if store is None:
        host, port = bytes(address).rstrip(b"\0").decode().split()
        store = dist.TCPStore(host, int(port), size, False, timeout, wait_for_workers=False,
                              use_libuv=False)
    return store


def _with_mpi(plain: Callable) -> Callable:
    """init_process_group without MASTER_ADDR: ranks that MPI has started meet by the engine."""

    def meet(url: str, timeout: timedelta = dist.default_pg_timeout
             if hasattr(dist, "default_pg_timeout") else timedelta(minutes=30),
             **kwargs: Any) -> Iterator:
        if "MASTER_ADDR" in os.environ or _launched() is None:
            yield from plain(url, timeout=timeout, **kwargs)
            return
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        yield _meeting_store(rank, size, timeout), rank, size
        raise RuntimeError("torch_npu: ranks of MPI meet once; start the job again")

    return meet


def install() -> None:
    """Names the backend "hccl". Once for a process."""
    if not dist.is_available() or "HCCL" in dist.Backend._plugins:
        return
    _C._distributed_c10d.ProcessGroupHCCL = ProcessGroupHCCL
    dist.Backend.register_backend("hccl", _create, extended_api=True, devices=["npu", "cpu"])
    for name, value in (_launched() or {}).items():
        os.environ.setdefault(name, value)
    # A store without libuv works with every torch; some are built without it.
    os.environ.setdefault("USE_LIBUV", "0")
    handlers = sys.modules["torch.distributed.rendezvous"]._rendezvous_handlers
    handlers["env"] = _with_mpi(handlers["env"])
