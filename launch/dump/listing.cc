#include "launch/dump/listing.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "graph/compare/elements.h"
#include "launch/view/graph_facts.h"
#include "runtime/base/printable.h"
#include "runtime/base/secure_file.h"

namespace npumesh {
namespace {

std::string StepName(const DumpStep& step) {
  std::string name = fmt::format("rank {} of {}", step.rank, step.world_size);
  if (!step.time.empty()) name += "  " + step.time;
  if (!step.model.empty()) name += "  " + step.model + "/" + step.model_id;
  if (step.index) name += fmt::format("  step {}", *step.index);
  return name;
}

uint64_t BytesIn(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code no_size;
    const uint64_t size = entry->is_regular_file(no_size) ? entry->file_size(no_size) : 0;
    if (!no_size) bytes += size;
  }
  return bytes;
}

std::string TypesText(const std::vector<DumpTensor>& tensors) {
  std::vector<std::string> types;
  for (const DumpTensor& tensor : tensors) types.push_back(tensor.type.ToString());
  return fmt::format("({})", fmt::join(types, ", "));
}

Result<std::string> OperatorLine(const DumpFolderFile& file) {
  const std::string head = fmt::format("  {:<18} {:<32} task {:<5}", Printable(file.name.op_type),
                                       Printable(file.name.op_name), file.name.task);
  if (file.name.stats) return head + " statistics\n";
  NPUMESH_ASSIGN_OR_RETURN(const DumpFile data, DumpFile::Open(file.path));
  return fmt::format("{} {} -> {}\n", head, TypesText(data.record().inputs),
                     TypesText(data.record().outputs));
}

struct Moments {
  double min = 0, max = 0, sum = 0, squares = 0;
  int64_t count = 0, zeros = 0, nans = 0, infinities = 0;  // count: of the finite ones
};

Moments MomentsOf(const std::vector<double>& elements) {
  Moments m;
  for (const double v : elements) {
    m.nans += std::isnan(v);
    m.infinities += std::isinf(v);
    if (!std::isfinite(v)) continue;
    m.min = m.count == 0 ? v : std::min(m.min, v);
    m.max = m.count == 0 ? v : std::max(m.max, v);
    m.sum += v;
    m.squares += v * v;
    m.zeros += v == 0;
    ++m.count;
  }
  return m;
}

std::string StatLine(const SourceOperator& op, Side side, int index, const Tensor& tensor) {
  const std::string head = fmt::format("{} ({}) {} {} {}", Printable(op.name), Printable(op.type),
                                       Name(side), index, tensor.type().ToString());
  const Result<std::vector<double>> elements = ElementsOf(tensor);
  if (!elements.ok()) return head + "  no numbers\n";
  const Moments m = MomentsOf(*elements);
  if (m.count == 0) return fmt::format("{}  NaN {} Inf {}\n", head, m.nans, m.infinities);
  const auto count = static_cast<double>(m.count);
  const double mean = m.sum / count;
  const double variance = std::max(0.0, m.squares / count - mean * mean);
  return fmt::format(
      "{}  min {:.6g} max {:.6g} mean {:.6g} std {:.6g} l2 {:.6g} zeros {} NaN {} Inf {}\n", head,
      m.min, m.max, mean, std::sqrt(variance), std::sqrt(m.squares), m.zeros, m.nans, m.infinities);
}

Result<std::string> StatisticsFiles(const std::vector<DumpFolderFile>& files,
                                    const std::string& only) {
  std::string text;
  for (const DumpFolderFile& file : files) {
    if (!file.name.stats || file.name.op_name.find(only) == std::string::npos) continue;
    NPUMESH_ASSIGN_OR_RETURN(const std::string content, ReadFile(file.path, uint64_t{1} << 30));
    text += fmt::format("{} ({})\n{}", Printable(file.name.op_name), Printable(file.name.op_type),
                        content);
  }
  return text;
}

}  // namespace

Result<std::string> ListingText(const std::vector<DumpStep>& steps, bool operators) {
  std::string text;
  for (const DumpStep& step : steps) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(step.path));
    std::vector<std::string> names;
    for (const DumpFolderFile& file : files) names.push_back(file.name.op_name);
    std::sort(names.begin(), names.end());
    const auto distinct = std::unique(names.begin(), names.end()) - names.begin();
    text += fmt::format("{}  {} operators, {} files, {}\n  {}\n", StepName(step), distinct,
                        files.size(), HumanBytes(BytesIn(step.path)), step.path);
    if (!operators) continue;
    for (const DumpFolderFile& file : files) {
      NPUMESH_ASSIGN_OR_RETURN(const std::string line, OperatorLine(file));
      text += line;
    }
  }
  return text;
}

Result<std::string> StatText(const std::string& folder, const std::string& only) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(folder));
  NPUMESH_ASSIGN_OR_RETURN(std::string text, StatisticsFiles(files, only));
  const Result<std::unique_ptr<TensorSource>> source = OpenTensorFolder(folder);
  if (!source.ok()) return text.empty() ? Result<std::string>(source.status()) : text;
  for (const SourceOperator& op : (*source)->operators()) {
    if (op.key.find(only) == std::string::npos && op.name.find(only) == std::string::npos) continue;
    for (const Side side : {Side::kInput, Side::kOutput}) {
      for (const int index : op.indexes(side)) {
        NPUMESH_ASSIGN_OR_RETURN(const Tensor tensor, (*source)->Load(op.key, side, index));
        text += StatLine(op, side, index, tensor);
      }
    }
  }
  return text;
}

}  // namespace npumesh
