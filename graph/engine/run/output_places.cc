#include "graph/engine/run/output_places.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace npumesh {
namespace {

bool Overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto* const a_begin = static_cast<const std::byte*>(a);
  const auto* const b_begin = static_cast<const std::byte*>(b);
  const std::less<> before;
  return before(a_begin, b_begin + b_bytes) && before(b_begin, a_begin + a_bytes);
}

// The step that writes the output first may read the input at the same address.
bool TakesOver(const OutputUse& use, const void* place, uint64_t bytes, const LentRange& input) {
  return input.begin == place && input.bytes == bytes &&
         std::find(use.over.begin(), use.over.end(), input.position) != use.over.end();
}

bool InTheWay(const LentRange& input, const std::vector<InputUse>& uses, const OutputUse& use,
              const void* place, uint64_t bytes) {
  if (!Overlap(input.begin, input.bytes, place, bytes)) return false;
  if (input.position < 0) return true;
  const int last = uses[static_cast<size_t>(input.position)].last;
  return last > use.first || (last == use.first && !TakesOver(use, place, bytes, input));
}

// The copy's source is where another copy writes.
bool IsOverwritten(const OutputCopy& copy, const std::vector<OutputCopy>& copies) {
  return std::any_of(copies.begin(), copies.end(), [&copy](const OutputCopy& other) {
    return &other != &copy && Overlap(copy.from, copy.bytes, other.to, other.bytes);
  });
}

}  // namespace

Status CheckPlaces(const std::vector<TensorType>& types, const std::vector<void*>& places) {
  if (places.size() != types.size()) {
    return Error(Code::kInternal, "the graph has {} outputs, {} got memory", types.size(),
                 places.size());
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].bytes() == 0) continue;
    order.push_back(i);
    if (places[i] != nullptr) continue;
    return Error(Code::kInvalidArgument, "output {}: expected memory for {}, seen none", i,
                 types[i].ToString());
  }
  std::sort(order.begin(), order.end(),
            [&places](size_t a, size_t b) { return std::less<>()(places[a], places[b]); });
  for (size_t k = 1; k < order.size(); ++k) {
    const size_t a = order[k - 1];
    const size_t b = order[k];
    if (!Overlap(places[a], types[a].bytes(), places[b], types[b].bytes())) continue;
    return Error(Code::kInvalidArgument,
                 "outputs {} and {}: their memory overlaps; give each its own", std::min(a, b),
                 std::max(a, b));
  }
  return Status();
}

std::vector<void*> DirectPlaces(const CompiledModel& model, const std::vector<void*>& places,
                                const std::vector<LentRange>& inputs, const DeviceMemory& memory) {
  const PlanUses& uses = model.uses();
  std::vector<void*> direct(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const OutputUse& use = uses.outputs[i];
    const TensorType& type = model.output_types()[i];
    const uint64_t bytes = type.bytes();
    if (!use.movable || !IsAligned(places[i], type.dtype)) continue;
    if (use.remote && !memory.ForCollectives(places[i], bytes)) continue;
    const bool free = std::none_of(inputs.begin(), inputs.end(), [&](const LentRange& input) {
      return InTheWay(input, uses.inputs, use, places[i], bytes);
    });
    if (free) direct[i] = places[i];
  }
  return direct;
}

uint64_t MakeCopies(const std::vector<OutputCopy>& copies) {
  uint64_t bytes = 0;
  std::vector<std::vector<std::byte>> saved(copies.size());
  for (size_t i = 0; copies.size() > 1 && i < copies.size(); ++i) {
    if (!IsOverwritten(copies[i], copies)) continue;
    const auto* const from = static_cast<const std::byte*>(copies[i].from);
    saved[i].assign(from, from + copies[i].bytes);
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    std::memmove(copies[i].to, saved[i].empty() ? copies[i].from : saved[i].data(),
                 copies[i].bytes);
    bytes += copies[i].bytes;
  }
  return bytes;
}

}  // namespace npumesh
