// Gather, GatherV2 and GatherElements. Ops reference 5.10.
//
// An index outside of the dimension is a run-time error: silently reading zeros would hide the
// fault that a simulator is there to show.
#include <algorithm>
#include <cstring>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_registry.h"

namespace npumesh {
namespace {

// Reads element i of an int32 or int64 tensor.
int64_t IndexAt(const void* indices, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(indices)[i] : static_cast<const int32_t*>(indices)[i];
}

Status CheckIndexType(const OpContext& op, std::string_view port) {
  const DataType dtype = op.in(port).dtype;
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected int32 or int64", op.Who(), port,
               Name(dtype));
}

Status OutOfRange(const std::string& who, std::string_view port, int64_t position, int64_t index,
                  int64_t bound, bool negative) {
  return Error(Code::kInvalidArgument,
               "{}: \"{}\" holds {} at element {}, expected {} <= index < {}", who, port, index,
               position, negative ? -bound : 0, bound);
}

// ---- Gather, GatherV2 ----

struct GatherAxes {
  int axis = 0;
  int batch = 0;  // leading dimensions that x and indices share
};

Result<GatherAxes> AxesOf(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  const Shape& indices = op.in("indices").shape;
  GatherAxes axes;
  int64_t batch = op.attr_int("batch_dims");
  if (batch < 0) batch += indices.rank();
  int64_t axis = batch;
  if (op.schema().type == "GatherV2") {
    NPUMESH_ASSIGN_OR_RETURN(axis, op.Int("axis"));
  }
  NPUMESH_ASSIGN_OR_RETURN(axes.axis, AxisOf(op, axis, x.rank(), "axis"));
  bool fits = batch >= 0 && batch <= indices.rank() && batch <= axes.axis;
  axes.batch = static_cast<int>(fits ? batch : 0);
  for (int i = 0; i < axes.batch; ++i) fits = fits && x[i] == indices[i];
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: batch_dims {} does not fit x {} and indices {} along "
                 "axis {}",
                 op.Who(), op.attr_int("batch_dims"), x.ToString(), indices.ToString(), axes.axis);
  }
  return axes;
}

Status InferGather(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, "indices"));
  NPUMESH_ASSIGN_OR_RETURN(const GatherAxes axes, AxesOf(op));
  const std::vector<int64_t>& from = x.shape.dims();
  const std::vector<int64_t>& chosen = op.in("indices").shape.dims();
  std::vector<int64_t> y(from.begin(), from.begin() + axes.axis);
  y.insert(y.end(), chosen.begin() + axes.batch, chosen.end());
  y.insert(y.end(), from.begin() + axes.axis + 1, from.end());
  return SetOutput(op, 0, x.dtype, Shape(std::move(y)));
}

// x as [batch, outer, bound, row bytes], indices as [batch, count].
struct GatherPlan {
  std::string who;
  int x_slot = 0;
  int index_slot = 0;
  int64_t batch = 1;
  int64_t outer = 1;
  int64_t bound = 0;
  int64_t count = 0;
  size_t row = 0;
  bool wide = false;
  bool negative = false;
};

Status RunGather(const GatherPlan& plan, const KernelArgs& args) {
  const auto* x = static_cast<const std::byte*>(args.in[plan.x_slot]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  const void* indices = args.in[plan.index_slot];
  for (int64_t b = 0; b < plan.batch; ++b) {
    for (int64_t o = 0; o < plan.outer; ++o) {
      const std::byte* table =
          x + static_cast<size_t>((b * plan.outer + o) * plan.bound) * plan.row;
      for (int64_t i = 0; i < plan.count; ++i, y += plan.row) {
        const int64_t given = IndexAt(indices, plan.wide, b * plan.count + i);
        const int64_t index = given < 0 && plan.negative ? given + plan.bound : given;
        if (index < 0 || index >= plan.bound) {
          return OutOfRange(plan.who, "indices", b * plan.count + i, given, plan.bound,
                            plan.negative);
        }
        if (plan.row > 0) std::memcpy(y, table + static_cast<size_t>(index) * plan.row, plan.row);
      }
    }
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeGather(const OpContext& op) {
  const TensorType& x = op.in("x");
  const TensorType& indices = op.in("indices");
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, x.dtype));
  NPUMESH_ASSIGN_OR_RETURN(const GatherAxes axes, AxesOf(op));
  GatherPlan plan;
  plan.who = op.Who();
  plan.x_slot = op.slot("x");
  plan.index_slot = op.slot("indices");
  plan.batch = ElementsBetween(x.shape, 0, axes.batch);
  plan.outer = ElementsBetween(x.shape, axes.batch, axes.axis);
  plan.bound = x.shape[axes.axis];
  plan.count = ElementsBetween(indices.shape, axes.batch, indices.shape.rank());
  plan.row = element * static_cast<size_t>(ElementsBetween(x.shape, axes.axis + 1, x.shape.rank()));
  plan.wide = indices.dtype == DataType::kInt64;
  // select.int arrives as GatherV2 with a scalar index, which may count from the end.
  plan.negative = op.attr_bool("negative_index_support") ||
                  (op.schema().type == "GatherV2" && indices.shape.rank() == 0);
  return MakeKernel([plan](const KernelArgs& args) { return RunGather(plan, args); });
}

// ---- GatherElements ----

Status InferGatherElements(OpContext& op) {
  const TensorType& x = op.in("x");
  const Shape& index = op.in("index").shape;
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, "index"));
  NPUMESH_ASSIGN_OR_RETURN(const int dim, AxisOf(op, op.attr_int("dim"), x.shape.rank(), "dim"));
  bool fits = index.rank() == x.shape.rank();
  for (int i = 0; fits && i < index.rank(); ++i) fits = i == dim || index[i] <= x.shape[i];
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: \"index\" is {}, which does not lie inside x {} "
                 "outside of dimension {}",
                 op.Who(), index.ToString(), x.shape.ToString(), dim);
  }
  return SetOutput(op, 0, x.dtype, index);
}

