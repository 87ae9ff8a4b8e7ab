// Which steps of a run are dumped.
//
// Thread-safety: immutable after construction.
#ifndef NPUMESH_GRAPH_DUMP_WRITER_SELECTION_H_
#define NPUMESH_GRAPH_DUMP_WRITER_SELECTION_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dump/options/settings.h"
#include "graph/engine/run/step_observer.h"

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

// Ranges that have begun in a plan and end in a later one of the same iteration.
using OpenRanges = std::set<const OperatorRange*>;

class DumpSelection {
 public:
  // Names are those of graph nodes. `open` is what the plan before left open, and becomes what this
  // one leaves open.
  DumpSelection(const DumpSettings& settings, const RunView& run, OpenRanges* open);

  const StepChoice& of(size_t step) const { return choices_[step]; }
  // Watch mode: watched steps, by index.
  const std::vector<size_t>& watched() const { return watched_; }

 private:
  void Choose(const OperatorChoice& choice, const RunView& run, OpenRanges* open);
  void Watch(const OperatorChoice& choice, const RunView& run);

  std::vector<StepChoice> choices_;
  std::vector<size_t> watched_;
};

// Operators that are asked for by name and have no step anywhere.
class MissingOperators {
 public:
  // What one plan has of the names that `settings` have.
  void Note(const DumpSettings& settings, const RunView& run);
  // Warns, once for each name, of those that no plan has: no such node, or one that moves no data
  // (a view, a folded constant).
  void Warn() const;

 private:
  void Add(std::string_view key, const std::vector<std::string>& names, const RunView& run);

  struct Sight {
    std::string_view key;
    bool node = false;  // a graph has it
    bool step = false;  // a plan runs it
  };
  std::string graph_;  // of the first plan
  std::map<std::string, Sight, std::less<>> names_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_SELECTION_H_
