"""torch.ops.npu: operators of the vendor's library against torch's own formulas, with drawn shapes."""

import json
import math
import os
import random
import subprocess
import unittest

import npu_case
from npu_case import torch

if torch is not None:
    import torch_npu
    from torch._subclasses import FakeTensorMode
    from torch.nn import functional

TURNS = 24  # draws of each test; the operators' own tests draw more
FLOATS = () if torch is None else (torch.float32, torch.float16, torch.bfloat16)


def close(test, got, want, dtype=None, factor=1):
    """Within a step or two of the result's type."""
    bound = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(dtype or got.dtype, 3e-5) * factor
    test.assertEqual(got.shape, want.shape)
    torch.testing.assert_close(got.double(), want.double(), rtol=bound, atol=bound)


def same_results(test, call, *args, **kwargs):
    """The meta function tells the types and shapes of the results."""
    given = call(*args, **kwargs)
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with fake:
        lists = (list, tuple)
        faked = [fake.from_tensor(each) if isinstance(each, torch.Tensor) else each
                 for each in args]
        words = {name: fake.from_tensor(each) if isinstance(each, torch.Tensor) else each
                 for name, each in kwargs.items()}
        told = call(*faked, **words)
    pairs = zip(given, told) if isinstance(given, lists) else [(given, told)]
    for seen, said in pairs:
        test.assertEqual((seen.dtype, seen.shape), (said.dtype, said.shape))
    return given


class Norms(unittest.TestCase):
    def test_the_vendor_s_layer_norm_for_inference(self):
        draw = random.Random(1)
        for _ in range(TURNS):
            shape = [draw.randint(1, 4) for _ in range(draw.randint(1, 3))]
            count = draw.randint(1, len(shape))
            dtype = draw.choice(FLOATS)
            x = torch.randn(shape).to(dtype)
            weight, bias = (torch.randn(shape[-count:]).to(dtype) for _ in range(2))
            words = draw.choice([{}, {"weight": weight}, {"weight": weight, "bias": bias}])
            got = same_results(self, torch_npu.npu_layer_norm_eval, x, shape[-count:], **words)
            close(self, got, functional.layer_norm(x.float(), shape[-count:],
                                                   **{k: v.float() for k, v in words.items()}),
                  dtype)

    def test_group_norms_give_the_reciprocal_deviation(self):
        x, weight, bias = torch.randn(2, 6, 5), torch.randn(6), torch.randn(6)
        y, mean, rstd = same_results(self, torch_npu.npu_group_norm_silu, x, weight, bias, 3)
        wanted = torch.native_group_norm(x, weight, bias, 2, 6, 5, 3, 1e-5)
        close(self, y, functional.silu(wanted[0]))
        close(self, mean, wanted[1])
        close(self, rstd, wanted[2])

    def test_group_norms_with_swish_and_their_gradient(self):
        draw = random.Random(2)
        for _ in range(TURNS):
            groups, scale = draw.randint(1, 3), draw.choice([1.0, 0.5, 2.0])
            channels = groups * draw.randint(1, 3)
            x, weight, bias = (torch.randn(size, requires_grad=True) for size in (
                (draw.randint(1, 3), channels, draw.randint(2, 5)), (channels,), (channels,)))
            y, _, _ = torch_npu.npu_group_norm_swish(x, groups, weight, bias, swish_scale=scale)
            plain = functional.group_norm(x, groups, weight, bias)
            wanted = plain * torch.sigmoid(scale * plain)
            close(self, y, wanted)
            dy = torch.randn_like(y)
            for got, want in zip(torch.autograd.grad(y, (x, weight, bias), dy),
                                 torch.autograd.grad(wanted, (x, weight, bias), dy)):
                close(self, got, want, factor=20)

    def test_sums_of_two_types_and_of_several_dimensions(self):
        draw = random.Random(3)
        for _ in range(TURNS):
            shape = [draw.randint(1, 3), draw.randint(1, 4), draw.randint(2, 6)]
            span = shape[-draw.randint(1, 2):]
            types = draw.choice(FLOATS), draw.choice(FLOATS)
            x1, x2 = (torch.randn(shape).to(dtype) for dtype in types)
            gamma, beta = torch.randn(span), torch.randn(span)
            y, _, rstd, x = same_results(self, torch_npu.npu_add_layer_norm, x1, x2, gamma, beta,
                                         1e-5, True)
            wide = types[0] if types[0] == types[1] else torch.float32
            self.assertEqual((y.dtype, x.dtype), (wide, wide))
            total = x1.float() + x2.float()
            close(self, y, functional.layer_norm(total, span, gamma, beta), wide, 4)
            self.assertEqual(rstd.shape[-len(span):], torch.Size([1] * len(span)))

    def test_gradients_of_norms_of_sums(self):
        draw = random.Random(4)
        for _ in range(TURNS):
            shape = [draw.randint(1, 3), draw.randint(1, 4), draw.randint(2, 6)]
            span = shape[-draw.randint(1, 2):]
            tensors = [torch.randn(size, requires_grad=True) for size in (shape, shape, span, span)]
            x1, x2, gamma, beta = tensors
            dy, dsum = torch.randn(shape), torch.randn(shape)
            y, _, _, total = torch_npu.npu_add_layer_norm(x1, x2, gamma, beta, 1e-5, True)
            wanted = functional.layer_norm(x1 + x2, span, gamma, beta)
            for got, want in zip(
                    torch.autograd.grad([y, total], tensors, [dy, dsum]),
                    torch.autograd.grad([wanted, x1 + x2], tensors, [dy, dsum])):
                close(self, got, want, factor=20)
            _, _, y = torch_npu.npu_deep_norm(x1, x2, beta, gamma, 0.5, 1e-6)
            wanted = functional.layer_norm(0.5 * x1 + x2, span, gamma, beta, 1e-6)
            close(self, y, wanted)
            for got, want in zip(torch.autograd.grad(y, tensors, dy),
                                 torch.autograd.grad(wanted, tensors, dy)):
                close(self, got, want, factor=20)

    def test_results_that_are_not_wanted_have_one_element(self):
        x, gamma = torch.randn(3, 64).half(), torch.randn(64).half()
        for mask in ([True, False], [False, True], None):
            results = same_results(self, torch_npu.npu_add_rms_norm_dynamic_quant, x, x, gamma,
                                   output_mask=mask)
            wanted = mask or [True, False]
            self.assertEqual([each.numel() > 1 for each in results],
                             [wanted[0], wanted[1], True, wanted[0], wanted[1]])

    def test_gemma_s_norm(self):
        for dtype in FLOATS:
            x, gamma = torch.randn(2, 3, 8).to(dtype), torch.randn(8).to(dtype)
            y, rstd = same_results(self, torch_npu.npu_gemma_rms_norm, x, gamma)
            root = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
            close(self, y, x.float() * root * (1 + gamma.float()), dtype)
            close(self, rstd, root)

    def test_norms_that_are_quantised(self):
        draw = random.Random(5)
        for turn in range(TURNS):
            dtype, width = draw.choice(FLOATS[1:]), 8 * draw.randint(1, 4)
            x, other = (torch.randn(draw.randint(1, 4), width).to(dtype) for _ in range(2))
            other = torch.randn_like(x)
            gamma, beta = torch.randn(width).to(dtype), torch.randn(width).to(dtype)
            scale = (torch.rand(width) * 0.05 + 0.02).to(dtype)
            shift = torch.randint(-5, 6, (width,), dtype=torch.int8)
            total = (x + other).float() if turn % 2 else x.float()
            root = torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6)
            wanted = (total * root * gamma.float() + beta.float()) / scale.float() + shift.float()
            if turn % 2:
                got, _, summed = same_results(
                    self, torch_npu.npu_add_rms_norm_quant, x, other, gamma, scale,
                    shift.to(torch.int32), beta)
                self.assertTrue(torch.equal(summed, x + other))
            elif turn % 4:
                got, none = same_results(self, torch_npu.npu_rms_norm_quant_v2, x, gamma, scale,
                                         offset=shift, beta=beta)
                self.assertEqual(none.shape, (0,))
                rstd = torch_npu.npu_rms_norm_quant_v2(x.clone().requires_grad_(), gamma, scale)[1]
                close(self, rstd, root)
            else:
                got = same_results(self, torch_npu.npu_rms_norm_quant, x, gamma, beta, scale, shift)
                again = torch.empty_like(got)
                torch_npu._npu_quant_rms_norm(x, gamma, beta, scale, shift, again, 1e-6)
                self.assertTrue(torch.equal(got, again))
            self.assertEqual(got.dtype, torch.int8)
            self.assertLessEqual((got.float() - wanted.clamp(-128, 127)).abs().max().item(), 0.501)


