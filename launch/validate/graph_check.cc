#include "launch/validate/graph_check.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/io/model_file.h"
#include "graph/io/offline_file.h"
#include "graph/io/weights.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/session/offline_groups.h"
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

fs::path StoredPath(const Node& node) {
  const std::string location = node.StringAttr("location", "");
  return location.empty() ? node.StringAttr("file_path", "") : location;
}

// The folder of a rank's own weights, as part of a relative name.
std::string RankFolder(const PackageFiles& files, int rank) {
  return files.distributed ? fmt::format("rank_{}/", rank) : "";
}

// The weights of one rank's graph and of its subgraphs.
class WeightCheck {
 public:
  WeightCheck(const PackageFiles& files, int rank, const Model& model, WeightSum* weights,
              Findings* findings)
      : files_(files),
        rank_(rank),
        model_(model),
        air_(files.airs[static_cast<size_t>(rank)]),
        weights_(weights),
        findings_(findings) {}

  void Run(bool allow_outside) {
    CheckPlaces(allow_outside);
    CheckGraph(model_.graph);
    for (const Graph& graph : model_.subgraphs) CheckGraph(graph);
  }

 private:
  void CheckPlaces(bool allow_outside) {
    const Result<WeightPlaces> places = LookForWeights(model_, {allow_outside});
    if (!places.ok()) return findings_->Error(air_, WithoutPath(places.status(), model_.path));
    for (const std::string& note : places->notes) findings_->Warning(air_, note);
    if (places->lacking.empty()) return;
    weights_->lacking_ranks.push_back(rank_);
    for (const LackingWeight& weight : places->lacking) {
      lacking_.insert(weight.node);
      weights_->lacking.push_back(weight);
    }
  }

  void CheckGraph(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      if (node.removed || !IsWeightNode(node)) continue;
      if (lacking_.contains(node.name)) continue;
      const Result<Tensor> tensor = LoadWeight(node, model_.path);
      if (!tensor.ok()) {
        findings_->Error(air_, WithoutPath(tensor.status(), model_.path));
        continue;
      }
      ++weights_->count;
      weights_->bytes += tensor->bytes();
      const bool own_file = IsFileConstant(node) && StoredPath(node) != kInThisFile;
      if (own_file) CheckFile(node, tensor->bytes());
    }
  }

  void CheckFile(const Node& node, uint64_t needed) {
    const std::string name = StoredPath(node).filename().string();
    for (const std::string& candidate : {RankFolder(files_, rank_) + name, name}) {
      if (!files_.Has(candidate)) continue;
      weights_->files.insert(candidate);
      if (node.StringAttr("location", "").empty()) CheckLength(node, candidate, needed);
      CheckWorkingFolder(node, candidate);
      break;
    }
    CheckRank(node);
  }

  void CheckLength(const Node& node, const std::string& file, uint64_t needed) {
    std::error_code error;
    const uint64_t size = fs::file_size(files_.PathOf(file), error);
    if (error || size <= needed) return;
    findings_->Warning(file, fmt::format("has {} bytes, {} of {} needs {}; the first are taken",
                                         size, Who(node), air_, needed));
  }

  // ATC looks where the path leads from the working folder, and nowhere else.
  void CheckWorkingFolder(const Node& node, const std::string& file) {
    const fs::path stored = StoredPath(node);
    std::error_code error;
    if (weights_->told_stored || fs::equivalent(stored, files_.PathOf(file), error)) return;
    weights_->told_stored = true;
    findings_->Warning(
        air_, fmt::format("{}: file_path \"{}\" is {} (npumesh finds it in {}, ATC does not)",
                          Who(node), stored.string(),
                          stored.is_absolute()
                              ? "absolute and not in this package; export with a relative path"
                              : "relative and not below this working folder; run from the folder "
                                "above the package in which the export ran",
                          files_.folder));
  }

  // A graph that reads the folder of another rank has most likely changed places with its graph.
  void CheckRank(const Node& node) {
    const std::string folder = StoredPath(node).parent_path().filename().string();
    if (told_rank_ || !files_.distributed || !folder.starts_with("rank_")) return;
    if (folder == fmt::format("rank_{}", rank_)) return;
    told_rank_ = true;
    findings_->Warning(air_, fmt::format("{} reads {}: are the graphs of two ranks swapped?",
                                         Who(node), StoredPath(node).string()));
  }

  const PackageFiles& files_;
  int rank_;
  const Model& model_;
  const std::string& air_;
  WeightSum* weights_;
  Findings* findings_;
  bool told_rank_ = false;
  std::set<std::string> lacking_;  // names of nodes
};

void CheckRuns(const PackageFiles& files, int rank, const GraphCheckOptions& given,
               const GroupTable& groups, const Model& model, Findings* findings) {
  const std::string& air = files.airs[static_cast<size_t>(rank)];
  SessionOptions options;
  options.registry = given.registry;
  // What the card refuses is a finding, not the end.
  if (given.card) options.card = std::make_shared<NodeWatch>(Card{given.card.chip}, false);
  OfflineGroups members = OfflineGroups::InWorld(groups, rank, static_cast<int>(files.airs.size()));
  const Status runs = CheckRunnable(model, options, members);
  if (!runs.ok()) {
    findings->Error(air, fmt::format("npumesh cannot run it: {}", WithoutPath(runs, model.path)));
  }
  if (options.card == nullptr) return;
  for (const CardFinding& finding : options.card->findings().all()) {
    findings->OnCard(air, finding, given.card);
  }
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

std::optional<Model> CheckGraph(const PackageFiles& files, int rank,
                                const GraphCheckOptions& options, const GroupTable& groups,
                                WeightSum* weights, Findings* findings) {
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
  WeightCheck(files, rank, *model, weights, findings).Run(options.allow_outside);
  CheckRuns(files, rank, options, groups, *model, findings);
  CheckText(files, rank, *model, findings);
  return *std::move(model);
}

}  // namespace npumesh
