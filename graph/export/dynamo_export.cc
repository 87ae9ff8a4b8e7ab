#include "graph/export/dynamo_export.h"

#include <unistd.h>

#include <chrono>
#include <set>

#include "graph/digest/sha256.h"
#include "graph/export/checksums.h"
#include "graph/export/cluster_map.h"
#include "graph/export/collective_match.h"
#include "graph/export/deployment_config.h"
#include "graph/export/export_graph.h"
#include "graph/export/package_layout.h"
#include "graph/export/staged_folder.h"
#include "graph/export/weight_plan.h"
#include "graph/io/model_file.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/offline_groups.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr uint32_t kExportKey = 0x6578706f;  // tells the gathering from the groups of graphs
// How the token of a publication begins when its work folder lies beside the package.
constexpr std::string_view kBesideToken = "beside";
// Constants above this are left out of dynamo.pbtxt, where each byte takes four characters.
constexpr size_t kMostTextBytes = size_t{64} << 10;

// The text form is for reading: large constants keep their shape and lose their bytes.
std::string ReadableText(Model model) {
  for (const Node& node : model.graph.nodes()) {
    const AttrValue* value = node.FindAttr("value");
    const auto* tensor = value == nullptr ? nullptr : value->get<TensorAttr>();
    if (tensor == nullptr || tensor->data->size() <= kMostTextBytes) continue;
    TensorAttr hollow = *tensor;
    hollow.data = std::make_shared<const std::string>();
    model.graph.node(node.id).attrs.insert_or_assign("value", AttrValue(std::move(hollow)));
  }
  return ToPbtxt(model);
}

// One rank's export, stage by stage. What a stage finds is agreed on by the caller.
class Exporter {
 public:
  Exporter(World& world, Gathering& gathering, Model model, const ExportOptions& options)
      : world_(world),
        gathering_(gathering),
        model_(std::move(model)),
        options_(options),
        fs_(options.file_system != nullptr ? *options.file_system : RealFileSystem()) {}

  Result<ExportSummary> Run(std::vector<ExportWeight> weights) {
    NPUMESH_RETURN_IF_ERROR(gathering_.AgreeOn(Prepare(std::move(weights))));
    NPUMESH_RETURN_IF_ERROR(Compare());
    NPUMESH_RETURN_IF_ERROR(MakeConfigs());
    NPUMESH_RETURN_IF_ERROR(OpenFolder());
    NPUMESH_RETURN_IF_ERROR(gathering_.AgreeOn(Write()));
    NPUMESH_RETURN_IF_ERROR(WriteChecksums());
    NPUMESH_RETURN_IF_ERROR(Publish());
    return Summary();
  }

 private:
  const OpRegistry& registry() const {
    return options_.registry != nullptr ? *options_.registry : BuiltinOps();
  }

  Status Prepare(std::vector<ExportWeight> weights);
  Status Compare();
  Status CompareOptions();
  Status MatchAll(const std::vector<std::string>& texts);
  Status MakeConfigs();
  Status OpenFolder();
  Status Write();
  Status WriteWeights();
  Status WriteOne(const std::string& name, std::string_view content);
  Status WriteChecksums();
  Status Publish();
  std::vector<std::string> Targets() const;
  ExportSummary Summary() const;

  World& world_;
  Gathering& gathering_;
  Model model_;
  const ExportOptions& options_;
  FileSystem& fs_;
  PackageLayout layout_;
  WeightPlan plan_;
  CollectiveTrace trace_;
  NamedGroups groups_;  // of all ranks
  std::string relation_config_;
  std::string numa_config_;
  std::unique_ptr<StagedFolder> folder_;
  Checksums checksums_;  // of what this rank has written
};

