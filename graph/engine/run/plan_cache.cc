#include "graph/engine/run/plan_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

using Clock = std::chrono::steady_clock;

// Where the inputs lie that need no buffer; null: the others.
std::vector<void*> LentMemory(const std::vector<PlanOperand>& inputs) {
  std::vector<void*> memory;
  for (const PlanOperand& input : inputs) {
    const bool lent = input.lending != Lending::kNone;
    memory.push_back(lent ? const_cast<void*>(input.data) : nullptr);
  }
  return memory;
}

void AppendBytes(std::string& text, const void* data, size_t bytes) {
  text.append(static_cast<const char*>(data), bytes);
}

}  // namespace

PlanCache::PlanCache(const Model& model, const PlanSettings& settings, DevicePool& pool,
                     std::vector<int> slots, ProgramStats& stats)
    : model_(model),
      settings_(settings),
      pool_(pool),
      slots_(std::move(slots)),
      stats_(stats),
      compiling_(ProfiledTask{.name = model.graph.name(), .type = "Compile"}),
      shape_deciding_(
          ShapeDecidingInputs(model, *settings.registry, settings.compile.dead_nodes())),
      fused_parts_(settings.compile.static_ops_limit),
      plain_parts_(settings.compile.static_ops_limit) {}

Result<PlanCache::Plan*> PlanCache::For(const std::vector<PlanOperand>& inputs, bool observed) {
  const bool fuses = settings_.compile.fuses != nullptr && !observed;
  const std::string signature = Signature(inputs, fuses);
  auto known = plans_.find(signature);
  if (known == plans_.end()) {
    NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, Compile(inputs, fuses));
    if (plans_.size() >= std::max<size_t>(settings_.max_plans, 1)) ForgetOldest();
    known = plans_.emplace(signature, std::move(plan)).first;
  }
  known->second->last_use = ++clock_;
  return known->second.get();
}

bool PlanCache::TakesValue(const std::vector<PlanOperand>& inputs, size_t position) const {
  const PlanOperand& input = inputs[position];
  return shape_deciding_[position] && input.data != nullptr &&
         input.type.bytes() <= kMaxShapeValueBytes;
}

std::string PlanCache::Signature(const std::vector<PlanOperand>& inputs, bool fuses) const {
  std::string signature(1, fuses ? 'f' : ' ');
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t>& dims = inputs[i].type.shape.dims();
    const auto head = static_cast<int64_t>(inputs[i].type.dtype);
    const auto rank = static_cast<int64_t>(dims.size());
    AppendBytes(signature, &head, sizeof head);
    AppendBytes(signature, &rank, sizeof rank);
    AppendBytes(signature, dims.data(), dims.size() * sizeof(int64_t));
    if (TakesValue(inputs, i)) AppendBytes(signature, inputs[i].data, inputs[i].type.bytes());
  }
  return signature;
}

Result<std::unique_ptr<PlanCache::Plan>> PlanCache::Compile(const std::vector<PlanOperand>& inputs,
                                                            bool fuses) {
  const Clock::time_point start = Clock::now();
  const ScopedSpan span(settings_.compile.profiler, SpanKind::kCompile, compiling_);
  std::vector<TensorType> types;
  std::vector<Tensor> values(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.push_back(inputs[i].type);
    if (!TakesValue(inputs, i)) continue;
    values[i] = Tensor::Allocate(inputs[i].type);  // the plan must not share the caller's bytes
    std::memcpy(values[i].mutable_data(), inputs[i].data, values[i].bytes());
  }
  CompileOptions options = settings_.compile;
  if (!fuses) options.fuses = nullptr;
  options.static_parts = fuses ? &fused_parts_ : &plain_parts_;
  auto plan = std::make_unique<Plan>();
  NPUMESH_ASSIGN_OR_RETURN(plan->model, CompiledModel::Compile(model_, *settings_.registry, types,
                                                               values, settings_.groups, options));
  NPUMESH_ASSIGN_OR_RETURN(plan->executor,
                           Executor::Create(*plan->model, pool_, slots_, settings_.compile.profiler,
                                            LentMemory(inputs)));
  if (settings_.compile.weights != nullptr) settings_.compile.weights->PlanMade();
  TakeStats(*plan->model);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  stats_.compile_seconds += seconds;
  NPUMESH_INFO("plan {} of graph \"{}\" is compiled: {} steps in {:.3f} s", stats_.plans,
               model_.graph.name(), plan->model->steps().size(), seconds);
  return plan;
}

void PlanCache::TakeStats(const CompiledModel& model) {
  const PlanFacts& facts = model.facts();
  ++stats_.plans;
  stats_.steps_compiled += facts.steps_compiled;
  stats_.steps_shared += model.steps().size() - facts.steps_compiled;
  for (const PlannedPart& part : facts.parts) stats_.static_parts += part.compiled_now ? 1 : 0;
}

void PlanCache::ForgetOldest() {
  const auto oldest = std::min_element(
      plans_.begin(), plans_.end(),
      [](const auto& a, const auto& b) { return a.second->last_use < b.second->last_use; });
  plans_.erase(oldest);
  pool_.ForgetUnusedConstants();
}

}  // namespace npumesh
