// The reduce operators alone.
#ifndef NPUMESH_TESTS_UNIT_OPS_REDUCE_REDUCE_REGISTRY_H_
#define NPUMESH_TESTS_UNIT_OPS_REDUCE_REDUCE_REGISTRY_H_

#include "graph/ops/reduce/family.h"
#include "tests/unit/op_test.h"

namespace npumesh {

// The whole family. Made once, immutable.
inline const OpRegistry& ReduceOps() {
  static const OpRegistry registry = [] {
    OpRegistry made;
    RegisterReduceFamily(made);
    return made;
  }();
  return registry;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_REDUCE_REDUCE_REGISTRY_H_
