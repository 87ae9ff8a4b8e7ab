#include "launch/validate/graph_check.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "graph/engine/compiled_model.h"
#include "graph/export/group_members.h"
#include "graph/io/model_file.h"
#include "graph/io/weights.h"
#include "graph/passes/bound_graph.h"
#include "graph/session/runnable.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

std::string Who(const Node& node) {
  return fmt::format("node \"{}\" ({})", node.name, node.type);
}

// The message without the path of the file, which the finding has already.
std::string WithoutPath(const Status& status, const std::string& path) {
  std::string text(status.message());
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return text;
}

void CheckInputs(const Model& model, const std::string& air, Findings* findings) {
  const Result<std::vector<InputSpec>> inputs = InputsOf(model);
  if (!inputs.ok()) return findings->Error(air, std::string(inputs.status().message()));
  for (size_t i = 0; i < inputs->size(); ++i) {
    if ((*inputs)[i].index == static_cast<int64_t>(i)) continue;
    findings->Warning(air, fmt::format("input \"{}\" has index {}, expected {}: ATC renumbers the "
                                       "inputs in node order",
                                       (*inputs)[i].name, (*inputs)[i].index, i));
    return;
  }
}

// Notes the file of a FileConstant if it is one of the package.
void NoteFile(const PackageFiles& files, int rank, const Node& node, WeightSum* weights) {
  const fs::path stored = node.StringAttr("location", node.StringAttr("file_path", ""));
  const std::string name = stored.filename().string();
  const std::string folder = files.distributed ? fmt::format("rank_{}/", rank) : "";
  for (const std::string& candidate : {folder + name, name}) {
    if (files.Has(candidate)) weights->files.insert(candidate);
  }
}

void CheckPath(const PackageFiles& files, const Node& node, const std::string& air,
               Findings* findings) {
  const fs::path stored = node.StringAttr("location", node.StringAttr("file_path", ""));
  std::error_code error;
  if (stored.is_absolute() || fs::exists(stored, error)) return;
  findings->Warning(
      air, fmt::format("{}: file_path \"{}\" is relative and not below this working folder; run "
                       "from the folder in which the export ran (npumesh finds it beside {}, ATC "
                       "does not)",
                       Who(node), stored.string(), files.folder));
}

void CheckWeights(const PackageFiles& files, int rank, const Model& model, const Graph& graph,
                  WeightSum* weights, Findings* findings) {
  const std::string& air = files.airs[static_cast<size_t>(rank)];
  bool told = false;
  for (const Node& node : graph.nodes()) {
    if (node.removed || !IsWeightNode(node)) continue;
    const Result<Tensor> tensor = LoadWeight(node, model.path);
    if (!tensor.ok()) {
      findings->Error(air, WithoutPath(tensor.status(), model.path));
      continue;
    }
    ++weights->count;
    weights->bytes += tensor->bytes();
    if (node.type != "FileConstant") continue;
    NoteFile(files, rank, node, weights);
    const size_t before = findings->all().size();
    if (!told) CheckPath(files, node, air, findings);
    told = told || findings->all().size() > before;
  }
}

void CheckRuns(const PackageFiles& files, int rank, const OpRegistry& registry,
               const GroupTable& groups, const Model& model, Findings* findings) {
  SessionOptions options;
  options.registry = &registry;
  GroupsOnPaper members(groups, rank, static_cast<int>(files.airs.size()));
  const Status runs = CheckRunnable(model, options, members);
  if (runs.ok()) return;
  findings->Error(files.airs[static_cast<size_t>(rank)],
                  fmt::format("npumesh cannot run it: {}", WithoutPath(runs, model.path)));
}

std::map<std::string, std::string> TypesByName(const Graph& graph) {
  std::map<std::string, std::string> types;
  for (const Node& node : graph.nodes()) {
    if (!node.removed) types[node.name] = node.type;
  }
  return types;
}

// dynamo.pbtxt is for people: what is wrong with it is a warning.
void CheckText(const PackageFiles& files, int rank, const Model& model, Findings* findings) {
  const std::string name = files.TextOf(rank);
  if (!files.Has(name)) return findings->Warning(name, "missing");
  const Result<Model> text = LoadModel(files.PathOf(name));
  if (!text.ok()) {
    return findings->Warning(name, WithoutPath(text.status(), files.PathOf(name)));
  }
  const auto expected = TypesByName(model.graph);
  const auto seen = TypesByName(text->graph);
  for (const auto& [node, type] : expected) {
    const auto other = seen.find(node);
    if (other != seen.end() && other->second == type) continue;
    return findings->Warning(name, fmt::format("node \"{}\" is {} here and {} in {}", node,
                                               other == seen.end() ? "absent" : other->second, type,
                                               files.airs[static_cast<size_t>(rank)]));
  }
  if (seen.size() == expected.size()) return;
  findings->Warning(name, fmt::format("has {} nodes, {} has {}", seen.size(),
                                      files.airs[static_cast<size_t>(rank)], expected.size()));
}

}  // namespace

std::optional<Model> CheckGraph(const PackageFiles& files, int rank, const OpRegistry& registry,
                                const GroupTable& groups, WeightSum* weights, Findings* findings) {
  const std::string& air = files.airs[static_cast<size_t>(rank)];
  if (air.empty()) return std::nullopt;
  const std::string path = files.PathOf(air);
  Result<Model> model = LoadModel(path);
  if (!model.ok()) {
    findings->Error(air, WithoutPath(model.status(), path));
    return std::nullopt;
  }
  model->path = path;
  if (model->graph.NetOutput() == kNoNode) {
    findings->Error(air, fmt::format("graph \"{}\" has no NetOutput", model->graph.name()));
  }
  CheckInputs(*model, air, findings);
  CheckWeights(files, rank, *model, model->graph, weights, findings);
  for (const Graph& graph : model->subgraphs) {
    CheckWeights(files, rank, *model, graph, weights, findings);
  }
  CheckRuns(files, rank, registry, groups, *model, findings);
  CheckText(files, rank, *model, findings);
  return *std::move(model);
}

}  // namespace npumesh