Status Exporter::Prepare(std::vector<ExportWeight> weights) {
  const int rank = world_.rank();
  NPUMESH_ASSIGN_OR_RETURN(layout_,
                           PackageLayout::Make(options_.export_path, options_.export_name,
                                               options_.distributed.value_or(world_.size() > 1)));
  if (!layout_.distributed && world_.size() > 1) {
    return Error(Code::kInvalidArgument,
                 "the layout of one card cannot hold {} ranks; leave `distributed` unset",
                 world_.size());
  }
  NPUMESH_RETURN_IF_ERROR(model_.graph.Verify());
  if (model_.graph.NetOutput() == kNoNode) {
    return Error(Code::kInvalidArgument,
                 "graph \"{}\" has no NetOutput; a package is one graph with outputs",
                 model_.graph.name());
  }
  NPUMESH_ASSIGN_OR_RETURN(
      trace_, TraceCollectives(model_, registry(), options_.groups, rank, world_.size()));
  NPUMESH_ASSIGN_OR_RETURN(plan_,
                           WeightPlan::Take(&model_, options_, layout_, rank, std::move(weights)));
  DeclareOutputs(trace_.outputs, &model_.graph);
  NPUMESH_RETURN_IF_ERROR(MakeRefData(registry(), &model_.graph));
  if (!options_.keeps_open || options_.dynamic) {
    NPUMESH_RETURN_IF_ERROR(OpenDimensions(options_.dynamic, &model_.graph));
  }
  NumberInputs(&model_.graph);
  if (options_.dynamic) {
    OfflineGroups groups = OfflineGroups::InWorld(options_.groups, rank, world_.size());
    NPUMESH_RETURN_IF_ERROR(DescribeInnerTensors(registry(), &groups, &model_));
  }
  FilterModuleStacks(options_.enable_record_nn_module_stack, &model_.graph);
  NPUMESH_RETURN_IF_ERROR(
      StagedFolder(options_.export_path, StagedFolder::Place::kBeside, "check", fs_)
          .CheckTargets(Targets()));
  return plan_.Settle(layout_, rank, &model_);
}

// Everything this rank may write, relative to the package.
std::vector<std::string> Exporter::Targets() const {
  const int rank = world_.rank();
  const std::string folder = layout_.RankFolder(rank);
  std::vector<std::string> names = {folder + std::string(kPbtxtName), layout_.AirName(rank),
                                    std::string(kChecksumsName)};
  if (plan_.external()) {
    for (const PlannedWeight& weight : plan_.weights()) names.push_back(folder + weight.file);
  }
  if (rank == 0 && options_.auto_atc_config_generated) {
    names.emplace_back(kRelationConfigName);
    names.emplace_back(kNumaConfigName);
  }
  return names;
}

Status Exporter::CompareOptions() {
  const std::string mine = fmt::format(
      "export_path \"{}\", export_name \"{}\", dynamic {}, auto_atc_config_generated {}, "
      "template {}, distributed {}",
      options_.export_path, layout_.name, options_.dynamic, options_.auto_atc_config_generated,
      options_.template_configs, layout_.distributed);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> all, gathering_.Share(mine));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return Error(Code::kMismatch, "rank {} exports with other options than rank 0: {}; rank 0: {}",
                 rank, all[rank], all[0]);
  }
  return Status();
}

Status Exporter::MatchAll(const std::vector<std::string>& texts) {
  std::vector<CollectiveTrace> traces;
  for (const std::string& text : texts) {
    NPUMESH_ASSIGN_OR_RETURN(CollectiveTrace trace, ParseTrace(text));
    traces.push_back(std::move(trace));
  }
  const std::vector<CollectiveMismatch> found = MatchCollectives(traces, 1);
  if (!found.empty()) {
    return Error(Code::kMismatch, "the graph of rank {} does not fit the others: {}", found[0].rank,
                 found[0].text);
  }
  std::set<std::string> seen;
  for (const CollectiveTrace& trace : traces) {
    for (const auto& group : trace.groups) {
      if (seen.insert(group.first).second) groups_.push_back(group);
    }
  }
  return Status();
}

// Every rank sees the same texts and comes to the same verdict.
Status Exporter::Compare() {
  NPUMESH_RETURN_IF_ERROR(CompareOptions());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                           gathering_.Share(TraceText(trace_)));
  return MatchAll(texts);
}

// As TorchAir, the template lists the groups of rank 0 only.
Status Exporter::MakeConfigs() {
  if (!options_.auto_atc_config_generated || !layout_.distributed || groups_.empty()) {
    return Status();
  }
  NPUMESH_ASSIGN_OR_RETURN(const ClusterMap cluster, SurveyCluster(world_, gathering_));
  if (world_.rank() != 0) return Status();
  const auto form = options_.template_configs ? ConfigForm::kTemplate : ConfigForm::kTrue;
  std::vector<std::string> names;
  for (int rank = 0; rank < world_.size(); ++rank) names.push_back(layout_.AirName(rank));
  relation_config_ =
      RelationConfig(cluster, names, options_.template_configs ? trace_.groups : groups_, form);
  numa_config_ = NumaConfig(cluster, form);
  return Status();
}

