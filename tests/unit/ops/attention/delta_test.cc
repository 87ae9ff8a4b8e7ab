// RecurrentGatedDeltaRule, ChunkGatedDeltaRule and the fused causal convolutions against double.
#include <cmath>

#include "tests/unit/op_reference.h"
#include "tests/unit/op_types.h"
#include "tests/unit/op_unknown.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

// Inference with unknown dimensions agrees with that of the call.
void ExpectSound(const OpCall& call) {
  const Operator& op = *BuiltinOps().Find(call.type);
  const Node node = op_test::MakeNode(op, call);
  const Result<OpContext> known = op_test::BindAndInfer(op, call, node);
  ASSERT_TRUE(known.ok()) << known.status().ToString();
  op_test::ExpectSoundWithUnknowns(op, *known, *known);
}

Tensor Ints(const std::vector<int32_t>& values) {
  return Make<int32_t>(DataType::kInt32, {static_cast<int64_t>(values.size())}, values);
}

struct Delta {
  int64_t tokens = 7, key_heads = 2, heads = 4, dk = 5, dv = 3;
  std::vector<int32_t> lengths = {3, 0, 2};  // the last two tokens are in no sequence
  Tensor q, k, v, beta, g, gk;

  explicit Delta(DataType dtype) {
    q = Noise(dtype, {tokens, key_heads, dk}, 1);
    k = Noise(dtype, {tokens, key_heads, dk}, 2);
    v = Noise(dtype, {tokens, heads, dv}, 3);
    beta = Noise(dtype, {tokens, heads}, 4);
    g = Noise(kF32, {tokens, heads}, 5, 0.5);
    gk = Noise(kF32, {tokens, heads, dk}, 6, 0.5);
  }

  OpCall Call(const std::string& type, const Tensor& state) const {
    return {.type = type,
            .inputs = {{"query", q},
                       {"key", k},
                       {"value", v},
                       {"beta", beta},
                       {type == "ChunkGatedDeltaRule" ? "initial_state" : "state", state},
                       {"actual_seq_lengths", Ints(lengths)}},
            .attrs = {{"scale_value", AttrValue::Float(0.5f)}}};
  }

  // One token of one head: changes the state, returns the output.
  std::vector<double> Step(std::vector<double>& s, int64_t t, int64_t h, bool gates,
                           bool key_gates) const {
    const auto at = [](const Tensor& x, int64_t i) { return ToDoubles(x)[static_cast<size_t>(i)]; };
    const int64_t key = (t * key_heads + h / 2) * dk, own = t * heads + h;
    std::vector<double> out;
    for (int64_t r = 0; r < dv; ++r) {
      double seen = 0, result = 0;
      for (int64_t c = 0; c < dk; ++c) {
        double& cell = s[static_cast<size_t>(r * dk + c)];
        if (gates) cell *= std::exp(at(g, own));
        if (key_gates) cell *= std::exp(at(gk, own * dk + c));
        seen += cell * at(k, key + c);
      }
      for (int64_t c = 0; c < dk; ++c) {
        double& cell = s[static_cast<size_t>(r * dk + c)];
        cell += at(beta, own) * (at(v, own * dv + r) - seen) * at(k, key + c);
        result += cell * at(q, key + c) * 0.5;
      }
      out.push_back(result);
    }
    return out;
  }
};

std::vector<double> Part(const std::vector<double>& all, int64_t first, int64_t count) {
  return {all.begin() + first, all.begin() + first + count};
}

