// Operators whose result follows from shapes alone.
#include <algorithm>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/shape/family.h"

namespace npumesh {
namespace {

// Fixed integers, one list for each output.
struct AnswerPlan : Planned {
  std::vector<std::vector<int64_t>> lists;
};

void Answer(Check& check, AnswerPlan* plan, DataType dtype, Shape shape,
            std::vector<int64_t> values) {
  for (const int64_t value : values) {
    check.That(dtype == DataType::kInt64 || value <= INT32_MAX,
               "{} does not fit into int32; ask for int64 with the attribute \"dtype\"", value);
  }
  plan->lists.push_back(std::move(values));
  plan->outputs.push_back({dtype, std::move(shape)});
}

Status RunAnswer(const AnswerPlan& plan, const KernelArgs& args) {
  for (size_t i = 0; i < plan.lists.size(); ++i) {
    const std::vector<int64_t>& values = plan.lists[i];
    if (plan.outputs[i].dtype == DataType::kInt64) {
      std::copy(values.begin(), values.end(), static_cast<int64_t*>(args.out[i]));
    } else {
      std::copy(values.begin(), values.end(), static_cast<int32_t*>(args.out[i]));
    }
  }
  return Status();
}

AnswerPlan PlanShapes(const OpContext& op, Check& check) {
  check.Consistent(op.outputs() == op.slots(), "{} inputs but {} outputs", op.slots(),
                   op.outputs());
  AnswerPlan plan;
  const DataType dtype = check.TypeOf("dtype", kIndices, Code::kInvalidArgument);
  for (int i = 0; i < op.slots(); ++i) {
    const Shape& shape = op.in(i).shape;
    Answer(check, &plan, dtype, {shape.rank()}, shape.dims());
  }
  return plan;
}

AnswerPlan PlanSize(const OpContext& op, Check& check) {
  AnswerPlan plan;
  const DataType dtype = check.TypeOf("dtype", kIndices, Code::kInvalidArgument);
  Answer(check, &plan, dtype, {}, {op.in(0).shape.elements()});
  return plan;
}

AnswerPlan PlanRank(const OpContext& op, Check& check) {
  AnswerPlan plan;
  Answer(check, &plan, DataType::kInt32, {}, {op.in(0).shape.rank()});
  return plan;
}

}  // namespace

void RegisterShapeQueryOps(OpRegistry& registry) {
  for (Operator op : {Define<PlanShapes, RunAnswer>("Shape(x; dtype=3) -> y"),
                      Define<PlanShapes, RunAnswer>("ShapeN(x...; dtype=3) -> y..."),
                      Define<PlanSize, RunAnswer>("Size(x; dtype=3) -> y"),
                      Define<PlanRank, RunAnswer>("Rank(x) -> y")}) {
    op.shape_query = true;
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
