// Graphs of one card that become those of N ranks: what comes out, and what stands in the way.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/shard/shard_model.h"
#include "graph/shard/shard_proof.h"
#include "tests/ranks/run_ranks.h"
#include "tests/ranks/shard/random_decoder.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Result<ShardedModel> Shard(const WrittenDecoder& written, int ranks) {
  return ShardModel(written.model, BuiltinOps(), ranks, written.inputs);
}

std::vector<std::string> FatesOf(const ShardedModel& sharded, std::string_view type) {
  std::vector<std::string> fates;
  for (const ShardNote& note : sharded.notes) {
    if (note.type == type) fates.emplace_back(Name(note.fate));
  }
  return fates;
}

DecoderForm SmallForm() {
  DecoderForm form;
  form.seed = 5;
  return form;
}

TEST(ShardModel, SplitsADecoderAsMegatronDoes) {
  const auto written = WriteDecoder(SmallForm());
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  const auto sharded = Shard(*written, 2);
  ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
  // Queries, keys, values; their output; gate and up; down.
  EXPECT_THAT(FatesOf(*sharded, "MatMulV2"),
              ElementsAre("sharded", "sharded", "sharded", "reduced", "sharded", "reduced"));
  EXPECT_THAT(FatesOf(*sharded, "SoftmaxV2"), ElementsAre("sharded"));
  EXPECT_THAT(FatesOf(*sharded, "RmsNorm"), ElementsAre("replicated", "replicated", "replicated"));
  for (const ShardNote& note : sharded->notes) EXPECT_NE(note.fate, ShardFate::kGathered);
  ASSERT_EQ(sharded->models.size(), 2u);
}

// float32, element i is sin(i + seed).
Tensor Waves(const Shape& shape, float seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(std::sin(static_cast<float>(i) + seed));
  }
  return Tensor::FromVector<float>({DataType::kFloat, shape}, values);
}

void ExpectProven(const WrittenDecoder& written, const ShardedModel& sharded) {
  const auto proof = ProveShards(written.model, sharded, BuiltinOps(), TestEnv(), {written.inputs});
  ASSERT_TRUE(proof.ok()) << proof.status().ToString();
  EXPECT_FALSE(proof->difference) << proof->difference->text;
}

// A decode step of 2 sequences with 4 heads of 4 over pages of 4 tokens; `pages`: the shape of keys
// and values with 2 heads. A shift of the scores has a value for each head.
WrittenDecoder PagedStep(const Shape& pages) {
  GraphBuilder g("paged");
  WrittenDecoder written;
  written.inputs = {Waves({2, 16}, 0), Waves(pages, 1), Waves(pages, 2)};
  const Value x = g.Data("x", written.inputs[0].type());
  const Value key = g.Data("key", written.inputs[1].type());
  const Value value = g.Data("value", written.inputs[2].type());
  const Value query = g.Op("MatMulV2", {{"x1", x}, {"x2", g.Const("wq", Waves({16, 16}, 3))}});
  const Value table =
      g.Const("table", Tensor::FromVector<int32_t>({DataType::kInt32, {2, 2}}, {2, 0, 1, -1}));
  const Value mixed =
      g.Op("IncreFlashAttention",
           {{"query", g.Op("Reshape", {{"x", query}, {"shape", g.Ints({2, 1, 16})}})},
            {"key0", key},
            {"value0", value},
            {"pse_shift", g.Const("shift", Waves({2, 4, 1, 8}, 4))},
            {"actual_seq_lengths", g.Ints({7, 3})},
            {"block_table", table}},
           {{"num_heads", AttrValue::Int(4)},
            {"num_key_value_heads", AttrValue::Int(2)},
            {"block_size", AttrValue::Int(4)},
            {"scale_value", AttrValue::Float(0.5f)}});
  const Value rows = g.Op("Reshape", {{"x", mixed}, {"shape", g.Ints({2, 16})}});
  g.Output({g.Op("MatMulV2", {{"x1", rows}, {"x2", g.Const("wo", Waves({16, 16}, 5))}})});
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  written.model = *std::move(model);
  return written;
}

