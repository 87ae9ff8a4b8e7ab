#!/usr/bin/env python3
"""A Llama of transformers (4 layers, random weights) with the vendor's wheel on npumesh, beside torch on the CPU.

    npumesh python --vendor torch_npu_llama.py [CASE ...] [--transformers FOLDER] [--ranks N]...
    npumesh python --vendor torch_npu_llama.py speed [--steps N]

The cases: `forward` (logits), `generate` (greedy, with a cache; the same tokens), `train` (three steps of AdamW: losses
and weights), `autocast` (the same in bfloat16, wider), `autotune` and `overhead` (a prompt and a step with a cache
through TorchAir, modes max-autotune and reduce-overhead); on each number of ranks of --ranks (2 and 4)
`tensor_parallel` and `data_parallel` (forward, three steps of AdamW). Without CASEs all of them run but `speed`, which
prints the milliseconds of a training step and the microseconds of an addition of 16 elements, and `growth` (memory over
10,000 steps).
FOLDER is where `pip install --target FOLDER transformers` has put it. Ends with 1 when a case fails.
"""

import argparse
import copy
import os
import resource
import socket
import statistics
import subprocess
import sys
import time

TINY = dict(hidden_size=64, intermediate_size=176, num_attention_heads=4, num_key_value_heads=2, vocab_size=128)
# Products dominate: 2 x 128 tokens.
LARGE = dict(hidden_size=512, intermediate_size=1408, num_attention_heads=8, num_key_value_heads=4, vocab_size=1024)
STEPS = 3
CASES = {}
OF_RANKS = {}


def case(function):
    CASES[function.__name__] = function
    return function


def of_ranks(function):
    OF_RANKS[function.__name__] = function
    return function


