#include "graph/compare/measures/distance.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "graph/compare/measures/elements.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

bool IsSmallFloat(DataType dtype) {
  return dtype == DataType::kFloat8E5M2 || dtype == DataType::kFloat8E4M3Fn;
}

bool IsReal(DataType dtype) {
  return IsFloating(dtype) || IsSmallFloat(dtype);
}

// Floating types are comparable with each other, because goldens are often of higher precision.
bool Comparable(DataType x, DataType y) {
  const auto flag = [](DataType t) { return t == DataType::kBool || t == DataType::kUint8; };
  return x == y || (IsReal(x) && IsReal(y)) || (flag(x) && flag(y));
}

// A scalar becomes [1] when it goes through a .npy file of a converted dump.
bool SameShape(const Shape& x, const Shape& y) {
  return x == y || (x.rank() <= 1 && y.rank() <= 1 && x.elements() == 1 && y.elements() == 1);
}

// Order of coarseness: what the digits of both can express.
DataType Coarser(DataType x, DataType y) {
  for (const DataType dtype : {DataType::kFloat8E5M2, DataType::kFloat8E4M3Fn, DataType::kBfloat16,
                               DataType::kFloat16, DataType::kFloat}) {
    if (x == dtype || y == dtype) return dtype;
  }
  return DataType::kDouble;
}

// Bits of a sign-magnitude number as an integer that grows with the number.
template <typename Bits>
int64_t Ordered(Bits bits) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const auto magnitude = static_cast<int64_t>(bits & static_cast<Bits>(~kSign));
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

int64_t Place(double value, DataType dtype) {
  switch (dtype) {
    case DataType::kFloat16:
      return Ordered(Float16(static_cast<float>(value)).bits);
    case DataType::kBfloat16:
      return Ordered(Bfloat16(static_cast<float>(value)).bits);
    case DataType::kDouble:
      return Ordered(std::bit_cast<uint64_t>(value));
    default:
      return Ordered(std::bit_cast<uint32_t>(static_cast<float>(value)));
  }
}

uint64_t UlpBetween(double x, double y, DataType dtype) {
  const int64_t a = Place(x, dtype);
  const int64_t b = Place(y, dtype);
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

double PeakOf(const std::vector<double>& values) {
  double peak = 0;
  for (const double v : values) {
    if (std::isfinite(v)) peak = std::max(peak, std::abs(v));
  }
  return peak;
}

class Meter {
 public:
  // `visit` may be null.
  Meter(const Tensor& x, const Tensor& y, const Allowance& allowance,
        const std::function<void(const DifferingElement&)>& visit)
      : x_(x),
        y_(y),
        allowance_(allowance),
        real_(IsReal(x.dtype()) && IsReal(y.dtype())),
        visit_(visit) {}

  TensorDistance Run() {
    const Result<std::vector<double>> x = ElementsOf(x_);
    const Result<std::vector<double>> y = ElementsOf(y_);
    if (!x.ok() || !y.ok()) return Bytewise();
    const double slack = allowance_.absolute + allowance_.of_peak * PeakOf(*y);
    for (size_t i = 0; i < x->size(); ++i) Visit(static_cast<int64_t>(i), (*x)[i], (*y)[i], slack);
    return distance_;
  }

 private:
  // Types without numbers: any bit may differ.
  TensorDistance Bytewise() {
    if (x_.bytes() > 0 && std::memcmp(x_.data(), y_.data(), x_.bytes()) != 0) Count(0);
    return distance_;
  }

  void Visit(int64_t i, double x, double y, double slack) {
    distance_.nan_x += std::isnan(x);
    distance_.nan_y += std::isnan(y);
    distance_.inf_x += std::isinf(x);
    distance_.inf_y += std::isinf(y);
    if (std::isnan(x) || std::isnan(y)) {
      if (std::isnan(x) != std::isnan(y)) Differs(i, x, y);
      return;
    }
    if (real_) {
      const DataType ruler = Coarser(x_.dtype(), y_.dtype());
      distance_.max_ulp = std::max(distance_.max_ulp, UlpBetween(x, y, ruler));
    }
    if (Equal(i, x, y)) return;
    const double error = std::abs(x - y);
    if (!std::isfinite(error)) return Differs(i, x, y);
    if (error > distance_.max_abs) {
      distance_.max_abs = error;
      distance_.where = i;
    }
    if (!real_ || error > slack + allowance_.relative * std::abs(y)) Differs(i, x, y);
  }

  // 64-bit integers do not fit into a double, so their bits decide.
  bool Equal(int64_t i, double x, double y) const {
    if (real_ || x != y || x_.dtype() != y_.dtype()) return x == y;
    const auto width = static_cast<size_t>(BitsOf(x_.dtype()) / 8);
    const auto offset = static_cast<size_t>(i) * width;
    return std::memcmp(x_.data() + offset, y_.data() + offset, width) == 0;
  }

  void Differs(int64_t i, double x, double y) {
    Count(i);
    if (visit_) visit_({i, x, y});
  }

  void Count(int64_t i) {
    if (distance_.first < 0) distance_.first = i;
    ++distance_.differing;
  }

  const Tensor& x_;
  const Tensor& y_;
  const Allowance& allowance_;
  bool real_;
  const std::function<void(const DifferingElement&)>& visit_;
  TensorDistance distance_;
};

}  // namespace

