// FlashAttentionScore: statistics, dropout, prefixes and the bands of packed sequences.
#include "tests/unit/op_values.h"
#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

constexpr DataType kType = DataType::kBfloat16;

OpCall Score(const std::string& layout, Tensor q, Tensor k, Tensor v, int64_t heads) {
  return {.type = "FlashAttentionScore",
          .inputs = {{"query", std::move(q)}, {"key", std::move(k)}, {"value", std::move(v)}},
          .attrs = {{"head_num", AttrValue::Int(heads)},
                    {"input_layout", AttrValue::String(layout)},
                    {"scale_value", AttrValue::Float(0.5f)}}};
}

// Maximum and sum, each eight times.
Heads EightTimes(const Heads& h) {
  Heads wide = Zeros(h.batches, h.heads, h.rows, 8);
  for (const auto& at : Positions({h.batches, h.heads, h.rows, 8})) {
    wide.at(at[0], at[1], at[2], at[3]) = h.at(at[0], at[1], at[2], 0);
  }
  return wide;
}

TEST(FlashAttentionScore, GivesTheStatisticsOfItsRows) {
  for (const std::string layout : {"BSH", "BNSD", "SBH", "BSND"}) {
    const Heads q = Noise(kType, 2, 4, 5, 8, 1);
    const Heads k = Noise(kType, 2, 2, 6, 8, 2);
    const Heads v = Noise(kType, 2, 2, 6, layout == "BNSD" ? 4 : 8, 3);
    const PlainResult expected = PlainAttention(q, k, v, {.scale = 0.5});
    const std::vector<Tensor> out =
        Results(Score(layout, InLayout(kType, layout, q), InLayout(kType, layout, k),
                      InLayout(kType, layout, v), 4));
    ExpectHeads(out[0], "BNSD", EightTimes(expected.most));
    ExpectHeads(out[1], "BNSD", EightTimes(expected.sum));
    EXPECT_EQ(out[2].elements(), 0);
    ExpectHeads(out[3], layout, expected.out);
  }
}

TEST(FlashAttentionScore, ShiftIsScaledOrNot) {
  const Heads q = Noise(kType, 1, 2, 3, 8, 1);
  const Heads k = Noise(kType, 1, 2, 4, 8, 2);
  const Heads shift = Noise(kType, 1, 2, 3, 4, 3);
  for (const int64_t type : {-1, 0, 1}) {
    OpCall call = Score("BNSD", InLayout(kType, "BNSD", q), InLayout(kType, "BNSD", k),
                        InLayout(kType, "BNSD", k), 2);
    call.inputs.push_back({"real_shift", InLayout(kType, "BNSD", shift)});
    if (type >= 0) call.attrs.push_back({"pse_type", AttrValue::Int(type)});
    Plain plain{.scale = 0.5};
    plain.shift = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      return shift.at(b, h, i, j) * (type == 1 ? plain.scale : 1);
    };
    ExpectHeads(Results(call)[3], "BNSD", PlainAttention(q, k, k, plain).out);
  }
}

TEST(FlashAttentionScore, ReadsStartsForSlopesOnly) {
  const Heads q = Noise(kType, 1, 2, 3, 8, 1);
  const Heads k = Noise(kType, 1, 2, 4, 8, 2);
  OpCall call = Score("BNSD", InLayout(kType, "BNSD", q), InLayout(kType, "BNSD", k),
                      InLayout(kType, "BNSD", k), 2);
  ExpectStartsChangeNothing(call);
  call.inputs.push_back({"real_shift", InLayout(kType, "BNSD", Noise(kType, 1, 2, 3, 4, 3))});
  ExpectStartsChangeNothing(call);
  call.attrs.push_back({"pse_type", AttrValue::Int(1)});
  ExpectStartsChangeNothing(call);
}

TEST(FlashAttentionScore, DropsWhereTheBitIsZero) {
  const Heads q = Noise(kType, 2, 2, 3, 8, 1);
  const Heads k = Noise(kType, 2, 2, 5, 8, 2);
  const auto kept = [](int64_t i) { return i * 7 % 3 != 0; };
  std::vector<uint8_t> bits(8, 0);
  for (int64_t i = 0; i < 60; ++i) {
    if (kept(i)) bits[static_cast<size_t>(i / 8)] |= static_cast<uint8_t>(1 << (i % 8));
  }
  OpCall call = Score("BNSD", InLayout(kType, "BNSD", q), InLayout(kType, "BNSD", k),
                      InLayout(kType, "BNSD", k), 2);
  call.inputs.push_back({"drop_mask", Make<uint8_t>(DataType::kUint8, {8}, bits)});
  call.attrs.push_back({"keep_prob", AttrValue::Float(0.5f)});
  Plain plain{.scale = 0.5};
  plain.keep = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return kept(((b * 2 + h) * 3 + i) * 5 + j) ? 2.0 : 0.0;
  };
  ExpectHeads(Results(call)[3], "BNSD", PlainAttention(q, k, k, plain).out);
}

