// FusedInferAttentionScore, PromptFlashAttention and IncreFlashAttention against the plain formula:
// layouts, masks, bands, lengths. Sizes above 128 cross the borders of the kernel's tiles.
#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

using Attrs = std::vector<std::pair<std::string, AttrValue>>;

OpCall Fused(Tensor q, Tensor k, Tensor v, Attrs attrs) {
  return {.type = "FusedInferAttentionScore",
          .inputs = {{"query", std::move(q)}, {"key0", std::move(k)}, {"value0", std::move(v)}},
          .attrs = std::move(attrs)};
}

Attrs Sizes(int64_t heads, int64_t key_heads, const std::string& layout) {
  return {{"num_heads", AttrValue::Int(heads)},
          {"num_key_value_heads", AttrValue::Int(key_heads)},
          {"input_layout", AttrValue::String(layout)},
          {"scale", AttrValue::Float(0.25f)}};
}

// ---- layouts ----

struct LayoutCase {
  std::string layout;
  std::string in;
  std::string out;
};

TEST(Attention, AgreesWithTheFormulaInEveryLayout) {
  const std::vector<LayoutCase> cases = {
      {"BSH", "BSH", "BSH"},         {"BSND", "BSND", "BSND"},    {"BNSD", "BNSD", "BNSD"},
      {"SBH", "SBH", "SBH"},         {"TND", "TND", "TND"},       {"NTD", "NTD", "NTD"},
      {"BNSD_BSND", "BNSD", "BSND"}, {"BSH_BNSD", "BSH", "BNSD"}, {"BSND_NBSD", "BSND", "NBSD"},
      {"BNSD_NBSD", "BNSD", "NBSD"}, {"BSH_NBSD", "BSH", "NBSD"}, {"TND_NTD", "TND", "NTD"},
      {"NTD_TND", "NTD", "TND"},
  };
  const std::vector<int64_t> q_starts = {0, 5, 8};
  const std::vector<int64_t> kv_starts = {0, 4, 11};
  for (const LayoutCase& c : cases) {
    for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
      SCOPED_TRACE(c.layout + " " + std::string(Name(dtype)));
      const Heads q = Noise(dtype, 2, 4, 5, 8, 1);
      const Heads k = Noise(dtype, 2, 2, 7, 8, 2);
      const Heads v = Noise(dtype, 2, 2, 7, 6, 3);
      OpCall call = Fused(InLayout(dtype, c.in, q, q_starts), InLayout(dtype, c.in, k, kv_starts),
                          InLayout(dtype, c.in, v, kv_starts), Sizes(4, 2, c.layout));
      Plain plain{.scale = 0.25};
      if (c.in.find('T') != std::string::npos) {
        call.inputs.push_back({"actual_seq_lengths", MakeInts({5, 8})});
        call.inputs.push_back({"actual_seq_lengths_kv", MakeInts({4, 11})});
        plain.q_rows = {5, 3};
        plain.kv_rows = {4, 7};
      }
      const Result<std::vector<Tensor>> out = RunOp(call);
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ((*out)[0].dtype(), dtype);
      ExpectHeads((*out)[0], c.out, PlainAttention(q, k, v, plain).out, q_starts);
      EXPECT_EQ((*out)[1].shape(), (Shape{1}));
      EXPECT_EQ((*out)[1].as<float>()[0], 0.0f);
    }
  }
}

TEST(Attention, CrossesTheBordersOfTiles) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 300}, {70, 129}, {130, 64}, {64, 128}}) {
    const Heads q = Noise(DataType::kFloat, 1, 2, rows, 16, 4);
    const Heads k = Noise(DataType::kFloat, 1, 1, columns, 16, 5);
    const Heads v = Noise(DataType::kFloat, 1, 1, columns, 16, 6);
    OpCall call{.type = "PromptFlashAttention",
                .inputs = {{"query", InLayout(DataType::kFloat, "BNSD", q)},
                           {"key", InLayout(DataType::kFloat, "BNSD", k)},
                           {"value", InLayout(DataType::kFloat, "BNSD", v)}},
                .attrs = {{"num_heads", AttrValue::Int(2)},
                          {"scale_value", AttrValue::Float(4.0f)},
                          {"input_layout", AttrValue::String("BNSD")}}};
    ExpectHeads(RunOne(call), "BNSD", PlainAttention(q, k, v, {.scale = 4}).out);
  }
}

