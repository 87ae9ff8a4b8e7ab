// What a tree of dumps holds, as text and as JSON (docs/json.md).
#ifndef NPUMESH_LAUNCH_DUMP_LISTING_H_
#define NPUMESH_LAUNCH_DUMP_LISTING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/compare/sources/dump_folder.h"
#include "graph/compare/sources/tensor_source.h"
#include "runtime/base/text/json.h"

namespace npumesh {

struct ListedOperator {
  std::string type;
  std::string name;
  uint64_t task = 0;
  bool statistics = false;  // a table, whose tensors' types are not known
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct ListedStep {
  DumpStep step;
  size_t operators = 0;  // of different names
  size_t files = 0;
  uint64_t bytes = 0;
  std::vector<ListedOperator> rows;  // of each file, by time; empty unless asked for
};

// `operators`: with their rows. Errors: as ListDumpFiles and DumpFile::Open.
Result<ListedStep> ListStep(const DumpStep& step, bool operators);
// A line for the step and its folder, and one for each row.
std::string ToText(const ListedStep& listed);
nlohmann::json ToJsonObject(const ListedStep& listed);

// Of the finite elements of a tensor, but for the last two. All zero without one.
struct Moments {
  double min = 0;
  double max = 0;
  double mean = 0;
  double deviation = 0;
  double l2 = 0;
  int64_t finite = 0;
  int64_t zeros = 0;
  int64_t nans = 0;
  int64_t infinities = 0;
};

struct ListedTensor {
  std::string name;  // of the operator
  std::string type;
  Side side = Side::kInput;
  int index = 0;
  std::string tensor;                    // "float32[2,3]"
  std::optional<Moments> moments;        // nullopt: its elements are no numbers
  std::optional<DumpedStatistics> said;  // by the dump, which has no elements of it
};

// A statistics file of a dump, as it is.
struct StatisticsFile {
  std::string name;
  std::string type;
  std::string content;
};

struct FolderStatistics {
  std::string folder;
  std::vector<StatisticsFile> files;
  std::vector<ListedTensor> tensors;

  bool empty() const { return files.empty() && tensors.empty(); }
};

// Of the operators whose name contains `only`. Errors: as OpenTensorFolder.
Result<FolderStatistics> StatisticsOf(const std::string& folder, const std::string& only);
// One line for each tensor; the files as they are.
std::string ToText(const FolderStatistics& statistics);
nlohmann::json ToJsonObject(const FolderStatistics& statistics);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_LISTING_H_
