// `npumesh graph`: what a model file holds, and how it would run, as text and as pictures.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "graph/io/weight_places.h"
#include "graph/onnx/onnx_file.h"
#include "graph/onnx/writer.h"
#include "graph/ops/op_library.h"
#include "graph/session/group_table.h"
#include "graph/session/offline_groups.h"
#include "graph/session/runnable.h"
#include "graph/session/session_config.h"
#include "launch/commands/command.h"
#include "launch/ranks/model_choice.h"
#include "launch/ranks/warnings.h"
#include "launch/run/dim_bindings.h"
#include "launch/run/input_source.h"
#include "launch/view/collective_sizes.h"
#include "launch/view/graph_facts.h"
#include "launch/view/graph_picture.h"
#include "launch/view/plan_on_paper.h"
#include "launch/view/value_types.h"
#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"
#include "runtime/base/secure_file.h"

namespace npumesh {
namespace {

using nlohmann::json;

struct GraphOptions {
  std::string file;
  std::string dot;   // empty: not written
  std::string svg;   // empty: not written
  std::string onnx;  // empty: not written
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;
  bool allow_outside = false;  // links of weights may lead out of the package
  bool types = false;          // also of a graph without open dimensions
  // Show the plan instead; the rest is for it.
  bool plan = false;
  bool json = false;
  std::string inputs;  // folder; empty: only types, from `dims`
  std::vector<std::string> dims;
  ConfigSource config;
  int threads = 1;
};

// The rank that the file's number names, of as many as its siblings say.
PaperRank PlaceOf(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename();
  const int number = SplitNumber(name).number.value_or(0);
  const int size = RanksOfExport(file);
  return {number < size ? number : 0, size};
}

struct PlanInputs {
  std::vector<TensorType> types;
  std::vector<Tensor> values;  // empty, or one for each input
};

Result<PlanInputs> InputsFor(const GraphOptions& options, const Model& model, PaperRank place) {
  PlanInputs inputs;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> specs, InputsOf(model));
  if (options.inputs.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const DimBindings dims, DimBindings::Parse(options.dims));
    NPUMESH_ASSIGN_OR_RETURN(inputs.types, dims.Apply(specs));
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
Status ShowOutline(const GraphOptions& options, Model model, const SessionOptions& session,
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
  if (options.json) {
    json array = json::array();
    for (const StageOutline& stage : stages) array.push_back(ToJsonObject(stage));
    const json all = {{"graph", name}, {"stages", stages.size()}, {"outline", array}};
    Print(JsonText(all));
    return Status();
  }
  Show(
      fmt::format("order of {}: inputs have open dimensions, so types are known in part (-1: "
                  "open); --dim gives them values and shows the plan\n",
                  Quotable(name)));
  for (const StageOutline& stage : stages) Show(ToText(stage));
  return Status();
}

Result<Model> LoadShown(const GraphOptions& options, const OpRegistry& registry) {
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadAnyModel(options.file, registry));
  NPUMESH_ASSIGN_OR_RETURN(const Warnings warnings,
                           CheckWeightPlaces(model, {options.allow_outside}));
  PrintWarnings("graph", warnings);
  return model;
}

Status ShowPlan(const GraphOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.op_libraries, options.library_trust));
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadShown(options, *registry));
  SessionOptions session = DefaultSessionOptions();
  if (!options.config.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const Configuration config, LoadConfiguration(options.config));
    NPUMESH_ASSIGN_OR_RETURN(session, SessionOptionsFor(config.compiler));
    NPUMESH_RETURN_IF_ERROR(ApplySystemOptions(config.session, session));
  }
  session.registry = registry.get();
  session.compile.threads = options.threads;
  NPUMESH_ASSIGN_OR_RETURN(session.groups, ReadGroupTable(FolderOf(options.file)));
  const PaperRank place = PlaceOf(options.file);
  if (options.inputs.empty() && options.dims.empty() && HasOpenInputs(model)) {
    return ShowOutline(options, std::move(model), session, place);
  }
  NPUMESH_ASSIGN_OR_RETURN(const PlanInputs inputs, InputsFor(options, model, place));
  NPUMESH_ASSIGN_OR_RETURN(const PlanView plan, PlanOnPaper(std::move(model), inputs.types,
                                                            inputs.values, session, place));
  if (options.json) {
    Print(ToJson(plan));
  } else {
    Show(ToText(plan));
  }
  if (options.svg.empty()) return Status();
  return WriteFile(options.svg, ToSvg(plan), FileKind::kData);
}

