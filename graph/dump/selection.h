// Which steps of a run are dumped (dump-format reference 6.4, 7.2 and 8).
//
// Thread-safety: immutable after construction.
#ifndef NPUMESH_GRAPH_DUMP_SELECTION_H_
#define NPUMESH_GRAPH_DUMP_SELECTION_H_

#include <cstdint>
#include <vector>

#include "graph/dump/settings.h"
#include "graph/engine/step_observer.h"

namespace npumesh {

// What is dumped of one step.
struct StepChoice {
  enum class Layout : uint8_t { kNone, kModel, kSingleOperator };
  Layout layout = Layout::kNone;
  bool layer = false;    // watch mode: the watched outputs are dumped after it
  bool watched = false;  // watch mode: a watched step
  std::vector<BlackTensor> black;

  // Tensor `index` of the record, as the dump file counts them, is left out.
  bool Leaves(bool input, size_t index) const;
};

class DumpSelection {
 public:
  // Warns, once for each name, of operators that are asked for but have no step: no such node, or
  // one that moves no data (a view, a folded constant). Names are those of graph nodes.
  DumpSelection(const DumpSettings& settings, const RunView& run);

  const StepChoice& of(size_t step) const { return choices_[step]; }
  // Watch mode: watched steps, by index.
  const std::vector<size_t>& watched() const { return watched_; }

 private:
  void Choose(const OperatorChoice& choice, const RunView& run);
  void Watch(const OperatorChoice& choice, const RunView& run);

  std::vector<StepChoice> choices_;
  std::vector<size_t> watched_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_SELECTION_H_
