// Pooling: MaxPool, MaxPoolV3, MaxPoolWithArgmaxV1, AvgPool, AvgPoolV2, AdaptiveAvgPool2d,
// GlobalAveragePool.
//
// Averages are computed in double and rounded once. A NaN in a window is its maximum.
#include <algorithm>

#include "graph/ops/cast.h"
#include "graph/ops/layer_families.h"
#include "graph/ops/pool.h"
#include "graph/ops/real_kernel.h"

namespace npumesh {
namespace {

// ---- maximum ----

struct MaxPoolPlan : PoolPlan {
  ConvertFn load = nullptr;
  size_t width_bytes = 0;           // of an element
  ConvertFn store_place = nullptr;  // null: no second output
  size_t place_bytes = 0;
  Slice<double> image;
};

template <PoolForm kForm>
Result<MaxPoolPlan> PlanMaxPool(const OpContext& op) {
  Check check(op);
  const TensorType& x = op.in(0);
  MaxPoolPlan plan;
  plan.load = x.dtype == DataType::kBool ? nullptr : FindConvert(x.dtype, DataType::kDouble);
  if (plan.load == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for x {}", op.Who(), x.ToString());
  }
  static_cast<PoolPlan&>(plan) = PlanPool(op, kForm, 0, x.shape, check);
  CheckTouched(plan.rows, check);
  CheckTouched(plan.columns, check);
  plan.width_bytes = static_cast<size_t>(BitsOf(x.dtype)) / 8;
  plan.image = plan.scratch.Take<double>(plan.height * plan.width * plan.inner);
  plan.outputs = {{x.dtype, plan.y}};
  if (kForm == PoolForm::kArgmax) {
    const DataType place = check.Take(op.attr_dtype("dtype"));
    if (check.ok() && !IsInteger(place)) {
      return Error(Code::kUnsupported, "{}: attribute \"dtype\" asks for {}, expected integers",
                   op.Who(), Name(place));
    }
    plan.store_place = FindConvert(DataType::kInt64, place);
    plan.place_bytes = static_cast<size_t>(BitsOf(place)) / 8;
    plan.outputs.push_back({place, plan.y});
  }
  return check.Done(std::move(plan));
}

// Elements are compared as doubles, which is exact but for integers past 53 bits, and copied as
// they are.
Status RunMaxPool(const MaxPoolPlan& plan, const KernelArgs& args) {
  const size_t bytes = plan.width_bytes;
  const auto elements = static_cast<size_t>(plan.height * plan.width * plan.inner);
  const auto* from = static_cast<const std::byte*>(args.in[0]);
  auto* to = static_cast<std::byte*>(args.out[0]);
  double* image = plan.image(args);
  size_t next = 0;
  for (int64_t outer = 0; outer < plan.outer; ++outer, from += elements * bytes) {
    plan.load(from, image, elements);
    ForOutputsOfImage(plan, [&](const Window& rows, const Window& columns, int64_t inner) {
      int64_t best = -1, place = 0;
      double most = 0;
      ForWindow(plan, rows, columns, [&](int64_t r, int64_t c) {
        const int64_t element = ElementAt(plan, 0, r, c, inner);
        if (best >= 0 && !Exceeds(image[element], most)) return;
        best = element;
        place = r * plan.width + c;
        most = image[element];
      });
      std::copy_n(from + static_cast<size_t>(best) * bytes, bytes, to + next * bytes);
      if (plan.store_place != nullptr) {
        auto* places = static_cast<std::byte*>(args.out[1]);
        plan.store_place(&place, places + next * plan.place_bytes, 1);
      }
      ++next;
    });
  }
  return Status();
}

// ---- average ----

template <PoolForm kForm>
Result<PoolPlan> PlanAvgPool(const OpContext& op) {
  Check check(op);
  const TensorType& x = op.in(0);
  check.Keep(ExpectReal(op, "x"));
  PoolPlan plan = PlanPool(op, kForm, 0, x.shape, check);
  if (kForm == PoolForm::kLong) ReadDivisor(op, plan);
  plan.outputs = {{x.dtype, plan.y}};
  return check.Done(std::move(plan));
}

Status RunAvgPool(const PoolPlan& plan, RealTensors& t) {
  const std::vector<double>& x = t.in[0];
  size_t next = 0;
  ForOutputs(plan, [&](int64_t outer, const Window& rows, const Window& columns, int64_t inner) {
    double sum = 0;
    ForWindow(plan, rows, columns, [&](int64_t r, int64_t c) {
      sum += x[static_cast<size_t>(ElementAt(plan, outer, r, c, inner))];
    });
    t.out[0][next++] = sum / DivisorOf(plan, rows, columns);
  });
  return Status();
}

template <PoolForm kForm>
Operator MaxPool(std::string_view signature) {
  return Define<PlanMaxPool<kForm>, RunMaxPool>(signature);
}

template <PoolForm kForm>
Operator AvgPool(std::string_view signature) {
  return DefineReal<PlanAvgPool<kForm>, RunAvgPool>(signature);
}

}  // namespace

void RegisterPoolOps(OpRegistry& registry) {
  registry.Add(MaxPool<PoolForm::kShort>(
      "MaxPool(x; ksize:ints, strides:ints, padding:string, data_format=\"NHWC\") -> y"));
  registry.Add(MaxPool<PoolForm::kLong>(
      "MaxPoolV3(x; ksize:ints, strides:ints, padding_mode=\"CALCULATED\", pads=[0,0,0,0], "
      "data_format=\"NCHW\", global_pooling=false, ceil_mode=false) -> y"));
  registry.Add(MaxPool<PoolForm::kArgmax>(
      "MaxPoolWithArgmaxV1(x; ksize:ints, strides:ints, pads:ints, dtype=3, dilation=[1,1,1,1], "
      "ceil_mode=false) -> y, argmax"));
  registry.Add(AvgPool<PoolForm::kShort>(
      "AvgPool(x; ksize:ints, strides:ints, padding:string, data_format=\"NHWC\") -> y"));
  registry.Add(AvgPool<PoolForm::kLong>(
      "AvgPoolV2(x; ksize:ints, strides:ints, padding_mode=\"CALCULATED\", pads=[0,0,0,0], "
      "data_format=\"NCHW\", global_pooling=false, ceil_mode=false, exclusive=true, "
      "divisor_override=0) -> y"));
  registry.Add(AvgPool<PoolForm::kAdaptive>("AdaptiveAvgPool2d(x; output_size:ints) -> y"));
  registry.Add(AvgPool<PoolForm::kGlobal>("GlobalAveragePool(x) -> y"));
}

}  // namespace npumesh
