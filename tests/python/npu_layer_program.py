"""A rank of a decoder layer with split weights, by operators of torch_npu: prefill and decode steps on
a cache in pages. Prints "equal" when the result is that of plain torch in double precision."""

import torch
import torch.distributed as dist

import torch_npu

HEADS, KV_HEADS, WIDTH, HIDDEN, INNER = 8, 4, 16, 64, 96
BLOCK, BLOCKS, BATCH, PROMPT, STEPS = 16, 12, 2, 20, 3
EPSILON = 1e-6


def weights():
    torch.manual_seed(11)

    def drawn(*shape):
        return torch.randn(*shape, dtype=torch.float64) / shape[-1] ** 0.5

    return {"norm1": torch.rand(HIDDEN, dtype=torch.float64) + 0.5,
            "norm2": torch.rand(HIDDEN, dtype=torch.float64) + 0.5,
            "q": drawn(HEADS * WIDTH, HIDDEN), "k": drawn(KV_HEADS * WIDTH, HIDDEN),
            "v": drawn(KV_HEADS * WIDTH, HIDDEN), "o": drawn(HIDDEN, HEADS * WIDTH),
            "gate": drawn(INNER, HIDDEN), "up": drawn(INNER, HIDDEN), "down": drawn(HIDDEN, INNER)}


def angles(positions):
    steps = 10000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    turned = positions.to(torch.float64)[:, None] * steps
    return torch.cat([turned, turned], -1)


# ---- plain torch, whole, in double precision; no cache: all tokens so far, again ----


def rotated(x, positions):
    turned = angles(positions)[:, None]
    half = torch.cat([-x[..., WIDTH // 2:], x[..., :WIDTH // 2]], -1)
    return x * turned.cos() + half * turned.sin()


def plain(tokens, w):
    """One sequence: tokens of all positions, [length, hidden]."""
    length = tokens.shape[0]
    positions = torch.arange(length)

    def norm(x, gamma):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gamma

    h = norm(tokens, w["norm1"])
    q = rotated((h @ w["q"].T).view(length, HEADS, WIDTH), positions)
    k = rotated((h @ w["k"].T).view(length, KV_HEADS, WIDTH), positions)
    v = (h @ w["v"].T).view(length, KV_HEADS, WIDTH)
    k, v = (each.repeat_interleave(HEADS // KV_HEADS, 1) for each in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / WIDTH ** 0.5
    scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
    mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(length, -1)
    tokens = tokens + mixed @ w["o"].T
    h = norm(tokens, w["norm2"])
    gate, up = h @ w["gate"].T, h @ w["up"].T
    return tokens + (gate * torch.sigmoid(gate) * up) @ w["down"].T


# ---- the layer of one rank ----


class Layer:
    def __init__(self, w, rank, size, dtype):
        self.rank, self.size = rank, size
        self.heads, self.kv_heads = HEADS // size, KV_HEADS // size

        def rows(name):
            return w[name].chunk(size, 0)[rank].to(dtype).contiguous().npu()

        self.qkv = torch.cat([rows("q"), rows("k"), rows("v")])
        self.gate_up = torch.cat([rows("gate"), rows("up")])
        self.o = w["o"].chunk(size, 1)[rank].to(dtype).contiguous()
        self.down = w["down"].chunk(size, 1)[rank].to(dtype).contiguous()
        self.norms = [w["norm1"].to(dtype), w["norm2"].to(dtype)]
        shape = (BLOCKS, BLOCK, self.kv_heads, WIDTH)
        self.k_cache, self.v_cache = (torch.zeros(shape, dtype=dtype, device="npu")
                                      for _ in range(2))
        self.dtype = dtype

    def attention(self, q, lengths, queries, tables):
        """[tokens, heads, width]: the last `queries` tokens of each sequence."""
        mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
        flat = (BLOCKS, BLOCK, self.kv_heads * WIDTH)
        ends = torch.tensor(queries).cumsum(0).tolist()
        out, _ = torch_npu.npu_fused_infer_attention_score(
            q, self.k_cache.view(flat), self.v_cache.view(flat), atten_mask=mask,
            actual_seq_lengths=ends, actual_seq_lengths_kv=lengths, block_table=tables,
            num_heads=self.heads, num_key_value_heads=self.kv_heads, scale=WIDTH ** -0.5,
            input_layout="TND", sparse_mode=3, block_size=BLOCK)
        return out

    def __call__(self, x, positions, slots, lengths, queries, tables):
        tokens = x.shape[0]
        h = torch_npu.npu_rms_norm(x, self.norms[0], EPSILON)[0]
        q, k, v = torch_npu.npu_linear(h, self.qkv).split(
            [self.heads * WIDTH, self.kv_heads * WIDTH, self.kv_heads * WIDTH], -1)
        turned = angles(positions).to(self.dtype if self.dtype == torch.float32 else torch.float32)
        cos, sin = (each.to(self.dtype).view(1, tokens, 1, WIDTH)
                    for each in (turned.cos(), turned.sin()))
        q = torch_npu.npu_rotary_mul(q.reshape(1, tokens, self.heads, WIDTH), cos, sin)[0]
        k = torch_npu.npu_rotary_mul(k.reshape(1, tokens, self.kv_heads, WIDTH), cos, sin)[0]
        torch_npu._npu_reshape_and_cache(k, v.reshape(tokens, self.kv_heads, WIDTH).contiguous(),
                                         self.k_cache, self.v_cache, slots)
        mixed = self.attention(q, lengths, queries, tables).reshape(tokens, -1)
        part = torch_npu.npu_linear(mixed, self.o)
        dist.all_reduce(part)
        h, _, x = torch_npu.npu_add_rms_norm(part, x, self.norms[1], EPSILON)
        h = torch_npu.npu_swiglu(torch_npu.npu_linear(h, self.gate_up))
        part = torch_npu.npu_linear(h, self.down)
        dist.all_reduce(part)
        return x + part


def compare(dtype, tolerance):
    rank, size = dist.get_rank(), dist.get_world_size()
    w = weights()
    layer = Layer(w, rank, size, dtype)
    prompts = [PROMPT, PROMPT - 7]
    total = [each + STEPS for each in prompts]
    torch.manual_seed(12)
    inputs = [torch.randn(length, HIDDEN, dtype=torch.float64) for length in total]
    expected = [plain(each, w) for each in inputs]
    tables = torch.tensor([[7, 2, 9], [4, 11, 1]], dtype=torch.int32)

    def run(begins, ends):
        positions = torch.cat([torch.arange(b, e) for b, e in zip(begins, ends)])
        slots = torch.cat([tables[at][torch.arange(b, e) // BLOCK] * BLOCK
                           + torch.arange(b, e) % BLOCK
                           for at, (b, e) in enumerate(zip(begins, ends))]).to(torch.int32)
        x = torch.cat([inputs[at][b:e] for at, (b, e) in enumerate(zip(begins, ends))])
        seen = layer(x.to(dtype), positions, slots, list(ends),
                     [e - b for b, e in zip(begins, ends)], tables)
        wanted = torch.cat([expected[at][b:e] for at, (b, e) in enumerate(zip(begins, ends))])
        torch.testing.assert_close(seen.double(), wanted, rtol=tolerance, atol=tolerance)

    run([0] * BATCH, prompts)
    for step in range(STEPS):
        run([each + step for each in prompts], [each + step + 1 for each in prompts])


if __name__ == "__main__":
    dist.init_process_group("hccl")
    compare(torch.float16, 1e-2)
    compare(torch.bfloat16, 6e-2)
    print("equal", flush=True)
    dist.destroy_process_group()