def llama(size=None, **more):
    """The same weights at each call."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    config = LlamaConfig(num_hidden_layers=4, max_position_embeddings=256, pad_token_id=0, bos_token_id=1,
                         eos_token_id=None, **{"attn_implementation": "sdpa", **(size or TINY), **more})
    model = LlamaForCausalLM(config)
    model.generation_config.eos_token_id = None
    return model


def tokens(batch=2, length=16, vocabulary=128):
    import torch
    return torch.randint(2, vocabulary, (batch, length), generator=torch.Generator().manual_seed(7))


def steps(model, ids, count=STEPS, average=None, dtype=None, foreach=None):
    """The losses of COUNT steps of AdamW."""
    import torch
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=foreach)
    losses = []
    for _ in range(count):
        with torch.autocast(ids.device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append((average or torch.Tensor.item)(loss.detach().clone()))
    return losses


def close(got, expected, tolerance):
    import torch
    torch.testing.assert_close(torch.as_tensor(got).float().cpu(), torch.as_tensor(expected).float(), rtol=tolerance,
                               atol=tolerance)


def same_weights(got, expected, tolerance):
    other = dict(expected.named_parameters())
    for name, value in got.named_parameters():
        close(value.detach(), other[name].detach(), tolerance)


# ---- One rank ----

@case
def forward():
    import torch
    with torch.no_grad():
        close(llama().npu()(tokens().npu()).logits, llama()(tokens()).logits, 1e-5)


@case
def generate():
    kinds = dict(max_new_tokens=12, do_sample=False, use_cache=True)
    expected = llama().generate(tokens(), **kinds)
    got = llama().npu().generate(tokens().npu(), **kinds)
    assert got.cpu().tolist() == expected.tolist(), (got, expected)
    assert expected.shape[1] == 28


@case
def train():
    cpu, npu = llama(), llama().npu()
    expected, got = steps(cpu, tokens()), steps(npu, tokens().npu())
    close(got, expected, 1e-4)
    assert expected[-1] < expected[0] - 0.5, expected
    same_weights(npu, cpu, 2e-3)


@case
def autocast():
    import torch
    cpu, npu = llama(), llama().npu()
    expected, got = (steps(model, ids, dtype=torch.bfloat16) for model, ids in
                     ((cpu, tokens()), (npu, tokens().npu())))
    close(got, expected, 2e-2)
    assert expected[-1] < expected[0] - 0.5, expected


def compiled(mode):
    """A prompt, and a step after it with a cache, through TorchAir. Attention is written out (for that of torch the
    wheel's TorchAir compiles a C++ function against headers of the vendor's GE), the mask is made outside (its
    constants are copies from the host, which captures forbid), and the cache grows (index_copy has no converter)."""
    import torch
    import torchair
    from transformers import DynamicCache
    config = torchair.CompilerConfig()
    config.mode = mode
    cpu, npu = (llama(attn_implementation="eager").to(device) for device in ("cpu", "npu"))
    call = torch.compile(npu, backend=torchair.get_npu_backend(compiler_config=config), dynamic=False)
    causal = torch.full((1, 1, 17, 17), torch.finfo(torch.float32).min).triu(1)
    ids, places = tokens(), torch.arange(17)[None]

    def prompt(model, device):
        return model(input_ids=ids.to(device), attention_mask=causal[..., :16, :16].to(device),
                     position_ids=places[:, :16].to(device), use_cache=False).logits

    def step(eager, model, device):
        cache = DynamicCache(config=eager.config)
        first = eager(input_ids=ids.to(device), past_key_values=cache, use_cache=True).logits[:, -1:]
        picked = first.argmax(-1)
        logits = model(input_ids=picked, attention_mask=causal[..., 16:, :].to(device),
                       position_ids=places[:, 16:].to(device), past_key_values=cache, use_cache=True).logits
        return picked, logits

    with torch.no_grad():
        close(prompt(call, "npu"), prompt(cpu, "cpu"), 1e-5)
        (picked, got), (right, expected) = step(npu, call, "npu"), step(cpu, cpu, "cpu")
    assert picked.tolist() == right.tolist()
    close(got, expected, 1e-5)


@case
def autotune():
    compiled("max-autotune")


@case
def overhead():
    compiled("reduce-overhead")


# ---- Ranks ----

@of_ranks
def tensor_parallel(rank, size):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    heads = dict(num_attention_heads=4, num_key_value_heads=4)
    cpu, split = llama(**heads), llama(**heads).npu()
    plan = {}
    for layer in range(4):
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"):
            plan[f"model.layers.{layer}.{name}"] = ColwiseParallel()
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            plan[f"model.layers.{layer}.{name}"] = RowwiseParallel()
    parallelize_module(split, init_device_mesh("npu", (size,)), plan)
    with torch.no_grad():
        close(split(tokens().npu()).logits, cpu(tokens()).logits, 1e-5)
    close(steps(split, tokens().npu(), foreach=False), steps(cpu, tokens()), 1e-4)  # no lists of both kinds
    part = split.model.layers[0].self_attn.q_proj.weight
    assert part.to_local().shape[0] == 64 // size
    close(part.full_tensor().detach(), cpu.model.layers[0].self_attn.q_proj.weight.detach(), 2e-3)


@of_ranks
def data_parallel(rank, size):
    import torch
    import torch.distributed as dist
    ids = tokens(batch=size)

    def over_ranks(loss):
        dist.all_reduce(loss)
        return loss.item() / size

    cpu, npu = llama(), llama().npu()
    ddp = torch.nn.parallel.DistributedDataParallel(npu, device_ids=[rank])
    close(steps(ddp, ids[rank:rank + 1].npu(), average=over_ranks), steps(cpu, ids), 1e-4)
    same_weights(npu, cpu, 2e-3)


def as_rank():
    """What torchrun starts."""
    import torch
    import torch.distributed as dist
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    for each in OF_RANKS.values():
        each(rank, size)
        print(f"rank {rank} of {size}: {each.__name__} is equal", flush=True)
    dist.destroy_process_group()


def on_ranks(count, folder):
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(count), "--master_port", str(port),
             os.path.abspath(__file__), "rank", "--transformers", folder]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print("".join(line + "\n" for line in done.stdout.splitlines() if line.startswith("rank ")), end="")
    if done.returncode != 0 or done.stdout.count("is equal") != count * len(OF_RANKS):
        raise RuntimeError(f"{count} ranks ended with {done.returncode}: {done.stdout[:3000]}")


# ---- Speed ----

def step_times(size, ids, count):
    """The median milliseconds of a step: torch's on the CPU and npumesh's, in turns."""
    import torch
    sides = []
    for device in ("cpu", "npu"):
        model = llama(size).to(device)
        sides.append((model, torch.optim.AdamW(model.parameters(), lr=1e-3), ids.to(device), []))
    for _ in range(count):
        for model, optimizer, words, took in sides:
            begin = time.perf_counter()
            loss = model(input_ids=words, labels=words).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
            took.append((time.perf_counter() - begin) * 1e3)
    return [statistics.median(side[3][2:]) for side in sides]


def speed(count):
    import torch
    x = torch.ones(16, device="npu")
    for _ in range(200):
        x + x
    torch.npu.synchronize()
    rounds = []
    for _ in range(20):
        begin = time.perf_counter()
        for _ in range(500):
            x + x
        torch.npu.synchronize()
        rounds.append((time.perf_counter() - begin) / 500 * 1e6)
    print(f"an addition of 16 elements: {statistics.median(rounds):.1f} us (least {min(rounds):.1f})")
    for name, size, ids in (("tiny (hidden 64, 2 x 16 tokens)", TINY, tokens()),
                            ("large (hidden 512, 2 x 128 tokens)", LARGE, tokens(2, 128, 1024))):
        cpu, npu = step_times(size, ids, count)
        print(f"a step, {name}: {npu:.1f} ms, torch's on the CPU {cpu:.1f} ms, {npu / cpu:.2f} times", flush=True)


def growth(count):
    """Memory of the process after a tenth of the steps and at the end."""
    import torch
    model = llama(dict(TINY, hidden_size=16, intermediate_size=32, vocab_size=32)).npu()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = tokens(1, 4, 32).npu()
    seen = []
    for step in range(count):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % max(count // 10, 1) == 0:
            loss.item()
            with open("/proc/self/statm") as file:
                resident = int(file.read().split()[1]) * resource.getpagesize()
            seen.append((resident / 2**20, torch.npu.memory_allocated() / 2**20))
            print(f"step {step + 1}: {seen[-1][0]:.0f} MiB resident, {seen[-1][1]:.2f} MiB of the device", flush=True)
    first, last = seen[1 if len(seen) > 1 else 0], seen[-1]
    assert last[0] < first[0] * 1.05 and last[1] == first[1], "memory grows"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--transformers", metavar="FOLDER", default="")
    parser.add_argument("--ranks", type=int, action="append", metavar="N")
    parser.add_argument("--steps", type=int, metavar="N")
    given = parser.parse_args()
    if given.transformers:
        sys.path.append(os.path.abspath(given.transformers))
    import torch
    import torch_npu  # noqa: F401
    torch.set_num_threads(1)
    if given.cases == ["rank"]:
        return as_rank()
    if given.cases == ["speed"]:
        return speed(given.steps or 15)
    if given.cases == ["growth"]:
        return growth(given.steps or 10000)
    jobs = {name: CASES[name] for name in given.cases or CASES}
    if not given.cases or given.ranks:
        for count in given.ranks or (2, 4):
            jobs[f"{count} ranks"] = lambda count=count: on_ranks(count, given.transformers)
    failed = 0
    for name, job in jobs.items():
        begin = time.monotonic()
        try:
            job()
            print(f"{name}: equal ({time.monotonic() - begin:.0f} s)", flush=True)
        except Exception as error:  # whatever a case raises is its result
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:3000]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
