// PackedWeights: constant weights in the arrangement that kernels read, made once for all plans of
// a model.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PACKED_WEIGHTS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PACKED_WEIGHTS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "graph/ir/tensor.h"

namespace npumesh {

class PackedWeights {
 public:
  // What a kernel made of `weight` and others may still hold; null: nothing. `form` tells
  // everything that decides the packed bytes besides those of the weight.
  std::shared_ptr<const void> Find(const Tensor& weight, const std::string& form) const;
  // Remembers it as long as a kernel holds it.
  void Keep(const Tensor& weight, const std::string& form, std::shared_ptr<const void> packed);

 private:
  using Key = std::pair<const void*, std::string>;  // address of the weight's bytes, form
  // The tensor keeps the address from being used again.
  std::map<Key, std::pair<Tensor, std::weak_ptr<const void>>> packed_;
};

// `bytes` of memory, aligned to 64, not initialised; in large pages where the system gives them:
// it is read at 40 GB/s where small pages allow 25, and filled with few page faults. What is no
// longer held goes back to the system by whole large pages. Thread-safe. Throws std::bad_alloc.
std::shared_ptr<std::byte> AllocatePacked(uint64_t bytes);

// What `make` makes of `weight`: taken from `shared`, which may be null, where that has it already.
template <typename Make>
auto PackOnce(PackedWeights* shared, const Tensor& weight, const std::string& form, Make make) {
  using Pointer = decltype(make());
  if (shared == nullptr) return make();
  auto packed =
      std::static_pointer_cast<typename Pointer::element_type>(shared->Find(weight, form));
  if (packed == nullptr) shared->Keep(weight, form, packed = make());
  return packed;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PACKED_WEIGHTS_H_
