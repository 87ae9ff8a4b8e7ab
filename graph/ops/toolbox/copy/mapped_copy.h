// MappedCopy: a tensor each of whose dimensions picks positions of the same dimension of another
// tensor. Padding, rolling, reversing and repeating are this one copy with other lists.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_COPY_MAPPED_COPY_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_COPY_MAPPED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/ir/shape.h"

namespace npumesh {

// Position in x, or none: the element is filled.
inline constexpr int64_t kFilled = -1;

// Immutable after construction; `Run` may be called from several threads at once.
class MappedCopy {
 public:
  // What an entry of the lists takes in memory, at most.
  static constexpr size_t kListBytes = 3 * sizeof(int64_t);

  MappedCopy() = default;
  // REQUIRES: sources[d][i] is kFilled or a position of dimension d of x, one list a dimension.
  MappedCopy(const Shape& x, std::vector<std::vector<int64_t>> sources, size_t element_bytes);

  Shape shape() const;  // of the result

  // `fill` is one element; it may be null when nothing is filled.
  void Run(const void* x, const void* fill, void* y) const;

 private:
  void Walk(size_t dim, const std::byte* x, const std::byte* fill, std::byte* y) const;
  void CopyRow(const std::byte* x, const std::byte* fill, std::byte* y) const;

  // Neighbours of x that stay neighbours, or elements that are filled: copied at once.
  struct Stretch {
    int64_t source;
    size_t count;
  };

  std::vector<std::vector<int64_t>> sources_;
  std::vector<Stretch> runs_;  // of the last dimension
  std::vector<int64_t> from_;  // bytes between neighbours in x
  std::vector<int64_t> to_;    // and in y
  size_t element_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_COPY_MAPPED_COPY_H_
