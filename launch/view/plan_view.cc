#include "launch/view/plan_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "graph/passes/rewrite/precision.h"
#include "launch/view/graph_facts.h"
#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

// When later steps need not wait for a step: from its own end on, or from the wait that covers it.
void SetEnds(std::vector<PlanStepView>& steps) {
  const auto end = static_cast<int>(steps.size());
  for (int i = 0; i < end; ++i) {
    PlanStepView& step = steps[static_cast<size_t>(i)];
    step.done_by = step.beside ? end : i + 1;
    for (int later = end - 1; step.beside && later > i; --later) {
      if (steps[static_cast<size_t>(later)].wait_for >= i) step.done_by = later;
    }
  }
}

void SetUnfused(const std::vector<UnfusedNode>& nodes, std::vector<PlanStepView>& steps) {
  std::map<std::string_view, PlanStepView*> by_name;
  for (PlanStepView& step : steps) by_name[step.name] = &step;
  for (const UnfusedNode& unfused : nodes) {
    const auto step = by_name.find(unfused.step);
    if (step != by_name.end()) step->second->unfused.push_back(unfused);
  }
}

void SumLives(PlanView& view) {
  for (const PlannedTensor& tensor : view.tensors) {
    for (int i = tensor.first; i <= tensor.last && i < static_cast<int>(view.steps.size()); ++i) {
      view.steps[static_cast<size_t>(i)].live_bytes += tensor.bytes;
    }
  }
}

std::vector<std::string> PrintableNames(const std::vector<std::string>& names) {
  std::vector<std::string> printable;
  for (const std::string& name : names) printable.push_back(Quotable(name));
  return printable;
}

std::string MemoryLines(const PlanView& plan) {
  return fmt::format(
      "  {:<10} {:>10}  activations; at most {} in use at once\n"
      "  {:<10} {:>10}  of the kernel that needs most\n"
      "  {:<10} {:>10}  {} buffers\n"
      "  {:<10} {:>10}  {} tensors\n"
      "  {:<10} {:>10}  {} tensors, kept by their kernels outside of device memory\n",
      "arena", HumanBytes(plan.arena_bytes), HumanBytes(plan.live_bytes), "scratch",
      HumanBytes(plan.scratch_bytes), "inputs", HumanBytes(plan.input_bytes), plan.inputs,
      "constants", HumanBytes(plan.constant_bytes), plan.constants, "packed",
      HumanBytes(plan.packed_bytes), plan.packed);
}

// What was chosen for a step, a line each.
std::string ChoiceLines(const PlanStepView& step) {
  std::string text;
  const auto add = [&](const std::string& line) {
    text += fmt::format("  {:>5}  {:<7} {}\n", "", "", Printable(line));
  };
  if (!step.kernel.name.empty()) add("kernel: " + step.kernel.ToString());
  for (const UnfusedNode& unfused : step.unfused) add(unfused.ToString());
  return text;
}

std::string StepLines(const PlanView& plan) {
  // Fused steps have long types.
  size_t wide = 24;
  for (const PlanStepView& step : plan.steps) wide = std::max(wide, Quotable(step.type).size());
  const bool parts = !plan.parts.empty();
  std::string text = "steps\n";
  text += fmt::format("  {:>5}  {:<7} {:<{}} {:<32} {:>9}  {}{}\n", "#", "stream", "operator", wide,
                      "name", "waits for", "arena in use", parts ? "  static part" : "");
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStepView& step = plan.steps[i];
    text += fmt::format(
        "  {:>5}  {:<7} {:<{}} {:<32} {:>9}  {}\n", i, step.beside ? "comm" : "compute",
        Quotable(step.type), wide, Quotable(step.name),
        step.wait_for < 0 ? "-" : fmt::format("#{}", step.wait_for),
        step.part < 0 ? HumanBytes(step.live_bytes)
                      : fmt::format("{:<12}  {}", HumanBytes(step.live_bytes), step.part));
    text += ChoiceLines(step);
  }
  return text;
}

