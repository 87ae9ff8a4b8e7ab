// Pooling: MaxPool, MaxPoolV3, MaxPoolWithArgmaxV1, AvgPool, AvgPoolV2, AdaptiveAvgPool2d,
// GlobalAveragePool, MaxPool3DWithArgmaxV2.
//
// Averages are computed in double and rounded once. A NaN in a window is its maximum.
#include <cstring>

#include "graph/ops/image/family.h"
#include "graph/ops/image/pool.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// What is done with each volume: widen it, find its outputs, store them.
struct VolumePlan : PoolPlan {
  ConvertFn load = nullptr;
  int64_t outputs_of_volume = 0;
  size_t element_bytes = 0;
  ConvertFn store = nullptr;  // of averages, or of the places of maxima; null: there are none
  size_t stored_bytes = 0;
  Workspace<double> volume, averages;
  Workspace<int64_t> maxima;

  int64_t elements_of_volume() const { return places() * inner; }
};

VolumePlan PlanVolumes(const OpContext& op, PoolForm form, Check& check) {
  const TensorType& x = op.in(0);
  VolumePlan plan = {PlanPool(op, form, 0, x.shape, check)};
  plan.load = FindConvert(x.dtype, DataType::kDouble);
  plan.outputs_of_volume = plan.inner;
  for (const std::vector<Window>& windows : plan.windows) {
    plan.outputs_of_volume *= static_cast<int64_t>(windows.size());
  }
  plan.element_bytes = WidthOf(x.dtype);
  plan.volume = plan.scratch.Take<double>(plan.elements_of_volume());
  plan.outputs = {{x.dtype, plan.y}};
  return plan;
}

// ---- maximum ----

// The type of the places of maxima.
DataType PlaceType(const OpContext& op, bool any_integer, Check& check) {
  const DataType dtype = check.Take(op.attr_dtype("dtype"));
  check.Supported(any_integer ? IsInteger(dtype) : kIndices.Contains(dtype),
                  "attribute \"dtype\" asks for {}, expected {}", Name(dtype),
                  any_integer ? "integers" : kIndices.ToString());
  return dtype;
}

template <PoolForm kForm>
VolumePlan PlanMaxPool(const OpContext& op, Check& check) {
  constexpr bool kVolume = kForm == PoolForm::kVolume;
  const TensorType& x = op.in(0);
  if (kVolume) check.Keep(ExpectReal(op, "x"));
  check.Supported(x.dtype != DataType::kBool && FindConvert(x.dtype, DataType::kDouble) != nullptr,
                  "not defined for x {}", x);
  VolumePlan plan = PlanVolumes(op, kForm, check);
  CheckTouched(plan, check);
  plan.maxima = plan.scratch.Take<int64_t>(plan.outputs_of_volume);
  if (kVolume || kForm == PoolForm::kArgmax) {
    const DataType place = PlaceType(op, !kVolume, check);
    plan.store = FindConvert(DataType::kInt64, place);
    plan.stored_bytes = WidthOf(place);
    plan.outputs.push_back({place, plan.y});
  }
  return plan;
}

// Copies an element; the usual widths need no call.
void CopyElement(const std::byte* from, size_t bytes, std::byte* to) {
  if (bytes == 2) {
    std::memcpy(to, from, 2);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else {
    std::memcpy(to, from, bytes);
  }
}

// Elements are compared as doubles, which is exact but for integers past 53 bits, and copied as
// they are.
template <bool kVolume>
Status RunMaxPool(const VolumePlan& plan, const KernelArgs& args) {
  const size_t bytes = plan.element_bytes;
  const auto elements = static_cast<size_t>(plan.elements_of_volume());
  const auto count = static_cast<size_t>(plan.outputs_of_volume);
  const auto* from = static_cast<const std::byte*>(args.in[0]);
  auto* to = static_cast<std::byte*>(args.out[0]);
  auto* places = static_cast<std::byte*>(plan.store == nullptr ? nullptr : args.out[1]);
  const double* x = plan.volume(args);
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    plan.load(from, plan.volume(args), elements);
    int64_t* next = plan.maxima(args);
    ForBoxes(plan, [&, channels = plan.inner](const PoolBox& box, int64_t inner) {
      int64_t best = -1;
      double most = 0;
      ForPlaces<kVolume>(plan, box, [&](int64_t place) {
        const double value = x[place * channels + inner];
        if (best >= 0 && !Exceeds(value, most)) return;
        best = place;
        most = value;
      });
      *next++ = best;
      CopyElement(from + static_cast<size_t>(best * channels + inner) * bytes, bytes, to);
      to += bytes;
    });
    from += elements * bytes;
    if (plan.store == nullptr) continue;
    plan.store(plan.maxima(args), places, count);
    places += count * plan.stored_bytes;
  }
  return Status();
}

// ---- average ----

template <PoolForm kForm>
VolumePlan PlanAvgPool(const OpContext& op, Check& check) {
  check.Keep(ExpectReal(op, "x"));
  VolumePlan plan = PlanVolumes(op, kForm, check);
  if (kForm == PoolForm::kLong) ReadDivisor(op, plan);
  plan.store = FindConvert(DataType::kDouble, op.in(0).dtype);
  plan.averages = plan.scratch.Take<double>(plan.outputs_of_volume);
  return plan;
}

Status RunAvgPool(const VolumePlan& plan, const KernelArgs& args) {
  const auto elements = static_cast<size_t>(plan.elements_of_volume());
  const auto count = static_cast<size_t>(plan.outputs_of_volume);
  const auto* from = static_cast<const std::byte*>(args.in[0]);
  auto* to = static_cast<std::byte*>(args.out[0]);
  double* x = plan.volume(args);
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    plan.load(from, x, elements);
    double* next = plan.averages(args);
    ForBoxes(plan, [&](const PoolBox& box, int64_t inner) {
      double sum = 0;
      ForPlaces(plan, box, [&](int64_t place) { sum += x[place * plan.inner + inner]; });
      *next++ = sum / DivisorOf(plan, box);
    });
    plan.store(plan.averages(args), to, count);
    from += elements * plan.element_bytes;
    to += count * plan.element_bytes;
  }
  return Status();
}

template <PoolForm kForm>
Operator MaxPool(std::string_view signature) {
  return Define<PlanMaxPool<kForm>, RunMaxPool<kForm == PoolForm::kVolume>>(signature);
}

template <PoolForm kForm>
Operator AvgPool(std::string_view signature) {
  return Define<PlanAvgPool<kForm>, RunAvgPool>(signature);
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
