// FlashAttentionScoreGrad against central differences of the plain formula in double.
#include "tests/unit/op_types.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

// What one case is about. Query heads and key heads differ, to see that gradients add up.
struct Case {
  std::string layout = "BNSD";
  Heads q = Noise(kF32, 2, 4, 3, 4, 1);
  Heads k = Noise(kF32, 2, 2, 5, 4, 2);
  Heads v = Noise(kF32, 2, 2, 5, 4, 3);
  Heads dy = Noise(kF32, 2, 4, 3, 4, 4);
  Plain plain = {.scale = 0.5};
};

double LossOf(const Case& test) {
  const Heads out = PlainAttention(test.q, test.k, test.v, test.plain).out;
  double loss = 0;
  for (size_t i = 0; i < out.values.size(); ++i) loss += out.values[i] * test.dy.values[i];
  return loss;
}

// The slopes of the loss by some values of the case.
Heads SlopesBy(Case test, Heads Case::*part) {
  Heads slopes = test.*part;
  for (size_t i = 0; i < slopes.values.size(); ++i) {
    double& value = (test.*part).values[i];
    const double before = value;
    value = before + 1e-5;
    const double above = LossOf(test);
    value = before - 1e-5;
    slopes.values[i] = (above - LossOf(test)) / 2e-5;
    value = before;
  }
  return slopes;
}

OpCall Gradient(const Case& test) {
  return {.type = "FlashAttentionScoreGrad",
          .inputs = {{"query", InLayout(kF32, test.layout, test.q)},
                     {"key", InLayout(kF32, test.layout, test.k)},
                     {"value", InLayout(kF32, test.layout, test.v)},
                     {"dy", InLayout(kF32, test.layout, test.dy)}},
          .attrs = {{"head_num", AttrValue::Int(test.q.heads)},
                    {"input_layout", AttrValue::String(test.layout)},
                    {"scale_value", AttrValue::Float(0.5f)}}};
}

void ExpectSlopes(const Case& test, const OpCall& call) {
  const std::vector<Tensor> grad = Results(call);
  ExpectHeads(grad[0], test.layout, SlopesBy(test, &Case::q));
  ExpectHeads(grad[1], test.layout, SlopesBy(test, &Case::k));
  ExpectHeads(grad[2], test.layout, SlopesBy(test, &Case::v));
}

TEST(FlashAttentionScoreGrad, IsTheSlopeInEveryLayout) {
  for (const std::string layout : {"BSH", "BNSD", "SBH", "BSND"}) {
    SCOPED_TRACE(layout);
    Case test;
    test.layout = layout;
    ExpectSlopes(test, Gradient(test));
    EXPECT_EQ(Results(Gradient(test))[3].elements(), 0);
  }
}

// More rows than a tile has, in two key heads.
TEST(FlashAttentionScoreGrad, OfSeveralTiles) {
  Case test;
  test.q = Noise(kF32, 1, 4, 20, 2, 1);
  test.k = Noise(kF32, 1, 2, 3, 2, 2);
  test.v = Noise(kF32, 1, 2, 3, 2, 3);
  test.dy = Noise(kF32, 1, 4, 20, 2, 4);
  ExpectSlopes(test, Gradient(test));
}

TEST(FlashAttentionScoreGrad, ThroughMaskAndBand) {
  Case test;
  OpCall call = Gradient(test);
  std::vector<uint8_t> mask(15, 0);
  for (const size_t masked : {1u, 4u, 10u, 11u, 12u, 13u, 14u}) mask[masked] = 1;
  call.inputs.push_back({"atten_mask", Make<uint8_t>(DataType::kUint8, {3, 5}, mask)});
  // The last row sees nothing, and has no gradient.
  test.plain.sees = [&](int64_t, int64_t, int64_t i, int64_t j) {
    return mask[static_cast<size_t>(i * 5 + j)] == 0;
  };
  ExpectSlopes(test, call);
  call = Gradient(test);
  call.attrs.push_back({"sparse_mode", AttrValue::Int(2)});
  test.plain.sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; };
  ExpectSlopes(test, call);
}

TEST(FlashAttentionScoreGrad, ThroughDropout) {
  Case test;
  const auto kept = [](int64_t i) { return i * 7 % 3 != 0; };
  std::vector<uint8_t> bits(15, 0);
  for (int64_t i = 0; i < 120; ++i) {
    if (kept(i)) bits[static_cast<size_t>(i / 8)] |= static_cast<uint8_t>(1 << (i % 8));
  }
  OpCall call = Gradient(test);
  call.inputs.push_back({"drop_mask", Make<uint8_t>(DataType::kUint8, {15}, bits)});
  call.attrs.push_back({"keep_prob", AttrValue::Float(0.5f)});
  test.plain.keep = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return kept(((b * 4 + h) * 3 + i) * 5 + j) ? 2.0 : 0.0;
  };
  ExpectSlopes(test, call);
}

