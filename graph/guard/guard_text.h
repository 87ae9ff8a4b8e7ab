// What a guard says of a step.
#ifndef NPUMESH_GRAPH_GUARD_GUARD_TEXT_H_
#define NPUMESH_GRAPH_GUARD_GUARD_TEXT_H_

#include <cstddef>
#include <string>

#include "graph/engine/run/step_observer.h"
#include "graph/guard/guarded_area.h"

namespace npumesh {

// "it wrote 1 byte that is not its own: byte 16 of output 0 (float32[4], 16 bytes), in memory of no
// tensor (a5 became 00)".
std::string DamageText(const StepView& view, const GuardedArea& area, const Damage& damage);

// "it does not write element 3 of output 0 (float32[4], 16 bytes)", or that the element depends on
// what memory held before. `byte` counts in outputs and updated inputs, one after the other;
// `unwritten`: it is what memory held before.
std::string UnwrittenText(const StepView& view, size_t byte, bool unwritten);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_GUARD_GUARD_TEXT_H_