class Elementwise(unittest.TestCase):
    def test_gelu_times_the_other_half(self):
        for turn in range(TURNS):
            x = torch.randn(turn % 3 + 1, 2 * (turn % 7 + 1)).to(FLOATS[turn % 3])
            approximate = ("none", "tanh")[turn % 2]
            a, b = x.float().chunk(2, -1)
            close(self, same_results(self, torch_npu.npu_gelu_mul, x, approximate=approximate),
                  functional.gelu(a, approximate=approximate) * b, x.dtype)

    def test_masked_softmax_and_its_gradient(self):
        draw = random.Random(6)
        for _ in range(TURNS):
            shape = [draw.randint(1, 3) for _ in range(3)] + [draw.randint(2, 6)]
            x = torch.randn(shape, requires_grad=True)
            mask = torch.rand([draw.choice([1, each]) for each in shape]) < 0.3
            scale = draw.choice([1, 0.5])
            y = torch_npu.npu_scaled_masked_softmax(x, mask, scale)
            wanted = (x * scale).masked_fill(mask, -10000.0).softmax(-1)
            close(self, y, wanted)
            dy = torch.randn_like(y)
            close(self, torch.autograd.grad(y, x, dy)[0], torch.autograd.grad(wanted, x, dy)[0])

    def test_cross_entropy_and_its_gradient(self):
        draw = random.Random(7)
        for _ in range(TURNS):
            n, classes = draw.randint(1, 5), draw.randint(2, 6)
            x = torch.randn(n, classes, requires_grad=True)
            target = torch.randint(0, classes, (n,))
            words = {"weight": draw.choice([None, torch.rand(classes) + 0.1]),
                     "reduction": draw.choice(["mean", "sum", "none"]),
                     "label_smoothing": draw.choice([0.0, 0.1])}
            loss, log_prob, _, _ = same_results(self, torch_npu.npu_cross_entropy_loss, x, target,
                                                **words)
            wanted = functional.cross_entropy(x, target, **words)
            close(self, loss, wanted.reshape(loss.shape))
            close(self, log_prob, x.log_softmax(-1))
            dy = torch.randn_like(loss)
            close(self, torch.autograd.grad(loss, x, dy)[0],
                  torch.autograd.grad(wanted, x, dy.reshape(wanted.shape))[0])

    def test_swiglu_is_quantised_by_groups(self):
        for turn in range(TURNS):
            rows, width, dynamic = turn % 5 + 1, 8 * (turn % 3 + 1), turn % 2 == 0
            x = torch.randn(rows, 2 * width).to(FLOATS[turn % 3])
            smooth, shift = torch.rand(2, width) * 20, torch.randn(2, width)
            first = turn % (rows + 1)
            a, b = x.float().chunk(2, -1)
            z = a * functional.silu(b)
            which = (torch.arange(rows) >= first).long()
            z = z * smooth[which] + (0 if dynamic else shift[which])
            y, scale = same_results(
                self, torch_npu.npu_swiglu_quant, x, smooth_scales=smooth, offsets=shift,
                group_index=torch.tensor([first, rows], dtype=torch.int32),
                quant_mode=int(dynamic))
            if dynamic:
                factors = 127 / z.abs().amax(-1)
                close(self, scale, factors, factor=10)
                z = z * factors[:, None]
            self.assertLessEqual((y.float() - z.clamp(-128, 127)).abs().max().item(), 0.51)

    def test_rotary_embeddings_by_positions(self):
        for turn in range(TURNS):
            tokens, half = turn % 4 + 1, 3 * (turn % 3 + 1)
            head = 2 * half + (4 if turn % 5 == 0 else 0)
            cache = torch.randn(9, 2 * half)
            query, key = torch.randn(tokens, 3 * head), torch.randn(tokens, head)
            three, neox = turn % 2 == 0, turn % 4 < 2
            positions = torch.randint(0, 9, (3, tokens) if three else (tokens,))
            cos, sin = cache[positions].chunk(2, -1)
            section = [half - 2, 1, 1] if three else None
            if three:
                cos, sin = (torch.cat([part[i] for i, part in enumerate(
                    each.split(section, -1))], -1) for each in (cos, sin))

            def rotated(x):
                x = x.unflatten(-1, (-1, head)).clone()
                turned = x[..., :2 * half]
                a, b = turned.chunk(2, -1) if neox else (turned[..., ::2], turned[..., 1::2])
                c, s = cos.unsqueeze(1), sin.unsqueeze(1)
                first, second = a * c - b * s, b * c + a * s
                x[..., :2 * half] = (torch.cat([first, second], -1) if neox
                                     else torch.stack([first, second], -1).flatten(-2))
                return x.flatten(-2)

            got = same_results(self, torch_npu.npu_mrope, positions, query, key, cache, head,
                               mrope_section=section, rotary_mode="half" if neox else "interleave")
            close(self, got[0], rotated(query))
            close(self, got[1], rotated(key))
            if not three:
                q, k = query.clone(), key.clone()
                torch_npu._npu_rotary_embedding(positions, q, k, head, cache, neox)
                self.assertTrue(torch.equal(q, got[0]) and torch.equal(k, got[1]))

    def test_rotation_by_tables(self):
        x, cos, sin = torch.randn(2, 3, 4, 8), torch.randn(1, 3, 1, 8), torch.randn(1, 3, 1, 8)
        close(self, torch_npu.npu_rotary_position_embedding(x, cos, sin, 0),
              torch_npu.npu_rotary_mul(x, cos, sin))