TEST(ShardModel, SplitsHeadsOfPages) {
  for (const Shape& pages : {Shape({3, 4, 8}), Shape({3, 2, 4, 4})}) {
    const WrittenDecoder written = PagedStep(pages);
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", pages, ranks));
      const auto sharded = Shard(written, ranks);
      ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
      EXPECT_THAT(FatesOf(*sharded, "IncreFlashAttention"), ElementsAre("sharded"));
      const int axis = pages.rank() == 3 ? 2 : 1;
      EXPECT_EQ(sharded->inputs[1], ShardLayout::Split(axis, 2));
      EXPECT_EQ(sharded->inputs[2], ShardLayout::Split(axis, 2));
      ExpectProven(written, *sharded);
    }
  }
}

// Keys and values of 2 tokens, 2 heads of 4, which are copied into caches.
struct CopiedRows {
  std::string mode;
  Shape rows;   // as which they come to the copy
  Shape cache;  // slots 9 and 2 of 12
  int axis;     // of the cache, along which it is split
};

// A RefData each, which attention reads where its pages are of a form that it knows.
WrittenDecoder CopyIntoPages(const CopiedRows& form) {
  GraphBuilder g("copied");
  WrittenDecoder written;
  written.inputs = {Waves({2, 16}, 0), Waves(form.cache, 1), Waves(form.cache, 2)};
  const Value x = g.Data("x", written.inputs[0].type());
  const Value keys = g.RefData("keys", written.inputs[1].type());
  const Value values = g.RefData("values", written.inputs[2].type());
  const auto reshape = [&](Value value, const Shape& to) {
    return g.Op("Reshape", {{"x", value}, {"shape", g.Ints(to.dims())}});
  };
  const auto project = [&](int64_t columns, float seed) {
    return g.Op("MatMulV2", {{"x1", x}, {"x2", g.Const("w", Waves({16, columns}, seed))}});
  };
  const Value copied = g.Op("ScatterPaKvCache",
                            {{"key", reshape(project(8, 3), form.rows)},
                             {"key_cache", keys},
                             {"slot_mapping", g.Ints({9, 2})},
                             {"value", reshape(project(8, 4), form.rows)},
                             {"value_cache", values}},
                            {{"cache_mode", AttrValue::String(form.mode)}}, {}, 2);
  const Value query = reshape(project(16, 5), {2, 1, 16});
  Value mixed = query;
  if (form.mode == "Norm") {
    const Value table =
        g.Const("table", Tensor::FromVector<int32_t>({DataType::kInt32, {2, 2}}, {2, 0, 0, -1}));
    mixed = g.Op("FusedInferAttentionScore",
                 {{"query", query},
                  {"key0", reshape(copied, {3, 4, 8})},
                  {"value0", reshape(g.Port(copied, 1), {3, 4, 8})},
                  {"actual_seq_lengths_kv", g.Ints({6, 3})},
                  {"block_table", table}},
                 {{"num_heads", AttrValue::Int(4)},
                  {"num_key_value_heads", AttrValue::Int(2)},
                  {"input_layout", AttrValue::String("BSH")},
                  {"block_size", AttrValue::Int(4)},
                  {"scale", AttrValue::Float(0.5f)}},
                 {}, 2);
  }
  g.Output({g.Op("MatMulV2",
                 {{"x1", reshape(mixed, {2, 16})}, {"x2", g.Const("wo", Waves({16, 16}, 6))}})});
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  written.model = *std::move(model);
  return written;
}