// The tile of scores is all there is: memory is the same for one key and for a hundred thousand.
TEST(Attention, MemoryDoesNotGrowWithTheSequences) {
  const Operator& op = *BuiltinOps().Find("FusedInferAttentionScore");
  std::vector<uint64_t> scratch;
  for (const int64_t rows : {int64_t{128}, int64_t{100000}}) {
    const Tensor none = Tensor::Allocate({DataType::kFloat16, {1, 1, 16}});
    OpCall call = Fused(none, none, none, Sizes(1, 1, "BSH"));
    const Node node = op_test::MakeNode(op, call);
    Result<OpContext> context = OpContext::Bind(node, op.schema);
    ASSERT_TRUE(context.ok());
    for (const char* port : {"query", "key", "value"}) {
      context->set_in(context->slot(port), {DataType::kFloat16, {1, rows, 16}});
    }
    ASSERT_TRUE(op.infer(*context).ok());
    const Result<std::unique_ptr<Kernel>> kernel = op.make_kernel(*context);
    ASSERT_TRUE(kernel.ok());
    scratch.push_back((*kernel)->scratch_bytes());
  }
  EXPECT_EQ(scratch[0], scratch[1]);
}

// ---- masks and bands ----

struct BandCase {
  int64_t mode;
  bool mask;
  int64_t pre;
  int64_t next;
  std::function<bool(int64_t i, int64_t j)> sees;
};

TEST(Attention, EverySparseModeShowsWhatItShould) {
  const int64_t rows = 70;
  const int64_t columns = 150;
  const int64_t shift = columns - rows;
  const auto hidden = [](int64_t i, int64_t j) { return (i * 7 + j * 3) % 5 == 0; };
  std::vector<double> mask(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      mask[static_cast<size_t>(i * columns + j)] = hidden(i, j) ? 1 : 0;
    }
  }
  const std::vector<BandCase> cases = {
      {0, false, 3, 3, [](int64_t, int64_t) { return true; }},
      {0, true, 40, 20,
       [&](int64_t i, int64_t j) { return !hidden(i, j) && j >= i - 40 && j <= i + 20; }},
      {1, true, 3, 3, [&](int64_t i, int64_t j) { return !hidden(i, j); }},
      {2, true, 3, 3, [](int64_t i, int64_t j) { return j <= i; }},
      {3, true, 3, 3, [&](int64_t i, int64_t j) { return j <= i + shift; }},
      {4, true, 30, 5,
       [&](int64_t i, int64_t j) { return j >= i + shift - 30 && j <= i + shift + 5; }},
      {4, false, 30, -10,
       [&](int64_t i, int64_t j) { return j >= i + shift - 30 && j <= i + shift - 10; }},
  };
  const Heads q = Noise(DataType::kFloat16, 2, 2, rows, 8, 1);
  const Heads k = Noise(DataType::kFloat16, 2, 2, columns, 8, 2);
  const Heads v = Noise(DataType::kFloat16, 2, 2, columns, 8, 3);
  for (const BandCase& c : cases) {
    for (const DataType type : {DataType::kBool, DataType::kInt8, DataType::kFloat16}) {
      SCOPED_TRACE(fmt::format("mode {} mask {}", c.mode, c.mask));
      OpCall call =
          Fused(InLayout(DataType::kFloat16, "BNSD", q), InLayout(DataType::kFloat16, "BNSD", k),
                InLayout(DataType::kFloat16, "BNSD", v), Sizes(2, 2, "BNSD"));
      call.attrs.push_back({"sparse_mode", AttrValue::Int(c.mode)});
      call.attrs.push_back({"pre_tokens", AttrValue::Int(c.pre)});
      call.attrs.push_back({"next_tokens", AttrValue::Int(c.next)});
      if (c.mask) {
        const Shape shape = c.mode <= 1 ? Shape{rows, columns} : Shape{4, 4};
        std::vector<double> values = mask;
        values.resize(static_cast<size_t>(shape.elements()));
        call.inputs.push_back({"atten_mask", FromDoubles(type, shape, values)});
      }
      Plain plain{.scale = 0.25};
      plain.sees = [&](int64_t, int64_t, int64_t i, int64_t j) { return c.sees(i, j); };
      const Result<std::vector<Tensor>> out = RunOp(call);
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      ExpectHeads((*out)[0], "BNSD", PlainAttention(q, k, v, plain).out);
    }
  }
}

