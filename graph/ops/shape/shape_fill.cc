// Operators that make tensors from little or nothing: Fill, Empty, ZerosLike, OnesLike, Range.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/cast.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

// Writes `bytes` bytes: the first `size` of them are `element`, repeated.
void Repeat(const void* element, size_t size, void* out, uint64_t bytes) {
  if (bytes == 0) return;
  constexpr uint64_t kBlock = 32 << 10;  // stays in the first-level cache
  auto* to = static_cast<std::byte*>(out);
  std::memcpy(to, element, size);
  for (uint64_t done = size; done < bytes;) {
    const uint64_t next = std::min({done, bytes - done, kBlock / size * size});
    std::memcpy(to + done, to, next);
    done += next;
  }
}

// ---- Fill, OnesLike ----

struct FillPlan : Planned {
  std::optional<int> value;  // slot; none: the output is filled with `one`
  std::array<std::byte, 8> one{};
  size_t size = 0;  // bytes of an element
};

FillPlan PlanFill(const OpContext& op, Check& check) {
  FillPlan plan;
  plan.value = op.slot("value");
  const DataType dtype = op.in("value").dtype;
  plan.size = check.Take(ElementBytes(op, dtype));
  check.Elements("value", {1});
  const std::vector<int64_t> dims = check.Take(op.Ints("dims"));
  for (size_t i = 0; i < dims.size(); ++i) {
    check.That(dims[i] >= 0, "\"dims\" holds {} at position {}, expected 0 or more", dims[i], i);
  }
  plan.outputs = {{dtype, Shape(dims)}};
  return plan;
}

FillPlan PlanOnes(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const ConvertFn convert = FindConvert(DataType::kFloat, x.dtype);
  check.Supported(convert != nullptr, "no 1 of type {}", Name(x.dtype));
  if (!check.ok()) return {};
  FillPlan plan;
  constexpr float kOne = 1;
  convert(&kOne, plan.one.data(), 1);
  plan.size = WidthOf(x.dtype);
  plan.outputs = {x};
  return plan;
}

Status RunFill(const FillPlan& plan, const KernelArgs& args) {
  const void* element = plan.value ? args.in[*plan.value] : plan.one.data();
  Repeat(element, plan.size, args.out[0], plan.outputs[0].bytes());
  return Status();
}

// ---- Empty, ZerosLike ----

Planned PlanEmpty(const OpContext& op, Check& check) {
  return {.outputs = {{check.Take(op.attr_dtype("dtype")), Shape(check.Take(op.Ints("shape")))}}};
}

Planned PlanLike(const OpContext& op, Check&) {
  return {.outputs = {op.in("x")}};
}

// The contents of an empty tensor are unspecified; zeros are the same in every run.
Status RunZeros(const Planned& plan, const KernelArgs& args) {
  ClearOutput(plan, args, 0);
  return Status();
}

// ---- Range ----

// A one-element constant, as an integer and as a real number.
struct Number {
  DataType dtype = DataType::kUndefined;
  int64_t integer = 0;
  double real = 0;
};

Number NumberOf(const OpContext& op, std::string_view port, Check& check) {
  const Tensor* value = op.value(op.slot(port));
  check.Supported(value != nullptr, "the value of input \"{}\" must be known before it runs", port);
  check.Elements(port, {1});
  check.Keep(ExpectType(op, port, kIndices | kFloatsAndDouble));
  Number number;
  if (!check.ok()) return number;
  number.dtype = value->dtype();
  FindConvert(number.dtype, DataType::kInt64)(value->data(), &number.integer, 1);
  FindConvert(number.dtype, DataType::kDouble)(value->data(), &number.real, 1);
  return number;
}

struct RangePlan : Planned {
  DataType dtype = DataType::kUndefined;
  Number start, delta;
  int64_t count = 0;
};

