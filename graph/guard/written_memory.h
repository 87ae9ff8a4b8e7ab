// WrittenMemory: what one step may write, and how to run it again on other contents of that memory.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_GUARD_WRITTEN_MEMORY_H_
#define NPUMESH_GRAPH_GUARD_WRITTEN_MEMORY_H_

#include <cstddef>
#include <span>
#include <vector>

#include "graph/engine/plan/step.h"
#include "graph/engine/run/step_observer.h"
#include "graph/guard/guarded_area.h"

namespace npumesh {

// The bytes of an operand; empty for one that is absent.
ByteRange RangeOf(const void* address, const TensorType& type);
// Scratch memory that the kernel of the step asked for.
ByteRange ScratchOf(const StepView& view);

class WrittenMemory {
 public:
  // Before the step: fills outputs that lie where no input lies, so that what it does not write is
  // seen. `again`: the step may run again; keeps the inputs that it overwrites.
  void Prepare(const StepView& view, bool again);

  // Outputs, inputs that are updated, scratch; sorted by address.
  std::span<const ByteRange> ranges() const { return ranges_; }

  // Outputs and updated inputs, one after the other, as they are now.
  std::vector<std::byte> Contents() const;
  void SetContents(std::span<const std::byte> contents) const;

  // The contents after the step has run once more with `content` in its scratch memory and fresh
  // outputs. REQUIRES: Prepare was told so.
  Result<std::vector<std::byte>> RunAgain(const StepView& view, std::byte content) const;

 private:
  struct Kept {
    std::byte* at;
    std::vector<std::byte> bytes;
  };
  void FillFresh(std::byte content) const;

  std::vector<std::span<std::byte>> results_;  // outputs and updated inputs
  std::vector<std::span<std::byte>> fresh_;    // outputs that lie where no input lies
  std::vector<ByteRange> ranges_;
  std::vector<Kept> kept_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_GUARD_WRITTEN_MEMORY_H_
