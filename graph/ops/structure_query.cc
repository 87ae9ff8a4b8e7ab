// Operators whose result follows from shapes alone. Ops reference 5.1.
#include <cstring>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// The dtype of Shape, ShapeN and Size: int32 or int64.
Result<DataType> CountType(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return dtype;
  return Error(Code::kInvalidArgument, "{}: attribute \"dtype\" is {}, expected int32 or int64",
               op.Who(), Name(dtype));
}

// Error when a count does not fit into the output's integers.
Status CheckFits(const OpContext& op, int64_t count, DataType dtype) {
  if (dtype == DataType::kInt64 || count <= INT32_MAX) return Status();
  return Error(Code::kInvalidArgument,
               "{}: {} does not fit into int32; ask for int64 with the "
               "attribute \"dtype\"",
               op.Who(), count);
}

// Writes fixed integers to an output.
void WriteInts(const std::vector<int64_t>& values, DataType dtype, void* out) {
  if (dtype == DataType::kInt64) {
    std::copy(values.begin(), values.end(), static_cast<int64_t*>(out));
  } else {
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(out));
  }
}

// A kernel that answers with fixed integers, one list for each output.
std::unique_ptr<Kernel> Answer(const OpContext& op, std::vector<std::vector<int64_t>> lists) {
  const DataType dtype = lists.empty() ? DataType::kInt32 : op.out(0).dtype;
  return MakeKernel([lists = std::move(lists), dtype](const KernelArgs& args) {
    for (size_t i = 0; i < lists.size(); ++i) WriteInts(lists[i], dtype, args.out[i]);
    return Status();
  });
}

Status InferShapes(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, CountType(op));
  if (op.outputs() != op.slots()) {
    return Error(Code::kCorrupt, "{}: {} inputs but {} outputs", op.Who(), op.slots(),
                 op.outputs());
  }
  for (int i = 0; i < op.slots(); ++i) {
    const Shape& shape = op.in(i).shape;
    for (const int64_t dim : shape.dims()) {
      NPUMESH_RETURN_IF_ERROR(CheckFits(op, dim, dtype));
    }
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, dtype, Shape{shape.rank()}));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeShapes(const OpContext& op) {
  std::vector<std::vector<int64_t>> dims;
  for (int i = 0; i < op.slots(); ++i) dims.push_back(op.in(i).shape.dims());
  return Answer(op, std::move(dims));
}

Status InferSize(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, CountType(op));
  NPUMESH_RETURN_IF_ERROR(CheckFits(op, op.in(0).shape.elements(), dtype));
  return SetOutput(op, 0, dtype, Shape());
}

Result<std::unique_ptr<Kernel>> MakeSize(const OpContext& op) {
  return Answer(op, {{op.in(0).shape.elements()}});
}

Status InferRank(OpContext& op) {
  return SetOutput(op, 0, DataType::kInt32, Shape());
}

Result<std::unique_ptr<Kernel>> MakeRank(const OpContext& op) {
  return Answer(op, {{op.in(0).shape.rank()}});
}

}  // namespace

void RegisterShapeQueryOps(OpRegistry& registry) {
  const AttrSpec dtype = {"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt32))};
  registry.Add({.schema = {"Shape", {{"x"}}, {{"y"}}, {dtype}},
                .infer = InferShapes,
                .make_kernel = MakeShapes});
  registry.Add(
      {.schema = {"ShapeN", {{"x", PortKind::kDynamic}}, {{"y", PortKind::kDynamic}}, {dtype}},
       .infer = InferShapes,
       .make_kernel = MakeShapes});
  registry.Add(
      {.schema = {"Size", {{"x"}}, {{"y"}}, {dtype}}, .infer = InferSize, .make_kernel = MakeSize});
  registry.Add(
      {.schema = {"Rank", {{"x"}}, {{"y"}}, {}}, .infer = InferRank, .make_kernel = MakeRank});
}

}  // namespace npumesh