Allowance ReorderAllowance(DataType dtype) {
  switch (dtype) {
    case DataType::kDouble:
      return {.of_peak = 1e-10};
    case DataType::kFloat:
      return {.of_peak = 1e-4};
    case DataType::kFloat16:
      return {.of_peak = 2e-2};
    case DataType::kBfloat16:
      return {.of_peak = 1e-1};
    default:
      return {};
  }
}

TensorDistance DistanceOf(const Tensor& x, const Tensor& y, const Allowance& allowance) {
  TensorDistance distance;
  if (!Comparable(x.dtype(), y.dtype()) || !SameShape(x.shape(), y.shape())) {
    distance.reason = fmt::format("{} against {}", x.type().ToString(), y.type().ToString());
    return distance;
  }
  const std::function<void(const DifferingElement&)> none;
  return Meter(x, y, allowance, none).Run();
}

TensorDistance DistanceOf(const DumpedStatistics& x, const DumpedStatistics& y,
                          const Allowance& allowance) {
  TensorDistance distance;
  if (!Comparable(x.type.dtype, y.type.dtype) || x.type.shape != y.type.shape) {
    distance.reason = fmt::format("{} against {}", x.type, y.type);
    return distance;
  }
  const double peak = PeakOf({y.max.value_or(0), y.min.value_or(0)});
  std::vector<std::string> differing;
  const auto compare = [&](std::string_view name, std::optional<double> mine,
                           std::optional<double> golden, double peak_of_it) {
    if (!mine || !golden || *mine == *golden || (std::isnan(*mine) && std::isnan(*golden))) return;
    const double slack = allowance.absolute + allowance.relative * std::abs(*golden) +
                         allowance.of_peak * peak_of_it;
    const double error = std::abs(*mine - *golden);
    if (std::isfinite(error) && error <= slack) return;
    differing.push_back(fmt::format("{} {:.6g} against {:.6g}", name, *mine, *golden));
  };
  compare("Max", x.max, y.max, peak);
  compare("Min", x.min, y.min, peak);
  compare("Mean", x.mean, y.mean, peak);
  compare("Norm", x.norm, y.norm, std::abs(y.norm.value_or(0)));
  const bool exact = allowance.absolute == 0 && allowance.relative == 0 && allowance.of_peak == 0;
  const bool checksums = !x.checksum.empty() && !y.checksum.empty() && x.checksum != y.checksum;
  if (differing.empty() && exact && checksums) {
    differing.push_back(fmt::format("checksum {} against {}", x.checksum, y.checksum));
  }
  distance.reason = fmt::format("{}", fmt::join(differing, ", "));
  return distance;
}

void VisitDiffering(const Tensor& x, const Tensor& y, const Allowance& allowance,
                    const std::function<void(const DifferingElement&)>& visit) {
  if (!Comparable(x.dtype(), y.dtype()) || !SameShape(x.shape(), y.shape())) return;
  Meter(x, y, allowance, visit).Run();
}

std::string UlpText(uint64_t ulp) {
  constexpr uint64_t kMost = 65536;
  return ulp > kMost ? fmt::format("more than {} ULP", kMost) : fmt::format("{} ULP", ulp);
}

std::string PositionText(int64_t flat, const Shape& shape) {
  std::vector<int64_t> position(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t dim = std::max<int64_t>(shape[axis], 1);
    position[static_cast<size_t>(axis)] = flat % dim;
    flat /= dim;
  }
  return fmt::format("[{}]", fmt::join(position, ","));
}

}  // namespace npumesh
