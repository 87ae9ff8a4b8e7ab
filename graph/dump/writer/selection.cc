#include "graph/dump/writer/selection.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "graph/engine/plan/compiled_model.h"
#include "runtime/base/advice.h"

namespace npumesh {
namespace {

using Names = std::unordered_set<std::string_view>;

Names SetOf(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

// The types of collectives begin with Hcom.
bool IsCollective(const Step& step) {
  return step.type.starts_with("Hcom");
}

// The engine's own copy of a constant: no operator of the graph.
bool IsEngineCopy(const RunView& run, const Step& step) {
  return step.name != run.source.graph.node(step.node).name;
}

// "resnet" of ".../resnet.air".
std::string_view StemOf(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.rfind('.'));
}

bool IsModel(const Model& model, const std::string& name) {
  return name.empty() || name == model.name || name == model.graph.name() ||
         name == StemOf(model.path);
}

// Steps between `begin` and `end`, both included, in the order of execution.
void MarkRange(const OperatorRange& range, const RunView& run, OpenRanges* open,
               std::vector<bool>* marks) {
  bool inside = open->erase(&range) > 0;
  for (size_t i = 0; i < marks->size(); ++i) {
    const std::string& name = run.model.steps()[i].name;
    inside = inside || name == range.begin;
    if (inside) (*marks)[i] = true;
    if (name == range.end) inside = false;
  }
  if (inside) open->insert(&range);
}

// False: the operator is black as a whole.
bool ApplyBlacklist(const std::vector<BlackEntry>& entries, const std::string& name,
                    StepChoice* choice) {
  for (const BlackEntry& entry : entries) {
    if (entry.name != name) continue;
    if (entry.tensors.empty()) return false;
    choice->black.insert(choice->black.end(), entry.tensors.begin(), entry.tensors.end());
  }
  return true;
}

}  // namespace

bool StepChoice::Leaves(bool input, size_t index) const {
  return std::find(black.begin(), black.end(), BlackTensor{input, static_cast<int>(index)}) !=
         black.end();
}

DumpSelection::DumpSelection(const DumpSettings& settings, const RunView& run, OpenRanges* open) {
  using Layout = StepChoice::Layout;
  choices_.resize(run.model.steps().size());
  const bool all = settings.overflow || (settings.models && settings.choices.empty());
  for (StepChoice& choice : choices_) {
    if (all) choice.layout = Layout::kModel;
  }
  for (const OperatorChoice& choice : settings.choices) {
    if (!IsModel(run.source, choice.model_name)) continue;
    settings.watch ? Watch(choice, run) : Choose(choice, run, open);
  }
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (settings.single_operators && choices_[i].layout == Layout::kNone) {
      choices_[i].layout = Layout::kSingleOperator;
    }
    if (IsEngineCopy(run, run.model.steps()[i])) choices_[i] = StepChoice();
    if (choices_[i].watched) watched_.push_back(i);
  }
}

void DumpSelection::Choose(const OperatorChoice& choice, const RunView& run, OpenRanges* open) {
  const Names layers = SetOf(choice.layers);
  std::vector<bool> marks(choices_.size(), layers.empty() && choice.ranges.empty());
  for (const OperatorRange& range : choice.ranges) MarkRange(range, run, open, &marks);
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Step& step = run.model.steps()[i];
    if (!marks[i] && layers.count(step.name) == 0) continue;
    StepChoice chosen;
    chosen.layout = StepChoice::Layout::kModel;
    if (!ApplyBlacklist(choice.type_blacklist, step.type, &chosen)) continue;
    if (!ApplyBlacklist(choice.name_blacklist, step.name, &chosen)) continue;
    choices_[i] = std::move(chosen);
  }
}

// A watched operator, and a collective, dump nothing but themselves.
void DumpSelection::Watch(const OperatorChoice& choice, const RunView& run) {
  const Names layers = SetOf(choice.layers);
  const Names watched = SetOf(choice.watched);
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Step& step = run.model.steps()[i];
    if (watched.count(step.name) > 0) {
      choices_[i].watched = true;
      choices_[i].layout = StepChoice::Layout::kModel;
    } else if ((layers.empty() || layers.count(step.name) > 0) && !IsCollective(step)) {
      choices_[i].layer = true;
    }
  }
}

void MissingOperators::Note(const DumpSettings& settings, const RunView& run) {
  if (graph_.empty()) graph_ = run.source.graph.name();
  for (const OperatorChoice& choice : settings.choices) {
    if (!IsModel(run.source, choice.model_name)) continue;
    Add("dump layer", choice.layers, run);
    Add("watcher node", choice.watched, run);
  }
}

void MissingOperators::Add(std::string_view key, const std::vector<std::string>& names,
                           const RunView& run) {
  const std::vector<Step>& steps = run.model.steps();
  for (const std::string& name : names) {
    Sight& sight = names_.try_emplace(name, Sight{key}).first->second;
    sight.node = sight.node || run.source.graph.Find(name) != kNoNode;
    sight.step = sight.step || std::any_of(steps.begin(), steps.end(),
                                           [&](const Step& step) { return step.name == name; });
  }
}

void MissingOperators::Warn() const {
  for (const auto& [name, sight] : names_) {
    if (sight.step) continue;
    Advise(fmt::format("{} \"{}\" is not dumped: graph \"{}\" {}", sight.key, name, graph_,
                       sight.node ? "runs nothing for it (an input, a view or a folded constant)"
                                  : "has no such operator"));
  }
}

}  // namespace npumesh