// Rank 0 creates the folder aside; on nodes that do not see it, their lowest rank makes another.
Status Exporter::OpenFolder() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  using Place = StagedFolder::Place;
  const bool beside = StagedFolder::PlaceFor(options_.export_path) == Place::kBeside;
  const std::string mine =
      fmt::format("{}.{}.{}", beside ? kBesideToken : "in", getpid(),
                  std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> tokens, gathering_.Share(mine));
  const Place place = tokens[0].starts_with(kBesideToken) ? Place::kBeside : Place::kIn;
  folder_ = std::make_unique<StagedFolder>(options_.export_path, place, tokens[0], fs_);
  NPUMESH_RETURN_IF_ERROR(gathering_.AgreeOn(world_.rank() == 0 ? folder_->Open() : Status()));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> sees,
                           gathering_.Share(folder_->Visible() ? "yes" : "no"));
  bool leads = !folder_->Visible();
  for (int rank = 0; rank < world_.rank(); ++rank) {
    const auto other = static_cast<size_t>(rank);
    if (sees[other] == "no" && world_.node_of()[other] == world_.node()) leads = false;
  }
  NPUMESH_RETURN_IF_ERROR(gathering_.AgreeOn(leads ? folder_->Open() : Status()));
  if (folder_->Visible()) return gathering_.AgreeOn(Status());
  return gathering_.AgreeOn(
      Error(Code::kIo,
            "{} is not visible on this rank; do all ranks of the node have the same "
            "working folder?",
            options_.export_path));
}

Status Exporter::WriteWeights() {
  ExportProgress progress{0, plan_.weights().size()};
  const std::string folder = layout_.RankFolder(world_.rank());
  for (const PlannedWeight& weight : plan_.weights()) {
    NPUMESH_ASSIGN_OR_RETURN(const auto file, folder_->Start(folder + weight.file));
    Sha256Sum sum;
    NPUMESH_RETURN_IF_ERROR(ReadChecked(weight, [&](std::span<const std::byte> piece) {
      sum.Add(piece);
      return file->Append(piece);
    }));
    NPUMESH_RETURN_IF_ERROR(file->Commit());
    checksums_.emplace(folder + weight.file, sum.Text());
    ++progress.done;
    if (options_.progress) options_.progress(progress);
  }
  return Status();
}

Status Exporter::Write() {
  const int rank = world_.rank();
  if (plan_.external()) NPUMESH_RETURN_IF_ERROR(WriteWeights());
  NPUMESH_RETURN_IF_ERROR(
      WriteOne(layout_.RankFolder(rank) + std::string(kPbtxtName), ReadableText(model_)));
  NPUMESH_ASSIGN_OR_RETURN(const std::string air, SerializeAir(model_));
  NPUMESH_RETURN_IF_ERROR(WriteOne(layout_.AirName(rank), air));
  if (options_.read_only) NPUMESH_RETURN_IF_ERROR(folder_->Protect(layout_.AirName(rank)));
  if (relation_config_.empty()) return Status();
  NPUMESH_RETURN_IF_ERROR(WriteOne(std::string(kRelationConfigName), relation_config_));
  return WriteOne(std::string(kNumaConfigName), numa_config_);
}

Status Exporter::WriteOne(const std::string& name, std::string_view content) {
  checksums_.emplace(name, Sha256(content));
  return folder_->Write(name, content);
}

// Who owns a folder writes the checksums of all ranks into it. Collective over all ranks.
Status Exporter::WriteChecksums() {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                           gathering_.Share(ChecksumsText(checksums_)));
  std::string all;
  for (const std::string& text : texts) all += text;
  return gathering_.AgreeOn(folder_->owner() ? folder_->Write(std::string(kChecksumsName), all)
                                             : Status());
}

Status Exporter::Publish() {
  const Status published = gathering_.AgreeOn(folder_->owner() ? folder_->Publish() : Status());
  if (!published.ok()) {
    folder_->TakeBack();
    return published;
  }
  folder_->Keep();
  return Status();
}

ExportSummary Exporter::Summary() const {
  ExportSummary summary;
  summary.air = JoinPath(options_.export_path, layout_.AirName(world_.rank()));
  summary.external = plan_.external();
  summary.weights = plan_.weights().size();
  for (const PlannedWeight& weight : plan_.weights()) summary.weight_bytes += weight.type.bytes();
  summary.configs = options_.auto_atc_config_generated && layout_.distributed && !groups_.empty();
  return summary;
}

}  // namespace

Result<ExportSummary> DynamoExport(World& world, Model model, const ExportOptions& options,
                                   std::vector<ExportWeight> weights) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Gathering> gathering,
                           Gathering::Create(world, kExportKey));
  return Exporter(world, *gathering, std::move(model), options).Run(std::move(weights));
}

}  // namespace npumesh
