// The graphs of TorchAir's documented export examples, and folders to export them into.
#ifndef NPUMESH_TESTS_UNIT_EXPORT_EXPORT_MODELS_H_
#define NPUMESH_TESTS_UNIT_EXPORT_EXPORT_MODELS_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "graph/export/dynamo_export.h"
#include "graph/ir/graph.h"

namespace npumesh::testing {

// A folder for one test, removed with this object.
class ExportFolder {
 public:
  ExportFolder();
  ~ExportFolder();
  ExportFolder(const ExportFolder&) = delete;
  ExportFolder& operator=(const ExportFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// x + y + p1 + p2 with all four as inputs, fp32 [2,4], as PyTorch lifts parameters.
Model SeedAdd();
// p1 = 1..8, p2 = 0.5.
std::vector<ExportWeight> SeedAddWeights();

// all_reduce(x + y + p1 + p2) with int32 [2,2] inputs, float weights as constants, over `group`.
Model SeedAllReduce(const std::string& group, const std::string& reduction = "sum");

// Relative paths of all files below `folder`, sorted.
std::vector<std::string> FilesOf(const std::string& folder);
// Their content, by relative path.
std::map<std::string, std::string> ContentOf(const std::string& folder);
std::string Slurp(const std::string& path);
void Spill(const std::string& path, const std::string& content);

// DynamoExport by `ranks` ranks, each with model(rank). The statuses, by rank.
std::vector<Status> ExportOn(int ranks, const std::function<Model(int)>& model,
                             const ExportOptions& options, const std::vector<int>& node_sizes = {},
                             const std::string& topology = "");
// One rank alone.
Status ExportAlone(Model model, const ExportOptions& options,
                   std::vector<ExportWeight> weights = {});

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_EXPORT_EXPORT_MODELS_H_
