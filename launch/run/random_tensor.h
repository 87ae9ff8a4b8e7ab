// Random input tensors: the same everywhere and always.
//
// Element i is a function of the key and i alone (SplitMix64 over a counter), so that values do not
// depend on thread count, shape of other inputs or the standard library.
#ifndef NPUMESH_LAUNCH_RUN_RANDOM_TENSOR_H_
#define NPUMESH_LAUNCH_RUN_RANDOM_TENSOR_H_

#include <cstdint>

#include "graph/ir/tensor.h"

namespace npumesh {

struct RandomKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t input = 0;  // data index
  uint64_t rank = 0;   // 0 for all ranks when they shall get equal values
};

// Integers, both ends included.
struct IntRange {
  int64_t low = 0;
  int64_t high = 7;
};

// Floating types: multiples of 2^-7 in [-1, 1), which every one of them holds exactly; integers:
// those of `range`, which the dtype holds, by default 0 to 7, which most tables can be indexed
// with; bool: 0 or 1. REQUIRES: a static, checked shape. Error: kUnsupported names any other dtype.
Result<Tensor> RandomTensor(const TensorType& type, const RandomKey& key, IntRange range = {});

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_RANDOM_TENSOR_H_
