#include "graph/guard/memory_guard.h"

#include <algorithm>
#include <set>

#include "graph/engine/plan/compiled_model.h"
#include "graph/guard/guard_text.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {
namespace {

// Another content of memory than kPoison: small positive numbers in all types.
constexpr std::byte kOther{0x3C};

std::span<std::byte> Memory(const void* address, uint64_t bytes) {
  return {static_cast<std::byte*>(const_cast<void*>(address)), bytes};
}

// Calls visit(address, pointer) for each operand of the run.
template <typename Visit>
void ForEachOperand(const RunView& run, Visit visit) {
  for (size_t i = 0; i < run.args.size(); ++i) {
    const Step& step = run.model.steps()[i];
    for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
      visit(step.inputs[slot], run.args[i].in[slot]);
    }
    for (size_t port = 0; port < step.outputs.size(); ++port) {
      visit(step.outputs[port], run.args[i].out[port]);
    }
  }
}

Status Found(const StepView& view, const std::string& text) {
  return AtNode(
      view.step.name, view.step.type, view.step.origin,
      Error(Code::kCorrupt, "step {} of {}: {}", view.index, view.run.model.steps().size(), text));
}

}  // namespace

Status MemoryGuard::BeforeRun(const RunView& run) {
  areas_.clear();
  if (run.memory.arena != nullptr) {
    AddAreas(run);
    return Status();
  }
  const Step& late = run.model.steps()[0];
  for (size_t slot = 0; slot < late.input_types.size(); ++slot) {
    const void* const input = run.args[0].in[slot];
    if (input == nullptr) continue;
    areas_.emplace_back(GuardedArea::Kind::kInput, slot,
                        Memory(input, late.input_types[slot].bytes()), 0);
  }
  return Status();
}

void MemoryGuard::AddAreas(const RunView& run) {
  using Kind = GuardedArea::Kind;
  const uint64_t margin = run.memory.margin;
  const CompiledModel& model = run.model;
  areas_.emplace_back(Kind::kArena, 0, Memory(run.memory.arena, model.arena_bytes()), margin);
  areas_.back().Fill(kCanary);
  if (!run.args.empty()) {
    areas_.emplace_back(Kind::kScratch, 0, Memory(run.args[0].scratch, model.scratch_bytes()),
                        margin);
    areas_.back().Fill(kPoison);
  }
  std::set<std::pair<Address::Kind, uint64_t>> known;
  ForEachOperand(run, [&](const Address& address, const void* at) {
    const uint64_t number = address.offset;
    if (address.kind == Address::Kind::kInput && known.emplace(address.kind, number).second) {
      const bool placed = run.memory.placed_inputs[number] != nullptr;
      areas_.emplace_back(Kind::kInput, number, Memory(at, model.input_types()[number].bytes()),
                          placed ? 0 : margin);
    }
    if (address.kind == Address::Kind::kConstant && model.constant_is_read(number) &&
        known.emplace(address.kind, number).second) {
      const Tensor& constant = model.constants()[number];
      areas_.emplace_back(Kind::kConstant, number, Memory(at, constant.bytes()), margin,
                          constant.data());
    }
  });
}

bool MemoryGuard::Trusts(const StepView& view) const {
  return operators_.Find(view.step.type) == nullptr || trusted_.Find(view.step.type) != nullptr;
}

bool MemoryGuard::MayRepeat(const StepView& view) const {
  return !Trusts(view) && view.args.out != nullptr && !view.step.collective &&
         operators_.Find(view.step.type)->pure;
}

Status MemoryGuard::BeforeStep(const StepView& view) {
  written_.Prepare(view, MayRepeat(view));
  return Status();
}

Status MemoryGuard::AfterStep(const StepView& view) {
  ++steps_;
  NPUMESH_RETURN_IF_ERROR(CheckMemory(view));
  if (!MayRepeat(view)) return Status();
  ++repeated_;
  NPUMESH_RETURN_IF_ERROR(CheckRepeated(view));
  return CheckMemory(view);
}

Status MemoryGuard::CheckMemory(const StepView& view) {
  for (GuardedArea& area : areas_) {
    const bool constant = area.kind() == GuardedArea::Kind::kConstant;
    if (constant && Trusts(view)) continue;
    if (const std::optional<Damage> damage = area.Find(written_.ranges())) {
      return Found(view, DamageText(view, area, *damage));
    }
    if (constant) continue;
    if (area.kind() == GuardedArea::Kind::kScratch) {
      area.Restore(ScratchOf(view));
    } else {
      area.Accept(written_.ranges());
    }
  }
  return Status();
}

Status MemoryGuard::CheckRepeated(const StepView& view) {
  const std::vector<std::byte> first = written_.Contents();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::byte> other, written_.RunAgain(view, kOther));
  const auto [at, there] = std::mismatch(first.begin(), first.end(), other.begin());
  if (at != first.end()) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::byte> same, written_.RunAgain(view, kPoison));
    const bool steady = same == first;
    const auto byte = static_cast<size_t>(at - first.begin());
    const bool unwritten = *at == kPoison && *there == kOther;
    return Found(view, steady ? UnwrittenText(view, byte, unwritten)
                              : "it gives other outputs when it runs again with the same inputs; "
                                "an operator for which that is right says pure = false");
  }
  written_.SetContents(first);
  return Status();
}

}  // namespace npumesh