TEST(RecurrentGatedDeltaRule, ReadsAndWritesStatesByIndex) {
  const std::vector<int32_t> indices = {4, 1, 5, 0, 2, 3, 3}, accepted = {2, 1, 1};
  for (const DataType dtype : {kF32, kBf16}) {
    const Delta test(dtype);
    const Tensor state = Noise(dtype, {6, test.heads, test.dv, test.dk}, 7);
    for (const bool gates : {false, true}) {
      for (const bool speculates : {false, true}) {
        OpCall call = test.Call("RecurrentGatedDeltaRule", state);
        call.inputs.push_back({"ssm_state_indices", Ints(indices)});
        if (gates) call.inputs.push_back({"g", test.g});
        if (gates) call.inputs.push_back({"gk", test.gk});
        if (speculates) call.inputs.push_back({"num_accepted_tokens", Ints(accepted)});
        std::vector<double> out(static_cast<size_t>(test.tokens * test.heads * test.dv), 0.0);
        std::vector<double> states = ToDoubles(state);
        const int64_t size = test.dv * test.dk;
        int64_t begin = 0;
        for (size_t b = 0; b < test.lengths.size(); ++b) {
          const int64_t end = begin + test.lengths[b];
          for (int64_t h = 0; h < test.heads && begin < end; ++h) {
            const int64_t first =
                indices[static_cast<size_t>(begin + (speculates ? accepted[b] - 1 : 0))];
            std::vector<double> s = Part(states, (first * test.heads + h) * size, size);
            for (int64_t t = begin; t < end; ++t) {
              const std::vector<double> y = test.Step(s, t, h, gates, gates);
              std::copy(y.begin(), y.end(), out.begin() + (t * test.heads + h) * test.dv);
              const int64_t to = (indices[static_cast<size_t>(t)] * test.heads + h) * size;
              std::copy(s.begin(), s.end(), states.begin() + to);
            }
          }
          begin = end;
        }
        const std::vector<Tensor> got = Results(call);
        ExpectNear(got[0], out, 1e-5);
        ExpectNear(got[1], states, 1e-5);
      }
    }
  }
}

TEST(ChunkGatedDeltaRule, ReturnsTheLastStates) {
  for (const DataType dtype : {kF32, kBf16}) {
    const Delta test(dtype);
    const Tensor state = Noise(kF32, {3, test.heads, test.dv, test.dk}, 7);
    OpCall call = test.Call("ChunkGatedDeltaRule", state);
    call.inputs.push_back({"g", test.g});
    std::vector<double> out(static_cast<size_t>(test.tokens * test.heads * test.dv), 0.0);
    std::vector<double> states = ToDoubles(state);
    const int64_t size = test.dv * test.dk;
    int64_t begin = 0;
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t end = begin + test.lengths[static_cast<size_t>(b)];
      for (int64_t h = 0; h < test.heads; ++h) {
        std::vector<double> s = Part(states, (b * test.heads + h) * size, size);
        for (int64_t t = begin; t < end; ++t) {
          const std::vector<double> y = test.Step(s, t, h, true, false);
          std::copy(y.begin(), y.end(), out.begin() + (t * test.heads + h) * test.dv);
        }
        std::copy(s.begin(), s.end(), states.begin() + (b * test.heads + h) * size);
      }
      begin = end;
    }
    const std::vector<Tensor> got = Results(call);
    ExpectNear(got[0], out, 1e-5);
    ExpectNear(got[1], states, 1e-5);
    ExpectSound(call);
  }
}

// ---- causal convolution ----

struct Conv {
  std::vector<int32_t> starts = {0, 4, 5, 5, 9};
  std::vector<int32_t> lines = {3, 0, 1, 4};
  std::vector<int32_t> modes = {1, 0, 1, 1};
  int64_t taps = 3, width = 6;
};

