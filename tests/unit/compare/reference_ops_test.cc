// The reference operators against the built-in ones: close on any numbers, and exact where float32
// loses what float64 keeps.
#include "graph/compare/golden/reference_ops.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/compare/measures/distance.h"
#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"

namespace npumesh {
namespace {

Tensor Values(Shape shape, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<float>((i * 37) % 19 - 9) * step);
  }
  return Tensor::FromVector(TensorType{DataType::kFloat, std::move(shape)}, values);
}

// Output 0 of one operator.
Tensor Compute(const OpRegistry& registry, const std::string& type,
               const std::vector<std::pair<std::string, Tensor>>& inputs,
               const std::vector<GraphBuilder::Attr>& attrs, int outputs) {
  GraphBuilder g;
  std::vector<GraphBuilder::Input> ports;
  std::vector<Tensor> data;
  for (const auto& [port, tensor] : inputs) {
    const bool integer = tensor.dtype() == DataType::kInt64;
    ports.emplace_back(port, integer ? g.Const(port, tensor) : g.Data(port, tensor.type()));
    if (!integer) data.push_back(tensor);
  }
  g.Output({g.Op(type, ports, attrs, "op", outputs)});
  const Model model = *g.Build();
  Env env;
  env.hbm_bytes = uint64_t{8} << 20;
  Tensor result;
  const auto statuses = RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    SessionOptions options;
    options.registry = &registry;
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model, options));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors, session->Run(data));
    result = tensors[0];
    return Status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  return result;
}

TEST(ReferenceOps, AreCloseToTheBuiltInOnes) {
  struct Case {
    std::string type;
    std::vector<std::pair<std::string, Tensor>> inputs;
    std::vector<GraphBuilder::Attr> attrs;
    int outputs = 1;
  };
  const Tensor axis = Tensor::FromVector<int64_t>({DataType::kInt64, {1}}, {1});
  const auto yes = [](const char* name) { return GraphBuilder::Attr(name, AttrValue::Bool(true)); };
  const std::vector<Case> cases = {
      {"MatMul", {{"x1", Values({4, 6}, 0.1f)}, {"x2", Values({6, 5}, 0.3f)}}, {}},
      {"MatMul",
       {{"x1", Values({6, 4}, 0.1f)}, {"x2", Values({5, 6}, 0.3f)}, {"bias", Values({5}, 1)}},
       {yes("transpose_x1"), yes("transpose_x2")}},
      {"BatchMatMul",
       {{"x1", Values({3, 4, 6}, 0.1f)}, {"x2", Values({3, 5, 6}, 0.3f)}},
       {yes("adj_x2")}},
      {"BatchMatMul", {{"x1", Values({2, 3, 4, 6}, 0.1f)}, {"x2", Values({1, 3, 6, 5}, 0.3f)}}, {}},
      {"ReduceSum", {{"x", Values({4, 7}, 0.1f)}, {"axes", axis}}, {}},
      {"ReduceMean", {{"x", Values({4, 7}, 0.1f)}, {"axes", axis}}, {}},
      {"SoftmaxV2", {{"x", Values({4, 7}, 0.1f)}}, {}},
      {"RmsNorm", {{"x", Values({4, 7}, 0.1f)}, {"gamma", Values({7}, 0.5f)}}, {}, 2},
      {"Add", {{"x1", Values({4}, 0.1f)}, {"x2", Values({4}, 0.3f)}}, {}},
  };
  for (const Case& c : cases) {
    const Tensor mine = Compute(ReferenceOps(), c.type, c.inputs, c.attrs, c.outputs);
    const Tensor builtin = Compute(BuiltinOps(), c.type, c.inputs, c.attrs, c.outputs);
    const TensorDistance distance = DistanceOf(mine, builtin, {.of_peak = 1e-6});
    EXPECT_TRUE(distance.same()) << c.type << ": " << distance.max_abs << distance.reason;
  }
}

// 2^24 + 1 is no float32, so a float32 sum loses each of the ones.
TEST(ReferenceOps, AccumulateInDouble) {
  const Tensor x = Tensor::FromVector<float>({DataType::kFloat, {1, 4}}, {0x1p24f, 1, 1, -0x1p24f});
  const Tensor ones = Tensor::FromVector<float>({DataType::kFloat, {4, 1}}, {1, 1, 1, 1});
  EXPECT_EQ(Compute(ReferenceOps(), "MatMul", {{"x1", x}, {"x2", ones}}, {}, 1).as<float>()[0], 2);
  const Tensor axis = Tensor::FromVector<int64_t>({DataType::kInt64, {1}}, {1});
  EXPECT_EQ(Compute(ReferenceOps(), "ReduceSum", {{"x", x}, {"axes", axis}}, {}, 1).as<float>()[0],
            2);
}

}  // namespace
}  // namespace npumesh