TEST(Attention, MasksMayDifferBySequenceAndHead) {
  const Heads q = Noise(DataType::kFloat16, 2, 2, 3, 8, 1);
  const Heads k = Noise(DataType::kFloat16, 2, 2, 4, 8, 2);
  const Heads v = Noise(DataType::kFloat16, 2, 2, 4, 8, 3);
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{2, 1, 3, 4}, Shape{2, 2, 3, 4}, Shape{1, 3, 4},
                             Shape{2, 1, 1, 4}, Shape{2, 1, 3, 9}}) {
    SCOPED_TRACE(shape.ToString());
    const Tensor mask = Pattern(DataType::kBool, shape);
    Shape full = shape;
    if (full.rank() == 3) full.mutable_dims().insert(full.mutable_dims().begin() + 1, 1);
    OpCall call =
        Fused(InLayout(DataType::kFloat16, "BSH", q), InLayout(DataType::kFloat16, "BSH", k),
              InLayout(DataType::kFloat16, "BSH", v), Sizes(2, 2, "BSH"));
    call.inputs.push_back({"atten_mask", mask});
    Plain plain{.scale = 0.25};
    plain.sees = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      return mask.as<uint8_t>()[Index(
                 full, {full[0] == 1 ? 0 : b, full[1] == 1 ? 0 : h, full[2] == 1 ? 0 : i, j})] == 0;
    };
    const Result<std::vector<Tensor>> out = RunOp(call);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ExpectHeads((*out)[0], "BSH", PlainAttention(q, k, v, plain).out);
  }
}

// ---- shift, sink, logarithm of the sum ----

TEST(Attention, ShiftSinkAndLogSum) {
  const Heads q = Noise(DataType::kFloat16, 2, 2, 3, 8, 1);
  const Heads k = Noise(DataType::kFloat16, 2, 1, 5, 8, 2);
  const Heads v = Noise(DataType::kFloat16, 2, 1, 5, 8, 3);
  const Heads shift = Noise(DataType::kFloat16, 1, 2, 3, 5, 4);
  OpCall call =
      Fused(InLayout(DataType::kFloat16, "BNSD", q), InLayout(DataType::kFloat16, "BNSD", k),
            InLayout(DataType::kFloat16, "BNSD", v), Sizes(2, 1, "BNSD"));
  call.inputs.push_back({"pse_shift", InLayout(DataType::kFloat16, "BNSD", shift)});
  call.inputs.push_back({"learnable_sink", FromDoubles(DataType::kBfloat16, {2}, {0.5, -3})});
  call.attrs.push_back({"softmax_lse_flag", AttrValue::Bool(true)});
  Plain plain{.scale = 0.25, .sink = {0.5, -3}};
  plain.shift = [&](int64_t, int64_t h, int64_t i, int64_t j) { return shift.at(0, h, i, j); };
  const PlainResult expected = PlainAttention(q, k, v, plain);
  const Result<std::vector<Tensor>> out = RunOp(call);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ExpectHeads((*out)[0], "BNSD", expected.out);
  Heads log_sum = expected.most;
  for (size_t i = 0; i < log_sum.values.size(); ++i) {
    log_sum.values[i] += std::log(expected.sum.values[i]);
  }
  ExpectHeads((*out)[1], "BNSD", log_sum);
}

// ---- lengths ----

