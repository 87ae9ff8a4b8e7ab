#include "graph/guard/guard_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/engine/plan/compiled_model.h"
#include "graph/guard/written_memory.h"

namespace npumesh {
namespace {

struct Operand {
  std::string name;
  const void* address;
  const TensorType* type;
  ByteRange range() const { return RangeOf(address, *type); }
};

// Outputs, and inputs that the step updates.
std::vector<Operand> ResultsOf(const StepView& view) {
  std::vector<Operand> results;
  const Step& step = view.step;
  for (size_t i = 0; view.args.out != nullptr && i < step.output_types.size(); ++i) {
    results.push_back({fmt::format("output {}", i), view.args.out[i], &step.output_types[i]});
  }
  for (const int slot : step.updates) {
    const auto at = static_cast<size_t>(slot);
    results.push_back({fmt::format("input {}", slot), view.args.in[at], &step.input_types[at]});
  }
  return results;
}

std::string Described(const Operand& operand) {
  return fmt::format("{} ({}, {} bytes)", operand.name, operand.type->ToString(),
                     operand.type->bytes());
}

// How far outside of a range; negative before its begin.
std::ptrdiff_t Outside(const std::byte* at, const ByteRange& range) {
  return at < range.begin ? at - range.begin : at - range.end + 1;
}

// The operand of the step whose bounds the byte is nearest to, in the same area.
std::string NearestOperand(const StepView& view, const GuardedArea& area, const std::byte* at) {
  std::vector<Operand> operands = ResultsOf(view);
  for (size_t slot = 0; slot < view.step.input_types.size(); ++slot) {
    operands.push_back(
        {fmt::format("input {}", slot), view.args.in[slot], &view.step.input_types[slot]});
  }
  std::erase_if(operands, [&](const Operand& operand) {
    return operand.address == nullptr || !operand.range().Overlaps(area.range());
  });
  const auto nearest =
      std::min_element(operands.begin(), operands.end(), [&](const Operand& a, const Operand& b) {
        return std::abs(Outside(at, a.range())) < std::abs(Outside(at, b.range()));
      });
  if (nearest == operands.end()) return "";
  return fmt::format("byte {} of {}", at - nearest->range().begin, Described(*nearest));
}

bool AliveAt(const PlannedTensor& tensor, size_t step) {
  return tensor.first <= static_cast<int>(step) && static_cast<int>(step) <= tensor.last;
}

// The last operand of a step up to this one that covers the byte of the arena: its type says how
// long the tensor there is.
bool IsCovered(const StepView& view, const PlannedTensor& tensor, const std::byte* at) {
  const std::byte* const arena = view.run.memory.arena;
  const ByteRange block{arena + tensor.offset, arena + tensor.offset + tensor.bytes};
  const std::vector<Step>& steps = view.run.model.steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!AliveAt(tensor, i)) continue;
    for (size_t port = 0; port < steps[i].output_types.size(); ++port) {
      const ByteRange range = RangeOf(view.run.args[i].out[port], steps[i].output_types[port]);
      if (range.Overlaps(block) && range.begin <= at && at < range.end) return true;
    }
  }
  return false;
}

std::string ArenaOwner(const StepView& view, const std::byte* at) {
  const auto offset = at - view.run.memory.arena;
  for (const PlannedTensor& tensor : view.run.model.facts().tensors) {
    const auto within = offset - static_cast<std::ptrdiff_t>(tensor.offset);
    const bool inside = within >= 0 && within < static_cast<std::ptrdiff_t>(tensor.bytes);
    if (!inside || !AliveAt(tensor, view.index) || !IsCovered(view, tensor, at)) continue;
    return fmt::format("byte {} of tensor \"{}\"", within, tensor.name);
  }
  return "memory of no tensor";
}

// The node that a constant comes from.
std::string ConstantName(const StepView& view, size_t constant) {
  const Address wanted{Address::Kind::kConstant, constant};
  const Graph& graph = view.run.source.graph;
  for (const Step& step : view.run.model.steps()) {
    for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
      if (!(step.inputs[slot] == wanted) || step.input_ports[slot] < 0) continue;
      const std::optional<Value>& value =
          graph.node(step.node).inputs[static_cast<size_t>(step.input_ports[slot])];
      if (value) return graph.node(value->node).name;
    }
  }
  return "";
}

std::string OwnerOf(const StepView& view, const GuardedArea& area, const std::byte* at) {
  const auto byte = at - area.begin();
  const ByteRange whole = area.range();
  const bool in_margin = byte < 0 || whole.end - at <= static_cast<std::ptrdiff_t>(area.margin());
  switch (area.kind()) {
    case GuardedArea::Kind::kArena:
      return in_margin ? "memory of no tensor" : ArenaOwner(view, at);
    case GuardedArea::Kind::kScratch:
      return fmt::format("byte {} of scratch memory, of which it asked for {}", byte,
                         view.step.kernel->scratch_bytes());
    case GuardedArea::Kind::kInput:
      if (view.run.model.inputs().empty()) return fmt::format("input {}", area.number());
      return fmt::format("byte {} of input \"{}\" of the graph{}", byte,
                         view.run.model.inputs()[area.number()].name,
                         in_margin ? ", outside of it" : "");
    case GuardedArea::Kind::kConstant:
      break;
  }
  return fmt::format("byte {} of constant \"{}\"{}", byte, ConstantName(view, area.number()),
                     in_margin ? ", outside of it" : "");
}

}  // namespace

std::string DamageText(const StepView& view, const GuardedArea& area, const Damage& damage) {
  const std::string nearest = NearestOperand(view, area, damage.first);
  const std::string owner = OwnerOf(view, area, damage.first);
  return fmt::format("it wrote {} byte{} outside of its outputs{} {}{}{} ({:02x} became {:02x})",
                     damage.bytes, damage.bytes == 1 ? "" : "s",
                     damage.bytes == 1 ? ":" : ", the first is", nearest,
                     nearest.empty() ? "" : ", which is ", owner,
                     std::to_integer<int>(damage.expected), std::to_integer<int>(*damage.first));
}

std::string UnwrittenText(const StepView& view, size_t byte, bool unwritten) {
  for (const Operand& result : ResultsOf(view)) {
    const size_t bytes = result.address == nullptr ? 0 : result.type->bytes();
    if (byte >= bytes) {
      byte -= bytes;
      continue;
    }
    const size_t element = byte * 8 / static_cast<size_t>(std::max(BitsOf(result.type->dtype), 1));
    const std::string what = fmt::format("element {} of {}", element, Described(result));
    if (unwritten) return fmt::format("it does not write {}", what);
    return fmt::format(
        "{} depends on what scratch memory or outputs held before the step: it reads there what it "
        "has not written",
        what);
  }
  return "";
}

}  // namespace npumesh
