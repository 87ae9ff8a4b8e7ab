// A float16 graph against the same graph in float32: rounding is no difference, a wrong element is.
#include "graph/compare/measures/rounding.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include <memory>

#include "graph/compare/measures/comparison.h"
#include "graph/compare/measures/elements.h"
#include "graph/compare/sources/recorder.h"
#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

// Numbers that float16 holds exactly.
Tensor Values(DataType dtype, Shape shape, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<float>((i * 37) % 19 - 9) * step);
  }
  TensorType type{dtype, std::move(shape)};
  if (dtype == DataType::kFloat) return Tensor::FromVector(std::move(type), values);
  const std::vector<Float16> halves(values.begin(), values.end());
  return Tensor::FromVector(std::move(type), halves);
}

// A product, a softmax and a norm in `dtype`, and a cast to float32.
Model Chain(DataType dtype) {
  GraphBuilder g;
  const Value x = g.Data("x", {dtype, {8, 64}});
  const Value w = g.Data("w", {dtype, {64, 32}});
  const Value gamma = g.Data("gamma", {dtype, {32}});
  const Value product = g.Op("MatMul", {{"x1", x}, {"x2", w}}, {}, "product");
  const Value softmax = g.Op("SoftmaxV2", {{"x", product}}, {}, "softmax");
  const Value norm = g.Op("RmsNorm", {{"x", softmax}, {"gamma", gamma}}, {}, "norm", 2);
  g.Output({g.Op("Cast", {{"x", norm}}, {{"dst_type", AttrValue::Int(0)}}, "cast")});
  return *g.Build();
}

// What the operators of one run put out, and what rounds before each.
struct Recorded {
  Recorder recorder{"run", 0, false};
  OperatorRoundings roundings;
};

std::unique_ptr<Recorded> RunChain(DataType dtype) {
  auto run = std::make_unique<Recorded>();
  Env env;
  env.hbm_bytes = uint64_t{8} << 20;
  const auto statuses = RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    RoundingEstimate estimate;
    SessionOptions options;
    options.compile.observer = [&](std::string_view stage, const Model& typed) {
      if (stage == "AfterInfershape") estimate.Note(typed);
    };
    NPUMESH_ASSIGN_OR_RETURN(const auto session,
                             Session::Create(world, *memory, Chain(dtype), options));
    const std::vector<Tensor> inputs = {Values(dtype, {8, 64}, 0.0625f),
                                        Values(dtype, {64, 32}, 0.03125f),
                                        Values(dtype, {32}, 0.5f)};
    NPUMESH_RETURN_IF_ERROR(session->Run(inputs, &run->recorder).status());
    NPUMESH_ASSIGN_OR_RETURN(run->roundings,
                             estimate.OperatorsOf(session->model(), BuiltinOps(), 1));
    return Status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  return run;
}

std::string FirstOf(const TensorSource& mine, const TensorSource& golden,
                    const OperatorRoundings& roundings) {
  const Model model = Chain(DataType::kFloat16);
  const OperatorOrder order = *OperatorOrder::FromGraph(model.graph, BuiltinOps());
  const Result<Comparison> comparison =
      CompareSources(mine, golden, &order, {.reorder = true, .roundings = &roundings});
  if (!comparison.ok()) return comparison.status().ToString();
  return comparison->First() == nullptr ? "none" : comparison->First()->key;
}

// What `source` holds, with one element of the cast wrong by a hundredth of the scale.
MemorySource WithPlant(const MemorySource& source) {
  MemorySource planted("planted");
  for (const SourceOperator& op : source.operators()) {
    for (const int output : op.outputs) {
      Tensor tensor = *source.Load(op.key, Side::kOutput, output);
      if (op.key == "cast") {
        std::vector<double> values = *ElementsOf(tensor);
        values[5] += ScaleOf(tensor) / 100;
        tensor =
            Tensor::FromVector(tensor.type(), std::vector<float>(values.begin(), values.end()));
      }
      planted.Add(op.name, op.type, Side::kOutput, output, std::move(tensor));
    }
  }
  return planted;
}

