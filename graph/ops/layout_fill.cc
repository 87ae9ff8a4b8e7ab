// Operators that make tensors from little or nothing: Fill, Empty, ZerosLike, OnesLike, Range.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "graph/ops/check.h"
#include "graph/ops/define.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/value_inputs.h"
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

// ---- Fill ----

struct FillPlan : Planned {
  int value = 0;
  size_t size = 0;  // bytes of the value
};

Result<FillPlan> PlanFill(const OpContext& op) {
  Check check(op);
  FillPlan plan;
  plan.value = op.slot("value");
  const DataType dtype = op.in(plan.value).dtype;
  plan.size = check.Take(ElementBytes(op, dtype));
  check.Elements("value", {1});
  plan.outputs = {{dtype, Shape(check.Take(op.Ints("dims")))}};
  return check.Done(std::move(plan));
}

Status RunFill(const FillPlan& plan, const KernelArgs& args) {
  Repeat(args.in[plan.value], plan.size, args.out[0], plan.outputs[0].bytes());
  return Status();
}

// ---- Empty, ZerosLike ----

Result<Planned> PlanEmpty(const OpContext& op) {
  Check check(op);
  Planned plan;
  plan.outputs = {{check.Take(op.attr_dtype("dtype")), Shape(check.Take(op.Ints("shape")))}};
  return check.Done(std::move(plan));
}

Result<Planned> PlanLike(const OpContext& op) {
  Planned plan;
  plan.outputs = {op.in("x")};
  return plan;
}

// The contents of an empty tensor are unspecified; zeros are the same in every run.
Status RunZeros(const Planned& plan, const KernelArgs& args) {
  const uint64_t bytes = plan.outputs[0].bytes();
  if (bytes > 0) std::memset(args.out[0], 0, bytes);
  return Status();
}

// ---- OnesLike ----

struct OneElement {
  std::array<std::byte, 8> bytes{};
  size_t size = 0;
};

template <typename T>
OneElement ElementOf(T value) {
  OneElement element;
  element.size = sizeof(T);
  std::memcpy(element.bytes.data(), &value, sizeof(T));
  return element;
}

Result<OneElement> One(const OpContext& op, DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return ElementOf(1.0f);
    case DataType::kFloat16:
      return ElementOf(Float16(1.0f));
    case DataType::kBfloat16:
      return ElementOf(Bfloat16(1.0f));
    case DataType::kDouble:
      return ElementOf(1.0);
    case DataType::kBool:
    case DataType::kInt8:
    case DataType::kUint8:
      return ElementOf(int8_t{1});
    case DataType::kInt16:
    case DataType::kUint16:
      return ElementOf(int16_t{1});
    case DataType::kInt32:
    case DataType::kUint32:
      return ElementOf(int32_t{1});
    case DataType::kInt64:
    case DataType::kUint64:
      return ElementOf(int64_t{1});
    default:
      return Error(Code::kUnsupported, "{}: no 1 of type {}", op.Who(), Name(dtype));
  }
}

struct OnesPlan : Planned {
  OneElement one;
};

Result<OnesPlan> PlanOnes(const OpContext& op) {
  OnesPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.one, One(op, op.in("x").dtype));
  plan.outputs = {op.in("x")};
  return plan;
}

Status RunOnes(const OnesPlan& plan, const KernelArgs& args) {
  Repeat(plan.one.bytes.data(), plan.one.size, args.out[0], plan.outputs[0].bytes());
  return Status();
}

// ---- Range ----

// A one-element constant, as the integer or the real number it holds.
struct Number {
  DataType dtype = DataType::kUndefined;
  int64_t integer = 0;
  double real = 0;
};

Result<Number> NumberOf(const OpContext& op, std::string_view port) {
  const Tensor* value = op.value(op.slot(port));
  if (value == nullptr) {
    return Error(Code::kUnsupported, "{}: the value of input \"{}\" must be known before it runs",
                 op.Who(), port);
  }
  if (value->elements() != 1) {
    return Error(Code::kInvalidArgument, "{}: input \"{}\" is {}, expected one element", op.Who(),
                 port, value->type().ToString());
  }
  const auto integer = [&](int64_t i) { return Number{value->dtype(), i, static_cast<double>(i)}; };
  const auto real = [&](double r) { return Number{value->dtype(), 0, r}; };
  switch (value->dtype()) {
    case DataType::kInt32:
      return integer(value->as<int32_t>()[0]);
    case DataType::kInt64:
      return integer(value->as<int64_t>()[0]);
    case DataType::kFloat:
      return real(value->as<float>()[0]);
    case DataType::kDouble:
      return real(value->as<double>()[0]);
    case DataType::kFloat16:
      return real(static_cast<float>(value->as<Float16>()[0]));
    case DataType::kBfloat16:
      return real(static_cast<float>(value->as<Bfloat16>()[0]));
    default:
      return Error(Code::kUnsupported,
                   "{}: input \"{}\" is {}; Range takes int32, int64 and "
                   "floating types",
                   op.Who(), port, Name(value->dtype()));
  }
}

