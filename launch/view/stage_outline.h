// StageOutline: a stage of a graph whose shapes are not all known yet: its operators in order with
// what is known of their types. What a plan adds, kernels and addresses, needs the open dimensions.
#ifndef NPUMESH_LAUNCH_VIEW_STAGE_OUTLINE_H_
#define NPUMESH_LAUNCH_VIEW_STAGE_OUTLINE_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "graph/engine/analyse/compile_options.h"
#include "graph/passes/rewrite/stages.h"

namespace npumesh {

struct OutlinedStep {
  std::string name;
  std::string type;
  std::vector<std::string> outputs;  // types, open dimensions -1, "?" where nothing is known
  int part = -1;                     // static part; -1: none
};

struct StageOutline {
  int number = 0;
  std::vector<std::string> inputs;  // name and type
  std::vector<OutlinedStep> steps;
  std::vector<OutlinedStep> late;  // what ends the stage
};

// The type of each value of a graph, by "<node>:<port>" (inputs by name alone).
using NamedTypes = std::map<std::string, TensorType>;

// What is known of a model's types; `types`, by position, stand above what inputs declare (empty:
// they hold). Errors as InputsOf and StableOrder.
Result<NamedTypes> TypesByName(Model model, const OpRegistry& registry,
                               const std::vector<TensorType>& types, GroupProvider* groups);

// Errors as ExecutionOrder.
Result<StageOutline> OutlineOf(const Stage& stage, int number, const OpRegistry& registry,
                               const NamedTypes& types, const CompileOptions& options,
                               GroupProvider* groups);

std::string ToText(const StageOutline& stage);
nlohmann::json ToJsonObject(const StageOutline& stage);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_STAGE_OUTLINE_H_
