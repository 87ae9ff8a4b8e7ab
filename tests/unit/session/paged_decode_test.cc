// Prefill and decode with an in-place paged cache: steps of one session against attention over the
// whole history at once.
#include "tests/unit/ops/attention/attention_reference.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

constexpr DataType kHalf = DataType::kFloat16;
constexpr int64_t kHeads = 4;
constexpr int64_t kKeyHeads = 2;
constexpr int64_t kWidth = 16;
constexpr int64_t kPage = 4;
constexpr int64_t kPages = 7;
constexpr float kScale = 0.25f;
constexpr int64_t kTokens = 14;
// Where the pages of the sequence lie in the cache.
const std::vector<int32_t> kTable = {5, 0, 6, 2};

// q, k, v of any number of tokens -> the cache -> attention over all that is in it.
Result<Model> PagedAttention() {
  const auto half = [](Shape shape) { return TensorType{kHalf, std::move(shape)}; };
  GraphBuilder g("paged");
  const Value q = g.Data("q", half({1, -1, kHeads * kWidth}));
  const Value k = g.Data("k", half({-1, kKeyHeads, kWidth}));
  const Value v = g.Data("v", half({-1, kKeyHeads, kWidth}));
  const Value slots = g.Data("slots", {DataType::kInt32, {-1}});
  const Value table = g.Data("table", {DataType::kInt32, {1, -1}});
  const Value length = g.Data("length", {DataType::kInt64, {1}});
  const Value keys = g.RefData("keys", half({kPages, kPage, kKeyHeads, kWidth}));
  const Value values = g.RefData("values", half({kPages, kPage, kKeyHeads, kWidth}));
  const Value written = g.Op("ScatterPaKvCache",
                             {{"key", k},
                              {"key_cache", keys},
                              {"slot_mapping", slots},
                              {"value", v},
                              {"value_cache", values}},
                             {}, "cache", 2);
  const Value rows = g.Ints({kPages, kPage, kKeyHeads * kWidth});
  const auto flat = [&](Value cache) { return g.Op("Reshape", {{"x", cache}, {"shape", rows}}); };
  const Value out = g.Op("FusedInferAttentionScore",
                         {{"query", q},
                          {"key0", flat(written)},
                          {"value0", flat(g.Port(written, 1))},
                          {"actual_seq_lengths_kv", length},
                          {"block_table", table}},
                         {{"num_heads", AttrValue::Int(kHeads)},
                          {"num_key_value_heads", AttrValue::Int(kKeyHeads)},
                          {"input_layout", AttrValue::String("BSH")},
                          {"scale", AttrValue::Float(kScale)},
                          {"block_size", AttrValue::Int(kPage)},
                          {"sparse_mode", AttrValue::Int(3)}},
                         "attention", 2);
  g.Output({out});
  return g.Build();
}

// Rows [from, from + count) of [1, heads, tokens, width], token by token.
Tensor Tokens(const Heads& all, int64_t from, int64_t count, const Shape& shape) {
  std::vector<double> values;
  for (int64_t t = from; t < from + count; ++t) {
    for (int64_t n = 0; n < all.heads; ++n) {
      for (int64_t d = 0; d < all.width; ++d) values.push_back(all.at(0, n, t, d));
    }
  }
  return FromDoubles(kHalf, shape, values);
}

class Decoding {
 public:
  explicit Decoding(Session& session) : session_(session) {}

  // Gives the next `count` tokens; the attention's rows must be those over the whole history.
  void Step(int64_t count) {
    SCOPED_TRACE(fmt::format("{} tokens behind {}", count, done_));
    const bool first = done_ == 0;
    const Tensor empty = FromDoubles(kHalf, {kPages, kPage, kKeyHeads, kWidth},
                                     std::vector<double>(kPages * kPage * kKeyHeads * kWidth, 99));
    std::vector<int32_t> slots;
    for (int64_t t = done_; t < done_ + count; ++t) {
      slots.push_back(
          static_cast<int32_t>(kTable[static_cast<size_t>(t / kPage)] * kPage + t % kPage));
    }
    const Result<std::vector<Tensor>> out = session_.Run(
        {Tokens(q_, done_, count, {1, count, kHeads * kWidth}),
         Tokens(k_, done_, count, {count, kKeyHeads, kWidth}),
         Tokens(v_, done_, count, {count, kKeyHeads, kWidth}),
         Make<int32_t>(DataType::kInt32, {count}, slots),
         Make<int32_t>(DataType::kInt32, {1, static_cast<int64_t>(kTable.size())}, kTable),
         MakeInts({done_ + count}), first ? empty : Tensor(), first ? empty : Tensor()});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    const std::vector<double> seen = ToDoubles((*out)[0]);
    for (int64_t row = 0; row < count; ++row) Compare(seen, row);
    done_ += count;
  }

 private:
  void Compare(const std::vector<double>& seen, int64_t row) const {
    constexpr double kTolerance = 2e-3;  // float16 probabilities are not rounded here, results are
    for (int64_t n = 0; n < kHeads; ++n) {
      for (int64_t d = 0; d < kWidth; ++d) {
        const auto at = static_cast<size_t>((row * kHeads + n) * kWidth + d);
        EXPECT_NEAR(seen[at], whole_.at(0, n, done_ + row, d), kTolerance)
            << "row " << row << ", head " << n << ", column " << d;
      }
    }
  }

  static Heads Whole(const Heads& q, const Heads& k, const Heads& v) {
    Plain plain{.scale = kScale};
    plain.sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; };
    return PlainAttention(q, k, v, plain).out;
  }

  Session& session_;
  const Heads q_ = Noise(kHalf, 1, kHeads, kTokens, kWidth, 1);
  const Heads k_ = Noise(kHalf, 1, kKeyHeads, kTokens, kWidth, 2);
  const Heads v_ = Noise(kHalf, 1, kKeyHeads, kTokens, kWidth, 3);
  const Heads whole_ = Whole(q_, k_, v_);
  int64_t done_ = 0;
};

TEST(PagedDecode, PrefillThenTokenByToken) {
  const Status status = OnRanks(1, [](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(Model model, PagedAttention());
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, memory, std::move(model)));
    for (const Node& node : session->model().graph.nodes()) {
      EXPECT_NE(node.type, "TensorMove") << "a cache that is written and then read needs no copy";
    }
    Decoding decoding(*session);
    decoding.Step(6);
    for (int i = 0; i < 5; ++i) decoding.Step(1);
    decoding.Step(3);                       // several tokens behind a history
    EXPECT_EQ(session->stats().plans, 3u);  // of 6, 1 and 3 tokens: lengths decide no shape
    return Status();
  })[0];
  EXPECT_TRUE(status.ok()) << status.ToString();
}

}  // namespace
}  // namespace npumesh