TEST(ShardModel, SplitsCachesThatRowsAreCopiedInto) {
  const CopiedRows forms[] = {{"Norm", {2, 2, 4}, {3, 4, 2, 4}, 2},
                              {"Norm", {2, 1, 2, 4}, {3, 4, 2, 4}, 2},
                              {"Norm", {2, 8}, {3, 4, 2, 4}, 2},
                              {"Norm", {2, 2, 4}, {3, 4, 8}, 2},
                              {"PA_NZ", {2, 2, 4}, {3, 4, 4, 2}, 1}};
  for (const CopiedRows& form : forms) {
    const WrittenDecoder written = CopyIntoPages(form);
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(fmt::format("{} {} into {} on {}", form.mode, form.rows, form.cache, ranks));
      const auto sharded = Shard(written, ranks);
      ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
      EXPECT_THAT(FatesOf(*sharded, "ScatterPaKvCache"), ElementsAre("sharded"))
          << ShardNotesAsText(sharded->notes);
      EXPECT_EQ(sharded->inputs[1], ShardLayout::Split(form.axis, 2));
      EXPECT_EQ(sharded->inputs[2], ShardLayout::Split(form.axis, 2));
      for (const ShardNote& note : sharded->notes) EXPECT_NE(note.fate, ShardFate::kGathered);
      ExpectProven(written, *sharded);
    }
  }
}

// A decode step of 2 sequences whose keys and values are a tensor each, of 5 and of 3 tokens.
WrittenDecoder ListedStep() {
  GraphBuilder g("listed");
  WrittenDecoder written;
  const Shape first{1, 2, 5, 4}, second{1, 2, 3, 4};
  written.inputs = {Waves({2, 16}, 0), Waves(first, 1), Waves(second, 2), Waves(first, 3),
                    Waves(second, 4)};
  std::vector<Value> in;
  for (size_t i = 0; i < written.inputs.size(); ++i) {
    in.push_back(g.Data(fmt::format("in{}", i), written.inputs[i].type()));
  }
  const Value query = g.Op("MatMulV2", {{"x1", in[0]}, {"x2", g.Const("wq", Waves({16, 16}, 5))}});
  const Value mixed =
      g.Op("IncreFlashAttention",
           {{"query", g.Op("Reshape", {{"x", query}, {"shape", g.Ints({2, 4, 1, 4})}})},
            {"key0", in[1]},
            {"key1", in[2]},
            {"value0", in[3]},
            {"value1", in[4]}},
           {{"num_heads", AttrValue::Int(4)},
            {"num_key_value_heads", AttrValue::Int(2)},
            {"input_layout", AttrValue::String("BNSD")},
            {"scale_value", AttrValue::Float(0.5f)}});
  const Value rows = g.Op("Reshape", {{"x", mixed}, {"shape", g.Ints({2, 16})}});
  g.Output({g.Op("MatMulV2", {{"x1", rows}, {"x2", g.Const("wo", Waves({16, 16}, 6))}})});
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  written.model = *std::move(model);
  return written;
}

TEST(ShardModel, SplitsListsOfCaches) {
  const WrittenDecoder written = ListedStep();
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    const auto sharded = Shard(written, ranks);
    ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
    EXPECT_THAT(FatesOf(*sharded, "IncreFlashAttention"), ElementsAre("sharded"));
    for (size_t i = 1; i < written.inputs.size(); ++i) {
      EXPECT_EQ(sharded->inputs[i], ShardLayout::Split(1, 2)) << i;
    }
    ExpectProven(written, *sharded);
  }
}

// What is computed from a weight is as good as a weight, also where it is too large to be folded.
TEST(ShardModel, SplitsWeightsOfAnySizeBehindATransposition) {
  const int64_t depth = 2048, columns = 2304;  // 18 MiB
  for (const bool scaled : {false, true}) {
    GraphBuilder g("large");
    WrittenDecoder written;
    written.inputs = {Waves({2, depth}, 0)};
    const Value x = g.Data("x", written.inputs[0].type());
    const Value w = g.Const("w", Waves({columns, depth}, 1));
    Value weight = g.Op("Transpose", {{"x", w}, {"perm", g.Ints({1, 0})}});
    if (scaled) weight = g.Op("Muls", {{"x", weight}}, {{"value", AttrValue::Float(2)}});
    g.Output({g.Op("MatMulV2", {{"x1", x}, {"x2", weight}})});
    Result<Model> model = g.Build();
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    written.model = *std::move(model);
    const auto sharded = Shard(written, 2);
    ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
    EXPECT_THAT(FatesOf(*sharded, "MatMulV2"), Contains("sharded"));
    int64_t elements = 0;
    for (const Node& node : sharded->models[0].graph.nodes()) {
      if (node.type == "Const") elements += node.output_descs[0].shape->elements();
    }
    EXPECT_LT(elements, depth * columns / 2 + 64);
    ExpectProven(written, *sharded);
  }
}

