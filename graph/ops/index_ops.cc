// GatherNd and indexing with tensors: IndexByTensor, Index, IndexPutV2. Ops reference 5.10.
#include <algorithm>
#include <cstring>

#include "graph/ops/broadcast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/scatter.h"

namespace npumesh {
namespace {

// Row i of the output is the i-th named row of x.
Result<std::unique_ptr<Kernel>> MakeRowGather(const OpContext& op, IndexRows rows) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("x").dtype));
  const size_t row = element * static_cast<size_t>(rows.inner);
  const int slot = op.slot("x");
  return MakeKernel([rows = std::move(rows), row, slot,
                     found = std::vector<int64_t>(static_cast<size_t>(rows.count))](
                        const KernelArgs& args) mutable -> Status {
    NPUMESH_RETURN_IF_ERROR(rows.find(args, found.data()));
    const auto* x = static_cast<const std::byte*>(args.in[slot]);
    auto* y = static_cast<std::byte*>(args.out[0]);
    for (size_t i = 0; i < found.size() && row > 0; ++i) {
      std::memcpy(y + i * row, x + static_cast<size_t>(found[i]) * row, row);
    }
    return Status();
  });
}

// ---- GatherNd ----

Result<IndexRows> GatheredRows(const OpContext& op) {
  const bool wraps = op.attr_bool("negative_index_support");
  return RowsByTuples(op, "indices", op.in("x").shape,
                      wraps ? IndexRange::kWraps : IndexRange::kStrict);
}

Status InferGatherNd(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, op.slot("indices")));
  NPUMESH_RETURN_IF_ERROR(GatheredRows(op).status());
  const Shape& indices = op.in("indices").shape;
  std::vector<int64_t> dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), x.shape.dims().begin() + indices.dims().back(), x.shape.dims().end());
  return SetOutput(op, 0, x.dtype, Shape(std::move(dims)));
}

Result<std::unique_ptr<Kernel>> MakeGatherNd(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(IndexRows rows, GatheredRows(op));
  return MakeRowGather(op, std::move(rows));
}

// ---- IndexByTensor, Index ----

// Which dimensions are indexed. Without a mask, as many leading ones as there are tensors.
Result<std::vector<int64_t>> MaskOf(const OpContext& op) {
  if (op.schema().type != "IndexByTensor") return op.Ints("indexed_sizes");
  std::vector<int64_t> mask = op.attr_ints("indices_mask");
  if (mask.empty()) mask.assign(static_cast<size_t>(op.count("indices")), 1);
  return mask;
}

Result<IndexRows> IndexedRows(const OpContext& op, Shape* shape) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> mask, MaskOf(op));
  return RowsByTensors(op, "indices", mask, op.in("x").shape, shape);
}

Status InferIndex(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  Shape shape;
  NPUMESH_RETURN_IF_ERROR(IndexedRows(op, &shape).status());
  return SetOutput(op, 0, op.in("x").dtype, std::move(shape));
}

Result<std::unique_ptr<Kernel>> MakeIndex(const OpContext& op) {
  Shape shape;
  NPUMESH_ASSIGN_OR_RETURN(IndexRows rows, IndexedRows(op, &shape));
  return MakeRowGather(op, std::move(rows));
}

// ---- IndexPutV2: x[indices] = value, or += ----

Status InferIndexPut(OpContext& op) {
  const TensorType& x = op.in("x");
  const TensorType& value = op.in("value");
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("x"), op.slot("value")));
  NPUMESH_RETURN_IF_ERROR(
      CheckJoin(op, x.dtype, op.attr_bool("accumulate") ? Join::kAdd : Join::kSet));
  Shape shape;
  NPUMESH_RETURN_IF_ERROR(IndexedRows(op, &shape).status());
  const Result<Shape> wider = Broadcast(shape, value.shape);
  if (!wider.ok() || *wider != shape) {
    return Error(Code::kInvalidArgument, "{}: \"value\" is {}, which does not broadcast to {}",
                 op.Who(), value.ToString(), shape.ToString());
  }
  return SetOutput(op, 0, x.dtype, x.shape);
}

// The scatter wants the value in the shape of x[indices]: it is repeated into `room_` first.
class IndexPutKernel final : public Kernel {
 public:
  IndexPutKernel(const OpContext& op, const Shape& shape, size_t element,
                 std::unique_ptr<Kernel> scatter)
      : plan_(op.in("value").shape, shape, element),
        value_(op.slot("value")),
        in_(static_cast<size_t>(op.slots())),
        count_(static_cast<size_t>(shape.elements())),
        room_(count_ * element),
        scatter_(std::move(scatter)) {}

  Status Run(const KernelArgs& args) override {
    std::copy(args.in, args.in + in_.size(), in_.begin());
    if (!plan_.direct() && count_ > 0) {
      plan_.Gather(args.in[value_], 0, count_, room_.data());
      in_[static_cast<size_t>(value_)] = room_.data();
    }
    return scatter_->Run({in_.data(), args.out, args.scratch});
  }

 private:
  BroadcastPlan plan_;
  int value_;
  std::vector<const void*> in_;
  size_t count_;
  std::vector<std::byte> room_;
  std::unique_ptr<Kernel> scatter_;
};

Result<std::unique_ptr<Kernel>> MakeIndexPut(const OpContext& op) {
  Shape shape;
  ScatterPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, IndexedRows(op, &shape));
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("x").dtype));
  plan.join = op.attr_bool("accumulate") ? Join::kAdd : Join::kSet;
  plan.updates = op.slot("value");
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> scatter, MakeScatter(op, std::move(plan)));
  return std::unique_ptr<Kernel>(
      std::make_unique<IndexPutKernel>(op, shape, element, std::move(scatter)));
}

}  // namespace

void RegisterIndexOps(OpRegistry& registry) {
  const PortSpec indices = {"indices", PortKind::kDynamic};
  registry.Add({.schema = {"GatherNd",
                           {{"x"}, {"indices"}},
                           {{"y"}},
                           {{"negative_index_support", AttrValue::Bool(false)}}},
                .infer = InferGatherNd,
                .make_kernel = MakeGatherNd});
  registry.Add({.schema = {"IndexByTensor",
                           {{"x"}, indices},
                           {{"y"}},
                           {{"indices_mask", AttrValue::Ints({})}}},
                .infer = InferIndex,
                .make_kernel = MakeIndex});
  registry.Add(
      {.schema = {"Index", {{"x"}, {"indexed_sizes"}, {"indexed_strides"}, indices}, {{"y"}}, {}},
       .infer = InferIndex,
       .make_kernel = MakeIndex,
       .value_inputs = {"indexed_sizes"}});
  registry.Add({.schema = {"IndexPutV2",
                           {{"x"}, {"value"}, {"indexed_sizes"}, {"indexed_strides"}, indices},
                           {{"x"}},
                           {{"accumulate", AttrValue::Bool(false)}}},
                .infer = InferIndexPut,
                .make_kernel = MakeIndexPut,
                .in_place = {{0, 0}},
                .value_inputs = {"indexed_sizes"}});
}

}  // namespace npumesh