TEST(FusedCausalConv1d, PackedSequencesWithTheirCaches) {
  const Conv test;
  for (const DataType dtype : {kF16, kBf16, kF32}) {
    const Tensor x = Noise(dtype, {10, test.width}, 1), w = Noise(dtype, {3, test.width}, 2);
    const Tensor cache = Noise(dtype, {5, 2, test.width}, 3);
    for (const bool residual : {false, true}) {
      for (const bool silu : {false, true}) {
        OpCall call = {.type = "FusedCausalConv1d",
                       .inputs = {{"x", x},
                                  {"weight", w},
                                  {"conv_states", cache},
                                  {"query_start_loc", Ints(test.starts)},
                                  {"cache_indices", Ints(test.lines)},
                                  {"initial_state_mode", Ints(test.modes)}},
                       .attrs = {{"activation_mode", AttrValue::Int(silu ? 1 : 0)},
                                 {"residual_connection", AttrValue::Int(residual ? 1 : 0)},
                                 {"pad_slot_id", AttrValue::Int(4)}}};  // skips the last sequence
        std::vector<double> y(60, 0.0), caches = ToDoubles(cache);
        const std::vector<double> xs = ToDoubles(x), ws = ToDoubles(w);
        for (size_t b = 0; b < 3; ++b) {
          const int64_t begin = test.starts[b], end = test.starts[b + 1];
          for (int64_t d = 0; d < test.width; ++d) {
            std::vector<double> seen;
            for (int64_t k = 0; k < 2; ++k) {
              const auto at = static_cast<size_t>((test.lines[b] * 2 + k) * test.width + d);
              seen.push_back(test.modes[b] == 0 ? 0 : ToDoubles(cache)[at]);
            }
            for (int64_t r = begin; r < end; ++r) {
              seen.push_back(xs[static_cast<size_t>(r * test.width + d)]);
              double sum = 0;
              for (size_t k = 0; k < 3; ++k) {
                sum += ws[k * 6 + static_cast<size_t>(d)] * seen[seen.size() - 3 + k];
              }
              if (silu) sum /= 1 + std::exp(-sum);
              y[static_cast<size_t>(r * test.width + d)] = sum + (residual ? seen.back() : 0);
            }
            for (int64_t k = 0; k < 2; ++k) {
              caches[static_cast<size_t>((test.lines[b] * 2 + k) * test.width + d)] =
                  seen[seen.size() - 2 + static_cast<size_t>(k)];
            }
          }
        }
        std::vector<Tensor> got = Results(call);
        ExpectNear(got[1], y, 1e-5);
        EXPECT_EQ(ToDoubles(got[0]), caches);
        ExpectSound(call);
        // In place, rows of no sequence stay.
        call.type = "InplaceFusedCausalConv1d";
        for (size_t i = 30; i < 60; ++i) y[i] = xs[i];
        got = Results(call);
        ExpectNear(got[1], y, 1e-5);
        EXPECT_EQ(ToDoubles(got[0]), caches);
      }
    }
  }
}