// Walks the positions of `index`, knowing for each the element of x that it would name with a 0.
class GatherElementsKernel final : public Kernel {
 public:
  GatherElementsKernel(const OpContext& op, int dim, size_t element)
      : who_(op.Who()),
        x_slot_(op.slot("x")),
        index_slot_(op.slot("index")),
        dim_(static_cast<size_t>(dim)),
        element_(element),
        wide_(op.in("index").dtype == DataType::kInt64),
        bound_(op.in("x").shape[dim]),
        extents_(op.in("index").shape.dims()),
        strides_(ByteStrides(op.in("x").shape, element)),
        count_(op.in("index").shape.elements()),
        position_(extents_.size(), 0) {}

  Status Run(const KernelArgs& args) override {
    const auto* x = static_cast<const std::byte*>(args.in[x_slot_]);
    auto* y = static_cast<std::byte*>(args.out[0]);
    int64_t base = 0;
    for (int64_t i = 0; i < count_; ++i, y += element_) {
      const int64_t index = IndexAt(args.in[index_slot_], wide_, i);
      if (index < 0 || index >= bound_) {
        std::fill(position_.begin(), position_.end(), 0);
        return OutOfRange(who_, "index", i, index, bound_, false);
      }
      std::memcpy(y, x + base + index * strides_[dim_], element_);
      base = Next(base);
    }
    return Status();
  }

 private:
  // Steps `position_` on, back to all zeros after the last one.
  int64_t Next(int64_t base) {
    for (size_t d = extents_.size(); d-- > 0;) {
      const int64_t stride = d == dim_ ? 0 : strides_[d];
      if (++position_[d] < extents_[d]) return base + stride;
      base -= stride * (extents_[d] - 1);
      position_[d] = 0;
    }
    return base;
  }

  std::string who_;
  int x_slot_;
  int index_slot_;
  size_t dim_;
  size_t element_;
  bool wide_;
  int64_t bound_;
  std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;
  int64_t count_;
  std::vector<int64_t> position_;
};

Result<std::unique_ptr<Kernel>> MakeGatherElements(const OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, x.dtype));
  NPUMESH_ASSIGN_OR_RETURN(const int dim, AxisOf(op, op.attr_int("dim"), x.shape.rank(), "dim"));
  return std::unique_ptr<Kernel>(std::make_unique<GatherElementsKernel>(op, dim, element));
}

}  // namespace

void RegisterGatherOps(OpRegistry& registry) {
  registry.Add({.schema = {"Gather",
                           {{"x"}, {"indices"}},
                           {{"y"}},
                           {{"validate_indices", AttrValue::Bool(true)},
                            {"batch_dims", AttrValue::Int(0)},
                            {"is_preprocessed", AttrValue::Bool(false)},
                            {"negative_index_support", AttrValue::Bool(false)}}},
                .infer = InferGather,
                .make_kernel = MakeGather});
  registry.Add({.schema = {"GatherV2",
                           {{"x"}, {"indices"}, {"axis"}},
                           {{"y"}},
                           {{"batch_dims", AttrValue::Int(0)},
                            {"is_preprocessed", AttrValue::Bool(false)},
                            {"negative_index_support", AttrValue::Bool(false)}}},
                .infer = InferGather,
                .make_kernel = MakeGather,
                .value_inputs = {"axis"}});
  registry.Add(
      {.schema = {"GatherElements", {{"x"}, {"index"}}, {{"y"}}, {{"dim", AttrValue::Int(0)}}},
       .infer = InferGatherElements,
       .make_kernel = MakeGatherElements});
}

}  // namespace npumesh