std::string PartLines(const PlanView& plan) {
  if (plan.parts.empty()) return "";
  std::string text = "static parts, compiled once for all input shapes\n";
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    const PlannedPart& part = plan.parts[i];
    text += fmt::format("  {:>5}  {} operators, {} steps, {} of the arena for themselves\n", i,
                        part.operators, part.steps, HumanBytes(part.bytes));
  }
  return text;
}

std::string StageLines(const PlanView& plan) {
  std::string text;
  for (const OutlinedStep& step : plan.late) {
    text += fmt::format("the stage ends with {} {} {}\n", Quotable(step.type), Quotable(step.name),
                        fmt::join(step.outputs, ", "));
  }
  for (const LaterStage& stage : plan.later) {
    text += ToText(stage.outline);
    if (!stage.plan.empty()) text += ToText(stage.plan[0]);
  }
  return text;
}

json LaterStages(const PlanView& plan) {
  json stages = json::array();
  for (const LaterStage& stage : plan.later) {
    json object = ToJsonObject(stage.outline);
    object["plan"] = stage.plan.empty() ? json() : ToJsonObject(stage.plan[0]);
    stages.push_back(std::move(object));
  }
  return stages;
}

json LateOperators(const PlanView& plan) {
  json operators = json::array();
  for (const OutlinedStep& step : plan.late) {
    operators.push_back({{"name", step.name}, {"type", step.type}, {"outputs", step.outputs}});
  }
  return operators;
}

json Chosen(const KernelChoice& choice) {
  if (choice.name.empty()) return json();
  json refused = json::array();
  for (const KernelChoice::Refusal& refusal : choice.refused) {
    refused.push_back({{"candidate", refusal.candidate}, {"why", refusal.why}});
  }
  return {{"name", choice.name}, {"refused", refused}};
}

json Unfused(const PlanStepView& step) {
  json list = json::array();
  for (const UnfusedNode& unfused : step.unfused) {
    list.push_back({{"pass", unfused.pass}, {"node", unfused.node}, {"why", unfused.why}});
  }
  return list;
}

json Parts(const PlanView& plan) {
  json parts = json::array();
  for (const PlannedPart& part : plan.parts) {
    parts.push_back({{"operators", part.operators}, {"steps", part.steps}, {"bytes", part.bytes}});
  }
  return parts;
}

std::string TensorLines(const PlanView& plan) {
  std::string text = "tensors\n";
  text += fmt::format("  {:>12} {:>12}  {:>11}  {}\n", "from byte", "to", "steps", "values");
  for (const PlannedTensor& tensor : plan.tensors) {
    const bool kept = tensor.last >= static_cast<int>(plan.steps.size());
    const std::string life =
        fmt::format("{}-{}", tensor.first, kept ? "end" : fmt::format("{}", tensor.last));
    text += fmt::format("  {:>12} {:>12}  {:>11}  {}{}{}\n", tensor.offset,
                        tensor.offset + tensor.bytes, life, Quotable(tensor.name),
                        tensor.also.empty() ? "" : " = ",
                        fmt::join(PrintableNames(tensor.also), " = "));
  }
  return text;
}

std::string NameLines(std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return fmt::format("{} ({})\n  {}\n", what, names.size(),
                     fmt::join(PrintableNames(names), "\n  "));
}

std::vector<PrecisionChoice> PrecisionChoices(const Graph& graph) {
  std::vector<PrecisionChoice> choices;
  for (const Node& node : graph.nodes()) {
    std::string note = node.removed ? "" : node.StringAttr(kPrecisionNote, "");
    if (!note.empty()) choices.push_back({node.name, node.type, std::move(note)});
  }
  return choices;
}

std::string PrecisionLines(const PlanView& plan) {
  if (plan.precision.empty()) return "";
  std::string text = fmt::format("types that precision_mode chose ({})\n", plan.precision.size());
  for (const PrecisionChoice& choice : plan.precision) {
    text += fmt::format("  {:<24} {:<32} {}\n", Quotable(choice.type), Quotable(choice.name),
                        Printable(choice.note));
  }
  return text;
}

json Precision(const PlanView& plan) {
  json list = json::array();
  for (const PrecisionChoice& choice : plan.precision) {
    list.push_back({{"name", choice.name}, {"type", choice.type}, {"note", choice.note}});
  }
  return list;
}

}  // namespace

