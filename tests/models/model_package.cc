#include "tests/models/model_package.h"

#include <filesystem>

#include "graph/export/dynamo_export.h"
#include "graph/io/npy.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh::models {
namespace {

namespace fs = std::filesystem;

Status WriteTensor(const std::string& folder, int step, int rank, int64_t index,
                   const Tensor& tensor) {
  const fs::path path =
      fs::path(folder) / fmt::format("step_{}", step) / fmt::format("rank_{}", rank);
  std::error_code ignored;  // writing says it better
  fs::create_directories(path, ignored);
  return WriteNpy((path / fmt::format("{}.npy", index)).string(), tensor);
}

Status WriteSteps(const PackagedModel& model, NamedSession& session, const std::string& folder) {
  for (int step = 0; step < kPackagedSteps; ++step) {
    const Feeds feeds = model.feeds(session.rank(), step);
    for (const InputSpec& spec : session.session().inputs()) {
      const auto found = feeds.find(spec.name);
      if (found == feeds.end()) continue;
      NPUMESH_RETURN_IF_ERROR(
          WriteTensor(folder + "/inputs", step, session.rank(), spec.index, found->second));
    }
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(feeds));
    for (size_t i = 0; i < outputs.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(WriteTensor(folder + "/golden", step, session.rank(),
                                          static_cast<int64_t>(i), outputs[i]));
    }
  }
  return Status();
}

}  // namespace

void WritePackage(const PackagedModel& model, const std::string& folder) {
  ExpectAllOk(RunRanks(model.ranks, TestEnv(), [&](World& world) -> Status {
    ExportOptions options;
    options.export_path = folder + "/package";
    options.export_name = model.ranks == 1 ? "model" : "mp_rank";
    options.dynamic = model.dynamic;
    options.auto_atc_config_generated = model.ranks > 1;
    NPUMESH_ASSIGN_OR_RETURN(Model own, model.build(world.rank()));
    return DynamoExport(world, std::move(own), options).status();
  }));
  OnEachRank(model.ranks, model.build, {.fuses = true},
             [&](NamedSession& session) { return WriteSteps(model, session, folder); });
}

}  // namespace npumesh::models