TEST(Attention, LengthsCutRowsAndColumns) {
  const Heads q = Noise(DataType::kFloat16, 3, 2, 4, 8, 1);
  const Heads k = Noise(DataType::kFloat16, 3, 2, 6, 8, 2);
  const Heads v = Noise(DataType::kFloat16, 3, 2, 6, 8, 3);
  const auto call_with = [&](const std::vector<int64_t>& rows, const std::vector<int64_t>& keys) {
    OpCall call =
        Fused(InLayout(DataType::kFloat16, "BSND", q), InLayout(DataType::kFloat16, "BSND", k),
              InLayout(DataType::kFloat16, "BSND", v), Sizes(2, 2, "BSND"));
    call.inputs.push_back({"actual_seq_lengths", MakeInts(rows)});
    call.inputs.push_back({"actual_seq_lengths_kv", MakeInts(keys)});
    call.attrs.push_back({"sparse_mode", AttrValue::Int(3)});
    return call;
  };
  Plain plain{.scale = 0.25, .q_rows = {4, 2, 0}, .kv_rows = {6, 0, 3}};
  plain.sees = [&](int64_t b, int64_t, int64_t i, int64_t j) {
    const auto at = static_cast<size_t>(b);
    return j <= i + plain.kv_rows[at] - plain.q_rows[at];
  };
  Result<std::vector<Tensor>> out = RunOp(call_with({4, 2, 0}, {6, 0, 3}));
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ExpectHeads((*out)[0], "BSND", PlainAttention(q, k, v, plain).out);

  plain.q_rows = {3, 3, 3};
  plain.kv_rows = {5, 5, 5};
  out = RunOp(call_with({3}, {5}));
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ExpectHeads((*out)[0], "BSND", PlainAttention(q, k, v, plain).out);

  ExpectFails(call_with({4, 4, 4}, {6, 7, 6}), Code::kInvalidArgument,
              {"key length", "sequence 1", "7", "6 rows"});
  ExpectFails(call_with({4, -1, 4}, {6, 6, 6}), Code::kInvalidArgument, {"query length", "-1"});
  ExpectFails(call_with({4, 4}, {6}), Code::kInvalidArgument, {"2 lengths", "3 sequences"});
}

TEST(Attention, DecodeIgnoresTheSparseMode) {
  const Heads q = Noise(DataType::kFloat16, 2, 8, 1, 8, 1);
  const Heads k = Noise(DataType::kFloat16, 2, 2, 9, 8, 2);
  for (const char* type : {"FusedInferAttentionScore", "IncreFlashAttention"}) {
    const bool fused = std::string(type) == "FusedInferAttentionScore";
    OpCall call =
        Fused(InLayout(DataType::kFloat16, "BSH", q), InLayout(DataType::kFloat16, "BSH", k),
              InLayout(DataType::kFloat16, "BSH", k), Sizes(8, 2, "BSH"));
    call.type = type;
    if (fused) {
      call.attrs.push_back({"sparse_mode", AttrValue::Int(2)});
    } else {
      call.attrs.back().first = "scale_value";
    }
    call.inputs.push_back(
        {fused ? "actual_seq_lengths_kv" : "actual_seq_lengths", MakeInts({9, 4})});
    const Result<std::vector<Tensor>> out = RunOp(call);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ExpectHeads((*out)[0], "BSH", PlainAttention(q, k, k, {.scale = 0.25, .kv_rows = {9, 4}}).out);
  }
}

TEST(Attention, PaddingMovesTheRows) {
  const Heads q = Noise(DataType::kFloat16, 1, 1, 4, 8, 1);
  const Heads k = Noise(DataType::kFloat16, 1, 1, 6, 8, 2);
  OpCall call =
      Fused(InLayout(DataType::kFloat16, "BSH", q), InLayout(DataType::kFloat16, "BSH", k),
            InLayout(DataType::kFloat16, "BSH", k), Sizes(1, 1, "BSH"));
  call.inputs.push_back({"actual_seq_lengths", MakeInts({2})});
  call.inputs.push_back({"actual_seq_lengths_kv", MakeInts({3})});
  call.inputs.push_back({"query_padding_size", MakeInts({1})});
  call.inputs.push_back({"kv_padding_size", MakeInts({2})});
  const Result<std::vector<Tensor>> out = RunOp(call);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  // Query rows 1 and 2, key rows 1, 2 and 3.
  Plain plain{.scale = 0.25};
  plain.sees = [](int64_t, int64_t, int64_t i, int64_t j) {
    return (i == 1 || i == 2) && j >= 1 && j <= 3;
  };
  ExpectHeads((*out)[0], "BSH", PlainAttention(q, k, k, plain).out);
}

}  // namespace
}  // namespace npumesh
