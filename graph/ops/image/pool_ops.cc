// Pooling: MaxPool, MaxPoolV3, MaxPoolWithArgmaxV1, AvgPool, AvgPoolV2, AdaptiveAvgPool2d,
// GlobalAveragePool, MaxPool3DWithArgmaxV2; and gradients: AvgPoolV2Grad, AdaptiveAvgPool2dGrad,
// MaxPoolGradWithArgmaxV1.
//
// Averages are computed in double and rounded once, unless op_select_implmode chooses the sums of
// the NPU (ChooseSums). A NaN in a window is its maximum.
#include <optional>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/image/blocked_image.h"
#include "graph/ops/image/pool.h"
#include "graph/ops/image/pool_rows.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// What is done with each volume: widen it, find its outputs, store them; or all that by vectors.
struct VolumePlan : PoolPlan {
  bool by_vectors = false;  // pool_rows.h; nothing below is used then
  bool of_bytes = false;    // int8 or uint8, of which maxima are found by vectors
  int threads = 1;
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
  plan.outputs = {{x.dtype, plan.y}};
  const bool has_places = form == PoolForm::kArgmax || form == PoolForm::kVolume;
  plan.by_vectors = x.dtype == DataType::kFloat && !has_places;
  plan.of_bytes = (x.dtype == DataType::kInt8 || x.dtype == DataType::kUint8) && !has_places;
  plan.threads = WorthThreads(static_cast<double>(x.shape.elements()) * kElementWork, op.threads());
  return plan;
}

// Plane by plane: pool(x, y).
template <typename Element, typename PoolPlane>
Status RunPlanes(const VolumePlan& plan, const KernelArgs& args, const PoolPlane& pool) {
  const auto* from = static_cast<const Element*>(args.in[0]);
  auto* to = static_cast<Element*>(args.out[0]);
  RunRanges(plan.threads, plan.outer, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      pool(from + plane * plan.elements_of_volume(), to + plane * plan.outputs_of_volume);
    }
  });
  return Status();
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
  if (plan.by_vectors || plan.of_bytes) return plan;
  plan.volume = plan.scratch.Take<double>(plan.elements_of_volume());
  plan.maxima = plan.scratch.Take<int64_t>(plan.outputs_of_volume);
  if (kVolume || kForm == PoolForm::kArgmax) {
    const DataType place = PlaceType(op, !kVolume, check);
    plan.store = FindConvert(DataType::kInt64, place);
    plan.stored_bytes = WidthOf(place);
    plan.outputs.push_back({place, plan.y});
  }
  return plan;
}

// Elements are compared as doubles, which is exact but for integers past 53 bits, and copied as
// they are.
template <bool kVolume>
Status RunMaxPool(const VolumePlan& plan, const KernelArgs& args) {
  if (plan.by_vectors) {
    return RunPlanes<float>(plan, args,
                            [&](const float* x, float* y) { MaximaOfWindows(plan, x, y); });
  }
  if (plan.of_bytes) {
    const DataType dtype = plan.outputs[0].dtype;
    return RunPlanes<std::byte>(plan, args, [&](const std::byte* x, std::byte* y) {
      ByteMaximaOfWindows(plan, dtype, x, y);
    });
  }
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
  ChooseSums(op, op.in(0).dtype, plan);
  plan.by_vectors = plan.by_vectors && plan.round == nullptr;
  if (plan.by_vectors) return plan;
  plan.volume = plan.scratch.Take<double>(plan.elements_of_volume());
  plan.store = FindConvert(DataType::kDouble, op.in(0).dtype);
  plan.averages = plan.scratch.Take<double>(plan.outputs_of_volume);
  return plan;
}

Status RunAvgPool(const VolumePlan& plan, const KernelArgs& args) {
  if (plan.by_vectors) {
    return RunPlanes<float>(plan, args,
                            [&](const float* x, float* y) { AveragesOfWindows(plan, x, y); });
  }
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
      ForPlaces(plan, box,
                [&](int64_t place) { sum = plan.Rounded(sum + x[place * plan.inner + inner]); });
      *next++ = plan.Rounded(sum / DivisorOf(plan, box));
    });
    plan.store(plan.averages(args), to, count);
    from += elements * plan.element_bytes;
    to += count * plan.element_bytes;
  }
  return Status();
}

// Objects unless the gradient that comes in has the shape of what the pooling gives.
void CheckGradient(const OpContext& op, std::string_view port, const PoolPlan& plan, Check& check) {
  check.Keep(ExpectReal(op, port));
  check.That(op.in(port).shape == plan.y, "\"{}\" is {}, but pooling gives {}", port, op.in(port),
             plan.y);
}