// Elements of start, start + delta, ... before limit, or up to it.
int64_t CountIntegers(int64_t start, int64_t limit, int64_t delta, bool closed, Check& check) {
  const bool up = delta > 0;
  if (up ? limit < start : limit > start) return 0;
  if (limit == start) return closed ? 1 : 0;
  const auto difference = [](int64_t high, int64_t low) {
    return static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  };
  const uint64_t span = up ? difference(limit, start) : difference(start, limit);
  const uint64_t pace = up ? static_cast<uint64_t>(delta) : difference(0, delta);
  const uint64_t steps = (closed ? span : span - 1) / pace;
  check.That(steps < static_cast<uint64_t>(INT64_MAX),
             "from {} to {} in steps of {} is no countable range", start, limit, delta);
  return check.ok() ? static_cast<int64_t>(steps) + 1 : 0;
}

int64_t CountReals(double start, double limit, double delta, bool closed, Check& check) {
  const double steps = (limit - start) / delta;
  const double count = closed ? std::floor(steps) + 1 : std::ceil(steps);
  check.That(count < 0x1p62, "from {} to {} in steps of {} is no countable range", start, limit,
             delta);
  return check.ok() && count > 0 ? static_cast<int64_t>(count) : 0;
}

RangePlan PlanRange(const OpContext& op, Check& check) {
  RangePlan plan;
  plan.start = NumberOf(op, "start", check);
  const Number limit = NumberOf(op, "limit", check);
  plan.delta = NumberOf(op, "delta", check);
  check.That(plan.delta.real != 0, "\"delta\" is 0");
  if (!check.ok()) return {};
  const bool equal = plan.start.dtype == limit.dtype && limit.dtype == plan.delta.dtype;
  plan.dtype = equal ? limit.dtype : DataType::kFloat;
  const bool closed = op.attr_bool("is_closed");
  plan.count =
      IsInteger(plan.dtype)
          ? CountIntegers(plan.start.integer, limit.integer, plan.delta.integer, closed, check)
          : CountReals(plan.start.real, limit.real, plan.delta.real, closed, check);
  plan.outputs = {{plan.dtype, {plan.count}}};
  return plan;
}

template <typename T>
Status WriteRange(const RangePlan& plan, const KernelArgs& args) {
  using Via = std::conditional_t<sizeof(T) == 2, float, T>;  // 16-bit floats are made of float32
  auto* to = static_cast<T*>(args.out[0]);
  // Unsigned, because i * delta may leave the signed range although the sum does not.
  auto integer = static_cast<uint64_t>(plan.start.integer);
  for (int64_t i = 0; i < plan.count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      to[i] = static_cast<T>(integer);
      integer += static_cast<uint64_t>(plan.delta.integer);
    } else {
      to[i] = T(static_cast<Via>(plan.start.real + static_cast<double>(i) * plan.delta.real));
    }
  }
  return Status();
}

Status RunRange(const RangePlan& plan, const KernelArgs& args) {
  switch (plan.dtype) {
    case DataType::kInt32:
      return WriteRange<int32_t>(plan, args);
    case DataType::kInt64:
      return WriteRange<int64_t>(plan, args);
    case DataType::kDouble:
      return WriteRange<double>(plan, args);
    case DataType::kFloat16:
      return WriteRange<Float16>(plan, args);
    case DataType::kBfloat16:
      return WriteRange<Bfloat16>(plan, args);
    default:
      return WriteRange<float>(plan, args);
  }
}

}  // namespace

void RegisterFillOps(OpRegistry& registry) {
  registry.Add(Define<PlanFill, RunFill>("Fill(dims, value) -> y",
                                         {.value_inputs = {"dims"}, .axes = "dims[#y] -> y[..]"}));
  registry.Add(Define<PlanEmpty, RunZeros>("Empty(shape; dtype=3, init=false) -> y",
                                           {.value_inputs = {"shape"}}));
  registry.Add(Define<PlanLike, RunZeros>("ZerosLike(x) -> y"));
  registry.Add(Define<PlanOnes, RunFill>("OnesLike(x) -> y"));
  registry.Add(Define<PlanRange, RunRange>("Range(start, limit, delta; is_closed=false) -> y",
                                           {.value_inputs = {"start", "limit", "delta"}}));
}

}  // namespace npumesh