// Operators between a product [4, 16] whose columns are split and one that sums over them.
struct Carrier {
  std::string type;
  std::function<Value(GraphBuilder&, Value)> write;
};

WrittenDecoder Between(const Carrier& carrier) {
  GraphBuilder g("between");
  WrittenDecoder written;
  written.inputs = {Waves({4, 8}, 0)};
  const Value x = g.Data("x", written.inputs[0].type());
  const Value y = g.Op("MatMulV2", {{"x1", x}, {"x2", g.Const("w1", Waves({8, 16}, 1))}});
  const Value z = carrier.write(g, y);
  g.Output({g.Op("BatchMatMulV2", {{"x1", z}, {"x2", g.Const("w2", Waves({16, 8}, 2))}})});
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << carrier.type << ": " << model.status().ToString();
  if (model.ok()) written.model = *std::move(model);
  return written;
}

Value Places(GraphBuilder& g, const Shape& shape) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < shape.elements(); ++i) places.push_back(i % 3);
  return g.Const("places", Tensor::FromVector<int64_t>({DataType::kInt64, shape}, places));
}

TEST(ShardModel, CarriesPiecesThroughLettersWithoutMarks) {
  const auto along = [](int64_t axis) {
    return [axis](GraphBuilder& g, Value y) {
      return g.Op("CumsumD", {{"x", y}}, {{"axis", AttrValue::Int(axis)}});
    };
  };
  const Carrier carriers[] = {
      {"CumsumD", along(0)},
      {"Pack",
       [](GraphBuilder& g, Value y) {
         return g.Op("Pack", {{"x0", y}, {"x1", y}},
                     {{"axis", AttrValue::Int(1)}, {"N", AttrValue::Int(2)}});
       }},
      {"GatherElements",
       [](GraphBuilder& g, Value y) {
         return g.Op("GatherElements", {{"x", y}, {"index", Places(g, {3, 16})}});
       }},
      {"GatherNd",
       [](GraphBuilder& g, Value y) {
         return g.Op("GatherNd", {{"x", y}, {"indices", Places(g, {3, 1})}});
       }},
      {"ScatterElements",
       [](GraphBuilder& g, Value y) {
         return g.Op("ScatterElements", {{"data", y},
                                         {"indices", Places(g, {1, 16})},
                                         {"updates", g.Const("u", Waves({1, 16}, 3))}});
       }},
      {"TensorScatterUpdate",
       [](GraphBuilder& g, Value y) {
         return g.Op("TensorScatterUpdate", {{"x", y},
                                             {"indices", Places(g, {2, 1})},
                                             {"updates", g.Const("u", Waves({2, 16}, 3))}});
       }},
      {"ArgMaxD",
       [](GraphBuilder& g, Value y) {
         const Value most = g.Op("ArgMaxD", {{"x", y}}, {{"dimension", AttrValue::Int(0)}});
         const Value row = g.Op("Cast", {{"x", most}}, {{"dst_type", AttrValue::Int(0)}});
         return g.Op("Reshape", {{"x", row}, {"shape", g.Ints({1, 16})}});
       }},
  };
  for (const Carrier& carrier : carriers) {
    SCOPED_TRACE(carrier.type);
    const WrittenDecoder written = Between(carrier);
    const auto sharded = Shard(written, 2);
    ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
    EXPECT_THAT(FatesOf(*sharded, carrier.type), ElementsAre("sharded"))
        << ShardNotesAsText(sharded->notes);
    EXPECT_THAT(FatesOf(*sharded, "BatchMatMulV2"), ElementsAre("reduced"));
    ExpectProven(written, *sharded);
  }
  const WrittenDecoder whole = Between({"CumsumD", along(1)});
  const auto sharded = Shard(whole, 2);
  ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
  EXPECT_THAT(FatesOf(*sharded, "CumsumD"), ElementsAre("replicated"));
  ExpectProven(whole, *sharded);
}

