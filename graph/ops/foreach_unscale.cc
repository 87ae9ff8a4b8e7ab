// ForeachNonFiniteCheckAndUnscale: gradients of a scaled loss, divided by the scale in place. Ops
// reference 5.19.
//
//   g = g * inv_scale for every gradient; found_inf = 1 if a g was not finite, else as it was
#include <algorithm>
#include <cmath>

#include "graph/ops/float_rows.h"
#include "graph/ops/foreach.h"

namespace npumesh {
namespace {

constexpr int64_t kBlock = 1024;

Status ExpectNumber(const OpContext& op, std::string_view port) {
  const TensorType& type = op.in(port);
  if (type.dtype == DataType::kFloat && type.shape.elements() == 1) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected one float32", op.Who(), port,
               type.ToString());
}

Status InferUnscale(OpContext& op) {
  const int first = op.slot("scaled_grads");
  for (int i = 0; i < op.count("scaled_grads"); ++i) {
    const TensorType& type = op.in(first + i);
    if (IsRowType(type.dtype)) continue;
    return Error(Code::kUnsupported,
                 "{}: entry {} of \"scaled_grads\" is {}, expected float16, bfloat16 or float32",
                 op.Who(), i, type.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ExpectNumber(op, "found_inf"));
  return ExpectNumber(op, "inv_scale");
}

// False if an element is not finite.
bool Unscale(const TensorType& type, void* gradients, float factor) {
  float row[kBlock];
  bool finite = true;
  const int64_t elements = type.shape.elements();
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int64_t count = std::min(kBlock, elements - first);
    const float* g = LoadRow(type.dtype, gradients, first, count, row);
    for (int64_t i = 0; i < count; ++i) {
      finite = finite && std::isfinite(g[i]);
      row[i] = g[i] * factor;
    }
    StoreRow(type.dtype, row, gradients, first, count);
  }
  return finite;
}

Result<std::unique_ptr<Kernel>> MakeUnscale(const OpContext& op) {
  const auto first = static_cast<size_t>(op.slot("scaled_grads"));
  std::vector<TensorType> types;
  for (int i = 0; i < op.count("scaled_grads"); ++i) {
    types.push_back(op.in(static_cast<int>(first) + i));
  }
  const int found = op.slot("found_inf"), scale = op.slot("inv_scale");
  return MakeKernel([=](const KernelArgs& args) {
    const float factor = *static_cast<const float*>(args.in[scale]);
    bool finite = true;
    for (size_t i = 0; i < types.size(); ++i) {
      // An operator that updates an input owns its storage while it runs (Operator::in_place).
      void* const gradients = const_cast<void*>(args.in[first + i]);  // NOLINT
      finite = Unscale(types[i], gradients, factor) && finite;
    }
    if (!finite) *static_cast<float*>(const_cast<void*>(args.in[found])) = 1;  // NOLINT
    return Status();
  });
}

}  // namespace

void RegisterForeachUnscale(OpRegistry& registry) {
  registry.Add({.schema = {"ForeachNonFiniteCheckAndUnscale",
                           {{"scaled_grads", PortKind::kDynamic}, {"found_inf"}, {"inv_scale"}},
                           {},
                           {}},
                .infer = InferUnscale,
                .make_kernel = MakeUnscale,
                .in_place = {{0, 0}, {0, 1}}});
}

}  // namespace npumesh
