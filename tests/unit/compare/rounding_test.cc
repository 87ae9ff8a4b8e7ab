// A float16 graph against the same graph in float32: rounding is no difference, a wrong element is.
#include "graph/compare/rounding.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include <memory>

#include "graph/compare/comparison.h"
#include "graph/compare/elements.h"
#include "graph/compare/recorder.h"
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

}  // namespace
}  // namespace npumesh
