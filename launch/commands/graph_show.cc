// `npumesh graph`: what a model file holds, as text, JSON, pictures and a page.
#include "launch/commands/graph_show.h"

#include <filesystem>

#include "graph/io/weight_places.h"
#include "graph/onnx/onnx_file.h"
#include "graph/onnx/writer.h"
#include "graph/session/group_table.h"
#include "graph/session/offline_groups.h"
#include "graph/session/runnable.h"
#include "graph/session/session_config.h"
#include "launch/commands/versions.h"
#include "launch/ranks/model_choice.h"
#include "launch/ranks/warnings.h"
#include "launch/view/collective_sizes.h"
#include "launch/view/graph_diff.h"
#include "launch/view/graph_facts.h"
#include "launch/view/graph_page.h"
#include "launch/view/graph_picture.h"
#include "launch/view/node_detail.h"
#include "launch/view/value_types.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

// The rank that the file's number names, of as many as its siblings say.
PaperRank PlaceOf(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename();
  const int number = SplitNumber(name).number.value_or(0);
  const int size = RanksOfExport(file);
  return {number < size ? number : 0, size};
}

Status CheckFile(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_directory(file, error)) return Status();
  const Result<std::string> first = ChooseModelFile(file, 0, 1);
  return Error(Code::kInvalidArgument, "{} is a folder; name one graph{}", file,
               first.ok() ? ", such as " + *first : "");
}

// Types that are known stand in the descriptors from here on.
ValueTypes Infer(ShownGraph& shown) {
  OfflineGroups groups =
      OfflineGroups::BeforeWorld(shown.groups, shown.place.rank, shown.place.world_size);
  return InferTypes(*shown.registry, &groups, shown.model);
}

Status CheckRuns(const ShownGraph& shown) {
  SessionOptions session = DefaultSessionOptions();
  session.registry = shown.registry.get();
  OfflineGroups members =
      OfflineGroups::BeforeWorld(shown.groups, shown.place.rank, shown.place.world_size);
  return CheckRunnable(shown.model, session, members);
}

Status WritePictures(const GraphOptions& options, const ShownGraph& shown) {
  if (options.dot.empty() && options.svg.empty()) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Drawing> drawings,
                           LayOutModel(shown.model, *shown.registry, !options.whole));
  const std::string& name = shown.model.graph.name();
  if (!options.dot.empty()) {
    NPUMESH_RETURN_IF_ERROR(WriteFile(options.dot, ToDot(drawings.front(), name), FileKind::kData));
  }
  if (options.svg.empty()) return Status();
  return WriteFile(options.svg, ToSvg(drawings, name), FileKind::kData);
}

// What to do with the files that were written, or with a difference.
std::string NextOf(const GraphOptions& options) {
  if (!options.html.empty()) return fmt::format("open {} in a browser", options.html);
  if (!options.onnx.empty()) return fmt::format("npumesh run {}", options.onnx);
  if (!options.svg.empty()) return fmt::format("open {} in a browser", options.svg);
  return options.dot.empty() ? "" : fmt::format("dot -Tsvg {} -o graph.svg", options.dot);
}

Status WriteFiles(const GraphOptions& options, const ShownGraph& shown) {
  if (!options.onnx.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, WriteOnnx(shown.model));
    NPUMESH_RETURN_IF_ERROR(WriteFile(options.onnx, bytes, FileKind::kData));
  }
  NPUMESH_RETURN_IF_ERROR(WritePictures(options, shown));
  if (options.html.empty()) return Status();
  NPUMESH_ASSIGN_OR_RETURN(
      const std::string page,
      GraphPage(shown.model, *shown.registry, OriginOf("npumesh graph " + options.file)));
  return WriteFile(options.html, page, FileKind::kData);
}

}  // namespace

Result<ShownGraph> LoadShown(const GraphOptions& options, const std::string& file) {
  NPUMESH_RETURN_IF_ERROR(CheckFile(file));
  ShownGraph shown;
  NPUMESH_ASSIGN_OR_RETURN(shown.registry,
                           OperatorsWith(options.op_libraries, options.library_trust));
  NPUMESH_ASSIGN_OR_RETURN(shown.model, LoadAnyModel(file, *shown.registry));
  shown.model.path = file;
  NPUMESH_ASSIGN_OR_RETURN(const Warnings warnings,
                           CheckWeightPlaces(shown.model, {options.allow_outside}));
  PrintWarnings("graph", warnings);
  NPUMESH_ASSIGN_OR_RETURN(shown.groups, ReadGroupTable(FolderOf(file)));
  shown.place = PlaceOf(file);
  return shown;
}

Result<Answer> ShowGraph(const GraphOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(ShownGraph shown, LoadShown(options, options.file));
  const Status runnable = options.types ? CheckRuns(shown) : Status();
  const std::map<NodeId, TensorType> collectives =
      CollectiveInputs(shown.model, *shown.registry, shown.groups, shown.place.world_size);
  const ValueTypes types = Infer(shown);
  const GraphFacts facts = Examine(shown.model, *shown.registry, collectives);
  Answer answer{0, ToText(facts), {}, NextOf(options)};
  if (types.open_inputs || options.types) answer.text += ToText(types);
  NPUMESH_RETURN_IF_ERROR(WriteFiles(options, shown));
  if (!runnable.ok()) {
    if (!options.json) Show(answer.text);
    return runnable;
  }
  if (!options.json) return answer;
  answer.report.details = ToJsonObject(facts);
  answer.report.details["nodes"] = DetailsOf(shown.model, *shown.registry);
  return answer;
}

Result<Answer> ShowNode(const GraphOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(ShownGraph shown, LoadShown(options, options.file));
  Infer(shown);
  const Result<NodeDetail> node = FindDetail(shown.model, *shown.registry, options.node);
  if (!node.ok()) return node.status().WithContext(options.file);
  return Answer{
      0, ToText(*node), {.details = {{"graph", shown.model.graph.name()}, {"node", *node}}}};
}

Result<Answer> ShowDiff(const GraphOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const ShownGraph here, LoadShown(options, options.file));
  NPUMESH_ASSIGN_OR_RETURN(const ShownGraph there, LoadShown(options, options.diff));
  const GraphDiff diff = DiffGraphs(here.model, there.model, *here.registry);
  Answer answer{diff.differences.empty() ? 0 : 1, ToText(diff, options.file, options.diff), {}};
  answer.report.verdict = diff.differences.empty() ? "same" : "differ";
  for (const NodeDifference& each : diff.differences) {
    answer.report.Add(Severity::kError, each.text, {{"operator", each.node}, {"type", each.type}});
  }
  answer.report.details = {{"here", options.file},
                           {"there", options.diff},
                           {"nodes_here", diff.nodes_here},
                           {"nodes_there", diff.nodes_there},
                           {"nodes_of_both", diff.common}};
  if (!diff.differences.empty()) {
    answer.next = fmt::format("npumesh graph {} --node {}: its readers and its weight file",
                              options.file, Printable(diff.differences.front().node));
  }
  return answer;
}

}  // namespace npumesh
