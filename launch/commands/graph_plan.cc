// `npumesh graph --plan`: how a graph would run.
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/session/session_config.h"
#include "launch/commands/graph_show.h"
#include "launch/run/dim_bindings.h"
#include "launch/run/input_source.h"
#include "launch/view/plan_view.h"
#include "launch/view/stage_outline.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

struct PlanInputs {
  std::vector<TensorType> types;
  std::vector<Tensor> values;  // empty, or one for each input
};

Result<PlanInputs> InputsFor(const GraphOptions& options, const Model& model, PaperRank place) {
  PlanInputs inputs;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> specs, InputsOf(model));
  if (options.inputs.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const DimBindings dims, DimBindings::Parse(options.dims));
    NPUMESH_ASSIGN_OR_RETURN(inputs.types, dims.Apply(specs, DimNamesOf(model)));
    return inputs;
  }
  NPUMESH_ASSIGN_OR_RETURN(TensorFolder folder,
                           TensorFolder::ToRead(options.inputs, place.rank, place.world_size));
  NPUMESH_ASSIGN_OR_RETURN(inputs.values, InputsFromFolder(specs, std::move(folder))->Step(0));
  for (const Tensor& tensor : inputs.values) inputs.types.push_back(tensor.type());
  return inputs;
}

bool HasOpenInputs(const Model& model) {
  const Result<std::vector<InputSpec>> inputs = InputsOf(model);
  return inputs.ok() && std::any_of(inputs->begin(), inputs->end(), [](const InputSpec& input) {
           return !input.declared.shape.is_static();
         });
}

// "x, mask".
std::string OpenInputs(const Model& model) {
  std::vector<std::string> names;
  const Result<std::vector<InputSpec>> inputs = InputsOf(model);
  for (const InputSpec& input : inputs.ok() ? *inputs : std::vector<InputSpec>()) {
    if (!input.declared.shape.is_static()) names.push_back(input.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Without values for open dimensions there is no plan, but an order, and types that are known in
// part.
Result<Answer> ShowOutline(const GraphOptions& options, Model model, const SessionOptions& session,
                           PaperRank place) {
  if (!options.svg.empty()) {
    return Error(
        Code::kInvalidArgument,
        "--svg: a picture of the plan needs all dimensions; bind the open ones of {} with --dim",
        OpenInputs(model));
  }
  const std::string name = model.graph.name();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<StageOutline> stages,
                           OutlineOnPaper(std::move(model), session, place));
  Answer answer;
  answer.text = fmt::format(
      "order of {}: inputs have open dimensions, so types are known in part (-1: "
      "open); --dim gives them values and shows the plan\n",
      Printable(name));
  json outline = json::array();
  for (const StageOutline& stage : stages) {
    answer.text += ToText(stage);
    outline.push_back(ToJsonObject(stage));
  }
  answer.report.details = {
      {"graph", name}, {"stages", stages.size()}, {"outline", std::move(outline)}};
  return answer;
}

}  // namespace

Result<Answer> ShowPlan(const GraphOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(ShownGraph shown, LoadShown(options, options.file));
  SessionOptions session = DefaultSessionOptions();
  if (!options.config.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const Configuration config, LoadConfiguration(options.config));
    NPUMESH_ASSIGN_OR_RETURN(session, SessionOptionsFor(config.compiler));
    NPUMESH_RETURN_IF_ERROR(ApplySystemOptions(config.session, session));
  }
  session.registry = shown.registry.get();
  session.compile.threads = options.threads;
  session.groups = shown.groups;
  if (options.inputs.empty() && options.dims.empty() && HasOpenInputs(shown.model)) {
    return ShowOutline(options, std::move(shown.model), session, shown.place);
  }
  NPUMESH_ASSIGN_OR_RETURN(const PlanInputs inputs, InputsFor(options, shown.model, shown.place));
  NPUMESH_ASSIGN_OR_RETURN(const PlanView plan, PlanOnPaper(std::move(shown.model), inputs.types,
                                                            inputs.values, session, shown.place));
  Answer answer{0, ToText(plan), {}};
  answer.report.details = ToJsonObject(plan);
  if (options.svg.empty()) return answer;
  NPUMESH_RETURN_IF_ERROR(WriteFile(options.svg, ToSvg(plan), FileKind::kData));
  answer.next = fmt::format("open {} in a browser", options.svg);
  return answer;
}

}  // namespace npumesh
