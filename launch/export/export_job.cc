#include "launch/export/export_job.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>

#include "graph/io/model_file.h"
#include "graph/io/weight_places.h"
#include "graph/session/group_table.h"
#include "launch/ranks/model_choice.h"
#include "launch/ranks/warnings.h"
#include "runtime/world/gathering.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kJobKey = 0x786a6f62;

// The highest rank that a folder has a graph of.
Result<int> RanksOfFolder(const std::string& folder) {
  int ranks = 0;
  int files = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(".air")) continue;
    ++files;
    const std::string path = it->path().string();
    ranks = std::max(ranks, RanksOfExport(path));
  }
  if (error) return Error(Code::kIo, "cannot list {}: {}", folder, error.message());
  if (files == 0) return Error(Code::kNotFound, "{}: no .air file", folder);
  return files == 1 ? 1 : std::max(ranks, 1);
}

Result<Model> LoadOwnModel(const ExportJobOptions& job, int rank, int size) {
  std::string path;
  if (job.paths.size() > 1) {
    path = job.paths[static_cast<size_t>(rank)];
  } else {
    NPUMESH_ASSIGN_OR_RETURN(path, ChooseModelFile(job.paths[0], rank, size));
  }
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadModel(path));
  model.path = path;
  return model;
}

// What all ranks have to say of their weights, once. Collective over the gathering.
Status TellWarnings(Gathering& gathering, const Warnings& mine) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> all, gathering.Share(PackWarnings(mine)));
  if (gathering.rank() == 0) PrintWarnings("export", MergeWarnings(all));
  return Status();
}

}  // namespace

std::function<void(const ExportProgress&)> TellWeights(std::shared_ptr<ProgressLine> line) {
  return [line = std::move(line)](const ExportProgress& progress) {
    const size_t total = std::max<size_t>(progress.total, 1);
    line->Show(fmt::format("weight {} of {}", progress.done, progress.total),
               static_cast<double>(progress.done) / static_cast<double>(total));
  };
}

Result<int> RanksOfPaths(const std::vector<std::string>& paths) {
  if (paths.size() > 1) return static_cast<int>(paths.size());
  std::error_code error;
  if (fs::is_directory(paths[0], error)) return RanksOfFolder(paths[0]);
  return 1;
}

Result<ExportSummary> RunExport(World& world, const ExportJobOptions& job) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Gathering> gathering,
                           Gathering::Create(world, kJobKey));
  if (job.paths.size() > 1 && static_cast<int>(job.paths.size()) != world.size()) {
    return Error(Code::kInvalidArgument,
                 "{} graphs were named for {} ranks; name one for each, in "
                 "rank order",
                 job.paths.size(), world.size());
  }
  Result<Model> model = LoadOwnModel(job, world.rank(), world.size());
  ExportOptions options = job.options;
  Status loaded = model.status();
  Warnings warnings;
  if (loaded.ok()) {
    Result<Warnings> places = CheckWeightPlaces(*model, {job.allow_outside});
    loaded = places.status();
    if (places.ok()) warnings = *std::move(places);
  }
  if (loaded.ok()) {
    Result<GroupTable> groups = ReadGroupTable(FolderOf(model->path));
    loaded = groups.status();
    if (groups.ok()) options.groups = *std::move(groups);
  }
  NPUMESH_RETURN_IF_ERROR(gathering->AgreeOn(loaded));
  NPUMESH_RETURN_IF_ERROR(TellWarnings(*gathering, warnings));
  if (job.show_progress && world.rank() == 0) {
    const ProgressForm form = ProgressFormHere();
    if (form != ProgressForm::kNone) {
      options.progress = TellWeights(std::make_shared<ProgressLine>(form));
    }
  }
  return DynamoExport(world, *std::move(model), options);
}

}  // namespace npumesh
