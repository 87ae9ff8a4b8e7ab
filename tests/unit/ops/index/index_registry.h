// The index operators alone.
#ifndef NPUMESH_TESTS_UNIT_OPS_INDEX_INDEX_REGISTRY_H_
#define NPUMESH_TESTS_UNIT_OPS_INDEX_INDEX_REGISTRY_H_

#include "graph/ops/index/family.h"
#include "tests/unit/op_family.h"
#include "tests/unit/op_test.h"

namespace npumesh {

inline const OpRegistry& IndexOps() {
  return OpsOf<RegisterIndexFamily>();
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_INDEX_INDEX_REGISTRY_H_