// 2,049 columns on 2 and 4 ranks, as 50,257 words of a vocabulary.
TEST(ShardModel, PadsWideProductsWhoseColumnsRanksDoNotDivide) {
  for (const int ranks : {2, 4}) {
    for (const bool turned : {false, true}) {
      SCOPED_TRACE(fmt::format("{} ranks, transposed {}", ranks, turned));
      GraphBuilder g("words");
      WrittenDecoder written;
      written.inputs = {Waves({3, 8}, 0)};
      const Value x = g.Data("x", written.inputs[0].type());
      const Value bias = g.Const("b", Waves({2049}, 2));
      Value w = g.Const("w", Waves(turned ? Shape({2049, 8}) : Shape({8, 2049}), 1));
      if (turned) w = g.Op("Transpose", {{"x", w}, {"perm", g.Ints({1, 0})}});
      const Value logits = g.Op("MatMulV2", {{"x1", x}, {"x2", w}, {"bias", bias}});
      g.Output({logits, g.Op("ArgMaxD", {{"x", logits}}, {{"dimension", AttrValue::Int(1)}})});
      Result<Model> model = g.Build();
      ASSERT_TRUE(model.ok()) << model.status().ToString();
      written.model = *std::move(model);
      const auto sharded = Shard(written, ranks);
      ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
      EXPECT_THAT(FatesOf(*sharded, "MatMulV2"), Contains("sharded"));
      EXPECT_THAT(sharded->notes[1].text, HasSubstr(ranks == 2 ? "1 zeros" : "3 zeros"));
      EXPECT_EQ(sharded->outputs[0], ShardLayout());
      ExpectProven(written, *sharded);
    }
  }
}

TEST(ShardModel, SplitsTheVocabularyOfATableByRows) {
  DecoderForm form = SmallForm();
  form.vocabulary = 16;
  form.logits = form.tied = true;
  const auto written = WriteDecoder(form);
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  const auto sharded = Shard(*written, 4);
  ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
  EXPECT_THAT(FatesOf(*sharded, "GatherV2"), ElementsAre("reduced"));
}

TEST(ShardModel, SplitsAVocabularyOfAnySize) {
  DecoderForm form = SmallForm();
  form.vocabulary = 2049;
  form.rows = 7;
  form.logits = form.tied = true;
  const auto written = WriteDecoder(form);
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  for (const int ranks : {2, 4}) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    const auto sharded = Shard(*written, ranks);
    ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
    EXPECT_THAT(FatesOf(*sharded, "GatherV2"), ElementsAre("reduced"));
    int64_t largest = 0;
    for (const Node& node : sharded->models.back().graph.nodes()) {
      if (node.type != "Const") continue;
      largest = std::max(largest, node.output_descs[0].shape->elements());
    }
    EXPECT_EQ(largest, (2049 + ranks - 1) / ranks * form.hidden());  // one piece of the table
    // The first and the last word, and those around the ends of pieces.
    std::vector<Tensor> inputs = written->inputs;
    inputs[0] =
        Tensor::FromVector<int64_t>(inputs[0].type(), {0, 512, 513, 1024, 1025, 2047, 2048});
    const auto proof = ProveShards(written->model, *sharded, BuiltinOps(), TestEnv(), {inputs});
    ASSERT_TRUE(proof.ok()) << proof.status().ToString();
    EXPECT_FALSE(proof->difference) << proof->difference->text;
    inputs[0] = Tensor::FromVector<int64_t>(inputs[0].type(), {0, 0, 0, 0, 0, 0, 2049});
    EXPECT_FALSE(ProveShards(written->model, *sharded, BuiltinOps(), TestEnv(), {inputs}).ok());
  }
}

