// Plain loops around functions of single elements, for what has no lanes.
//
// A function is a function object without state, so that the loop has it inline.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_EACH_ELEMENT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_EACH_ELEMENT_H_

#include <type_traits>

#include "graph/ops/toolbox/lanes/lane_table.h"

namespace npumesh {

// y = f(x), with the parameters where it takes them.
template <typename T, typename To = T, typename F>
constexpr LaneFn EachOf(F) {
  return [](const void* const* in, void* out, size_t count, const LaneParams& params) {
    const T* x = static_cast<const T*>(in[0]);
    To* y = static_cast<To*>(out);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_invocable_v<F, T>) {
        y[i] = F()(x[i]);
      } else {
        y[i] = F()(x[i], params);
      }
    }
  };
}

// y = f(a, b).
template <typename T, typename To = T, typename F>
constexpr LaneFn PairsOf(F) {
  return [](const void* const* in, void* out, size_t count, const LaneParams& /*params*/) {
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
    To* y = static_cast<To*>(out);
    for (size_t i = 0; i < count; ++i) y[i] = F()(a[i], b[i]);
  };
}

// What an instruction does with values of a type.
struct ElementCall {
  LoopOp op;
  LoopType type;
  LaneFn fn;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_EACH_ELEMENT_H_
