#include "graph/compare/measures/pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "graph/compare/measures/elements.h"

namespace npumesh {
namespace {

// Fewer elements than these show a pattern by chance.
constexpr int64_t kFewestElements = 8;
constexpr int64_t kFewestDiffering = 4;
constexpr size_t kFewestValues = 3;
constexpr int64_t kMostElements = int64_t{1} << 25;
constexpr int kMostAxes = 5;  // whose permutations are tried
constexpr int64_t kMostShift = 4;
// Rounding steps of the type that a result may be beside what a pattern says.
constexpr double kSteps = 8;

// The distance of 1 to the next larger value.
double StepOf(DataType dtype) {
  switch (dtype) {
    case DataType::kDouble:
      return std::ldexp(1.0, -52);
    case DataType::kFloat16:
      return std::ldexp(1.0, -10);
    case DataType::kBfloat16:
      return std::ldexp(1.0, -7);
    default:
      return std::ldexp(1.0, -23);
  }
}

bool HasPattern(DataType dtype) {
  return dtype == DataType::kFloat || dtype == DataType::kDouble || dtype == DataType::kFloat16 ||
         dtype == DataType::kBfloat16;
}

// The nearest value with `bits` of precision; far from overflow and from denormal numbers.
double Rounded(double value, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

struct ShorterType {
  DataType dtype;
  int bits;         // of precision
  double smallest;  // normal
  double largest;
};
constexpr ShorterType kShorterTypes[] = {
    {DataType::kFloat16, 11, 6.103515625e-05, 65504},
    {DataType::kBfloat16, 8, 1.1754943508222875e-38, 3.3895313892515355e+38},
};

class Recogniser {
 public:
  Recogniser(std::vector<double> mine, std::vector<double> golden, Shape my_shape,
             Shape golden_shape, double step, const Allowance& allowance)
      : x_(std::move(mine)),
        y_(std::move(golden)),
        my_shape_(std::move(my_shape)),
        golden_shape_(std::move(golden_shape)),
        step_(step),
        allowance_(allowance) {
    for (const double value : y_) peak_ = std::max(peak_, std::abs(value));
  }

  DifferencePattern Find() const {
    if (!Promising()) return {};
    const bool same_shape = my_shape_ == golden_shape_;
    if (same_shape) {
      for (const auto find : {&Recogniser::ZeroPart, &Recogniser::CutType, &Recogniser::Factor}) {
        const DifferencePattern found = (this->*find)();
        if (found.kind != PatternKind::kNone) return found;
      }
    }
    const DifferencePattern permuted = Permuted();
    if (permuted.kind != PatternKind::kNone || !same_shape) return permuted;
    const DifferencePattern shifted = Shifted();
    return shifted.kind != PatternKind::kNone ? shifted : Reordered();
  }

 private:
  int64_t elements() const { return static_cast<int64_t>(x_.size()); }
  double X(int64_t i) const { return x_[static_cast<size_t>(i)]; }
  double Y(int64_t i) const { return y_[static_cast<size_t>(i)]; }

  bool Close(double x, double y) const {
    if (x == y) return true;
    const double allowed = allowance_.absolute + allowance_.of_peak * peak_ +
                           (allowance_.relative + kSteps * step_) * std::abs(y);
    return std::abs(x - y) <= allowed;
  }

  // Enough finite elements, values and differences to tell a pattern from chance.
  bool Promising() const {
    if (elements() < kFewestElements) return false;
    std::set<double> values;
    int64_t differing = 0;
    for (int64_t i = 0; i < elements(); ++i) {
      if (!std::isfinite(X(i)) || !std::isfinite(Y(i))) return false;
      if (values.size() < kFewestValues) values.insert(Y(i));
      if (X(i) != Y(i)) ++differing;
    }
    return values.size() >= kFewestValues && differing >= kFewestDiffering;
  }

  // Elements of one index of `axis` times the axes after it.
  int64_t Inner(int axis) const {
    int64_t inner = 1;
    for (int k = axis + 1; k < my_shape_.rank(); ++k) inner *= my_shape_[k];
    return inner;
  }
  int64_t IndexAt(int64_t flat, int axis) const { return flat / Inner(axis) % my_shape_[axis]; }

  DifferencePattern ZeroPart() const {
    std::vector<int64_t> wrong;
    for (int64_t i = 0; i < elements(); ++i) {
      if (Close(X(i), Y(i))) continue;
      if (X(i) != 0) return {};
      wrong.push_back(i);
    }
    if (static_cast<int64_t>(wrong.size()) < kFewestDiffering) return {};
    for (int axis = 0; axis < my_shape_.rank(); ++axis) {
      const std::optional<DifferencePattern> block = ZeroBlock(axis, wrong);
      if (block) return *block;
    }
    return {};
  }

  std::optional<DifferencePattern> ZeroBlock(int axis, const std::vector<int64_t>& wrong) const {
    DifferencePattern found{PatternKind::kZeroPart};
    found.axis = axis;
    found.first = std::numeric_limits<int64_t>::max();
    found.last = -1;
    for (const int64_t i : wrong) {
      found.first = std::min(found.first, IndexAt(i, axis));
      found.last = std::max(found.last, IndexAt(i, axis));
    }
    int64_t inside = 0;
    for (int64_t i = 0; i < elements(); ++i) {
      const int64_t index = IndexAt(i, axis);
      if (index < found.first || index > found.last) continue;
      if (X(i) != 0) return std::nullopt;
      ++inside;
    }
    // All else could be zero, too, where little is expected to be anything else.
    if (inside < kFewestElements || static_cast<int64_t>(wrong.size()) * 2 < inside) {
      return std::nullopt;
    }
    return found;
  }

  DifferencePattern CutType() const {
    for (const ShorterType& type : kShorterTypes) {
      if (StepOf(type.dtype) <= step_) continue;
      if (IsCut(x_, y_, type)) return CutFrom(type, false);
      if (IsCut(y_, x_, type)) return CutFrom(type, true);
    }
    return {};
  }
  static DifferencePattern CutFrom(const ShorterType& type, bool golden) {
    DifferencePattern found{PatternKind::kCutType};
    found.cut = type.dtype;
    found.golden_cut = golden;
    return found;
  }

  // Every element of `shorter` is one of `longer`, rounded or cut off.
  static bool IsCut(const std::vector<double>& shorter, const std::vector<double>& longer,
                    const ShorterType& type) {
    for (size_t i = 0; i < shorter.size(); ++i) {
      const double size = std::abs(longer[i]);
      if (size > type.largest) return false;
      // Below the normal numbers all steps are equal.
      if (size < type.smallest) {
        if (std::abs(shorter[i] - longer[i]) > std::ldexp(type.smallest, 1 - type.bits)) {
          return false;
        }
        continue;
      }
      const double rounded = Rounded(longer[i], type.bits);
      const double step = size * std::ldexp(1.0, 1 - type.bits);
      const bool fits = shorter[i] == Rounded(shorter[i], type.bits);
      if (shorter[i] != rounded && !(fits && std::abs(shorter[i] - longer[i]) <= step)) {
        return false;
      }
    }
    return true;
  }

  DifferencePattern Factor() const {
    double product = 0;
    double square = 0;
    for (int64_t i = 0; i < elements(); ++i) {
      product += X(i) * Y(i);
      square += Y(i) * Y(i);
    }
    if (product == 0 || square == 0) return {};
    DifferencePattern found{PatternKind::kFactor};
    found.factor = product / square;
    // A factor near 1 is what rounding looks like: it must be farther from 1 than the elements may
    // be from it.
    const double steps = std::min(kSteps, std::abs(found.factor - 1) / (4 * step_));
    if (steps < 1) return {};
    int64_t told = 0;
    for (int64_t i = 0; i < elements(); ++i) {
      const double expected = found.factor * Y(i);
      const double allowed =
          allowance_.absolute + (allowance_.relative + steps * step_) * std::abs(expected);
      if (std::abs(X(i) - expected) > allowed) return {};
      if (Y(i) != 0) ++told;
    }
    return told >= kFewestElements ? found : DifferencePattern();
  }

  DifferencePattern Permuted() const {
    const int rank = golden_shape_.rank();
    if (rank < 2 || rank > kMostAxes || my_shape_.elements() != golden_shape_.elements()) return {};
    std::vector<int> axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    while (std::next_permutation(axes.begin(), axes.end())) {
      if (!IsPermuted(axes)) continue;
      DifferencePattern found{PatternKind::kPermuted};
      found.axes = axes;
      return found;
    }
    return {};
  }

  // In the memory of the tensor lies the expected one with its axes in the order `axes`.
  bool IsPermuted(const std::vector<int>& axes) const {
    std::vector<int64_t> dims, strides;
    std::vector<int64_t> stride(axes.size(), 1);
    for (size_t k = axes.size(); k-- > 1;)
      stride[k - 1] = stride[k] * golden_shape_[static_cast<int>(k)];
    for (const int axis : axes) {
      dims.push_back(golden_shape_[axis]);
      strides.push_back(stride[static_cast<size_t>(axis)]);
    }
    std::vector<int64_t> index(axes.size(), 0);
    int64_t from = 0;
    int64_t moved = 0;  // elements for which the place makes a difference
    for (int64_t i = 0; i < elements(); ++i) {
      if (!Close(X(i), Y(from))) return false;
      if (!Close(Y(i), Y(from))) ++moved;
      for (size_t k = axes.size(); k-- > 0;) {
        from += strides[k];
        if (++index[k] < dims[k]) break;
        from -= strides[k] * dims[k];
        index[k] = 0;
      }
    }
    return moved >= kFewestDiffering;
  }

  DifferencePattern Shifted() const {
    for (int axis = my_shape_.rank(); axis-- > 0;) {
      for (int64_t size = 1; size <= kMostShift; ++size) {
        for (const int64_t by : {size, -size}) {
          if (!IsShifted(axis, by)) continue;
          DifferencePattern found{PatternKind::kShifted};
          found.axis = axis;
          found.by = by;
          return found;
        }
      }
    }
    return {};
  }

  // Where index i of the axis is expected stands index i + by; what comes in at the end is open.
  bool IsShifted(int axis, int64_t by) const {
    const int64_t size = my_shape_[axis];
    if (size < 2 * std::abs(by) + 1) return false;
    const int64_t inner = Inner(axis);
    int64_t compared = 0;
    int64_t moved = 0;
    int64_t wrong_at_end = 0;
    for (int64_t i = 0; i < elements(); ++i) {
      const int64_t source = IndexAt(i, axis) + by;
      if (source < 0 || source >= size) {
        if (!Close(X(i), Y(i))) ++wrong_at_end;
        continue;
      }
      const double expected = Y(i + by * inner);
      if (!Close(X(i), expected)) return false;
      ++compared;
      if (!Close(Y(i), expected)) ++moved;
    }
    // The shift explains most of what differs; the ends alone may be anything.
    return compared >= kFewestElements && moved >= kFewestDiffering && moved >= wrong_at_end;
  }

  DifferencePattern Reordered() const {
    for (int axis = 0; axis < my_shape_.rank(); ++axis) {
      const std::optional<DifferencePattern> found = ReorderedAlong(axis);
      if (found) return *found;
    }
    return {};
  }

  // Slices of the axis in the order of their elements, the first that differs decides.
  std::vector<int64_t> SortedSlices(const std::vector<double>& values, int axis) const {
    const int64_t size = my_shape_[axis];
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return CompareSlices(values, a, values, b, axis, /*exact=*/true) < 0;
    });
    return order;
  }