// ---- gradient of averages ----

// `image` is the shape of what was pooled.
PoolPlan PlanAverage(const OpContext& op, PoolForm form, const Shape& image, Check& check) {
  check.Keep(image.Check().WithContext(op.Who()));
  const int slot = op.slot("input_grad");
  const Shape& grad = op.in(slot).shape;
  check.That(image.is_static() && image.rank() == grad.rank() && grad.rank() >= 3,
             "the image is {} and the gradient {}", image, grad);
  if (!check.ok()) return PoolPlan();
  PoolPlan plan = PlanPool(op, form, slot, image, check);
  CheckGradient(op, "input_grad", plan, check);
  plan.outputs = {{op.in(slot).dtype, image}};
  ChooseSums(op, op.in(slot).dtype, plan);
  return plan;
}

PoolPlan PlanAveragePoolGrad(const OpContext& op, Check& check) {
  const Shape image(check.Take(op.Ints("orig_input_shape")));
  PoolPlan plan = PlanAverage(op, PoolForm::kLong, image, check);
  ReadDivisor(op, plan);
  return plan;
}

PoolPlan PlanAdaptiveGrad(const OpContext& op, Check& check) {
  const Shape image(op.attr_ints("orig_input_shape"));
  return PlanAverage(op, PoolForm::kAdaptiveGrad, image, check);
}

template <size_t kSlot>
Status RunAverage(const PoolPlan& plan, RealTensors& t) {
  size_t next = 0;
  ForOutputs(plan, [&](int64_t outer, const PoolBox& box, int64_t inner) {
    const double part = plan.Rounded(t.in[kSlot][next++] / DivisorOf(plan, box));
    double* dx = t.out[0].data();
    const int64_t first = ElementAt(plan, outer, 0, inner);
    ForPlaces(plan, box, [&](int64_t place) {
      double& sum = dx[first + place * plan.inner];
      sum = plan.Rounded(sum + part);
    });
  });
  return Status();
}

// ---- gradient of a maximum ----

PoolPlan PlanMaximum(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  check.Keep(ExpectReal(op, "x"));
  PoolPlan plan = PlanPool(op, PoolForm::kArgmax, op.slot("x"), x, check);
  CheckTouched(plan, check);
  CheckGradient(op, "grad", plan, check);
  if (check.ok()) check.Keep(ExpectCount(op, "argmax", plan.y.elements(), "window"));
  plan.outputs = {{op.in("grad").dtype, x}};
  ChooseSums(op, op.in("grad").dtype, plan);
  return plan;
}

// The element of x that a window took: the one `told` names, a place in the plane of the image, if
// it lies in the window and holds the maximum. Graphs of TorchAir hand on the pooled values in
// place of the indices; then it is the first maximum.
int64_t TakenElement(const PoolPlan& plan, const std::vector<double>& x, int64_t outer,
                     const PoolBox& box, int64_t inner, double told) {
  int64_t best = -1, named = -1;
  double most = 0, at_named = 0;
  ForPlaces(plan, box, [&](int64_t place) {
    const double value = x[static_cast<size_t>(ElementAt(plan, outer, place, inner))];
    if (static_cast<double>(place) == told) {
      named = place;
      at_named = value;
    }
    if (best >= 0 && !Exceeds(value, most)) return;
    best = place;
    most = value;
  });
  const bool holds = named >= 0 && (at_named == most || (at_named != at_named && most != most));
  return ElementAt(plan, outer, holds ? named : best, inner);
}

// Inputs x, grad, argmax.
Status RunMaximum(const PoolPlan& plan, RealTensors& t) {
  size_t next = 0;
  ForOutputs(plan, [&](int64_t outer, const PoolBox& box, int64_t inner) {
    const int64_t taken = TakenElement(plan, t.in[0], outer, box, inner, t.in[2][next]);
    double& sum = t.out[0][static_cast<size_t>(taken)];
    sum = plan.Rounded(sum + t.in[1][next++]);
  });
  return Status();
}

// The plan of a pool whose image could be in blocks.
std::optional<VolumePlan> PlanForBlocks(const OpContext& op) {
  using enum PoolForm;
  const std::string_view type = op.node().type;
  Check check(op);
  VolumePlan plan = type == "MaxPool"     ? PlanMaxPool<kShort>(op, check)
                    : type == "MaxPoolV3" ? PlanMaxPool<kLong>(op, check)
                    : type == "AvgPool"   ? PlanAvgPool<kShort>(op, check)
                                          : PlanAvgPool<kLong>(op, check);
  if (!check.ok() || !plan.by_vectors || plan.inner != 1) return std::nullopt;
  return plan;
}

}  // namespace

