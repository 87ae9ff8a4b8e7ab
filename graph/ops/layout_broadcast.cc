// BroadcastTo, Expand and Tile: elements of x, repeated. Ops reference 5.9.
#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/strided_copy.h"

namespace npumesh {
namespace {

// `shape` with 1s in front up to `rank`.
Shape Padded(const Shape& shape, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(0, rank - shape.rank())), 1);
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape(std::move(dims));
}

// BroadcastTo: -1 keeps the dimension of x. Expand: so does 1, and x may have the higher rank.
Status InferBroadcast(OpContext& op) {
  const bool expand = op.schema().type == "Expand";
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, op.Ints("shape"));
  Shape target(wanted);
  if (expand) target = Padded(target, x.shape.rank());
  const Shape from = Padded(x.shape, target.rank());
  bool fits = from.rank() == target.rank();
  for (int i = 0; fits && i < target.rank(); ++i) {
    if (target[i] == -1 || (expand && target[i] == 1)) target[i] = from[i];
    fits = target[i] >= 0 && (from[i] == 1 || from[i] == target[i]);
  }
  if (!fits) {
    return Error(Code::kInvalidArgument, "{}: x is {} and cannot be broadcast to {}", op.Who(),
                 x.ToString(), Shape(wanted).ToString());
  }
  return SetOutput(op, 0, x.dtype, std::move(target));
}

Result<std::unique_ptr<Kernel>> MakeBroadcast(const OpContext& op) {
  const int slot = op.slot("x");
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in(slot).dtype));
  const Shape& y = op.out(0).shape;
  const Shape x = Padded(op.in(slot).shape, y.rank());
  const std::vector<int64_t> from = ByteStrides(x, element);
  const std::vector<int64_t> to = ByteStrides(y, element);
  std::vector<CopyAxis> axes;
  for (int i = 0; i < y.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    axes.push_back({y[i], x[i] == 1 ? 0 : from[at], to[at]});
  }
  return MakeKernel([slot, copy = StridedCopy(axes, element)](const KernelArgs& args) {
    copy.Run(args.in[slot], args.out[0]);
    return Status();
  });
}

// x and multiples of Tile, both padded to one rank.
struct Tiling {
  Shape x;
  Shape multiples;
};

Result<Tiling> PlanTile(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> multiples, op.Ints("multiples"));
  const Shape& x = op.in("x").shape;
  const int rank = std::max(x.rank(), static_cast<int>(multiples.size()));
  return Tiling{Padded(x, rank), Padded(Shape(multiples), rank)};
}

Status InferTile(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const Tiling tiling, PlanTile(op));
  Shape y = tiling.x;
  for (int i = 0; i < y.rank(); ++i) {
    if (tiling.multiples[i] < 0 || __builtin_mul_overflow(y[i], tiling.multiples[i], &y[i])) {
      return Error(Code::kInvalidArgument, "{}: x is {} and cannot be repeated {} times", op.Who(),
                   op.in("x").ToString(), tiling.multiples.ToString());
    }
  }
  return SetOutput(op, 0, op.in("x").dtype, std::move(y));
}

// Each dimension becomes two loops: over the repetitions, and over the elements.
Result<std::unique_ptr<Kernel>> MakeTile(const OpContext& op) {
  const int slot = op.slot("x");
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in(slot).dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Tiling tiling, PlanTile(op));
  const std::vector<int64_t> from = ByteStrides(tiling.x, element);
  const std::vector<int64_t> to = ByteStrides(op.out(0).shape, element);
  std::vector<CopyAxis> axes;
  for (int i = 0; i < tiling.x.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    axes.push_back({tiling.multiples[i], 0, to[at] * tiling.x[i]});
    axes.push_back({tiling.x[i], from[at], to[at]});
  }
  return MakeKernel([slot, copy = StridedCopy(axes, element)](const KernelArgs& args) {
    copy.Run(args.in[slot], args.out[0]);
    return Status();
  });
}

}  // namespace

void RegisterBroadcastOps(OpRegistry& registry) {
  for (const std::string_view type : {"BroadcastTo", "Expand"}) {
    registry.Add({.schema = {type, {{"x"}, {"shape"}}, {{"y"}}, {}},
                  .infer = InferBroadcast,
                  .make_kernel = MakeBroadcast,
                  .value_inputs = {"shape"}});
  }
  registry.Add({.schema = {"Tile", {{"x"}, {"multiples"}}, {{"y"}}, {}},
                .infer = InferTile,
                .make_kernel = MakeTile,
                .value_inputs = {"multiples"}});
}

}  // namespace npumesh