TEST(ShardProof, NamesTheNodeAndTheRankOfAWrongWeight) {
  DecoderForm form = SmallForm();
  const auto written = WriteDecoder(form);
  form.seed = 6;  // other weights
  const auto other = WriteDecoder(form);
  ASSERT_TRUE(written.ok() && other.ok());
  auto sharded = Shard(*written, 2);
  const auto wrong = Shard(*other, 2);
  ASSERT_TRUE(sharded.ok() && wrong.ok());
  sharded->models[1] = wrong->models[1];
  const auto proof =
      ProveShards(written->model, *sharded, BuiltinOps(), TestEnv(), {written->inputs});
  ASSERT_TRUE(proof.ok()) << proof.status().ToString();
  ASSERT_TRUE(proof->difference);
  EXPECT_EQ(proof->difference->type, "RmsNorm");  // the first node with a weight
  EXPECT_EQ(proof->difference->rank, 1);
  EXPECT_THAT(proof->difference->text, HasSubstr("of 64 elements differ"));
}

// Writes row `row` of a cache whose values no output shows.
WrittenDecoder HiddenUpdate(int64_t row) {
  GraphBuilder g("hidden");
  WrittenDecoder written;
  written.inputs = {Waves({1, 8}, 0), Waves({1, 4, 3, 2}, 1)};
  const Value x = g.Data("x", written.inputs[0].type());
  const Value cache = g.RefData("cache", written.inputs[1].type());
  const Value y = g.Op("MatMulV2", {{"x1", x}, {"x2", g.Const("w", Waves({8, 8}, 2))}});
  const Value updated =
      g.Op("Scatter",
           {{"var", cache},
            {"indices", g.Ints({row})},
            {"updates", g.Op("Reshape", {{"x", y}, {"shape", g.Ints({1, 4, 1, 2})}})}},
           {{"reduce", AttrValue::String("update")}, {"axis", AttrValue::Int(-2)}});
  g.Output({g.Op("Muls", {{"x", updated}}, {{"value", AttrValue::Float(0)}})});
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  written.model = *std::move(model);
  return written;
}

TEST(ShardProof, ComparesWhatRefDataHoldAfterEachStep) {
  const WrittenDecoder written = HiddenUpdate(1);
  const std::vector<std::vector<Tensor>> steps = {written.inputs, {written.inputs[0], Tensor()}};
  auto sharded = Shard(written, 2);
  ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
  EXPECT_EQ(sharded->inputs[1], ShardLayout::Split(1, 2));
  const auto right = ProveShards(written.model, *sharded, BuiltinOps(), TestEnv(), steps);
  ASSERT_TRUE(right.ok()) << right.status().ToString();
  EXPECT_FALSE(right->difference) << right->difference->text;
  const auto other = Shard(HiddenUpdate(2), 2);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  sharded->models[1] = other->models[1];
  const auto wrong = ProveShards(written.model, *sharded, BuiltinOps(), TestEnv(), steps);
  ASSERT_TRUE(wrong.ok()) << wrong.status().ToString();
  ASSERT_TRUE(wrong->difference);
  EXPECT_EQ(wrong->difference->held, "cache");
  EXPECT_EQ(wrong->difference->output, -1);
  EXPECT_EQ(wrong->difference->step, 0u);
  EXPECT_EQ(wrong->difference->rank, 1);
  EXPECT_EQ(wrong->difference->type, "Scatter");
}

// ---- what stands in the way ----

struct Obstacle {
  std::string name;
  std::function<Value(GraphBuilder&, Value)> write;  // after a product whose columns are split
  std::string text;
};

