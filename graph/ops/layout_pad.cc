// Pad, PadV3 and MirrorPad: x with elements before and behind each dimension; PadV3Grad, which adds
// the gradient of every element to where it came from. Ops reference 5.9 and 5.19.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "graph/ops/infer_checks.h"
#include "graph/ops/mapped_copy.h"
#include "graph/ops/op_families.h"
#include "graph/ops/real_kernel.h"

namespace npumesh {
namespace {

enum class PadMode { kConstant, kReflect, kSymmetric, kEdge };

Result<PadMode> ModeOf(const OpContext& op) {
  const std::string_view type = op.schema().type;
  if (type == "Pad") return PadMode::kConstant;
  const std::string mode = op.attr_string("mode");
  if (type == "MirrorPad") {
    if (mode == "REFLECT") return PadMode::kReflect;
    if (mode == "SYMMETRIC") return PadMode::kSymmetric;
    return Error(Code::kInvalidArgument,
                 "{}: attribute \"mode\" is \"{}\"; expected REFLECT or SYMMETRIC", op.Who(), mode);
  }
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "symmetric") return PadMode::kSymmetric;
  if (mode == "edge") return PadMode::kEdge;
  return Error(Code::kInvalidArgument,
               "{}: attribute \"mode\" is \"{}\"; expected constant, reflect, symmetric or edge",
               op.Who(), mode);
}

// Elements added before and behind a dimension; negative ones are cut off.
struct Padding {
  int64_t before = 0;
  int64_t behind = 0;
};

Result<std::vector<Padding>> PaddingsOf(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> list, op.Ints("paddings"));
  const auto rank = static_cast<size_t>(x.rank());
  if (list.size() != 2 * rank) {
    return Error(Code::kInvalidArgument, "{}: \"paddings\" has {} entries, x {} needs {}", op.Who(),
                 list.size(), x.ToString(), 2 * rank);
  }
  const bool has_form = op.schema().type == "PadV3" || op.schema().type == "PadV3Grad";
  const bool pairs = !has_form || op.attr_bool("paddings_contiguous");
  std::vector<Padding> paddings;
  for (size_t d = 0; d < rank; ++d) {
    paddings.push_back(pairs ? Padding{list[2 * d], list[2 * d + 1]}
                             : Padding{list[d], list[rank + d]});
  }
  return paddings;
}

// Where position `at` of a padded dimension of x comes from; `at` may lie outside.
int64_t SourceOf(int64_t at, int64_t extent, PadMode mode) {
  if (at >= 0 && at < extent) return at;
  switch (mode) {
    case PadMode::kConstant:
      return kFilled;
    case PadMode::kReflect:
      return at < 0 ? -at : 2 * extent - 2 - at;
    case PadMode::kSymmetric:
      return at < 0 ? -at - 1 : 2 * extent - 1 - at;
    case PadMode::kEdge:
      return at < 0 ? 0 : extent - 1;
  }
  return kFilled;
}

// Most elements that can be added on one side.
int64_t MostAdded(int64_t extent, PadMode mode) {
  if (mode == PadMode::kReflect) return std::max<int64_t>(extent - 1, 0);
  if (mode == PadMode::kSymmetric) return extent;
  return mode == PadMode::kEdge && extent == 0 ? 0 : INT32_MAX;
}

// Length of each padded dimension.
Result<Shape> PaddedShape(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(op));
  Shape y = x;
  for (int d = 0; d < x.rank(); ++d) {
    const Padding& padding = paddings[static_cast<size_t>(d)];
    const int64_t most = MostAdded(x[d], mode);
    const bool fits = padding.before <= most && padding.behind <= most && padding.before >= -x[d] &&
                      padding.behind >= -x[d] && x[d] <= INT64_MAX / 4 &&
                      x[d] + padding.before + padding.behind >= 0;
    if (!fits) {
      return Error(Code::kInvalidArgument,
                   "{}: dimension {} of x {} cannot be padded by {} before and {} behind", op.Who(),
                   d, x.ToString(), padding.before, padding.behind);
    }
    y[d] = x[d] + padding.before + padding.behind;
  }
  return y;
}

Status InferPad(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(Shape y, PaddedShape(op));
  if (op.schema().type == "PadV3" && op.has("constant_values")) {
    const TensorType& value = op.in("constant_values");
    if (value.dtype != x.dtype || value.shape.elements() != 1) {
      return Error(Code::kInvalidArgument,
                   "{}: \"constant_values\" is {}, expected one element of type {}", op.Who(),
                   value.ToString(), Name(x.dtype));
    }
  }
  return SetOutput(op, 0, x.dtype, std::move(y));
}

