#include "launch/run/tensor_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>

#include "graph/io/npy.h"
#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

template <typename T>
double Distance(T value, T golden) {
  const double v = static_cast<double>(NumberOf(value));
  const double g = static_cast<double>(NumberOf(golden));
  if (v == g || (std::isnan(v) && std::isnan(g))) return 0;
  const double distance = std::abs(v - g);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

// Exact also where double cannot tell two neighbours apart.
template <std::integral T>
double Distance(T v, T g) {
  return static_cast<double>(static_cast<uint64_t>(std::max(v, g)) -
                             static_cast<uint64_t>(std::min(v, g)));
}

template <typename T>
std::string Text(T value) {
  return fmt::format("{:.{}g}", static_cast<double>(NumberOf(value)), sizeof(T) == 8 ? 17 : 9);
}
template <std::integral T>
std::string Text(T value) {
  return fmt::format("{}", static_cast<std::conditional_t<sizeof(T) == 1, int, T>>(value));
}

// What of `distance` the relative tolerance does not cover.
template <typename T>
double Needed(double distance, T golden, Tolerance tolerance) {
  const double magnitude = std::abs(static_cast<double>(NumberOf(golden)));
  if (distance == 0) return 0;
  if (!std::isfinite(magnitude)) return std::numeric_limits<double>::infinity();
  return std::max(0.0, distance - tolerance.rtol * magnitude);
}

template <typename T>
T Load(const Tensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
Difference Compare(const Tensor& actual, const Tensor& golden, Tolerance tolerance) {
  Difference result;
  double kept = -1;
  for (int64_t i = 0; i < actual.elements(); ++i) {
    const T v = Load<T>(actual, i);
    const T g = Load<T>(golden, i);
    const double distance = Distance(v, g);
    const double needed = Needed(distance, g, tolerance);
    const bool matches = needed <= tolerance.atol;
    result.needs_atol = std::max(result.needs_atol, needed);
    if (std::isfinite(distance)) result.max_abs = std::max(result.max_abs, distance);
    if (!matches) ++result.differing;
    // An element outside the tolerance stands above every one inside.
    const bool first_outside = !matches && result.matches;
    if (!first_outside && (matches != result.matches || distance <= kept)) continue;
    result.matches = matches;
    result.where = i;
    result.value = Text(v);
    result.golden = Text(g);
    kept = distance;
  }
  return result;
}

Difference CannotCompare(std::string reason) {
  Difference result;
  result.matches = false;
  result.reason = std::move(reason);
  return result;
}

Difference CompareBytes(const Tensor& actual, const Tensor& golden) {
  if (std::memcmp(actual.data(), golden.data(), actual.bytes()) == 0) return {};
  return CannotCompare("the bytes differ");
}

}  // namespace

Difference CompareTensors(const Tensor& actual, const Tensor& golden, Tolerance tolerance) {
  const Result<Tensor> typed = ReinterpretAs(golden, actual.dtype());
  if (!typed.ok() || typed->shape() != actual.shape()) {
    return CannotCompare(fmt::format("the golden is {}", golden.type().ToString()));
  }
  if (!IsFloating(actual.dtype())) tolerance = {};
  return VisitStored(
      actual.dtype(), [&]<typename T>() { return Compare<T>(actual, *typed, tolerance); },
      [&] { return CompareBytes(actual, *typed); });
}

std::string PositionOf(int64_t flat, const Shape& shape) {
  std::vector<int64_t> position(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = std::max<int64_t>(shape[axis], 1);
    position[static_cast<size_t>(axis)] = flat % extent;
    flat /= extent;
  }
  return fmt::format("[{}]", fmt::join(position, ","));
}

}  // namespace npumesh