class Experts(unittest.TestCase):
    def test_tokens_are_permuted_by_expert_and_back(self):
        draw = random.Random(8)
        for _ in range(TURNS):
            tokens, choices, width = draw.randint(1, 6), draw.randint(1, 3), draw.randint(1, 5)
            x = torch.randn(tokens, width, requires_grad=True)
            experts = torch.randint(0, 4, (tokens, choices))
            probs = torch.rand(tokens, choices, requires_grad=True)
            permuted, places = same_results(self, torch_npu.npu_moe_token_permute, x, experts)
            order = torch.argsort(experts.flatten(), stable=True)
            self.assertTrue(torch.equal(permuted, x[order // choices]))
            self.assertTrue(torch.equal(places, torch.argsort(order).int()))
            y = torch_npu.npu_moe_token_unpermute(permuted * 2, places, probs)
            wanted = 2 * x * probs.sum(-1, keepdim=True)
            close(self, y, wanted)
            dy = torch.randn_like(y)
            for got, want in zip(torch.autograd.grad(y, (x, probs), dy),
                                 torch.autograd.grad(wanted, (x, probs), dy)):
                close(self, got, want)

    def test_some_tokens_are_dropped(self):
        x = torch.randn(3, 2)
        permuted, places = same_results(self, torch_npu.npu_moe_token_permute, x,
                                        torch.tensor([2, 0, 1]), 2)
        self.assertTrue(torch.equal(permuted, x[[1, 2]]))
        self.assertEqual(places.tolist(), [2, 0, 1])

    def test_routing_maps(self):
        draw = random.Random(9)
        for turn in range(TURNS):
            tokens, experts, width = draw.randint(2, 6), draw.randint(2, 4), draw.randint(1, 5)
            padded, weighs = turn % 2 == 0, turn % 3 > 0
            choices, capacity = draw.randint(1, experts), draw.randint(1, tokens)
            scores = torch.rand(tokens, experts)
            routing = torch.zeros(tokens, experts, dtype=torch.bool).scatter_(
                1, scores.topk(choices).indices, True)
            x = torch.randn(tokens, width, requires_grad=True)
            probs = torch.rand(tokens, experts, requires_grad=True)
            rows = experts * capacity if padded else tokens * choices
            words = {"probs": probs if weighs else None, "drop_and_pad": padded}
            permuted, weights, places = torch_npu.npu_moe_token_permute_with_routing_map(
                x, routing, num_out_tokens=rows, **words)
            columns = routing.T.int().argsort(dim=-1, descending=True, stable=True)
            if padded:
                order = columns[:, :capacity].flatten()
                expert = torch.arange(experts).repeat_interleave(capacity)
                self.assertTrue(torch.equal(places, order.int()))
            else:
                expert, order = routing.T.nonzero(as_tuple=True)
                self.assertTrue(torch.equal(places, order.argsort(stable=True).int()))
            self.assertTrue(torch.equal(permuted, x[order]))
            y = torch_npu.npu_moe_token_unpermute_with_routing_map(
                permuted, places, [tokens, width], routing_map=routing, **words)
            picked = probs[order, expert]
            wanted = torch.zeros(tokens, width).index_add(
                0, order, x[order] * (picked[:, None] if weighs else 1))
            close(self, y, wanted)
            inputs, outputs, references = [x], [y], [wanted]
            if weighs:
                self.assertTrue(torch.equal(weights, picked))
                inputs, outputs, references = [x, probs], [y, weights], [wanted, picked]
            gradients = [torch.randn_like(each) for each in outputs]
            for got, want in zip(torch.autograd.grad(outputs, inputs, gradients),
                                 torch.autograd.grad(references, inputs, gradients)):
                close(self, got, want)

    def test_the_gate_gives_its_softmax_only_where_it_is_asked_for(self):
        x = torch.randn(3, 5)
        for renorm in (0, 1):
            for wanted in (True, False):
                softmax = same_results(self, torch_npu.npu_moe_gating_top_k_softmax_v2, x, k=2,
                                       renorm=renorm, output_softmax=wanted)[2]
                if wanted and renorm == 0:
                    close(self, softmax, x.softmax(-1))
                else:
                    self.assertEqual(softmax.shape, (0,))

    def test_rows_of_all_positions_where_few_experts_are_active(self):
        ids = torch.tensor([[2, 0], [1, 2], [3, 0], [2, 1]], dtype=torch.int32)
        rows = torch_npu.npu_moe_init_routing_v2(
            torch.randn(4, 2), ids, expert_num=4, active_expert_range=[1, 3], active_num=8,
            row_idx_type=1)[1]
        self.assertEqual(rows.tolist(), [2, 7, 0, 3, 6, 4, 1, 5])


class Memory(unittest.TestCase):
    def test_slices_as_tensorflow_has_them(self):
        x = torch.arange(60.0).reshape(3, 4, 5)
        for begin, end, strides, words in (
                ([0, 1, 0], [3, 4, 5], [1, 2, 2], {}),
                ([1, 0], [3, 2], [1, 1], {"begin_mask": 2}),
                ([1, 0], [2, 2], [1, 1], {"shrink_axis_mask": 1}),
                ([0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsis_mask": 2, "end_mask": 1})):
            got = same_results(self, torch_npu.npu_indexing, x, begin, end, strides, **words)
            index = []
            for at, (first, last, step) in enumerate(zip(begin, end, strides)):
                if words.get("ellipsis_mask", 0) >> at & 1:
                    index.append(Ellipsis)
                elif words.get("shrink_axis_mask", 0) >> at & 1:
                    index.append(first)
                else:
                    index.append(slice(None if words.get("begin_mask", 0) >> at & 1 else first,
                                       None if words.get("end_mask", 0) >> at & 1 else last, step))
            self.assertTrue(torch.equal(got, x[tuple(index)]))
        out = torch.empty(0)
        torch_npu.npu_indexing.out(x, [0], [2], [1], out=out)
        self.assertTrue(torch.equal(out, x[:2]))

    def test_shapes_that_a_call_names(self):
        for _ in range(TURNS):
            x = torch.randn([random.randint(1, 4) for _ in range(3)])
            order = random.sample(range(3), 3)
            self.assertTrue(torch.equal(same_results(self, torch_npu.npu_transpose, x, order),
                                        x.permute(order)))
            self.assertTrue(torch.equal(
                same_results(self, torch_npu.npu_broadcast, x, [2, *x.shape]), x.expand(2, *x.shape)))
            self.assertTrue(torch.equal(
                same_results(self, torch_npu.npu_reshape, x, [x.shape[2], -1]),
                x.reshape(x.shape[2], -1)))
            first = [random.randrange(size) for size in x.shape]
            count = [random.randint(1, size - at) for size, at in zip(x.shape, first)]
            self.assertTrue(torch.equal(
                same_results(self, torch_npu.npu_slice, x, first, count),
                x[tuple(slice(at, at + size) for at, size in zip(first, count))]))
            pads = [random.randint(0, 2) for _ in range(6)]
            self.assertTrue(torch.equal(
                same_results(self, torch_npu.npu_pad, x, pads),
                functional.pad(x, [*pads[4:], *pads[2:4], *pads[:2]])))
        x1 = torch.randint(-5, 6, (2, 3, 16), dtype=torch.int8)
        x2 = torch.randint(-5, 6, (2, 16, 16), dtype=torch.int8)
        s1, s2 = torch.rand(2, 3), torch.rand(16).bfloat16()
        wanted = ((x1.float() @ x2.float()) * s1[..., None] * s2.float()).sum(0)
        close(self, same_results(self, torch_npu.npu_quant_matmul_reduce_sum, x1, x2, x1_scale=s1,
                                 x2_scale=s2), wanted, torch.bfloat16)

    def test_logits_that_a_sampler_may_draw(self):
        for turn in range(TURNS):
            rows, width = turn % 3 + 1, turn % 7 + 2
            logits = torch.randn(rows, width)
            p, k = torch.rand(rows), torch.randint(1, width + 1, (rows,), dtype=torch.int32)
            ordered, places = logits.sort(-1)
            least = ordered.gather(1, (width - k.long()).unsqueeze(1))
            ordered = ordered.masked_fill(ordered < least, -torch.inf)
            unlikely = ordered.softmax(-1).cumsum(-1) <= 1 - p.unsqueeze(1)
            unlikely[:, -1] = False
            ordered = ordered.masked_fill(unlikely, -torch.inf)
            wanted = torch.empty_like(ordered).scatter_(-1, places, ordered)
            self.assertTrue(torch.equal(
                same_results(self, torch_npu.npu_top_k_top_p, logits, p, k), wanted))

    def test_caches_in_pages_come_out_again(self):
        key_cache, value_cache = torch.randn(4, 2, 1, 8), torch.randn(4, 2, 1, 4)
        table = torch.tensor([[2, 0], [3, 1]], dtype=torch.int32)
        key, value = torch.zeros(5, 1, 8), torch.zeros(5, 1, 4)
        torch_npu.npu_gather_pa_kv_cache(key_cache, value_cache, table,
                                         torch.tensor([3, 2], dtype=torch.int32), key, value)
        wanted = [(2, 0), (2, 1), (0, 0), (3, 0), (3, 1)]
        self.assertTrue(torch.equal(key, torch.stack([key_cache[at] for at in wanted])))
        self.assertTrue(torch.equal(value, torch.stack([value_cache[at] for at in wanted])))

    def test_a_cache_in_tiles_is_written_and_read(self):
        heads, width, size = 2, 32, 4
        key = torch.randn(3, heads, width).half()
        cache = torch.zeros(2, heads * width // 16, size, 16).half()
        cast = torch_npu.npu_format_cast(cache, 29)
        slots = torch.tensor([5, 0, 2], dtype=torch.int32)
        torch_npu.npu_scatter_pa_kv_cache(key, key, cast, torch.zeros_like(cache), slots)
        for token, slot in enumerate(slots.tolist()):
            self.assertTrue(torch.equal(cast[slot // size, :, slot % size].flatten(),
                                        key[token].flatten()))
        found, again = torch.zeros(4, heads, width).half(), torch.zeros(4, heads, width).half()
        torch_npu.npu_gather_pa_kv_cache(cast, cast, torch.tensor([[1, 0]], dtype=torch.int32),
                                         torch.tensor([4], dtype=torch.int32), found, again)
        self.assertTrue(torch.equal(found[1], key[0]))

    def test_keys_alone_are_written_into_pages(self):
        draw = random.Random(12)
        for _ in range(80):
            heads, width, size, pages = (draw.randint(1, 3) for _ in range(4))
            slots = draw.sample(range(-1, size * pages), draw.randint(1, size * pages))
            key = torch.randn(len(slots), heads, width).to(draw.choice(FLOATS))
            cache = torch.randn(pages, size, heads, width).to(key.dtype)
            wanted = cache.clone()
            for token, slot in zip(key, slots):
                if slot >= 0:
                    wanted[slot // size, slot % size] = token
            torch_npu._npu_reshape_and_cache_siso(key, cache,
                                                  torch.tensor(slots, dtype=torch.int32))
            self.assertTrue(torch.equal(cache, wanted))

    def test_sequences_are_read_from_pages(self):
        draw = random.Random(13)
        for _ in range(80):
            batch, heads, size = draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 4)
            key_cache, value_cache = (torch.randn(6, size, heads, width).half()
                                      for width in (8, 3))
            table = torch.stack([torch.randperm(6, dtype=torch.int32) for _ in range(batch)])
            lengths = [draw.randint(0, 3 * size) for _ in range(batch)]
            starts = [draw.randint(0, 3 * size - 1) for _ in range(batch)]
            rows = [(table[b, starts[b] // size + t // size], t % size)
                    for b in range(batch) for t in range(lengths[b])]
            cumsum = draw.choice([False, True])
            given = torch.tensor([0, *lengths] if cumsum else lengths, dtype=torch.int32)
            given = given.cumsum(0).int() if cumsum else given
            words = {"seq_starts": torch.tensor(starts, dtype=torch.int32), "cumsum": cumsum}
            found = torch_npu.atb.npu_paged_cache_load(key_cache, value_cache, table, given, **words)
            for got, cache in zip(found, (key_cache, value_cache)):
                wanted = [cache[row] for row in rows]
                self.assertEqual(got.shape, (len(rows), *cache.shape[2:]))
                self.assertTrue(not rows or torch.equal(got, torch.stack(wanted)))
            again = [torch.zeros_like(each) for each in found]
            torch_npu.atb.npu_paged_cache_load(key_cache, value_cache, table, given,
                                               key=again[0], value=again[1], **words)
            self.assertTrue(torch.equal(again[0], found[0]) and torch.equal(again[1], found[1]))
        with self.assertRaisesRegex(RuntimeError, "key and value or neither"):
            torch_npu.atb.npu_paged_cache_load(key_cache, value_cache, table, given, key=again[0])

    def test_one_query_of_each_sequence_in_pages(self):
        draw = random.Random(10)
        for _ in range(TURNS):
            batch, groups, kv_heads, width, size = (draw.randint(1, 3), draw.randint(1, 2),
                                                    draw.randint(1, 2), 16, 4)
            query = torch.randn(batch, groups * kv_heads, width)
            keys, values = torch.randn(2, 8, size, kv_heads, width)
            table = torch.randint(0, 8, (batch, 3), dtype=torch.int32)
            lengths = torch.randint(1, 3 * size + 1, (batch,), dtype=torch.int32)
            out = torch.empty_like(query)
            torch_npu._npu_paged_attention(query, keys, values, kv_heads, groups * kv_heads, 0.25,
                                           table, lengths, out)
            for b in range(batch):
                k, v = (each[table[b].long()].flatten(0, 1)[:lengths[b]]
                        .repeat_interleave(groups, 1) for each in (keys, values))
                weights = (torch.einsum("hd,shd->hs", query[b], k) * 0.25).softmax(-1)
                close(self, out[b], torch.einsum("hs,shd->hd", weights, v))
        workspace = torch_npu._npu_paged_attention_get_workspace(
            query, keys, values, kv_heads, groups * kv_heads, 0.25, table, lengths, out)
        again = torch.empty_like(out)
        torch_npu._npu_paged_attention(query, keys, values, kv_heads, groups * kv_heads, 0.25,
                                       table, lengths, again, workspace=workspace)
        self.assertTrue(torch.equal(out, again))


    def test_the_other_calls_of_attention_agree_with_the_first(self):
        tensors = [torch.randn(7, 2, 16, requires_grad=True) for _ in range(3)]
        ends = [3, 7]
        words = {"scale": 0.25, "actual_seq_qlen": ends, "actual_seq_kvlen": ends}
        first = torch_npu.npu_fusion_attention(*tensors, 2, "TND", **words)
        second = torch_npu.npu_fusion_attention_v2(*tensors, 2, "TND", **words)
        self.assertTrue(torch.equal(first[0], second[0]))
        words.update(actual_seq_qlen=torch.tensor(ends), actual_seq_kvlen=torch.tensor(ends))
        third = torch_npu.npu_fusion_attention_v3(*tensors, 2, "TND", **words)
        self.assertTrue(torch.equal(first[0], third[0]) and torch.equal(first[2], third[2]))
        dy = torch.randn_like(first[0])
        for got, want in zip(torch.autograd.grad(third[0], tensors, dy),
                             torch.autograd.grad(first[0], tensors, dy)):
            self.assertTrue(torch.equal(got, want))


    def test_sequences_one_after_the_other(self):
        draw = random.Random(11)
        for _ in range(TURNS):
            lengths = [draw.randint(1, 5) for _ in range(draw.randint(1, 3))]
            groups, kv_heads = draw.randint(1, 2), draw.randint(1, 2)
            query = torch.randn(sum(lengths), groups * kv_heads, 16)
            key, value = torch.randn(2, sum(lengths), kv_heads, 16)
            out, again = torch.empty_like(query), torch.empty_like(query)
            given = (query, key, value, torch.tensor(lengths, dtype=torch.int32), 0.25,
                     groups * kv_heads, kv_heads)
            torch_npu._npu_flash_attention_unpad(*given, out)
            torch_npu._npu_flash_attention_unpad_v2(*given, out=again)
            parts = [each.split(lengths) for each in (query, key, value)]
            wanted = torch.cat([functional.scaled_dot_product_attention(
                q.transpose(0, 1), k.repeat_interleave(groups, 1).transpose(0, 1),
                v.repeat_interleave(groups, 1).transpose(0, 1), scale=0.25).transpose(0, 1)
                for q, k, v in zip(*parts)])
            close(self, out, wanted)
            self.assertTrue(torch.equal(out, again))

    def test_values_that_are_parts_of_the_keys(self):
        query, cache = torch.randn(2, 4, 48), torch.randn(3, 4, 1, 48)
        table = torch.tensor([[2, 0], [1, 2]], dtype=torch.int32)
        lengths = torch.tensor([5, 3], dtype=torch.int32)
        out, wanted = torch.empty(2, 4, 32), torch.empty(2, 4, 32)
        torch_npu._npu_paged_attention_mla(query, cache, 1, 4, 0.25, table, lengths, 32, out)
        for b in range(2):
            keys = cache[table[b].long()].flatten(0, 2)[:lengths[b]]
            wanted[b] = (query[b] @ keys.T * 0.25).softmax(-1) @ keys[:, :32]
        close(self, out, wanted)


def chosen_experts(x, bias, groups, group_topk, n, k):
    """By plain Python: the experts of each row and their shares."""
    all_chosen, all_shares = [], []
    for row in x.tolist():
        shares = [1 / (1 + math.exp(-value)) for value in row]
        scores = [share + more for share, more in zip(shares, bias.tolist())]
        size = len(row) // groups
        sums = [sum(sorted(scores[g * size:(g + 1) * size])[-n:]) for g in range(groups)]
        kept = sorted(range(groups), key=lambda g: -sums[g])[:group_topk]
        scores = [score if e // size in kept else 0.0 for e, score in enumerate(scores)]
        chosen = sorted(range(len(row)), key=lambda e: -scores[e])[:k]
        all_chosen.append(chosen)
        all_shares.append([shares[e] for e in chosen])
    return all_chosen, torch.tensor(all_shares)


class ExpertsInGroups(unittest.TestCase):
    def test_groups_and_experts_with_the_largest_shares(self):
        draw = random.Random(14)
        for _ in range(80):
            groups, size, tokens = draw.randint(1, 4), draw.randint(2, 4), draw.randint(1, 4)
            words = {"group_num": groups, "group_topk": draw.randint(1, groups),
                     "n": draw.randint(1, size), "k": draw.randint(1, size)}
            # Values that are far enough apart for float32 to keep their order.
            x = torch.randperm(tokens * groups * size).reshape(tokens, -1) / 8 - 2
            bias = torch.randint(-4, 9, (groups * size,)) / 8
            chosen, shares = chosen_experts(x.double(), bias.double(), groups,
                                            words["group_topk"], words["n"], words["k"])
            scale = draw.choice([1, 2.5])
            y, experts = torch_npu.atb.npu_fused_add_topk_div(x, bias, scale=scale, **words)
            self.assertEqual((experts.dtype, experts.tolist()), (torch.int32, chosen))
            close(self, y, shares / shares.sum(-1, keepdim=True) * scale)
            plain, _ = torch_npu.atb.npu_fused_add_topk_div(x, bias, is_norm=False, scale=scale,
                                                            **words)
            close(self, plain, shares)
            counts = torch.randint(1, 4, (groups * size,), dtype=torch.int32)
            table = torch.randint(0, 99, (groups * size, 3), dtype=torch.int32)
            out = torch.empty_like(y), torch.empty_like(experts)
            torch_npu.atb.npu_fused_add_topk_div(
                x, bias, scale=scale, mapping_num=counts, mapping_table=table,
                enable_expert_mapping=True, y=out[0], indices=out[1], **words)
            self.assertEqual(out[1].tolist(), [[table[e, t % int(counts[e])] for e in row]
                                               for t, row in enumerate(chosen)])
            self.assertTrue(torch.equal(out[0], y))

    def test_experts_that_do_not_fit_their_groups(self):
        x, bias = torch.zeros(1, 6), torch.zeros(6)
        for words, text in (({"group_num": 4}, "6 experts in group_num 4"), ({"n": 7}, "n 7"),
                            ({"group_topk": 2}, "group_topk 2"), ({"k": 7}, "k 7"),
                            ({"activation_type": "other"}, "seen 'other'"),
                            ({"enable_expert_mapping": True}, "needs mapping_num")):
            with self.assertRaisesRegex(RuntimeError, text):
                torch_npu.atb.npu_fused_add_topk_div(x, bias, **words)


class Products(unittest.TestCase):
    def test_weights_are_packed_to_four_bits(self):
        weight = torch.randint(-8, 8, (16, 24), dtype=torch.int32)
        packed = same_results(self, torch_npu.npu_convert_weight_to_int4pack, weight)
        x = torch.randn(5, 16).half()
        scale, shift = torch.rand(1, 24).half(), torch.rand(1, 24).half()
        got = torch_npu.npu_weight_quant_batchmatmul(x, packed, scale, shift)
        close(self, got, x.float() @ ((weight + shift.float()) * scale.float()), torch.float16, 4)
        with self.assertRaisesRegex(ValueError, "multiple of 8"):
            torch_npu.npu_convert_weight_to_int4pack(weight[:, :20])

    def test_a_product_with_gelu(self):
        for turn in range(TURNS):
            m, k, n = turn % 4 + 1, 8 * (turn % 3 + 1), 8 * (turn % 2 + 1)
            x1 = torch.randint(-5, 6, (m, k), dtype=torch.int8)
            x2 = torch.randint(-5, 6, (k, n), dtype=torch.int8)
            s1, s2 = torch.rand(m) * 0.1, torch.rand(n) * 0.1
            bias = torch.randn(n) if turn % 2 else None
            form = ("gelu_erf", "gelu_tanh")[turn % 2]
            got = same_results(self, torch_npu.npu_quant_matmul_gelu, x1, x2, s1, s2, bias=bias,
                               approximate=form)
            wanted = (x1.float() @ x2.float()) * s1[:, None] * s2
            wanted = wanted if bias is None else wanted + bias
            close(self, got, functional.gelu(
                wanted, approximate="tanh" if turn % 2 else "none"), torch.float16)


    def test_rows_of_experts_are_weighted_and_added(self):
        draw = random.Random(15)
        for kind in ("int8", "int4", "mxfp8", "mxfp4") * 6:
            counts = [draw.randint(0, 3) for _ in range(3)]
            m, k, n, bs = sum(counts) + 1, 128, 8 * draw.randint(1, 3), draw.randint(1, 4)
            x = torch.randint(-4, 5, (m, k))
            w = torch.randint(-4, 5, (3, k, n))
            rows = torch.randint(0, bs, (m,))
            row_scale, scale = 2. ** torch.randint(-2, 2, (m,)), 2. ** torch.randint(-2, 2, (3, n))
            bias, offset = torch.randint(-3, 4, (3, n)).float(), None
            words, left, right = {"pertoken_scale": row_scale, "scale": scale}, x.char(), w.char()
            after, wide_x, wide_w = row_scale[:, None], x.double(), w.double() * scale[:, None]
            shift, least = bias * 0, 0
            if kind == "int4":
                groups = draw.choice([1, 2, 4])
                scale = 2. ** torch.randint(-2, 2, (3, groups, n))
                offset = torch.randint(-3, 4, (3, groups, n)).float() if draw.random() < .7 else None
                right = torch_npu.npu_convert_weight_to_int4pack(w.int())
                words["scale"] = torch.stack([scale.float().view(torch.int32),
                                              torch.zeros(scale.shape, dtype=torch.int32)],
                                             -1).view(torch.int64).squeeze(-1)
                wide_w = w.double() * scale.repeat_interleave(k // groups, 1)
                words["offset"], shift, least = offset, bias, 8
            elif kind != "int8":
                held = {"mxfp8": torch.float8_e4m3fn, "mxfp4": torch_npu.float4_e2m1fn_x2}[kind]
                left, right, x, w = (*(self.stored(each, held) for each in (x, w)), x, w)
                powers = [torch.randint(125, 129, shape, dtype=torch.uint8)
                          for shape in ((m, k // 64, 2), (3, k // 64, n, 2))]
                e8m0 = torch_npu.float8_e8m0fnu
                words = {"pertoken_scale": powers[0], "scale": powers[1], "scale_dtype": e8m0,
                         "pertoken_scale_dtype": e8m0}
                if kind == "mxfp4":
                    words.update(x_dtype=held, w_dtype=held)
                factors = [2. ** (each.double() - 127) for each in powers]
                wide_x = x * factors[0].flatten(1).repeat_interleave(32, 1)
                wide_w = w * factors[1].transpose(2, 3).flatten(1, 2).repeat_interleave(32, 1)
                after = 1
            logit, shared = torch.randint(-2, 3, (m,)).float(), torch.randint(-4, 5, (1, n)).bfloat16()
            wanted = torch.zeros(bs, n).double()
            wanted[0] += 0.5 * shared[0]
            for row in range(m - 1):  # the last row is of no expert
                e = sum(row >= end for end in torch.tensor(counts).cumsum(0).tolist())
                total = (wide_x[row] - least) @ wide_w[e] + shift[e]
                if offset is not None:
                    total += (x[row].double() @ offset[e].double().repeat_interleave(
                        k // offset.shape[1], 0))
                total = total * (after if isinstance(after, int) else after[row])
                total = total if kind == "int4" else total + bias[e]
                wanted[rows[row]] += total * logit[row]
            got = same_results(
                self, torch_npu.npu_grouped_matmul_finalize_routing, left, right,
                torch.tensor(counts), bias=bias, shared_input=shared, logit=logit, row_index=rows,
                shared_input_weight=.5, output_bs=bs, **words)
            self.assertTrue(torch.equal(got.double(), wanted), kind)

    @staticmethod
    def stored(values, held):
        """Small integers as floats of 8 bits, or two floats of 4 bits in a byte."""
        if isinstance(held, torch.dtype):
            return values.to(held)
        codes = torch.tensor([0, 2, 4, 5, 6])[values.abs()] + 8 * (values < 0)
        return (codes[..., 0::2] + 16 * codes[..., 1::2]).to(torch.uint8)


class Attention(unittest.TestCase):
    """Against torch's formulas; inputs are [tokens, heads, width] unless a test says otherwise."""

    @staticmethod
    def plain(query, key, value, scale, shift=None):
        """The result and the logarithms of the sums, [heads, tokens]."""
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        scores = torch.einsum("qhd,khd->hqk", query, key) * scale
        scores = scores if shift is None else scores + shift
        return (torch.einsum("hqk,khd->qhd", scores.softmax(-1).nan_to_num(0), value),
                scores.logsumexp(-1))

    @staticmethod
    def triangle(rows, columns):
        return torch.triu(torch.full((rows, columns), -torch.inf), 1)

    def test_dropout_and_the_gradients_of_all_calls(self):
        draw = random.Random(16)
        calls = (torch_npu.npu_fusion_attention, torch_npu.npu_fusion_attention_v2,
                 torch_npu.npu_fusion_attention_v3)
        for turn in range(TURNS):
            layout = draw.choice(["BNSD", "BSND", "BSH", "SBH"])
            batch, heads, s1, s2 = (draw.randint(1, 3) for _ in range(4))
            call, width = calls[turn % 3], 16
            query = torch.randn(batch, heads, s1, width, requires_grad=True)
            key, value = (torch.randn(batch, heads, s2, width, requires_grad=True)
                          for _ in range(2))
            pse = torch.randn(batch, heads, s1, s2, requires_grad=True)
            sink = torch.randn(heads, requires_grad=True) if draw.random() < .3 else None
            leaves = [query, key, value, pse] + ([] if sink is None else [sink])
            keep = draw.choice([1.0, 0.5])
            words = {"scale": .25, "keep_prob": keep, "pse": pse, "sink": sink}
            scores = query @ key.mT
            if call is calls[1]:
                words["pse_type"] = draw.choice([0, 1])
                ropes = [torch.randn(batch, heads, s, 64, requires_grad=True) for s in (s1, s2)]
                leaves += ropes
                words.update(zip(("query_rope", "key_rope"),
                                 (self.laid(each, layout) for each in ropes)))
                scores = scores + ropes[0] @ ropes[1].mT
            scores = ((scores + pse) * .25 if words.get("pse_type", 1) == 1 and call is calls[1]
                      else scores * .25 + pse)
            if sink is not None:
                scores = torch.cat([scores, sink[:, None, None].expand(batch, heads, s1, 1)], -1)
            chances = scores.softmax(-1)[..., :s2]
            count = batch * heads * s1 * s2
            if draw.random() < .5 and keep < 1 and call is not calls[2]:
                words["dropout_mask"] = torch.randint(0, 256, ((count + 127) // 128 * 16,),
                                                      dtype=torch.uint8)
            given = [self.laid(each, layout) for each in (query, key, value)]
            got = call(*given, heads, layout, **words)
            if keep < 1:
                mask = words.get("dropout_mask")
                if mask is None:
                    mask = torch_npu._npu_dropout_gen_mask(query, [batch, heads, s1, s2], 1 - keep,
                                                           int(got[4]), int(got[5]))
                bits = (mask[:, None] >> torch.arange(8)) & 1
                chances = chances * bits.flatten()[:count].reshape(chances.shape) / keep
            wanted = self.laid(chances @ value, layout)
            close(self, got[0], wanted)
            dy = torch.randn_like(wanted)
            wanted = torch.autograd.grad(wanted, leaves, dy)
            for mine, right in zip(torch.autograd.grad(got[0], leaves, dy), wanted):
                close(self, mine, right)
            if call is calls[2]:
                mine = torch_npu.npu_fusion_attention_grad_v3(
                    *(each.detach() for each in given), dy, heads, layout, pse=pse.detach(),
                    scale_value=.25, keep_prob=keep, seed=got[4], offset=got[5],
                    sink=None if sink is None else sink.detach())
                for each, right, axes in zip(mine, wanted, (True, True, True, False, False)):
                    close(self, each, self.laid(right, layout) if axes else right)

    @staticmethod
    def laid(tensor, layout):
        """[B, N, S, D] in a layout."""
        order = {"BNSD": (0, 1, 2, 3), "SBH": (2, 0, 1, 3)}.get(layout, (0, 2, 1, 3))
        tensor = tensor.permute(order)
        return tensor.flatten(2) if layout.endswith("H") else tensor

    def test_a_seed_repeats_the_dropout(self):
        query = torch.randn(1, 2, 64, 16)
        torch.manual_seed(3)
        first = torch_npu.npu_fusion_attention(query, query, query, 2, "BNSD", keep_prob=.5)
        other = torch_npu.npu_fusion_attention(query, query, query, 2, "BNSD", keep_prob=.5)
        torch.npu.manual_seed(3)
        again = torch_npu.npu_fusion_attention(query, query, query, 2, "BNSD", keep_prob=.5)
        self.assertTrue(torch.equal(first[0], again[0]))
        self.assertFalse(torch.equal(first[0], other[0]))
        mask = torch_npu._npu_dropout_gen_mask(query, [1, 2, 64, 64], .5, 3, 0)
        given = torch_npu.npu_fusion_attention(query, query, query, 2, "BNSD", keep_prob=.5,
                                               dropout_mask=mask)
        self.assertTrue(torch.equal(first[0], given[0]))
        told = torch_npu.npu_fusion_attention_v2(query, query, query, 2, "BNSD", keep_prob=.5,
                                                 seed=100, offset=200)
        self.assertEqual(told[4:], (100, 200, 2 * 64 * 64))
        with self.assertRaisesRegex(NotImplementedError, "no dropout in the layout TND"):
            torch_npu.npu_fusion_attention(query[0], query[0], query[0], 64, "TND", keep_prob=.5,
                                           actual_seq_qlen=[2], actual_seq_kvlen=[2])

    def test_masks_of_dropout(self):
        for shape in ([32, 16], [17, 19], [1], [128]):
            count = math.prod(shape)
            x = torch.randn(shape)
            full = same_results(self, torch_npu._npu_dropout_gen_mask, x, shape, 0.0, 1, 0)
            bits = ((full[:, None] >> torch.arange(8)) & 1).flatten()
            self.assertEqual(bits.tolist(), [1] * count + [0] * (len(bits) - count))
            self.assertEqual(torch_npu._npu_dropout_gen_mask(x, shape, 1.0, 1, 0).sum(), 0)
            masks = [torch_npu._npu_dropout_gen_mask(x, shape, .4, 2, 100, parallel=each)
                     for each in (True, False)]
            self.assertTrue(torch.equal(*masks))
        large = torch_npu._npu_dropout_gen_mask(x, [1 << 16], .25, 5, 0)
        kept = ((large[:, None] >> torch.arange(8)) & 1).double().mean().item()
        self.assertAlmostEqual(kept, .75, delta=.01)  # 6 standard deviations
        with self.assertRaisesRegex(RuntimeError, "p: expected a probability from 0 to 1, seen 2"):
            torch_npu._npu_dropout_gen_mask(x, [4], 2.0, 1, 0)

    def test_masks_are_added_to_the_scores_of_sequences(self):
        draw = random.Random(17)
        for _ in range(TURNS):
            lengths = [draw.randint(1, 5) for _ in range(draw.randint(1, 3))]
            batch, groups, kv_heads, most = len(lengths), draw.randint(1, 2), 2, max(lengths)
            heads, size = groups * kv_heads, most + draw.randint(0, 2)
            query = torch.randn(sum(lengths), heads, 16)
            key, value = torch.randn(2, sum(lengths), kv_heads, 16)
            mask = torch.randn(draw.choice([(size, size), (batch, size, size),
                                            (batch, heads, size, size)]))
            shift = (mask if mask.dim() != 3 else mask[:, None]).expand(batch, heads, size, size)
            if draw.random() < .3:  # in bfloat16 a 1 hides
                mask = torch.ones(size, size).triu(1).bfloat16()
                shift = self.triangle(size, size).expand(batch, heads, size, size)
            out = torch.empty_like(query)
            torch_npu._npu_flash_attention(query, key, value, mask,
                                           torch.tensor(lengths, dtype=torch.int32), .25, heads,
                                           kv_heads, out)
            parts = [each.split(lengths) for each in (query, key, value)]
            wanted = [self.plain(*of, .25, shift[b, :, :n, :n])[0]
                      for b, (n, *of) in enumerate(zip(lengths, *parts))]
            close(self, out, torch.cat(wanted))
        for mask, word in ((torch.zeros(1, 1), "expected 5 rows and columns"),
                           (torch.zeros(7, 1, 5, 5), "seen .7, 1, 5, 5.")):
            with self.assertRaisesRegex(RuntimeError, f"mask: .*{word}"):
                torch_npu._npu_flash_attention(query[:5], key[:5], value[:5], mask,
                                               torch.tensor([5]), .25, heads, kv_heads, out[:5])

    def test_rings_of_latent_attention(self):
        draw = random.Random(18)
        for turn in range(TURNS):
            batch, groups, kv_heads = draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 2)
            lengths = [[draw.randint(1, 4), draw.randint(0, 4) if turn > 1 else 0]
                       for _ in range(batch)]
            causal, joins, heads = draw.random() < .5, draw.random() < .5, groups * kv_heads
            causal = causal and turn > 1
            if causal:
                lengths = [[n, n] for n, _ in lengths]
            rows, columns = (sum(each) for each in zip(*lengths))
            q_nope, q_rope = torch.randn(rows, heads, 128), torch.randn(rows, heads, 64)
            k_nope, k_rope = (torch.randn(columns, kv_heads, 128),
                              torch.randn(columns, kv_heads, 64))
            value = torch.randn(columns, kv_heads, 128)
            before, sums = torch.randn(rows, heads, 128), torch.randn(heads, rows)
            words = {"mask_type": "mask_type_triu" if causal else "no_mask", "qk_scale": .07}
            if joins:
                words.update(calc_type="calc_type_default", pre_out=before, prev_lse=sums)
            seqlen = torch.tensor(lengths, dtype=torch.int32).T
            out, lse = torch_npu.atb.npu_ring_mla(
                q_nope, q_rope, k_nope, k_rope, value, None,
                seqlen[0] if causal and draw.random() < .5 else seqlen, heads, kv_heads, **words)
            r = c = 0
            for n, m in lengths:
                wide = [torch.cat(each, -1) for each in ((q_nope[r:r + n], q_rope[r:r + n]),
                                                         (k_nope[c:c + m], k_rope[c:c + m]))]
                want, want_lse = self.plain(*wide, value[c:c + m], .07,
                                            self.triangle(n, m) if causal else None)
                if joins:
                    old = sums[:, r:r + n]
                    both = torch.logaddexp(old, want_lse)
                    want = (before[r:r + n] * (old - both).exp().T[..., None]
                            + want * (want_lse - both).exp().T[..., None])
                    want_lse = both
                close(self, out[r:r + n], want)
                close(self, lse[:, r:r + n], want_lse)
                r, c = r + n, c + m
        into = torch.empty_like(out), torch.empty_like(lse)
        given = (q_nope, q_rope, k_nope, k_rope, value, None, seqlen, heads, kv_heads)
        torch_npu.atb.npu_ring_mla(*given, output=into[0], softmax_lse=into[1], **words)
        self.assertTrue(torch.equal(into[0], out) and torch.equal(into[1], lse))
        for words, word in (({"calc_type": "calc_type_default"}, "pre_out and prev_lse, which are"),
                            ({"mask_type": "all"}, "expected no_mask, mask_type_triu, seen 'all'")):
            with self.assertRaisesRegex(RuntimeError, f"npu_ring_mla: .*{word}"):
                torch_npu.atb.npu_ring_mla(*given, **words)

    def test_latent_attention_to_pages(self):
        draw = random.Random(19)
        call = torch_npu.atb.npu_multi_head_latent_attention
        for _ in range(TURNS):
            batch, heads, size = draw.randint(1, 3), draw.choice([1, 2, 4]), 16
            several = draw.random() < .4
            queries = [draw.randint(1, 3) if several else 1 for _ in range(batch)]
            contexts = [draw.randint(1, 2 * size) for _ in range(batch)]
            q_nope = torch.randn(sum(queries), heads, 512)
            q_rope = torch.randn(sum(queries), heads, 64)
            ctkv, k_rope = torch.randn(5, size, 1, 512), torch.randn(5, size, 1, 64)
            table = torch.randint(0, 5, (batch, 2), dtype=torch.int32)
            mask = torch.randn(sum(queries), max(contexts))
            caches, words = [ctkv, k_rope], {"calc_type": "calc_type_ring", "return_lse": True}
            if several:
                words = {"calc_type": "calc_type_spec", "mask_type": "mask_type_spec",
                         "mask": mask, "qseqlen": queries}
            if draw.random() < .4:
                words["cache_mode"] = "nzcache"
                caches = [each.flatten(2).unflatten(2, (-1, 16)).transpose(1, 2).contiguous()
                          for each in caches]
            got = call(q_nope, q_rope, *caches, table, contexts, heads, .05, 1, **words)
            out, lse = (got, None) if several else got
            r = 0
            for b, (n, m) in enumerate(zip(queries, contexts)):
                keys, ropes = (each[table[b].long()].flatten(0, 1)[:m] for each in (ctkv, k_rope))
                want, want_lse = self.plain(
                    torch.cat([q_nope[r:r + n], q_rope[r:r + n]], -1),
                    torch.cat([keys, ropes], -1), keys, .05, mask[r:r + n, :m] if several else None)
                close(self, out[r:r + n], want)
                if lse is not None:
                    close(self, lse[r:r + n, :, 0], want_lse.T)
                r += n
        into = torch.empty_like(q_nope)
        call(q_nope, q_rope, *caches, table, contexts, heads, .05, 1, output=into, **words)
        self.assertTrue(torch.equal(into, out))
        for words, word in (({"cache_mode": "int8_nzcache"}, "int8_nzcache"),
                            ({"return_lse": True}, "return_lse: expected calc_type"),
                            ({"mask_type": "mask_type_spec"}, "mask is missing")):
            with self.assertRaisesRegex(RuntimeError, word):
                call(q_nope, q_rope, *caches, table, contexts, heads, .05, 1, **words)

    def test_quantised_keys_with_modes_in_tensors(self):
        query = torch.randn(2, 4, 1, 64).half()
        key, value = torch.randint(-8, 8, (2, 2, 4, 5, 64))
        pairs = [torch_npu.npu_convert_weight_to_int4pack(each.flatten(0, 2).int()).reshape(
            *each.shape[:3], -1) for each in (key, value)]
        for mode in (torch.ones(1), torch.zeros(1), 1, 2):
            out, _ = torch_npu.npu_fused_infer_attention_score(
                query, *pairs, key_antiquant_scale=torch.tensor([.25]).half(),
                value_antiquant_scale=torch.tensor([.5]).half(), key_antiquant_mode=mode,
                value_antiquant_mode=mode, num_heads=4, input_layout="BNSD", scale=.125)
            wanted = ((query.float() @ (key * .25).mT) * .125).softmax(-1) @ (value * .5)
            close(self, out, wanted)


class Connections(unittest.TestCase):
    """Streams between layers, by what the vendor's pages say of them."""

    def test_into_and_out_of_a_layer(self):
        draw = random.Random(20)
        for _ in range(TURNS):
            n, width, parts = draw.choice([2, 4, 6]), draw.choice([16, 32]), draw.choice([2, 3])
            front = draw.choice([(3,), (2, 3)])
            sizes = [n, n, n * n][:parts]
            x = torch.randn(*front, n, width, requires_grad=True)
            phi = torch.randn(sum(sizes), n * width, requires_grad=True)
            alpha, bias = (torch.randn(count, requires_grad=True) for count in (parts, sum(sizes)))
            gamma = draw.choice([None, torch.randn(n, width, requires_grad=True)])
            leaves = [each for each in (x, phi, alpha, bias, gamma) if each is not None]
            got = torch_npu.npu_mhc_pre(x, phi, alpha, bias, gamma=gamma, out_flag=1)
            norm = functional.rms_norm(x.flatten(-2), [n * width],
                                       None if gamma is None else gamma.flatten(), 1e-6)
            cut = [a * (norm @ w.T) + b
                   for a, w, b in zip(alpha, phi.split(sizes), bias.split(sizes))]
            share = cut[0].sigmoid() + 1e-6
            wanted = [torch.einsum("...n,...nd->...d", share, x), 2 * cut[1].sigmoid(),
                      *(each.unflatten(-1, (n, n)) for each in cut[2:])]
            for mine, right in zip(got, wanted):
                close(self, mine, right, factor=4)
            close(self, got[5], share, factor=4)
            grads = [torch.randn_like(each) for each in wanted]
            right = torch.autograd.grad(wanted, leaves, grads, retain_graph=True)
            plain = [None if each is None else each.detach() for each in (x, phi, alpha, gamma)]
            h_in, h_post, _, inv, mix, pre = (each.detach() for each in got)
            grads += [torch.empty(0)] * (3 - parts)
            explicit = torch_npu.npu_mhc_pre_backward(*plain[:3], *grads, inv, mix, pre, h_post,
                                                      plain[3], grad_x_post=torch.ones_like(h_in[
                                                          ..., None, :]).expand(x.shape))
            close(self, explicit[0] - 1, right[0], factor=20)
            for mine, each in zip(explicit[1:], right[1:]):
                close(self, mine, each, factor=40)
            for mine, each in zip(torch.autograd.grad(got[:parts], leaves, grads[:parts]), right):
                close(self, mine, each, factor=40)
            self.assertEqual([each.numel() for each in torch_npu.npu_mhc_pre(
                *plain[:3], bias.detach())[3:]], [0, 0, 0])
        # HF32 has 10 bits after the point: 1 + 2^-11 becomes 1 + 2^-10, 1 + 2^-12 becomes 1.
        one = torch.ones(1, 2, 1, requires_grad=True)
        phi = torch.zeros(4, 2) + torch.tensor([1 + 2. ** -11, 1 + 2. ** -12])
        mix = torch_npu.npu_mhc_pre(one, phi, torch.ones(2), torch.zeros(4), out_flag=1,
                                    inner_precise=1)[4]
        self.assertEqual(mix.tolist(), [[2 + 2. ** -10] * 4])
        self.assertEqual(torch.autograd.grad(mix.sum(), one)[0].sum(), 4 * (2 + 2. ** -10))
        with self.assertRaisesRegex(RuntimeError, "npu_mhc_pre: alpha .1. and phi"):
            torch_npu.npu_mhc_pre(x, phi, alpha[:1], bias)

    def test_what_a_layer_gives_to_the_streams(self):
        for front in ((3,), (2, 3)):
            for mixed in (True, False):
                x, h_out = torch.randn(*front, 4, 8), torch.randn(*front, 8)
                h_res = torch.randn(*front, 4, 4) if mixed else None
                given = [x, h_res, h_out, torch.randn(*front, 4)]
                leaves = [each.requires_grad_() for each in given if each is not None]
                y = torch_npu.npu_mhc_post(*given)
                streams = x if h_res is None else torch.einsum("...ij,...id->...jd", h_res, x)
                close(self, y, streams + torch.einsum("...j,...d->...jd", given[3], h_out))
                grad = torch.randn_like(y)
                right = torch.autograd.grad(y, leaves, grad)
                mine = torch_npu.npu_mhc_post_backward(grad, *(
                    None if each is None else each.detach() for each in given))
                shown = [each for each, of in zip(mine, given) if of is not None]
                for each, wanted in zip(shown, right):
                    close(self, each, wanted)
                if not mixed:
                    self.assertTrue(torch.equal(mine[1], torch.zeros(*front, 4, 4)))
        plain = [each if each is None else each.detach() for each in given]
        for change, word in (((grad, plain[0], grad, *plain[2:]), "h_res shape must be"),
                             ((grad[..., :4], *plain), "grad_y shape must be the same as x shape"),
                             ((grad, *plain[:3], h_out.detach()), "h_post shape must be")):
            with self.assertRaisesRegex(RuntimeError, word):
                torch_npu.npu_mhc_post_backward(*change)
        half = torch.randn(3, 4, 8).half()
        y = torch_npu.npu_mhc_post(half, None, half[:, 0], torch.ones(3, 4))
        self.assertTrue(torch.equal(y, (half.float() + half[:, :1].float()).half()))

    def test_matrices_whose_rows_and_columns_sum_to_one(self):
        for shape, steps in (((5, 4, 4), 20), ((2, 3, 6, 6), 1), ((2, 3, 8, 8), 3)):
            x = torch.randn(shape, requires_grad=True)
            wanted = x.softmax(-1) + 1e-6
            wanted = wanted / (wanted.sum(-2, keepdim=True) + 1e-6)
            for _ in range(steps - 1):
                for axis in (-1, -2):
                    wanted = wanted / (wanted.sum(axis, keepdim=True) + 1e-6)
            y, norm, total = torch_npu.npu_mhc_sinkhorn(x, num_iters=steps, out_flag=1)
            close(self, y, wanted)
            n, tokens = shape[-1], shape[:-2]
            self.assertEqual((norm.shape, total.shape), ((2 * steps, n, n, *tokens),
                                                         (2 * steps, n, *tokens)))
            grad = torch.randn_like(y)
            right, = torch.autograd.grad(wanted, x, grad)
            close(self, torch.autograd.grad(y, x, grad)[0], right)
            close(self, torch_npu.npu_mhc_sinkhorn_backward(grad, norm.detach(), total.detach()),
                  right)
            same_results(self, torch_npu.npu_mhc_sinkhorn, x.detach(), num_iters=2)
        with self.assertRaisesRegex(RuntimeError, "num_iters: expected 1 or more, seen 0"):
            torch_npu.npu_mhc_sinkhorn(x, num_iters=0)


class Optimizers(unittest.TestCase):
    def test_steps_are_those_of_torch(self):
        for decays in (False, True):
            torch.manual_seed(5)
            plain = torch.nn.Parameter(torch.randn(7))
            var, m, v = plain.detach().clone(), torch.zeros(7), torch.zeros(7)
            kind = torch.optim.AdamW if decays else torch.optim.Adam
            words = {"weight_decay": 0.1} if decays else {}
            optimizer = kind([plain], lr=0.01, betas=(0.9, 0.99), eps=1e-8, **words)
            for step in range(1, 5):
                grad = torch.randn(7)
                plain.grad = grad.clone()
                optimizer.step()
                if decays:  # powers of the step before
                    torch_npu.npu_apply_adam_w(0.9 ** (step - 1), 0.99 ** (step - 1), 0.01, 0.1,
                                               0.9, 0.99, 1e-8, grad, None, False, False,
                                               out=(var, m, v))
                else:
                    torch_npu.npu_apply_adam_out(torch.tensor([0.9 ** step]), 0.99 ** step, 0.01,
                                                 0.9, 0.99, 1e-8, grad, False, False, var, m, v)
                close(self, var, plain.detach(), factor=5)
        with self.assertRaisesRegex(TypeError, "expected out="):
            torch_npu.npu_apply_adam(0.9, 0.9, 0.1, 0.9, 0.9, 1e-8, var, False, False)


class Doors(unittest.TestCase):
    def test_values_that_shapes_depend_on_are_constants(self):
        """What an operator needs to know before it runs, its row gives as constants."""
        from torch_npu import _table

        told = subprocess.run([os.environ["NPUMESH_COMMAND"], "ops", "--json"],
                              capture_output=True, text=True, check=True).stdout
        needs = {each["type"]: [trait[len("needs "):] for trait in each["traits"]
                                if trait.startswith("needs ")]
                 for each in json.loads(told)["operators"]}
        self.assertEqual(needs["LayerNormV4"], ["normalized_shape"])
        for name, row in _table.ROWS.items():
            given = {row.names.get(each, each) for each in row.constants}
            for kind in row.operators:
                with self.subTest(name):
                    self.assertLessEqual(set(needs[kind]), given, kind)


if __name__ == "__main__":
    npu_case.main()
