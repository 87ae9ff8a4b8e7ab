#include "launch/view/plan_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "graph/passes/rewrite/precision.h"
#include "launch/report/json_parts.h"
#include "launch/report/table.h"
#include "launch/view/graph_facts.h"
#include "runtime/base/text/json_text.h"
#include "runtime/base/text/printable.h"

namespace npumesh {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PrecisionChoice, name, type, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedPart, operators, steps, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedTensor, name, also, offset, bytes, first, last, output)

namespace {

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

json PlanStepJson(const PlanStepView& step) {
  json kernel;
  if (!step.kernel.name.empty()) {
    kernel = {{"name", step.kernel.name},
              {"refused", ListOf(step.kernel.refused, [](const KernelChoice::Refusal& refusal) {
                 return json{{"candidate", refusal.candidate}, {"why", refusal.why}};
               })}};
  }
  const auto unfused = [](const UnfusedNode& one) {
    return json{{"pass", one.pass}, {"node", one.node}, {"why", one.why}};
  };
  return {{"name", step.name},
          {"type", step.type},
          {"stream", step.beside ? "communication" : "compute"},
          {"wait_for", FromZero(step.wait_for)},
          {"part", FromZero(step.part)},
          {"done_by", step.done_by},
          {"live_bytes", step.live_bytes},
          {"kernel", std::move(kernel)},
          {"unfused", ListOf(step.unfused, unfused)}};
}

std::string Bytes(const json& row, std::string_view key) {
  return HumanBytes(row.at(std::string(key)).get<uint64_t>());
}

std::string StepLines(const PlanView& plan) {
  // Fused steps have long types.
  size_t wide = 24;
  for (const PlanStepView& step : plan.steps) wide = std::max(wide, Quotable(step.type).size());
  const bool parts = !plan.parts.empty();
  size_t number = 0;
  const auto stream = [](const json& row, std::string_view key) {
    return row.at(std::string(key)) == "compute" ? "compute" : "comm";
  };
  const auto wait = [](const json& row, std::string_view key) {
    const json& step = MemberOf(row, key);
    return step.is_null() ? "-" : "#" + step.dump();
  };
  const auto part = [](const json& row, std::string_view key) {
    const json& number = MemberOf(row, key);
    return number.is_null() ? "" : number.dump();
  };
  const TableForm table{
      .columns = {{"#", 5, "", [&number](auto&&...) { return std::to_string(number); }},
                  {"stream", -7, "stream", stream},
                  {"operator", -static_cast<int>(wide), "type", AsName},
                  {"name", -32, "name", AsName},
                  {"waits for", 9, "wait_for", wait},
                  {"arena in use", -13, "live_bytes", Bytes},
                  {"static part", 0, "part", part, parts}},
      .before = "  "};
  std::string text = "steps\n" + HeadLine(table);
  for (const PlanStepView& step : plan.steps) {
    text += RowLine(table, PlanStepJson(step)) + ChoiceLines(step);
    ++number;
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

std::string TensorLines(const PlanView& plan) {
  const auto end = [](const json& row, std::string_view) {
    return std::to_string(row.at("offset").get<uint64_t>() + row.at("bytes").get<uint64_t>());
  };
  const auto life = [&plan](const json& row, std::string_view) {
    const bool kept = row.at("last").get<size_t>() >= plan.steps.size();
    return fmt::format("{}-{}", row.at("first").dump(), kept ? "end" : row.at("last").dump());
  };
  const auto values = [](const json& row, std::string_view key) {
    std::string text = AsName(row, key);
    for (const json& also : row.at("also")) text += " = " + Quotable(also.get<std::string>());
    return text;
  };
  const TableForm table{.columns = {{"from byte", 12, "offset"},
                                    {"to", 12, "", end},
                                    {"steps", 12, "", life},
                                    {"values", 0, "name", values}},
                        .before = "  "};
  return "tensors\n" + TableText(table, plan.tensors);
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
  const TableForm table{
      .columns = {{"", -24, "type", AsName}, {"", -32, "name", AsName}, {"", 0, "note"}},
      .before = "  "};
  return fmt::format("types that precision_mode chose ({})\n{}", plan.precision.size(),
                     TableText(table, plan.precision));
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
  const auto late = [](const OutlinedStep& step) {
    return json{{"name", step.name}, {"type", step.type}, {"outputs", step.outputs}};
  };
  const auto later = [](const LaterStage& stage) {
    json object = ToJsonObject(stage.outline);
    object["plan"] = stage.plan.empty() ? json() : ToJsonObject(stage.plan[0]);
    return object;
  };
  const json memory = {{"peak_bytes", plan.peak_bytes}, {"arena_bytes", plan.arena_bytes},
                       {"live_bytes", plan.live_bytes}, {"scratch_bytes", plan.scratch_bytes},
                       {"inputs", plan.inputs},         {"input_bytes", plan.input_bytes},
                       {"constants", plan.constants},   {"constant_bytes", plan.constant_bytes},
                       {"packed", plan.packed},         {"packed_bytes", plan.packed_bytes}};
  return {{"graph", plan.graph},
          {"stages", plan.stages},
          {"memory", memory},
          {"steps", ListOf(plan.steps, PlanStepJson)},
          {"tensors", plan.tensors},
          {"folded", plan.folded},
          {"pruned", plan.pruned},
          {"precision", plan.precision},
          {"parts", plan.parts},
          {"late", ListOf(plan.late, late)},
          {"later", ListOf(plan.later, later)}};
}

}  // namespace npumesh
