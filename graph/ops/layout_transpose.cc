// Transpose and Permute: dimension i of y is dimension perm[i] of x. Ops reference 5.9.
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/strided_copy.h"

namespace npumesh {
namespace {

// perm with every axis of x exactly once, in [0, rank).
Result<std::vector<int>> Permutation(const OpContext& op) {
  std::vector<int64_t> listed;
  const bool by_input = op.schema().type.starts_with("Transpose");
  if (by_input) {
    NPUMESH_ASSIGN_OR_RETURN(listed, op.Ints("perm"));
  } else {
    listed = op.attr_ints("order");
  }
  const std::string_view what = by_input ? "perm" : "order";
  const int rank = op.in("x").shape.rank();
  if (listed.size() != static_cast<size_t>(rank)) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" has {} entries, x is {}", op.Who(), what,
                 listed.size(), op.in("x").ToString());
  }
  std::vector<int> perm;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t entry : listed) {
    NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, entry, rank, what));
    if (seen[static_cast<size_t>(axis)]) {
      return Error(Code::kInvalidArgument, "{}: \"{}\" names axis {} twice", op.Who(), what, axis);
    }
    seen[static_cast<size_t>(axis)] = true;
    perm.push_back(axis);
  }
  return perm;
}

Status InferTranspose(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int> perm, Permutation(op));
  std::vector<int64_t> dims;
  for (const int axis : perm) dims.push_back(x.shape[axis]);
  return SetOutput(op, 0, x.dtype, Shape(std::move(dims)));
}

Result<std::unique_ptr<Kernel>> MakeTranspose(const OpContext& op) {
  const int slot = op.slot("x");
  const TensorType& x = op.in(slot);
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, x.dtype));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int> perm, Permutation(op));
  const std::vector<int64_t> from = ByteStrides(x.shape, element);
  const std::vector<int64_t> to = ByteStrides(op.out(0).shape, element);
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto axis = static_cast<size_t>(perm[i]);
    axes.push_back({x.shape.dims()[axis], from[axis], to[i]});
  }
  return MakeKernel([slot, copy = StridedCopy(axes, element)](const KernelArgs& args) {
    copy.Run(args.in[slot], args.out[0]);
    return Status();
  });
}

}  // namespace

void RegisterTransposeOps(OpRegistry& registry) {
  registry.Add({.schema = {"Transpose", {{"x"}, {"perm"}}, {{"y"}}, {}},
                .infer = InferTranspose,
                .make_kernel = MakeTranspose,
                .value_inputs = {"perm"}});
  registry.Add({.schema = {"Permute", {{"x"}}, {{"y"}}, {{"order", AttrValue::Ints({0})}}},
                .infer = InferTranspose,
                .make_kernel = MakeTranspose});
}

}  // namespace npumesh
