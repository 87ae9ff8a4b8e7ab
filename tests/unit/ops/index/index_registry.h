// The index operators alone.
#ifndef NPUMESH_TESTS_UNIT_OPS_INDEX_INDEX_REGISTRY_H_
#define NPUMESH_TESTS_UNIT_OPS_INDEX_INDEX_REGISTRY_H_

#include "graph/ops/index/family.h"
#include "tests/unit/op_test.h"

namespace npumesh {

// The whole family. Made once, immutable.
inline const OpRegistry& IndexOps() {
  static const OpRegistry registry = [] {
    OpRegistry made;
    RegisterIndexFamily(made);
    return made;
  }();
  return registry;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_INDEX_INDEX_REGISTRY_H_