Value Weight(GraphBuilder& g, int64_t rows, int64_t columns) {
  const std::vector<float> ones(static_cast<size_t>(rows * columns), 1.0f);
  return g.Const("w", Tensor::FromVector<float>({DataType::kFloat, {rows, columns}}, ones));
}

Status ShardOf(int64_t columns, int ranks,
               const std::function<Value(GraphBuilder&, Value)>& write) {
  GraphBuilder g("graph_1");
  const TensorType type{DataType::kFloat, {2, 4}};
  const Value x = g.Data("x", type);
  const Value y = g.Op("MatMulV2", {{"x1", x}, {"x2", Weight(g, 4, columns)}});
  g.Output({write(g, y)});
  const auto model = g.Build();
  if (!model.ok()) return model.status();
  const Tensor sample = Tensor::Allocate(type);
  return ShardModel(*model, BuiltinOps(), ranks, {sample}).status();
}

TEST(ShardModel, NamesTheFirstNodeInTheWayAndWhatIsNeeded) {
  const Obstacle obstacles[] = {
      {"collective",
       [](GraphBuilder& g, Value y) {
         return g.Op("HcomAllReduce", {{"x", y}},
                     {{"reduction", AttrValue::String("sum")},
                      {"group", AttrValue::String("hccl_world_group")}});
       },
       "node \"HcomAllReduce\" (HcomAllReduce): talks to other ranks already; needed: the graph of "
       "one card"},
      {"random",
       [](GraphBuilder& g, Value y) {
         const Value probability =
             g.Const("p", Tensor::FromVector<float>({DataType::kFloat, {}}, {0.5f}));
         const Value mask =
             g.Op("DropOutGenMask", {{"shape", g.Ints({2, 8})}, {"prob", probability}});
         return g.Op("DropOutDoMask", {{"x", y}, {"mask", mask}, {"keep_prob", probability}});
       },
       "(DropOutGenMask): gives each rank other random numbers; needed: "},
      {"late",
       [](GraphBuilder& g, Value y) {
         return g.Op("NonZero", {{"x", y}});
       },
       "(NonZero): how much it gives is known only after it ran; needed: a graph whose shapes "},
  };
  for (const Obstacle& obstacle : obstacles) {
    const Status status = ShardOf(8, 2, obstacle.write);
    EXPECT_EQ(status.code(), Code::kUnsupported) << obstacle.name << ": " << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(obstacle.text)) << obstacle.name;
  }
}

TEST(ShardModel, NamesAProductThatRanksDoNotDivide) {
  const auto as_it_is = [](GraphBuilder&, Value y) { return y; };
  EXPECT_TRUE(ShardOf(8, 4, as_it_is).ok());
  const Status status = ShardOf(6, 4, as_it_is);
  EXPECT_EQ(status.code(), Code::kUnsupported) << status.ToString();
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("\"MatMulV2\""), HasSubstr("6 columns do not fall into 4 equal pieces"),
            HasSubstr("needed: a weight whose columns, and heads, 4 divides")));
}

TEST(ShardModel, WantsAWeightAndTwoRanks) {
  GraphBuilder g("graph_1");
  const TensorType type{DataType::kFloat, {2, 4}};
  g.Output({g.Op("Relu", {{"x", g.Data("x", type)}})});
  const auto model = g.Build();
  ASSERT_TRUE(model.ok());
  const std::vector<Tensor> sample = {Tensor::Allocate(type)};
  const Status nothing = ShardModel(*model, BuiltinOps(), 2, sample).status();
  EXPECT_EQ(nothing.code(), Code::kUnsupported);
  EXPECT_THAT(nothing.message(), HasSubstr("needed: a product of values and a weight"));
  const Status alone = ShardModel(*model, BuiltinOps(), 1, sample).status();
  EXPECT_EQ(alone.code(), Code::kInvalidArgument);
  EXPECT_THAT(alone.message(), HasSubstr("expected 2 or more"));
}

}  // namespace
}  // namespace npumesh