// Speculation, prefixes in blocks and sequences that begin, as lists of rows.
TEST(FusedCausalConv1d, RandomCaches) {
  Random random(20261208);
  const auto drawn = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.Bits() % static_cast<uint64_t>(most - least + 1));
  };
  for (int turn = 0; turn < 160; ++turn) {
    const auto kept = static_cast<size_t>(drawn(1, 3));
    const size_t state = kept + static_cast<size_t>(turn % 2 == 0 ? 0 : drawn(1, 3)), width = 2;
    const bool blocks = turn % 4 == 0, accepts = turn % 4 == 1, resets = turn % 3 == 0;
    const bool knows = blocks || resets || turn % 5 == 0;
    const int64_t size = drawn(3, 4);  // of a block
    const size_t sequences = static_cast<size_t>(drawn(1, 3)), lines = 12;
    std::vector<int32_t> starts = {0}, computed, accepted, first, last, initial, table;
    for (size_t b = 0; b < sequences; ++b) {
      int64_t length = drawn(1, 6);
      computed.push_back(static_cast<int32_t>(drawn(0, 5)));
      if (blocks) {  // a sequence goes on where blocks of it are full, or at its beginning
        const int64_t filled = computed.back() / size;
        first.push_back(static_cast<int32_t>(filled));
        // A token that ends a block is its last; the block after it has not begun.
        last.push_back(static_cast<int32_t>((computed.back() + length - 1) / size));
        initial.push_back(static_cast<int32_t>(std::max<int64_t>(filled - 1, 0)));
      }
      accepted.push_back(static_cast<int32_t>(drawn(1, static_cast<int64_t>(state - kept) + 1)));
      starts.push_back(starts.back() + static_cast<int32_t>(length));
    }
    for (size_t i = 0; i < lines; ++i) table.push_back(static_cast<int32_t>((5 * i + 1) % lines));
    table.resize(blocks ? 4 * sequences : sequences);
    const int64_t rows = starts.back(), wide = static_cast<int64_t>(width);
    const Tensor x = Noise(kF32, {rows, wide}, turn),
                 w = Noise(kF32, {static_cast<int64_t>(kept) + 1, wide}, turn + 1);
    const Tensor cache =
        Noise(kF32, {static_cast<int64_t>(lines), static_cast<int64_t>(state), wide}, turn + 2);
    const Tensor indices = Make<int32_t>(
        DataType::kInt32,
        blocks ? Shape{static_cast<int64_t>(sequences), 4} : Shape{static_cast<int64_t>(sequences)},
        table);
    OpCall call = {.type = turn % 3 == 1 ? "InplaceFusedCausalConv1d" : "FusedCausalConv1d",
                   .inputs = {{"x", x},
                              {"weight", w},
                              {"conv_states", cache},
                              {"query_start_loc", Ints(starts)},
                              {"cache_indices", indices}},
                   .attrs = {{"residual_connection", AttrValue::Int(turn % 2)},
                             {"conv_mode", AttrValue::Int(resets ? 1 : 0)},
                             {"block_size", AttrValue::Int(size)}}};
    if (knows) call.inputs.push_back({"num_computed_tokens", Ints(computed)});
    if (accepts) call.inputs.push_back({"num_accepted_tokens", Ints(accepted)});
    if (blocks) {
      call.inputs.push_back({"block_idx_first_scheduled_token", Ints(first)});
      call.inputs.push_back({"block_idx_last_scheduled_token", Ints(last)});
      call.inputs.push_back({"initial_state_idx", Ints(initial)});
    }
    using Rows = std::vector<std::vector<double>>;
    const auto rows_of = [&](const Tensor& tensor) {
      const std::vector<double> values = ToDoubles(tensor);
      Rows split;
      for (size_t i = 0; i < values.size(); i += width)
        split.emplace_back(&values[i], &values[i] + width);
      return split;
    };
    const Rows xs = rows_of(x), ws = rows_of(w);
    Rows caches = rows_of(cache), y(xs.size(), std::vector<double>(width));
    const auto store = [&](int32_t line, const Rows& from, size_t count) {
      for (size_t i = 0; i < count; ++i) {
        caches[static_cast<size_t>(line + 1) * state - count + i] = from[from.size() - count + i];
      }
    };
    for (size_t b = 0; b < sequences; ++b) {
      const auto begin = static_cast<size_t>(starts[b]), end = static_cast<size_t>(starts[b + 1]);
      const int32_t* own = table.data() + (blocks ? 4 * b : b);
      const int32_t read = blocks ? own[initial[b]] : own[0],
                    write = blocks ? own[last[b]] : own[0];
      Rows before;
      const size_t history = accepts ? kept + static_cast<size_t>(accepted[b]) - 1 : state;
      for (size_t i = 0; i < history; ++i)
        before.push_back(caches[static_cast<size_t>(read) * state + i]);
      if (knows && computed[b] == 0) before.assign(kept, std::vector<double>(width));
      Rows all = before;
      all.insert(all.end(), xs.begin() + starts[b], xs.begin() + starts[b + 1]);
      store(write, all, std::min(state, all.size()));
      const Rows seen(all.begin() + static_cast<std::ptrdiff_t>(before.size() - kept), all.end());
      for (int64_t block = 0; blocks && block < last[b] - first[b]; ++block) {
        // The rows before the end of the block, which is a token of this sequence.
        const int64_t at = (first[b] + block + 1) * size - computed[b];
        store(own[first[b] + block],
              Rows(seen.begin() + at, seen.begin() + at + static_cast<int64_t>(kept)), kept);
      }
      for (size_t i = 0; i < end - begin; ++i) {
        for (size_t d = 0; d < width; ++d) {
          double sum = 0;
          for (size_t k = 0; k <= kept; ++k) sum += ws[k][d] * seen[i + k][d];
          if (resets && static_cast<int64_t>(i) < static_cast<int64_t>(kept) - computed[b]) sum = 0;
          y[begin + i][d] = sum + (turn % 2 == 1 ? xs[begin + i][d] : 0);
        }
      }
    }
    const auto flat = [](const Rows& from) {
      std::vector<double> values;
      for (const auto& row : from) values.insert(values.end(), row.begin(), row.end());
      return values;
    };
    SCOPED_TRACE("turn " + std::to_string(turn));
    const std::vector<Tensor> got = Results(call);
    EXPECT_EQ(ToDoubles(got[0]), flat(caches));
    ExpectNear(got[1], flat(y), 1e-5);
  }
}

}  // namespace
}  // namespace npumesh