Status ShowGraph(const GraphOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.op_libraries, options.library_trust));
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadShown(options, *registry));
  NPUMESH_ASSIGN_OR_RETURN(const GroupTable table, ReadGroupTable(FolderOf(options.file)));
  const PaperRank place = PlaceOf(options.file);
  Status runnable;
  if (options.types) {
    SessionOptions session = DefaultSessionOptions();
    session.registry = registry.get();
    OfflineGroups members = OfflineGroups::BeforeWorld(table, place.rank, place.world_size);
    runnable = CheckRunnable(model, session, members);
  }
  const std::map<NodeId, TensorType> collectives =
      CollectiveInputs(model, *registry, table, place.world_size);
  OfflineGroups groups = OfflineGroups::BeforeWorld(table, place.rank, place.world_size);
  const ValueTypes types = InferTypes(*registry, &groups, model);
  Show(ToText(Examine(model, *registry, collectives)));
  if (types.open_inputs || options.types) Show(ToText(types));
  if (!options.onnx.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, WriteOnnx(model));
    NPUMESH_RETURN_IF_ERROR(WriteFile(options.onnx, bytes, FileKind::kData));
  }
  if (options.dot.empty() && options.svg.empty()) return runnable;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Drawing> drawings, LayOutModel(model, *registry));
  if (!options.dot.empty()) {
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(options.dot, ToDot(drawings.front(), model.graph.name()), FileKind::kData));
  }
  if (!options.svg.empty()) {
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(options.svg, ToSvg(drawings, model.graph.name()), FileKind::kData));
  }
  return runnable;
}

}  // namespace

void AddGraph(CLI::App& app, Action& action) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App* graph = app.add_subcommand("graph", "Show what a model file holds");
  AddFooter(*graph, "",
            {"npumesh graph mp/mp_rank0.air --svg graph.svg",
             "npumesh graph dynamic.air --plan --dim x=4 --svg plan.svg"});
  graph->add_option("file", options->file, "An .air, .pbtxt, ge_proto*.txt or .onnx file")
      ->type_name("FILE")
      ->required();
  AddOpLibraryOption(*graph, options->op_libraries, options->library_trust);
  AddAllowOutsideOption(*graph, options->allow_outside);
  CLI::Option* dot =
      graph->add_option("--dot", options->dot, "Write Graphviz text")->type_name("FILE");
  graph->add_option("--svg", options->svg, "Write a picture for the browser")->type_name("FILE");
  CLI::Option* onnx = graph
                          ->add_option("--onnx", options->onnx,
                                       "Write it as an ONNX model, where every operator has a "
                                       "counterpart")
                          ->type_name("FILE");
  graph->add_flag("--types", options->types,
                  "List what is known of the type of every value, and fail if `run` would refuse "
                  "the graph; a graph with open dimensions lists them anyway");
  CLI::Option* plan =
      graph
          ->add_flag("--plan", options->plan,
                     "Show how it would run: order, streams, lives of tensors, peak memory")
          ->excludes(dot)
          ->excludes(onnx);
  graph->add_flag("--json", options->json, "The plan as JSON")->needs(plan);
  CLI::Option* inputs = graph
                            ->add_option("--inputs", options->inputs,
                                         "Folder with [rank_R/]<data index>.npy that the plan is "
                                         "for; needed where values decide shapes")
                            ->type_name("FOLDER")
                            ->needs(plan);
  graph->add_option("--dim", options->dims, "Open dimensions of inputs, as in `run`")
      ->type_name("NAME=V")
      ->allow_extra_args(false)
      ->needs(plan)
      ->excludes(inputs);
  graph->add_option("--threads", options->threads, "Threads of one rank's kernels")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->needs(plan);
  AddConfigOptions(*graph, options->config);
  for (const char* name : {"--config", "-o"}) graph->get_option(name)->needs(plan);
  graph->callback([options, &action] {
    action = [options] {
      const Status status = options->plan ? ShowPlan(*options) : ShowGraph(*options);
      return status.ok() ? 0 : Fail("graph", status);
    };
  });
}

}  // namespace npumesh
