// StridedCopy: moves elements between two arrangements of memory. Transpose, slice, broadcast,
// tile, concat and split are all this one copy with other strides.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_COPY_STRIDED_COPY_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_COPY_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npumesh {

// One loop of the copy, outermost first. Strides are in bytes; `from` may be 0 (repeat) or negative
// (backwards).
struct CopyAxis {
  int64_t extent = 0, from = 0, to = 0;
};

// Immutable after construction; `Run` may be called from several threads at once.
class StridedCopy {
 public:
  StridedCopy() = default;  // copies nothing
  // Axes are merged where the memory of both sides allows, the innermost contiguous run becomes one
  // memcpy, and a transposition is walked in blocks that fit the cache.
  // REQUIRES: every extent >= 0, no two positions write the same byte.
  StridedCopy(const std::vector<CopyAxis>& axes, size_t element_bytes);

  // `from` and `to` are the addresses of the element at position 0 of every axis; they must not
  // overlap. Both may be null when there is nothing to copy.
  void Run(const void* from, void* to) const;

 private:
  using Inner = void (*)(const StridedCopy&, const std::byte* from, std::byte* to);

  void Walk(size_t depth, const std::byte* from, std::byte* to) const;
  void ChooseInner();
  template <size_t kItem>
  static void InnerLine(const StridedCopy& copy, const std::byte* from, std::byte* to);
  template <size_t kItem, bool kStaged>
  static void InnerBlock(const StridedCopy& copy, const std::byte* from, std::byte* to);
  static void InnerRuns(const StridedCopy& copy, const std::byte* from, std::byte* to);

  std::vector<CopyAxis> axes_;  // each extent >= 2
  size_t item_ = 0;             // bytes of one contiguous run
  size_t outer_ = 0;            // axes walked one by one; `inner_` does the rest
  Inner inner_ = nullptr;       // null: nothing to copy
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_COPY_STRIDED_COPY_H_