bool PoolsInBlocks(const OpContext& op) {
  return PlanForBlocks(op).has_value();
}

Result<std::unique_ptr<Kernel>> MakeBlockedPool(const OpContext& op) {
  VolumePlan plan = *PlanForBlocks(op);
  const Shape x = InBlocks(op.in(0).shape);
  plan.outer = x[0] * x[1];
  plan.inner = x[4];
  plan.outputs_of_volume *= plan.inner;
  const bool most = op.node().type.starts_with("Max");
  return MakeKernel([plan = std::move(plan), most](const KernelArgs& args) {
    return RunPlanes<float>(plan, args, [&plan, most](const float* x, float* y) {
      most ? MaximaOfWindows(plan, x, y) : AveragesOfWindows(plan, x, y);
    });
  });
}

void RegisterPoolOps(OpRegistry& registry) {
  using enum PoolForm;
  registry.Add(Define<PlanMaxPool<kShort>, RunMaxPool<false>>(
      "MaxPool(x; ksize:ints, strides:ints, padding:string, data_format=\"NHWC\") -> y"));
  registry.Add(Define<PlanMaxPool<kLong>, RunMaxPool<false>>(
      "MaxPoolV3(x; ksize:ints, strides:ints, padding_mode=\"CALCULATED\", pads=[0,0,0,0], "
      "data_format=\"NCHW\", global_pooling=false, ceil_mode=false) -> y"));
  registry.Add(Define<PlanMaxPool<kArgmax>, RunMaxPool<false>>(
      "MaxPoolWithArgmaxV1(x; ksize:ints, strides:ints, pads:ints, dtype=3, dilation=[1,1,1,1], "
      "ceil_mode=false) -> y, argmax"));
  registry.Add(Define<PlanAvgPool<kShort>, RunAvgPool>(
      "AvgPool(x; ksize:ints, strides:ints, padding:string, data_format=\"NHWC\") -> y",
      {.implementations = "Pooling"}));
  registry.Add(Define<PlanAvgPool<kLong>, RunAvgPool>(
      "AvgPoolV2(x; ksize:ints, strides:ints, padding_mode=\"CALCULATED\", pads=[0,0,0,0], "
      "data_format=\"NCHW\", global_pooling=false, ceil_mode=false, exclusive=true, "
      "divisor_override=0) -> y",
      {.implementations = "Pooling"}));
  registry.Add(Define<PlanAvgPool<kAdaptive>, RunAvgPool>(
      "AdaptiveAvgPool2d(x; output_size:ints) -> y", {.implementations = "Pooling"}));
  registry.Add(Define<PlanAvgPool<kGlobal>, RunAvgPool>("GlobalAveragePool(x) -> y",
                                                        {.implementations = "Pooling"}));
  registry.Add(Define<PlanMaxPool<kVolume>, RunMaxPool<true>>(
      "MaxPool3DWithArgmaxV2(x; ksize:ints, strides:ints, pads:ints, dilation=[1,1,1], "
      "ceil_mode=false, data_format=\"NCDHW\", dtype=3) -> y, argmax"));
  registry.Add(DefineReal<PlanAveragePoolGrad, RunAverage<1>>(
      "AvgPoolV2Grad(orig_input_shape, input_grad; ksize:ints, strides:ints, "
      "padding_mode=\"CALCULATED\", pads=[0,0,0,0], data_format=\"NCHW\", global_pooling=false, "
      "ceil_mode=false, exclusive=true, divisor_override=0) -> out_grad",
      {.value_inputs = {"orig_input_shape"}, .implementations = "Pooling"}));
  registry.Add(DefineReal<PlanAdaptiveGrad, RunAverage<0>>(
      "AdaptiveAvgPool2dGrad(input_grad; orig_input_shape:ints) -> output_grad",
      {.implementations = "Pooling"}));
  registry.Add(DefineReal<PlanMaximum, RunMaximum>(
      "MaxPoolGradWithArgmaxV1(x, grad, argmax; ksize:ints, strides:ints, pads:ints, dtype=3, "
      "dilation=[1,1,1,1], ceil_mode=false) -> y",
      {.implementations = "Pooling"}));
}

}  // namespace npumesh