struct RangePlan : Planned {
  DataType dtype = DataType::kUndefined;
  Number start;
  Number delta;
  int64_t count = 0;
};

// Elements of start, start + delta, ... before limit, or up to it.
Result<int64_t> CountIntegers(int64_t start, int64_t limit, int64_t delta, bool closed) {
  const bool up = delta > 0;
  if (up ? limit < start : limit > start) return int64_t{0};
  if (limit == start) return int64_t{closed ? 1 : 0};
  const auto difference = [](int64_t high, int64_t low) {
    return static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  };
  const uint64_t span = up ? difference(limit, start) : difference(start, limit);
  const uint64_t pace = up ? static_cast<uint64_t>(delta) : difference(0, delta);
  const uint64_t steps = (closed ? span : span - 1) / pace;
  if (steps >= static_cast<uint64_t>(INT64_MAX)) {
    return Error(Code::kInvalidArgument, "more elements than 63 bits count");
  }
  return static_cast<int64_t>(steps) + 1;
}

Result<int64_t> CountReals(double start, double limit, double delta, bool closed) {
  const double steps = (limit - start) / delta;
  const double count = closed ? std::floor(steps) + 1 : std::ceil(steps);
  if (!(count < 0x1p62)) {
    return Error(Code::kInvalidArgument, "from {} to {} in steps of {} is no countable range",
                 start, limit, delta);
  }
  return count > 0 ? static_cast<int64_t>(count) : int64_t{0};
}

Result<RangePlan> PlanRange(const OpContext& op) {
  Check check(op);
  RangePlan plan;
  plan.start = check.Take(NumberOf(op, "start"));
  const Number limit = check.Take(NumberOf(op, "limit"));
  plan.delta = check.Take(NumberOf(op, "delta"));
  check.That(plan.delta.real != 0, "\"delta\" is 0");
  if (!check.ok()) return check.status();
  const bool equal = plan.start.dtype == limit.dtype && limit.dtype == plan.delta.dtype;
  plan.dtype = equal ? limit.dtype : DataType::kFloat;
  const bool closed = op.attr_bool("is_closed");
  const Result<int64_t> count =
      IsInteger(plan.dtype)
          ? CountIntegers(plan.start.integer, limit.integer, plan.delta.integer, closed)
          : CountReals(plan.start.real, limit.real, plan.delta.real, closed);
  NPUMESH_RETURN_IF_ERROR(count.status().WithContext(op.Who()));
  plan.count = *count;
  plan.outputs = {{plan.dtype, {plan.count}}};
  return plan;
}

template <typename T>
void WriteReals(const RangePlan& range, void* out) {
  for (int64_t i = 0; i < range.count; ++i) {
    const double value = range.start.real + static_cast<double>(i) * range.delta.real;
    if constexpr (sizeof(T) == 2) {
      static_cast<T*>(out)[i] = T(static_cast<float>(value));
    } else {
      static_cast<T*>(out)[i] = static_cast<T>(value);
    }
  }
}

// Unsigned, because i * delta may leave the signed range although the sum does not.
template <typename T>
void WriteIntegers(const RangePlan& range, void* out) {
  auto value = static_cast<uint64_t>(range.start.integer);
  for (int64_t i = 0; i < range.count; ++i) {
    static_cast<T*>(out)[i] = static_cast<T>(value);
    value += static_cast<uint64_t>(range.delta.integer);
  }
}

void WriteRange(const RangePlan& range, void* out) {
  switch (range.dtype) {
    case DataType::kInt32:
      return WriteIntegers<int32_t>(range, out);
    case DataType::kInt64:
      return WriteIntegers<int64_t>(range, out);
    case DataType::kDouble:
      return WriteReals<double>(range, out);
    case DataType::kFloat16:
      return WriteReals<Float16>(range, out);
    case DataType::kBfloat16:
      return WriteReals<Bfloat16>(range, out);
    default:
      return WriteReals<float>(range, out);
  }
}

Status RunRange(const RangePlan& plan, const KernelArgs& args) {
  WriteRange(plan, args.out[0]);
  return Status();
}

}  // namespace

void RegisterFillOps(OpRegistry& registry) {
  registry.Add(NeedsValues(Define<PlanFill, RunFill>("Fill(dims, value) -> y"), {"dims"}));
  registry.Add(NeedsValues(Define<PlanEmpty, RunZeros>("Empty(shape; dtype=3, init=false) -> y"),
                           {"shape"}));
  registry.Add(Define<PlanLike, RunZeros>("ZerosLike(x) -> y"));
  registry.Add(Define<PlanOnes, RunOnes>("OnesLike(x) -> y"));
  registry.Add(
      NeedsValues(Define<PlanRange, RunRange>("Range(start, limit, delta; is_closed=false) -> y"),
                  {"start", "limit", "delta"}));
}

}  // namespace npumesh
