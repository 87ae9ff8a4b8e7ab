"""A rank of the tests of compiled models on several ranks: names of cases are arguments; prints "passed
CASE RANK"."""

import os
import signal
import sys
import warnings

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")

import torch_npu  # noqa: E402, F401
import torchair  # noqa: E402
from torchair.configs.compiler_config import CompilerConfig  # noqa: E402


def compiled(function, mode="max-autotune", dynamic=False):
    torch._dynamo.reset()
    config = CompilerConfig()
    config.mode = mode
    return torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config),
                         dynamic=dynamic, fullgraph=True)


class Split(torch.nn.Module):
    """Two products with split weights and their sum over the ranks."""

    def __init__(self, rank, size):
        super().__init__()
        torch.manual_seed(4)
        up, down = torch.randn(16, 8) / 3, torch.randn(8, 16) / 4
        self.whole = up, down
        self.up = torch.nn.Parameter(up.chunk(size, 0)[rank].contiguous())
        self.down = torch.nn.Parameter(down.chunk(size, 1)[rank].contiguous())

    def forward(self, x):
        part = torch.relu(x @ self.up.T) @ self.down.T
        dist.all_reduce(part)
        return part + x

    def plain(self, x):
        return torch.relu(x @ self.whole[0].T) @ self.whole[1].T + x


def all_reduce(rank, size):
    model = Split(rank, size).npu().eval()
    for dynamic in (False, True):
        run = compiled(model, dynamic=dynamic)
        with torch.no_grad():
            for rows in (3, 3, 5):
                torch.manual_seed(rows)
                x = torch.randn(rows, 8, device="npu")
                torch.testing.assert_close(run(x), model.plain(x), rtol=1e-4, atol=1e-5)


def captured(rank, size):
    model = Split(rank, size).npu().eval()
    run = compiled(model, mode="reduce-overhead")
    with torch.no_grad():
        for step in range(4):
            torch.manual_seed(step)
            x = torch.randn(3, 8, device="npu")
            torch.testing.assert_close(run(x), model.plain(x), rtol=1e-4, atol=1e-5)


def training(rank, size):
    """Each rank trains on its rows, with gradients summed; the same as one process on all rows."""
    def network():
        torch.manual_seed(6)
        return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    model, whole = network().npu(), network()
    run = compiled(model)
    steps = [torch.optim.SGD(each.parameters(), lr=0.02) for each in (model, whole)]
    for step in range(4):
        torch.manual_seed(step)
        x, wanted = torch.randn(4 * size, 6), torch.randn(4 * size, 2)
        for each in steps:
            each.zero_grad()
        mine = slice(4 * rank, 4 * rank + 4)
        (run(x[mine].npu()) - wanted[mine]).square().sum().backward()
        (whole(x) - wanted).square().sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        for each in steps:
            each.step()
        for ours, theirs in zip(model.parameters(), whole.parameters()):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def killed(rank, size):
    """Rank 1 dies before the third step; the others say what the exception was."""
    model = Split(rank, size).npu().eval()
    run = compiled(model)
    try:
        with torch.no_grad():
            for step in range(3):
                if step == 2 and rank == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                run(torch.ones(3, 8, device="npu"))
    except RuntimeError as error:
        first = [line for line in str(error).splitlines() if line.strip()][0]
        print(f"rank {rank} saw {type(error).__name__}: {first}", flush=True)
        os._exit(7)


if __name__ == "__main__":
    dist.init_process_group("hccl")
    for name in sys.argv[1:]:
        globals()[name](dist.get_rank(), dist.get_world_size())
        print(f"passed {name} {dist.get_rank()}", flush=True)
    dist.destroy_process_group()