TEST(FlashAttentionScore, PrefixIsAlwaysSeen) {
  const Heads q = Noise(kType, 2, 1, 4, 8, 1);
  const Heads k = Noise(kType, 2, 1, 6, 8, 2);
  const std::vector<int64_t> prefix = {1, 5};
  for (const int64_t mode : {5, 6}) {
    OpCall call = Score("BSH", InLayout(kType, "BSH", q), InLayout(kType, "BSH", k),
                        InLayout(kType, "BSH", k), 1);
    call.attrs.push_back({"sparse_mode", AttrValue::Int(mode)});
    call.inputs.push_back({"prefix", MakeInts(prefix)});
    Plain plain{.scale = 0.5};
    plain.sees = [&](int64_t b, int64_t, int64_t i, int64_t j) {
      return j <= i + 2 || j < prefix[static_cast<size_t>(b)];
    };
    ExpectHeads(Results(call)[3], "BSH", PlainAttention(q, k, k, plain).out);
  }
}

TEST(FlashAttentionScore, BandsOfPackedSequences) {
  const Heads q = Noise(kType, 3, 2, 5, 8, 1);
  const Heads k = Noise(kType, 3, 2, 7, 8, 2);
  const std::vector<int64_t> q_starts = {0, 5, 8, 12};
  const std::vector<int64_t> k_starts = {0, 7, 10, 16};
  for (const int64_t mode : {2, 3, 7, 8}) {
    SCOPED_TRACE(mode);
    OpCall call =
        Score("TND", InLayout(kType, "TND", q, q_starts), InLayout(kType, "TND", k, k_starts),
              InLayout(kType, "TND", k, k_starts), 2);
    call.inputs.push_back({"actual_seq_qlen", MakeInts({5, 8, 12})});
    call.inputs.push_back({"actual_seq_kvlen", MakeInts({7, 10, 16})});
    call.attrs.push_back({"sparse_mode", AttrValue::Int(mode)});
    call.attrs.push_back({"pre_tockens", AttrValue::Int(2)});
    call.attrs.push_back({"next_tockens", AttrValue::Int(1)});
    Plain plain{.scale = 0.5, .q_rows = {5, 3, 4}, .kv_rows = {7, 3, 6}};
    plain.sees = [&](int64_t b, int64_t, int64_t i, int64_t j) {
      const auto at = static_cast<size_t>(b);
      const int64_t shifted = i + plain.kv_rows[at] - plain.q_rows[at];
      const bool band = (mode == 7 && b == 2) || (mode == 8 && b == 0);
      if (band) return j >= shifted - 2 && j <= shifted + 1;
      return j <= (mode == 3 || mode == 7 ? shifted : i);
    };
    const PlainResult expected = PlainAttention(q, k, k, plain);
    const std::vector<Tensor> out = Results(call);
    ExpectHeads(out[3], "TND", expected.out, q_starts);
    ExpectHeads(out[0], "TND", EightTimes(expected.most), q_starts);
    EXPECT_EQ(out[1].shape(), (Shape{12, 2, 8}));
  }
}

// Two halves of the keys, joined, are the attention over all of them.
TEST(AttentionUpdate, JoinsPartsOfASequence) {
  const Heads q = Noise(kType, 1, 2, 3, 8, 1);
  const Heads k = Noise(kType, 1, 2, 7, 8, 2);
  Plain whole{.scale = 0.5};
  const PlainResult expected = PlainAttention(q, k, k, whole);
  OpCall call{.type = "AttentionUpdate",
              .attrs = {{"update_type", AttrValue::Int(1)}, {"sp", AttrValue::Int(3)}}};
  std::vector<OpInput> outputs;
  for (int part = 0; part < 3; ++part) {
    Plain plain{.scale = 0.5};
    // The third part has no key at all.
    plain.sees = [part](int64_t, int64_t, int64_t, int64_t j) {
      return part < 2 && (j < 4) == (part == 0);
    };
    const PlainResult result = PlainAttention(q, k, k, plain);
    std::vector<double> lse;
    for (size_t i = 0; i < result.sum.values.size(); ++i) {
      lse.push_back(result.most.values[i] + std::log(result.sum.values[i]));
    }
    call.inputs.push_back({fmt::format("lse{}", part), FromDoubles(DataType::kFloat, {6}, lse)});
    outputs.push_back(
        {fmt::format("go{}", part), FromDoubles(DataType::kFloat, {6, 8}, result.out.values)});
  }
  call.inputs.insert(call.inputs.end(), outputs.begin(), outputs.end());
  const Result<std::vector<Tensor>> out = RunOp(call);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  for (size_t i = 0; i < 48; ++i) {
    EXPECT_NEAR(ToDoubles((*out)[0])[i], expected.out.values[i], 1e-5);
  }
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(ToDoubles((*out)[1])[i], expected.most.values[i] + std::log(expected.sum.values[i]),
                1e-5);
  }
}

}  // namespace
}  // namespace npumesh
