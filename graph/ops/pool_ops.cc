// Pooling: MaxPool, MaxPoolV3, MaxPoolWithArgmaxV1, AvgPool, AvgPoolV2, AdaptiveAvgPool2d,
// GlobalAveragePool, MaxPool3DWithArgmaxV2.
//
// Averages are computed in double and rounded once. A NaN in a window is its maximum.
#include <algorithm>

#include "graph/ops/cast.h"
#include "graph/ops/layer_families.h"
#include "graph/ops/pool.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// ---- maximum ----

struct MaxPoolPlan : PoolPlan {
  ConvertFn load = nullptr;
  size_t element_bytes = 0;
  ConvertFn store_place = nullptr;  // null: no second output
  size_t place_bytes = 0;
  Slice<double> volume;
};

// The type of the places of maxima.
DataType PlaceType(const OpContext& op, bool any_integer, Check& check) {
  const DataType dtype = check.Take(op.attr_dtype("dtype"));
  if (check.ok() && !(any_integer ? IsInteger(dtype) : kIndices.Contains(dtype))) {
    check.Keep(Error(Code::kUnsupported, "{}: attribute \"dtype\" asks for {}, expected {}",
                     op.Who(), Name(dtype), any_integer ? "integers" : kIndices.ToString()));
  }
  return dtype;
}

template <PoolForm kForm>
Result<MaxPoolPlan> PlanMaxPool(const OpContext& op) {
  constexpr bool kVolume = kForm == PoolForm::kVolume;
  Check check(op);
  const TensorType& x = op.in(0);
  if (kVolume) check.Keep(ExpectReal(op, "x"));
  if (x.dtype == DataType::kBool || FindConvert(x.dtype, DataType::kDouble) == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for x {}", op.Who(), x.ToString());
  }
  MaxPoolPlan plan = {PlanPool(op, kForm, 0, x.shape, check)};
  CheckTouched(plan, check);
  plan.load = FindConvert(x.dtype, DataType::kDouble);
  plan.element_bytes = static_cast<size_t>(BitsOf(x.dtype)) / 8;
  plan.volume = plan.scratch.Take<double>(plan.places() * plan.inner);
  plan.outputs = {{x.dtype, plan.y}};
  if (kVolume || kForm == PoolForm::kArgmax) {
    const DataType place = PlaceType(op, !kVolume, check);
    plan.store_place = FindConvert(DataType::kInt64, place);
    plan.place_bytes = static_cast<size_t>(BitsOf(place)) / 8;
    plan.outputs.push_back({place, plan.y});
  }
  return check.Done(std::move(plan));
}

// Elements are compared as doubles, which is exact but for integers past 53 bits, and copied as
// they are.
Status RunMaxPool(const MaxPoolPlan& plan, const KernelArgs& args) {
  const int64_t elements = plan.places() * plan.inner;  // of a volume
  const auto* from = static_cast<const std::byte*>(args.in[0]);
  auto* to = static_cast<std::byte*>(args.out[0]);
  auto* places = static_cast<std::byte*>(plan.store_place == nullptr ? nullptr : args.out[1]);
  double* x = plan.volume(args);
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    plan.load(from, x, static_cast<size_t>(elements));
    ForBoxes(plan, [&](const Box& box, int64_t inner) {
      int64_t best = -1;
      double most = 0;
      ForPlaces(plan, box, [&](int64_t place) {
        const double value = x[place * plan.inner + inner];
        if (best >= 0 && !Exceeds(value, most)) return;
        best = place;
        most = value;
      });
      const std::byte* found =
          from + static_cast<size_t>(best * plan.inner + inner) * plan.element_bytes;
      to = std::copy_n(found, plan.element_bytes, to);
      if (places == nullptr) return;
      plan.store_place(&best, places, 1);
      places += plan.place_bytes;
    });
    from += static_cast<size_t>(elements) * plan.element_bytes;
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
  size_t next = 0;
  ForOutputs(plan, [&](int64_t outer, const Box& box, int64_t inner) {
    const double* x = t.in[0].data();
    const int64_t first = ElementAt(plan, outer, 0, inner);
    double sum = 0;
    ForPlaces(plan, box, [&](int64_t place) { sum += x[first + place * plan.inner]; });
    t.out[0][next++] = sum / DivisorOf(plan, box);
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

void RegisterVolumePoolOps(OpRegistry& registry) {
  registry.Add(MaxPool<PoolForm::kVolume>(
      "MaxPool3DWithArgmaxV2(x; ksize:ints, strides:ints, pads:ints, dilation=[1,1,1], "
      "ceil_mode=false, data_format=\"NCDHW\", dtype=3) -> y, argmax"));
}

}  // namespace npumesh