PlanView ViewOf(const CompiledModel& plan, int stages) {
  PlanView view;
  view.graph = plan.source().graph.name();
  view.stages = stages;
  for (const Step& step : plan.steps()) {
    PlanStepView& shown = view.steps.emplace_back();
    shown.name = step.name;
    shown.type = step.type;
    shown.beside = step.beside;
    shown.wait_for = step.wait_for;
    shown.part = step.part;
    shown.kernel = step.kernel->choice();
  }
  SetUnfused(plan.facts().unfused, view.steps);
  view.parts = plan.facts().parts;
  const PlanFacts& facts = plan.facts();
  view.tensors = facts.tensors;
  view.folded = facts.folded;
  view.pruned = facts.pruned;
  view.precision = PrecisionChoices(plan.source().graph);
  view.arena_bytes = plan.arena_bytes();
  view.live_bytes = facts.live_bytes;
  view.scratch_bytes = plan.scratch_bytes();
  view.inputs = plan.input_types().size();
  for (const TensorType& input : plan.input_types()) view.input_bytes += input.bytes();
  for (size_t i = 0; i < plan.constants().size(); ++i) {
    const bool read = plan.constant_is_read(i);
    ++(read ? view.constants : view.packed);
    (read ? view.constant_bytes : view.packed_bytes) += plan.constants()[i].bytes();
  }
  view.peak_bytes = plan.device_bytes();
  SetEnds(view.steps);
  SumLives(view);
  return view;
}

std::string ToText(const PlanView& plan) {
  const auto beside = std::ranges::count_if(plan.steps, &PlanStepView::beside);
  std::string text = fmt::format(
      "plan of {}: {} steps on {}, peak {} of device memory\n", Quotable(plan.graph),
      plan.steps.size(), beside > 0 ? "2 streams" : "1 stream", HumanBytes(plan.peak_bytes));
  if (plan.stages > 1) {
    text += fmt::format(
        "  the first of {} stages; what follows it is below, planned where shapes are known\n",
        plan.stages);
  }
  return text + MemoryLines(plan) + PartLines(plan) + StepLines(plan) + PrecisionLines(plan) +
         TensorLines(plan) + NameLines("folded while compiling", plan.folded) +
         NameLines("pruned, unused", plan.pruned) + StageLines(plan);
}

std::string ToJson(const PlanView& plan) {
  return JsonText(ToJsonObject(plan));
}

json ToJsonObject(const PlanView& plan) {
  json steps = json::array();
  for (const PlanStepView& step : plan.steps) {
    steps.push_back({{"name", step.name},
                     {"type", step.type},
                     {"stream", step.beside ? "communication" : "compute"},
                     {"wait_for", step.wait_for < 0 ? json() : json(step.wait_for)},
                     {"part", step.part < 0 ? json() : json(step.part)},
                     {"done_by", step.done_by},
                     {"live_bytes", step.live_bytes},
                     {"kernel", Chosen(step.kernel)},
                     {"unfused", Unfused(step)}});
  }
  json tensors = json::array();
  for (const PlannedTensor& tensor : plan.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"also", tensor.also},
                       {"offset", tensor.offset},
                       {"bytes", tensor.bytes},
                       {"first", tensor.first},
                       {"last", tensor.last},
                       {"output", tensor.output}});
  }
  const json memory = {{"peak_bytes", plan.peak_bytes}, {"arena_bytes", plan.arena_bytes},
                       {"live_bytes", plan.live_bytes}, {"scratch_bytes", plan.scratch_bytes},
                       {"inputs", plan.inputs},         {"input_bytes", plan.input_bytes},
                       {"constants", plan.constants},   {"constant_bytes", plan.constant_bytes},
                       {"packed", plan.packed},         {"packed_bytes", plan.packed_bytes}};
  return {{"graph", plan.graph},       {"stages", plan.stages},
          {"memory", memory},          {"steps", steps},
          {"tensors", tensors},        {"folded", plan.folded},
          {"pruned", plan.pruned},     {"precision", Precision(plan)},
          {"parts", Parts(plan)},      {"late", LateOperators(plan)},
          {"later", LaterStages(plan)}};
}

}  // namespace npumesh
