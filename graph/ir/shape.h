// Shape: the dimensions of a tensor. -1 is an unknown dimension; the single dimension -2 is an
// unknown rank; no dimensions at all is a scalar.
#ifndef NPUMESH_GRAPH_IR_SHAPE_H_
#define NPUMESH_GRAPH_IR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"

namespace npumesh {

inline constexpr int64_t kUnknownDim = -1;
inline constexpr int64_t kUnknownRankDim = -2;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  static Shape UnknownRank() { return Shape({kUnknownRankDim}); }

  const std::vector<int64_t>& dims() const { return dims_; }
  std::vector<int64_t>& mutable_dims() { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  bool operator==(const Shape&) const = default;

  bool has_rank() const { return !(dims_.size() == 1 && dims_[0] == kUnknownRankDim); }
  bool is_static() const;  // every dimension is known

  // Product of the dimensions. REQUIRES: is_static() and Check().ok().
  int64_t elements() const;

  // Errors (kInvalidArgument): a dimension below -2, -2 beside others, or a product that does not
  // fit into 63 bits (unknown dimensions count as 1).
  Status Check() const;

  std::string ToString() const;  // "[2,4]", "[]" for a scalar, "[?]" for unknown rank, "-1" stays

 private:
  std::vector<int64_t> dims_;
};

// Axis in [0, rank): adds `rank` to a negative axis. Error (kInvalidArgument) names the axis and
// rank.
Result<int> NormalizeAxis(int64_t axis, int rank);

// What two shapes broadcast to, by NumPy's rule. Both static. Error names both shapes.
Result<Shape> Broadcast(const Shape& a, const Shape& b);

struct TensorType {
  DataType dtype = DataType::kUndefined;
  Shape shape;

  bool operator==(const TensorType&) const = default;
  // Bytes of the packed elements. REQUIRES: shape is static and fits (Check), dtype has a width.
  uint64_t bytes() const;
  std::string ToString() const;  // "float32[2,4]"
};

}  // namespace npumesh

// In messages both print as ToString does, which is then called only when the message is made.
template <>
struct fmt::formatter<npumesh::Shape> : fmt::formatter<std::string> {
  auto format(const npumesh::Shape& shape, format_context& context) const {
    return fmt::formatter<std::string>::format(shape.ToString(), context);
  }
};
template <>
struct fmt::formatter<npumesh::TensorType> : fmt::formatter<std::string> {
  auto format(const npumesh::TensorType& type, format_context& context) const {
    return fmt::formatter<std::string>::format(type.ToString(), context);
  }
};

#endif  // NPUMESH_GRAPH_IR_SHAPE_H_
