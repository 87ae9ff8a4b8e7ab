#include "graph/guard/written_memory.h"

#include <algorithm>

namespace npumesh {
namespace {

std::span<std::byte> SpanOf(const void* address, const TensorType& type) {
  if (address == nullptr) return {};
  return {static_cast<std::byte*>(const_cast<void*>(address)), type.bytes()};
}

ByteRange RangeOf(std::span<std::byte> memory) {
  return {memory.data(), memory.data() + memory.size()};
}

}  // namespace

ByteRange RangeOf(const void* address, const TensorType& type) {
  return RangeOf(SpanOf(address, type));
}

ByteRange ScratchOf(const StepView& view) {
  const auto* const scratch = static_cast<const std::byte*>(view.args.scratch);
  if (scratch == nullptr) return {};
  return {scratch, scratch + view.step.kernel->scratch_bytes()};
}

void WrittenMemory::Prepare(const StepView& view, bool again) {
  results_.clear();
  fresh_.clear();
  kept_.clear();
  const Step& step = view.step;
  for (size_t i = 0; view.args.out != nullptr && i < step.output_types.size(); ++i) {
    results_.push_back(SpanOf(view.args.out[i], step.output_types[i]));
  }
  fresh_ = results_;
  for (const int slot : step.updates) {
    const auto at = static_cast<size_t>(slot);
    results_.push_back(SpanOf(view.args.in[at], step.input_types[at]));
  }
  for (size_t slot = 0; slot < step.input_types.size(); ++slot) {
    const std::span<std::byte> input = SpanOf(view.args.in[slot], step.input_types[slot]);
    const auto meets = [&](std::span<std::byte> other) {
      return RangeOf(other).Overlaps(RangeOf(input));
    };
    if (std::none_of(results_.begin(), results_.end(), meets)) continue;
    std::erase_if(fresh_, meets);
    if (again) kept_.push_back({input.data(), {input.begin(), input.end()}});
  }
  ranges_ = {ScratchOf(view)};
  for (const std::span<std::byte> result : results_) ranges_.push_back(RangeOf(result));
  std::sort(ranges_.begin(), ranges_.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  FillFresh(kPoison);
}

void WrittenMemory::FillFresh(std::byte content) const {
  for (const std::span<std::byte> output : fresh_) {
    std::fill(output.begin(), output.end(), content);
  }
}

std::vector<std::byte> WrittenMemory::Contents() const {
  std::vector<std::byte> contents;
  for (const std::span<std::byte> result : results_) {
    contents.insert(contents.end(), result.begin(), result.end());
  }
  return contents;
}

void WrittenMemory::SetContents(std::span<const std::byte> contents) const {
  for (const std::span<std::byte> result : results_) {
    std::copy_n(contents.begin(), result.size(), result.begin());
    contents = contents.subspan(result.size());
  }
}

Result<std::vector<std::byte>> WrittenMemory::RunAgain(const StepView& view,
                                                       std::byte content) const {
  FillFresh(content);
  for (const Kept& kept : kept_) std::copy(kept.bytes.begin(), kept.bytes.end(), kept.at);
  std::fill_n(static_cast<std::byte*>(view.args.scratch), view.step.kernel->scratch_bytes(),
              content);
  NPUMESH_RETURN_IF_ERROR(view.step.kernel->Run(view.args));
  return Contents();
}

}  // namespace npumesh
