// The reduce operators alone.
#ifndef NPUMESH_TESTS_UNIT_OPS_REDUCE_REDUCE_REGISTRY_H_
#define NPUMESH_TESTS_UNIT_OPS_REDUCE_REDUCE_REGISTRY_H_

#include "graph/ops/reduce/family.h"
#include "tests/unit/op_family.h"
#include "tests/unit/op_test.h"

namespace npumesh {

inline const OpRegistry& ReduceOps() {
  return OpsOf<RegisterReduceFamily>();
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_REDUCE_REDUCE_REGISTRY_H_