  // -1, 0 or 1; unless `exact`, which orders, values that are close count as equal.
  int CompareSlices(const std::vector<double>& left, int64_t a, const std::vector<double>& right,
                    int64_t b, int axis, bool exact = false) const {
    const int64_t inner = Inner(axis);
    const int64_t size = my_shape_[axis];
    const int64_t outer = elements() / (inner * size);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const double x = left[static_cast<size_t>((o * size + a) * inner + i)];
        const double y = right[static_cast<size_t>((o * size + b) * inner + i)];
        if (x != y && (exact || !Close(x, y))) return x < y ? -1 : 1;
      }
    }
    return 0;
  }

  std::optional<DifferencePattern> ReorderedAlong(int axis) const {
    const int64_t size = my_shape_[axis];
    if (size < 2 || elements() / size < 2) return std::nullopt;
    const std::vector<int64_t> mine = SortedSlices(x_, axis);
    const std::vector<int64_t> golden = SortedSlices(y_, axis);
    DifferencePattern found{PatternKind::kReordered};
    found.axis = axis;
    for (size_t i = 0; i < mine.size(); ++i) {
      if (CompareSlices(x_, mine[i], y_, golden[i], axis) != 0) return std::nullopt;
      if (mine[i] == golden[i] || CompareSlices(y_, mine[i], y_, golden[i], axis) == 0) continue;
      if (found.count++ == 0) {
        found.first = mine[i];
        found.last = golden[i];
      }
    }
    if (found.count < 2) return std::nullopt;
    return found;
  }

  std::vector<double> x_;  // what is there
  std::vector<double> y_;  // what is expected
  Shape my_shape_;
  Shape golden_shape_;
  double step_;
  const Allowance& allowance_;
  double peak_ = 0;
};