Result<std::unique_ptr<Kernel>> MakePad(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(op));
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(op.out(0).shape)));
  std::vector<std::vector<int64_t>> sources(paddings.size());
  for (size_t d = 0; d < sources.size(); ++d) {
    const int64_t length = op.out(0).shape.dims()[d];
    for (int64_t i = 0; i < length; ++i) {
      sources[d].push_back(SourceOf(i - paddings[d].before, x.dims()[d], mode));
    }
  }
  const bool given = op.schema().type == "PadV3" && op.has("constant_values");
  const int value = given ? op.slot("constant_values") : -1;
  return MakeKernel(
      [copy = MappedCopy(x, std::move(sources), element), value](const KernelArgs& args) {
        static constexpr std::array<std::byte, 16> kZeros{};
        copy.Run(args.in[0], value >= 0 ? args.in[value] : kZeros.data(), args.out[0]);
        return Status();
      });
}

// ---- PadV3Grad ----

// What is padded to x.
Result<Shape> UnpaddedShape(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(op));
  Shape y = x;
  for (int d = 0; d < x.rank(); ++d) {
    const auto [before, behind] = paddings[static_cast<size_t>(d)];
    const bool bounded = std::abs(before) <= INT32_MAX && std::abs(behind) <= INT32_MAX;
    if (bounded) y[d] = x[d] - before - behind;
    const int64_t most = MostAdded(y[d], mode);
    if (!bounded || y[d] < 0 || before > most || behind > most || -before > y[d] ||
        -behind > y[d]) {
      return Error(Code::kInvalidArgument,
                   "{}: dimension {} of x {} is not what padding {} before and {} behind makes",
                   op.Who(), d, x.ToString(), before, behind);
    }
  }
  return y;
}

// For each dimension, which element of the unpadded tensor a position belongs to, times the
// elements below it; kFilled: none.
using Origins = std::vector<std::vector<int64_t>>;

// Adds the elements of the padded tensor, from `*next` on, to their origins below `base`.
void AddToOrigins(const Origins& origins, size_t dim, int64_t base, const double** next,
                  std::vector<double>* y) {
  if (dim == origins.size()) {
    if (base >= 0) (*y)[static_cast<size_t>(base)] += **next;
    ++*next;
    return;
  }
  for (const int64_t origin : origins[dim]) {
    const int64_t below = base < 0 || origin == kFilled ? kFilled : base + origin;
    AddToOrigins(origins, dim + 1, below, next, y);
  }
}

Status InferPadGrad(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "x"));
  NPUMESH_ASSIGN_OR_RETURN(Shape y, UnpaddedShape(op));
  return SetOutput(op, 0, op.in("x").dtype, std::move(y));
}

Result<std::unique_ptr<Kernel>> MakePadGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(op));
  const Shape &x = op.in("x").shape, &y = op.out(0).shape;
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(x)));
  Origins origins(paddings.size());
  for (size_t d = 0; d < origins.size(); ++d) {
    const int64_t below = ElementsBetween(y, static_cast<int>(d) + 1, y.rank());
    for (int64_t i = 0; i < x.dims()[d]; ++i) {
      const int64_t source = SourceOf(i - paddings[d].before, y.dims()[d], mode);
      origins[d].push_back(source == kFilled ? kFilled : source * below);
    }
  }
  return MakeRealKernel(op, [origins = std::move(origins)](RealTensors& t) {
    const double* next = t.in[0].data();
    AddToOrigins(origins, 0, 0, &next, &t.out[0]);
    return Status();
  });
}

}  // namespace

void RegisterPadOps(OpRegistry& registry) {
  registry.Add({.schema = {"Pad", {{"x"}, {"paddings"}}, {{"y"}}, {}},
                .infer = InferPad,
                .make_kernel = MakePad,
                .value_inputs = {"paddings"}});
  registry.Add({.schema = {"PadV3",
                           {{"x"}, {"paddings"}, {"constant_values", PortKind::kOptional}},
                           {{"y"}},
                           {{"mode", AttrValue::String("constant")},
                            {"paddings_contiguous", AttrValue::Bool(true)}}},
                .infer = InferPad,
                .make_kernel = MakePad,
                .value_inputs = {"paddings"}});
  registry.Add({.schema = {"PadV3Grad",
                           {{"x"}, {"paddings"}},
                           {{"y"}},
                           {{"mode", AttrValue::String("reflect")},
                            {"paddings_contiguous", AttrValue::Bool(true)}}},
                .infer = InferPadGrad,
                .make_kernel = MakePadGrad,
                .value_inputs = {"paddings"}});
  registry.Add(
      {.schema = {"MirrorPad", {{"x"}, {"paddings"}}, {{"y"}}, {{"mode", Required::kString}}},
       .infer = InferPad,
       .make_kernel = MakePad,
       .value_inputs = {"paddings"}});
}

}  // namespace npumesh