TEST(RoundingEstimate, RoundingOfFloat16IsNoDifferenceAfterACastToFloat32) {
  const std::unique_ptr<Recorded> half = RunChain(DataType::kFloat16);
  const std::unique_ptr<Recorded> whole = RunChain(DataType::kFloat);
  const MemorySource& mine = half->recorder.source();
  const MemorySource& golden = whole->recorder.source();
  ASSERT_TRUE(half->roundings.contains("cast"));
  EXPECT_EQ(half->roundings.at("cast").coarsest, DataType::kFloat16);
  EXPECT_EQ(half->roundings.at("cast").operators, 4);
  EXPECT_EQ(FirstOf(mine, golden, half->roundings), "none");
  EXPECT_NE(FirstOf(mine, golden, {}), "none");  // what the dtype alone allows is too little
  EXPECT_EQ(FirstOf(WithPlant(mine), golden, half->roundings), "cast");
}

// What lies before the output of a product and its softmax.
RoundingPath PathOfSoftmax(int64_t terms, int64_t width) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {1, terms}});
  const Value w = g.Data("w", {DataType::kFloat, {terms, width}});
  const Value product = g.Op("MatMul", {{"x1", x}, {"x2", w}}, {}, "product");
  const Value y = g.Op("SoftmaxV2", {{"x", product}}, {}, "softmax");
  g.Output({g.Op("Reshape", {{"x", y}, {"shape", g.Ints({width})}}, {}, "flat")});
  const Model model = *g.Build();
  RoundingPath path;
  Env env;
  env.hbm_bytes = uint64_t{8} << 20;
  const auto statuses = RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    RoundingEstimate estimate;
    SessionOptions options;
    options.compile.observer = [&](std::string_view stage, const Model& typed) {
      if (stage == "AfterInfershape") estimate.Note(typed);
    };
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model, options));
    const std::vector<Tensor> inputs = {Values(DataType::kFloat, {1, terms}, 1),
                                        Values(DataType::kFloat, {terms, width}, 1)};
    NPUMESH_RETURN_IF_ERROR(session->Run(inputs).status());
    NPUMESH_ASSIGN_OR_RETURN(const auto paths, estimate.OutputsOf(model, BuiltinOps(), 1));
    path = paths[0];
    return Status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  return path;
}

// Softmax of logits that a product gives, added up in float32 forwards and backwards: no draw is a
// difference, and a result that is wrong by a hundredth is one. Without the argument's share some
// draw would be.
TEST(RoundingEstimate, KnowsExponentials) {
  constexpr size_t kTerms = 48, kWidth = 16;
  uint64_t state = 20261127;
  const auto unit = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(state >> 40) * 0x1p-24f * 2 - 1;
  };
  const RoundingPath path = PathOfSoftmax(kTerms, kWidth);
  EXPECT_GT(path.of_argument, 0);
  RoundingPath plain = path;
  plain.of_argument = 0;
  int beyond = 0;
  for (int turn = 0; turn < 120; ++turn) {
    const float size = turn % 3 == 0 ? 0.25f : turn % 3 == 1 ? 1.0f : 3.0f;
    std::vector<float> logits[2] = {std::vector<float>(kWidth), std::vector<float>(kWidth)};
    for (size_t c = 0; c < kWidth; ++c) {
      std::vector<float> products(kTerms);
      for (float& each : products) each = size * unit();
      for (size_t k = 0; k < kTerms; ++k) {
        logits[0][c] += products[k];
        logits[1][c] += products[kTerms - 1 - k];
      }
    }
    std::vector<float> results[2];
    for (const int i : {0, 1}) {
      double sum = 0;
      for (const float each : logits[i]) sum += std::exp(static_cast<double>(each));
      for (const float each : logits[i]) {
        results[i].push_back(static_cast<float>(std::exp(static_cast<double>(each)) / sum));
      }
    }
    const Tensor golden = Tensor::FromVector({DataType::kFloat, {kWidth}}, results[0]);
    const Allowance allowed = CloseAllowance(path, golden);
    const Allowance less = CloseAllowance(plain, golden);
    for (size_t c = 0; c < kWidth; ++c) {
      const double want = static_cast<double>(results[0][c]);
      const double off = std::abs(static_cast<double>(results[1][c]) - want);
      EXPECT_LE(off, allowed.absolute + allowed.relative * want) << turn;
      if (off > less.absolute + less.relative * want) ++beyond;
    }
    EXPECT_LT(allowed.relative, 0.001) << turn;  // a hundredth is found
  }
  EXPECT_GT(beyond, 0);
}

}  // namespace
}  // namespace npumesh