// The shift of one batch serves both, so that its gradient is a sum over them.
TEST(FlashAttentionScoreGrad, ByShiftAndSink) {
  for (const int64_t pse_type : {0, 1}) {
    Case test;
    Heads shift = Noise(kF32, 1, 4, 3, 5, 5);
    std::vector<double> sinks = {0.5, -0.25, 0, 1};
    OpCall call = Gradient(test);
    call.inputs.push_back({"pse_shift", InLayout(kF32, "BNSD", shift)});
    call.inputs.push_back({"sink", FromDoubles(kF32, {4}, sinks)});
    call.attrs.push_back({"pse_type", AttrValue::Int(pse_type)});
    test.plain.shift = [&](int64_t, int64_t h, int64_t i, int64_t j) {
      return shift.at(0, h, i, j) * (pse_type == 1 ? 0.5 : 1);
    };
    test.plain.sink = sinks;
    ExpectSlopes(test, call);
    const std::vector<Tensor> grad = Results(call);
    const auto slopes = [&](std::vector<double>& values, const auto& refresh) {
      std::vector<double> result;
      for (double& value : values) {
        const double before = value;
        value = before + 1e-5;
        refresh();
        const double above = LossOf(test);
        value = before - 1e-5;
        refresh();
        result.push_back((above - LossOf(test)) / 2e-5);
        value = before;
        refresh();
      }
      return result;
    };
    Heads by_shift = shift;
    by_shift.values = slopes(shift.values, [] {});
    ExpectHeads(grad[3], "BNSD", by_shift);
    const std::vector<double> by_sink = slopes(sinks, [&] { test.plain.sink = sinks; });
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(ToDoubles(grad[6])[i], by_sink[i], 4e-6);
  }
}

TEST(FlashAttentionScoreGrad, ReadsStartsForSlopesOnly) {
  OpCall call = Gradient(Case());
  ExpectStartsChangeNothing(call);
  call.inputs.push_back({"pse_shift", InLayout(kF32, "BNSD", Noise(kF32, 2, 4, 3, 5, 5))});
  call.attrs.push_back({"pse_type", AttrValue::Int(1)});
  ExpectStartsChangeNothing(call);
}

// A vector in two pieces has its gradient in two pieces.
TEST(FlashAttentionScoreGrad, ByRopeParts) {
  Case test;
  const auto part = [](const Heads& from, int64_t first, int64_t width) {
    Heads piece = Zeros(from.batches, from.heads, from.rows, width);
    for (const auto& at : Positions({from.batches, from.heads, from.rows, width})) {
      piece.at(at[0], at[1], at[2], at[3]) = from.at(at[0], at[1], at[2], first + at[3]);
    }
    return piece;
  };
  OpCall call = Gradient(test);
  const std::pair<const char*, const Heads*> pieces[] = {{"query", &test.q}, {"key", &test.k}};
  for (size_t i = 0; i < 2; ++i) {
    call.inputs[i].value = InLayout(kF32, "BNSD", part(*pieces[i].second, 0, 3));
    call.inputs.push_back({std::string(pieces[i].first) + "_rope",
                           InLayout(kF32, "BNSD", part(*pieces[i].second, 3, 1))});
  }
  call.inputs[2].value = InLayout(kF32, "BNSD", part(test.v, 0, 3));
  call.inputs[3].value = InLayout(kF32, "BNSD", part(test.dy, 0, 3));
  test.v = part(test.v, 0, 3);
  test.dy = part(test.dy, 0, 3);
  const std::vector<Tensor> grad = Results(call);
  const Heads dq = SlopesBy(test, &Case::q), dk = SlopesBy(test, &Case::k);
  ExpectHeads(grad[0], "BNSD", part(dq, 0, 3));
  ExpectHeads(grad[4], "BNSD", part(dq, 3, 1));
  ExpectHeads(grad[1], "BNSD", part(dk, 0, 3));
  ExpectHeads(grad[5], "BNSD", part(dk, 3, 1));
}

TEST(FlashAttentionScoreGrad, OfPackedSequences) {
  Case test;
  const std::vector<int64_t> q_starts = {0, 3, 5}, k_starts = {0, 4, 9};
  OpCall call = Gradient(test);
  call.inputs[0].value = InLayout(kF32, "TND", test.q, q_starts);
  call.inputs[1].value = InLayout(kF32, "TND", test.k, k_starts);
  call.inputs[2].value = InLayout(kF32, "TND", test.v, k_starts);
  call.inputs[3].value = InLayout(kF32, "TND", test.dy, q_starts);
  call.inputs.push_back({"actual_seq_qlen", MakeInts({3, 5})});
  call.inputs.push_back({"actual_seq_kvlen", MakeInts({4, 9})});
  call.attrs[1].second = AttrValue::String("TND");
  test.plain.q_rows = {3, 2};
  test.plain.kv_rows = {4, 5};
  const std::vector<Tensor> grad = Results(call);
  ExpectHeads(grad[0], "TND", SlopesBy(test, &Case::q), q_starts);
  ExpectHeads(grad[1], "TND", SlopesBy(test, &Case::k), k_starts);
  ExpectHeads(grad[2], "TND", SlopesBy(test, &Case::v), k_starts);
}

}  // namespace
}  // namespace npumesh