// "rows", "columns" of a matrix, else "axis 2".
std::string AxisText(int axis, const Shape& shape) {
  if (shape.rank() == 2) return axis == 0 ? "rows" : "columns";
  return fmt::format("axis {}", axis);
}

}  // namespace

DifferencePattern PatternOf(const Tensor& mine, const Tensor& golden, const Allowance& allowance) {
  if (!HasPattern(mine.dtype()) || !HasPattern(golden.dtype())) return {};
  const int64_t count = mine.elements();
  if (count != golden.elements() || count < kFewestElements || count > kMostElements) return {};
  Result<std::vector<double>> x = ElementsOf(mine);
  Result<std::vector<double>> y = ElementsOf(golden);
  if (!x.ok() || !y.ok()) return {};
  const double step = std::max(StepOf(mine.dtype()), StepOf(golden.dtype()));
  return Recogniser(*std::move(x), *std::move(y), mine.shape(), golden.shape(), step, allowance)
      .Find();
}

std::string ToText(const DifferencePattern& pattern, const Shape& shape) {
  switch (pattern.kind) {
    case PatternKind::kNone:
      return "";
    case PatternKind::kZeroPart:
      if (pattern.first == 0 && pattern.last + 1 == shape[pattern.axis]) {
        return "all elements are zero";
      }
      return fmt::format("{} to {} of axis {} are zero, all else is right", pattern.first,
                         pattern.last, pattern.axis);
    case PatternKind::kCutType:
      return fmt::format("{} rounded to {}, all else is right",
                         pattern.golden_cut ? "what is expected was" : "every element was",
                         Name(pattern.cut));
    case PatternKind::kFactor:
      if (std::abs(pattern.factor + 1) < 1e-6) return "every element has the other sign";
      return fmt::format("a constant factor: every element is {:.6g} times what is expected",
                         pattern.factor);
    case PatternKind::kPermuted:
      return fmt::format("transposed: it holds what is expected with its axes in the order [{}]",
                         fmt::join(pattern.axes, ","));
    case PatternKind::kShifted:
      return fmt::format("shifted by {} along axis {}: at index {} stands what is expected at {}",
                         std::abs(pattern.by), pattern.axis, pattern.by > 0 ? 0 : -pattern.by,
                         pattern.by > 0 ? pattern.by : 0);
    case PatternKind::kReordered:
      return fmt::format(
          "the order of {} is another one: {} holds what is expected at {}; {} of "
          "{} are displaced",
          AxisText(pattern.axis, shape), pattern.first, pattern.last, pattern.count,
          shape[pattern.axis]);
  }
  return "";
}

}  // namespace npumesh
