// BoundAxes: the text of an operator's axes (axes.h), read for the ranks and attributes of one
// node.
//
// Thread-safety: plain values and free functions.
#ifndef NPUMESH_GRAPH_OPS_CORE_BOUND_AXES_H_
#define NPUMESH_GRAPH_OPS_CORE_BOUND_AXES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

// A letter, or one axis of a group.
struct BoundLetter {
  AxisNeed need = AxisNeed::kPlace;
  bool group = false;
  std::string_view positions;  // of kPositions
  int64_t size = 1;            // of tensors that are not broadcast along it
  bool changes = false;        // of kUnchanged: tensors have other sizes
};

// One axis of a tensor. `letter`: among the letters; -1: an axis of size 1, or of other entries.
struct BoundAxis {
  int letter = -1;
  int times = 1;
  bool joined = false;
  std::string_view entries;  // of `#name`
};

struct BoundAxes {
  std::vector<BoundLetter> letters;
  std::vector<std::vector<BoundAxis>> inputs;   // by slot; empty where the text says nothing
  std::vector<std::vector<BoundAxis>> outputs;  // by output
};

// The integers of a port or an attribute; nullopt: they are not known.
using AxisValues = std::function<std::optional<std::vector<int64_t>>(std::string_view name)>;

// Those that the context knows. A flag counts as 0 or 1, a port that is not fed has none.
AxisValues ValuesOf(const OpContext& context);

// REQUIRES: static types of inputs and outputs. Errors, in words that begin with "it" or "its":
// kUnsupported (values that are not known, or for which the text does not hold), kInternal (ranks
// or sizes are not those that the text says).
Result<BoundAxes> BindAxes(const Axes& axes, const OpContext& context, const AxisValues& values);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_BOUND_AXES_H_
