// Scratch: the memory that a kernel works in, laid out when the operator is planned.
//
//   plan.row = plan.scratch.Take<float>(width);      // while planning
//   float* row = plan.row(args);                     // while running
//
// So no size is written twice, and no place is computed by hand. Each begins at a cache line.
#ifndef NPUMESH_GRAPH_OPS_CORE_SCRATCH_H_
#define NPUMESH_GRAPH_OPS_CORE_SCRATCH_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "graph/ops/core/operator.h"

namespace npumesh {

// A place in the scratch memory of one kernel, with room for elements of T.
template <typename T>
class Workspace {
 public:
  Workspace() = default;  // no place

  T* operator()(const KernelArgs& args) const {
    return reinterpret_cast<T*>(static_cast<char*>(args.scratch) + offset_);
  }

 private:
  friend class Scratch;
  explicit Workspace(uint64_t offset) : offset_(offset) {}

  uint64_t offset_ = 0;
};

class Scratch {
 public:
  // Room for `count` elements; none for a negative count. What does not fit into 62 bits in all is
  // asked for as that many bytes, which no device has.
  template <typename T>
  Workspace<T> Take(int64_t count) {
    const Workspace<T> slice(bytes_);
    const auto elements = static_cast<uint64_t>(std::max<int64_t>(count, 0));
    const uint64_t bytes = elements > kMost / sizeof(T) ? kMost : elements * sizeof(T);
    bytes_ = std::min(kMost, bytes_ + (bytes + kLine - 1) / kLine * kLine);
    return slice;
  }
  Workspace<float> Floats(int64_t count) { return Take<float>(count); }
  // The same for each of several places.
  template <typename T>
  void Take(int64_t count, std::initializer_list<Workspace<T>*> places) {
    for (Workspace<T>* place : places) *place = Take<T>(count);
  }

  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kLine = 64;
  static constexpr uint64_t kMost = uint64_t{1} << 62;

  uint64_t bytes_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_SCRATCH_H_
