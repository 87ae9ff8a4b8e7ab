// The operators of one family alone.
#ifndef NPUMESH_TESTS_UNIT_OP_FAMILY_H_
#define NPUMESH_TESTS_UNIT_OP_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// What `kRegister` registers. Made once, immutable.
template <void (*kRegister)(OpRegistry&)>
const OpRegistry& OpsOf() {
  static const OpRegistry registry = [] {
    OpRegistry made;
    kRegister(made);
    return made;
  }();
  return registry;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_FAMILY_H_
