// RecurrentGatedDeltaRule, ChunkGatedDeltaRule and the fused causal convolutions against double.
#include <cmath>

#include "graph/ops/builtin_ops.h"
#include "tests/unit/op_builtin.h"
#include "tests/unit/op_types.h"
#include "tests/unit/op_unknown.h"
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
    call.inputs[4].value = Noise(kF32, {2, test.heads, test.dv, test.dk}, 7);
    Fails(call, Code::kInvalidArgument, {"initial_state has 2 states for 3 sequences"});
    call.inputs[4].value = Noise(kF32, {3, test.heads, test.dk, test.dv}, 7);
    Fails(call, Code::kInvalidArgument, {"initial_state is float32[3,4,5,3]"});
  }
}

TEST(RecurrentGatedDeltaRule, RefusesByName) {
  Delta test(kBf16);
  const Tensor state = Noise(kBf16, {2, test.heads, test.dv, test.dk}, 7);
  OpCall call = test.Call("RecurrentGatedDeltaRule", state);
  call.inputs.push_back({"ssm_state_indices", Ints({0, 1, 0, 2, 0, 0, 0})});
  Fails(call, Code::kInvalidArgument, {"\"ssm_state_indices\" names state 2 for token 3"});
  call.inputs.back().value = Ints({0, 1, 0, 1, 0, 0, 0});
  call.inputs[5].value = Ints({3, 0, 5});
  Fails(call, Code::kInvalidArgument, {"sequence 2 would be tokens 3 to 8 of 7"});
  call.inputs[5].value = Ints({3, 0, 2});
  call.inputs.push_back({"num_accepted_tokens", Ints({4, 1, 1})});
  Fails(call, Code::kInvalidArgument, {"\"num_accepted_tokens\" is 4 for sequence 0 of 3"});
  call.inputs.back() = {"g", Noise(kF32, {test.tokens, 3}, 1)};
  Fails(call, Code::kInvalidArgument, {"g is float32[7,3], expected [7,4]"});
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

TEST(FusedCausalConv1d, SequencesOfOneLength) {
  const Tensor x = Noise(kF32, {2, 3, 4}, 1), w = Noise(kF32, {3, 4}, 2);
  const Tensor cache = Noise(kF32, {2, 2, 4}, 3);
  const OpCall call = {.type = "FusedCausalConv1d",
                       .inputs = {{"x", x}, {"weight", w}, {"conv_states", cache}}};
  OpCall packed = call;
  packed.inputs[0].value = FromDoubles(kF32, {6, 4}, ToDoubles(x));
  packed.inputs.push_back({"query_start_loc", Ints({0, 3, 6})});
  const std::vector<Tensor> one = Results(call), two = Results(packed);
  EXPECT_EQ(one[1].shape(), x.shape());
  EXPECT_EQ(ToDoubles(one[1]), ToDoubles(two[1]));
  EXPECT_EQ(ToDoubles(one[0]), ToDoubles(two[0]));
}

TEST(FusedCausalConv1d, RefusesByName) {
  const Tensor x = Noise(kF32, {6, 4}, 1), w = Noise(kF32, {3, 4}, 2);
  OpCall call = {.type = "FusedCausalConv1d",
                 .inputs = {{"x", x}, {"weight", w}, {"conv_states", Noise(kF32, {2, 2, 4}, 3)}}};
  Fails(call, Code::kInvalidArgument, {"\"query_start_loc\" is missing"});
  call.inputs.push_back({"query_start_loc", Ints({0, 3, 7})});
  Fails(call, Code::kInvalidArgument, {"sequence 1 rows 3 to 7 of 6"});
  call.inputs[3].value = Ints({0, 3, 6});
  call.inputs.push_back({"cache_indices", Ints({0, 2})});
  Fails(call, Code::kInvalidArgument, {"sequence 1 has line 2 of a cache of 2"});
  call.inputs[4] = {"initial_state_mode", Ints({0, 2})};
  Fails(call, Code::kUnsupported, {"initial_state_mode of sequence 1 is 2"});
  call.inputs[4] = {"num_accepted_tokens", Ints({1, 1})};
  Fails(call, Code::kUnsupported, {"\"num_accepted_tokens\" is fed"});
  call.inputs.pop_back();
  call.attrs = {{"conv_mode", AttrValue::Int(1)}};
  Fails(call, Code::kUnsupported, {"conv_mode is 1"});
  call.attrs = {};
  call.inputs[2].value = Noise(kF32, {2, 4, 4}, 3);
  Fails(call, Code::kInvalidArgument, {"conv_states is float32[2,4,4]"});
}

}  // namespace
}  // namespace npumesh
