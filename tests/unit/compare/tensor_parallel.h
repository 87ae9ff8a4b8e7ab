// A tensor-parallel graph for the tests of what looks across ranks, and its run in memory.
//
//   x -> norm -> partial = norm * w_r -> sum = allreduce(partial) -> out = sum + bias
//   x -> local = x * x -> gathered = allgather(x + own_r)
#ifndef NPUMESH_TESTS_UNIT_COMPARE_TENSOR_PARALLEL_H_
#define NPUMESH_TESTS_UNIT_COMPARE_TENSOR_PARALLEL_H_

#include <string>
#include <vector>

#include "graph/ir/graph_builder.h"

namespace npumesh {

inline Tensor FloatVector(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::FromVector(TensorType{DataType::kFloat, {count}}, values);
}

inline Model ParallelModel(int rank, const std::string& group = "hccl_world_group",
                           int members = 2) {
  const auto r = static_cast<float>(rank);
  const std::pair<std::string, AttrValue> in_group("group", AttrValue::String(group));
  GraphBuilder g("parallel");
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  const Value norm = g.Op("Neg", {{"x", x}}, {}, "norm");
  const Value w = g.Const("w", FloatVector({1 + r, 2 + r}));
  const Value bias = g.Const("bias", FloatVector({8, 16}));
  const Value partial = g.Op("Mul", {{"x1", norm}, {"x2", w}}, {}, "partial");
  const Value sum = g.Op("HcomAllReduce", {{"x", partial}},
                         {{"reduction", AttrValue::String("sum")}, in_group}, "sum");
  const Value out = g.Op("Add", {{"x1", sum}, {"x2", bias}}, {}, "out");
  const Value piece = g.Op("Add", {{"x1", x}, {"x2", w}}, {}, "piece");
  const Value gathered = g.Op("HcomAllGather", {{"x", piece}},
                              {{"rank_size", AttrValue::Int(members)}, in_group}, "gathered");
  g.Output({out, gathered});
  return *g.Build();
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_COMPARE_TENSOR_PARALLEL_H_
