// Tensors made from a few numbers: OneHot, Eye and LinSpace. Ops reference 5.9.
#include <algorithm>
#include <cstring>

#include "graph/ops/cast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// ---- OneHot ----

// The position of the new dimension, which counts in the result.
Result<int> OneHotAxis(const OpContext& op) {
  return AxisOf(op, op.attr_int("axis"), op.in("x").shape.rank() + 1, "axis");
}

Status InferOneHot(OpContext& op) {
  const TensorType& x = op.in("x");
  const TensorType& on = op.in("on_value");
  if (!IsInteger(x.dtype)) {
    return Error(Code::kUnsupported, "{}: x is {}, expected integers", op.Who(), x.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, on.dtype).status());
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("on_value"), op.slot("off_value")));
  if (on.shape.elements() != 1 || op.in("off_value").shape.elements() != 1) {
    return Error(Code::kInvalidArgument, "{}: on_value {} and off_value {} must have one element",
                 op.Who(), on.ToString(), op.in("off_value").ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const int axis, OneHotAxis(op));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t depth, op.Int("depth"));
  if (depth < 0) {
    return Error(Code::kInvalidArgument, "{}: \"depth\" is {}, expected 0 or more", op.Who(),
                 depth);
  }
  std::vector<int64_t> dims = x.shape.dims();
  dims.insert(dims.begin() + axis, depth);
  return SetOutput(op, 0, on.dtype, Shape(std::move(dims)));
}

Result<std::unique_ptr<Kernel>> MakeOneHot(const OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const int axis, OneHotAxis(op));
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.out(0).dtype));
  const int64_t depth = op.out(0).shape[axis];
  const int64_t inner = ElementsBetween(x.shape, axis, x.shape.rank());
  const int on = op.slot("on_value"), off = op.slot("off_value");
  return MakeKernel([=, load = FindConvert(x.dtype, DataType::kInt64),
                     hot = std::vector<int64_t>(static_cast<size_t>(x.shape.elements()))](
                        const KernelArgs& args) mutable {
    load(args.in[0], hot.data(), hot.size());
    auto* y = static_cast<std::byte*>(args.out[0]);
    const auto count = static_cast<int64_t>(hot.size());
    for (int64_t i = 0; i < count * depth; ++i) {
      std::memcpy(y + static_cast<size_t>(i) * element, args.in[off], element);
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = hot[static_cast<size_t>(i)];
      if (at < 0 || at >= depth) continue;
      const int64_t place = (i / inner * depth + at) * inner + i % inner;
      std::memcpy(y + static_cast<size_t>(place) * element, args.in[on], element);
    }
    return Status();
  });
}

// ---- Eye ----

Status InferEye(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  const int64_t rows = op.attr_int("num_rows");
  const int64_t columns = op.attr_int("num_columns");
  if (FindConvert(DataType::kFloat, dtype) == nullptr) {
    return Error(Code::kUnsupported, "{}: no identity matrix of type {}", op.Who(), Name(dtype));
  }
  std::vector<int64_t> dims = op.attr_ints("batch_shape");
  dims.push_back(rows);
  dims.push_back(columns > 0 ? columns : rows);
  return SetOutput(op, 0, dtype, Shape(std::move(dims)));
}

Result<std::unique_ptr<Kernel>> MakeEye(const OpContext& op) {
  const TensorType& y = op.out(0);
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, y.dtype));
  const int64_t rows = y.shape[y.shape.rank() - 2], columns = y.shape[y.shape.rank() - 1];
  const int64_t matrix = rows * columns;
  const int64_t batch = matrix == 0 ? 0 : y.shape.elements() / matrix;
  return MakeKernel(
      [=, bytes = y.bytes(), one = FindConvert(DataType::kFloat, y.dtype)](const KernelArgs& args) {
        constexpr float kOne = 1;
        auto* to = static_cast<std::byte*>(args.out[0]);
        if (bytes > 0) std::memset(to, 0, bytes);
        for (int64_t b = 0; b < batch; ++b) {
          for (int64_t i = 0; i < std::min(rows, columns); ++i) {
            const int64_t place = b * matrix + i * columns + i;
            one(&kOne, to + static_cast<size_t>(place) * element, 1);
          }
        }
        return Status();
      });
}

// ---- LinSpace ----

Status InferLinSpace(OpContext& op) {
  const TensorType& start = op.in("start");
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("start"), op.slot("stop")));
  if (FindConvert(start.dtype, DataType::kDouble) == nullptr || start.shape.elements() != 1 ||
      op.in("stop").shape.elements() != 1) {
    return Error(Code::kInvalidArgument, "{}: start {} and stop {}: expected one number each",
                 op.Who(), start.ToString(), op.in("stop").ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const int64_t num, op.Int("num"));
  return SetOutput(op, 0, start.dtype, {num});
}

// Both ends are exact; each half counts from its own end.
Result<std::unique_ptr<Kernel>> MakeLinSpace(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, op.out(0).shape[0], sizeof(double)));
  const auto num = static_cast<size_t>(op.out(0).shape[0]);
  return MakeKernel([load = FindConvert(op.in("start").dtype, DataType::kDouble),
                     store = FindConvert(DataType::kDouble, op.out(0).dtype),
                     y = std::vector<double>(num)](const KernelArgs& args) mutable {
    double start = 0, stop = 0;
    load(args.in[0], &start, 1);
    load(args.in[1], &stop, 1);
    const size_t count = y.size();
    const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
    for (size_t i = 0; i < count; ++i) {
      y[i] = 2 * i < count ? start + step * static_cast<double>(i)
                           : stop - step * static_cast<double>(count - 1 - i);
    }
    if (count == 1) y[0] = start;
    store(y.data(), args.out[0], count);
    return Status();
  });
}

}  // namespace

void RegisterMakeOps(OpRegistry& registry) {
  registry.Add({.schema = {"OneHot",
                           {{"x"}, {"depth"}, {"on_value"}, {"off_value"}},
                           {{"y"}},
                           {{"axis", AttrValue::Int(-1)}}},
                .infer = InferOneHot,
                .make_kernel = MakeOneHot,
                .value_inputs = {"depth"}});
  registry.Add({.schema = {"Eye",
                           {},
                           {{"y"}},
                           {{"num_rows", Required::kInt},
                            {"num_columns", AttrValue::Int(0)},
                            {"batch_shape", AttrValue::Ints({})},
                            {"dtype", AttrValue::Int(0)}}},
                .infer = InferEye,
                .make_kernel = MakeEye});
  registry.Add({.schema = {"LinSpace", {{"start"}, {"stop"}, {"num"}}, {{"output"}}, {}},
                .infer = InferLinSpace,
                .make_kernel = MakeLinSpace,
                .value_inputs = {"num"}});
}

}  // namespace npumesh
