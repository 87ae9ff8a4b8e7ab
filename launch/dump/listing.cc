#include "launch/dump/listing.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "graph/compare/measures/elements.h"
#include "graph/compare/sources/msprobe_folder.h"
#include "launch/report/json_parts.h"
#include "launch/view/graph_facts.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ListedOperator, type, name, task, statistics, inputs, outputs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StatisticsFile, name, type, content)

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

std::vector<std::string> TypesOf(const std::vector<DumpTensor>& tensors) {
  std::vector<std::string> types;
  for (const DumpTensor& tensor : tensors) types.push_back(tensor.type.ToString());
  return types;
}

Result<ListedOperator> RowOf(const DumpFolderFile& file) {
  ListedOperator row{file.name.op_type, file.name.op_name, file.name.task, file.name.stats, {}, {}};
  if (row.statistics) return row;
  NPUMESH_ASSIGN_OR_RETURN(const DumpFile data, DumpFile::Open(file.path));
  row.inputs = TypesOf(data.record().inputs);
  row.outputs = TypesOf(data.record().outputs);
  return row;
}

std::string LineOf(const ListedOperator& row) {
  const std::string head =
      fmt::format("  {:<18} {:<32} task {:<5}", Printable(row.type), Printable(row.name), row.task);
  if (row.statistics) return head + " statistics\n";
  return fmt::format("{} ({}) -> ({})\n", head, fmt::join(row.inputs, ", "),
                     fmt::join(row.outputs, ", "));
}

Moments MomentsOf(const std::vector<double>& elements) {
  Moments m;
  double sum = 0, squares = 0;
  for (const double v : elements) {
    m.nans += std::isnan(v);
    m.infinities += std::isinf(v);
    if (!std::isfinite(v)) continue;
    m.min = m.finite == 0 ? v : std::min(m.min, v);
    m.max = m.finite == 0 ? v : std::max(m.max, v);
    sum += v;
    squares += v * v;
    m.zeros += v == 0;
    ++m.finite;
  }
  if (m.finite == 0) return m;
  const auto count = static_cast<double>(m.finite);
  m.mean = sum / count;
  m.deviation = std::sqrt(std::max(0.0, squares / count - m.mean * m.mean));
  m.l2 = std::sqrt(squares);
  return m;
}

// "  the dump says min 1 max 2", what it says.
std::string SaidText(const DumpedStatistics& said) {
  std::string text = "  the dump says";
  const auto add = [&text](std::string_view name, const std::optional<double>& value) {
    if (value) text += fmt::format(" {} {:.6g}", name, *value);
  };
  add("min", said.min);
  add("max", said.max);
  add("mean", said.mean);
  add("l2", said.norm);
  if (!said.checksum.empty()) text += " checksum " + Printable(said.checksum);
  return text;
}

json SaidJson(const std::optional<DumpedStatistics>& said) {
  if (!said) return json();
  const auto number = [](const std::optional<double>& value) {
    return value ? json(*value) : json();
  };
  return {{"min", number(said->min)},
          {"max", number(said->max)},
          {"mean", number(said->mean)},
          {"l2", number(said->norm)},
          {"checksum", OrNull(said->checksum)}};
}

std::string LineOf(const ListedTensor& row) {
  const std::string head = fmt::format("{} ({}) {} {} {}", Printable(row.name), Printable(row.type),
                                       Name(row.side), row.index, row.tensor);
  if (row.said) return head + SaidText(*row.said) + "\n";
  if (!row.moments) return head + "  no numbers\n";
  const Moments& m = *row.moments;
  if (m.finite == 0) return fmt::format("{}  NaN {} Inf {}\n", head, m.nans, m.infinities);
  return fmt::format(
      "{}  min {:.6g} max {:.6g} mean {:.6g} std {:.6g} l2 {:.6g} zeros {} NaN {} Inf {}\n", head,
      m.min, m.max, m.mean, m.deviation, m.l2, m.zeros, m.nans, m.infinities);
}

json MomentsJson(const std::optional<Moments>& moments) {
  if (!moments) return json();
  return {
      {"min", moments->min},       {"max", moments->max},   {"mean", moments->mean},
      {"std", moments->deviation}, {"l2", moments->l2},     {"finite", moments->finite},
      {"zeros", moments->zeros},   {"nans", moments->nans}, {"infinities", moments->infinities}};
}

Result<std::vector<StatisticsFile>> StatisticsFiles(const std::string& folder,
                                                    const std::string& only) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(folder));
  std::vector<StatisticsFile> found;
  for (const DumpFolderFile& file : files) {
    if (!file.name.stats || file.name.op_name.find(only) == std::string::npos) continue;
    NPUMESH_ASSIGN_OR_RETURN(std::string content, ReadFile(file.path, uint64_t{1} << 30));
    found.push_back({file.name.op_name, file.name.op_type, std::move(content)});
  }
  return found;
}

Status AddTensors(TensorSource& source, const SourceOperator& op, FolderStatistics& statistics) {
  for (const Side side : {Side::kInput, Side::kOutput}) {
    for (const int index : op.indexes(side)) {
      if (!source.HasElements(op.key, side, index)) {
        const std::optional<DumpedStatistics> said = source.StatisticsOf(op.key, side, index);
        if (!said) continue;
        statistics.tensors.push_back(
            {op.name, op.type, side, index, said->type.ToString(), {}, said});
        continue;
      }
      NPUMESH_ASSIGN_OR_RETURN(const Tensor tensor, source.Load(op.key, side, index));
      ListedTensor row{op.name, op.type, side, index, tensor.type().ToString(), {}, {}};
      const Result<std::vector<double>> elements = ElementsOf(tensor);
      if (elements.ok()) row.moments = MomentsOf(*elements);
      statistics.tensors.push_back(std::move(row));
    }
  }
  return Status();
}

std::vector<std::string> TypesOf(const TensorSource& source, const SourceOperator& op, Side side) {
  std::vector<std::string> types;
  for (const int index : op.indexes(side)) {
    const std::optional<DumpedStatistics> said = source.StatisticsOf(op.key, side, index);
    if (said) types.push_back(said->type.ToString());
  }
  return types;
}

Result<ListedStep> ListMsprobe(const DumpStep& step, bool operators) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> source, OpenTensorFolder(step.path));
  ListedStep listed{step, source->operators().size(), 0, BytesIn(step.path), {}};
  const std::string tensors = fmt::format("{}/{}", step.path, kMsprobeTensors);
  listed.bytes += BytesIn(tensors);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(tensors, error), end; !error && entry != end;
       entry.increment(error)) {
    ++listed.files;
  }
  if (!operators) return listed;
  for (const SourceOperator& op : source->operators()) {
    listed.rows.push_back({op.type, op.name, 0, false, TypesOf(*source, op, Side::kInput),
                           TypesOf(*source, op, Side::kOutput)});
  }
  return listed;
}

}  // namespace

Result<ListedStep> ListStep(const DumpStep& step, bool operators) {
  if (step.msprobe) return ListMsprobe(step, operators);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(step.path));
  std::set<std::string> names;
  for (const DumpFolderFile& file : files) names.insert(file.name.op_name);
  ListedStep listed{step, names.size(), files.size(), BytesIn(step.path), {}};
  if (!operators) return listed;
  for (const DumpFolderFile& file : files) {
    NPUMESH_ASSIGN_OR_RETURN(ListedOperator row, RowOf(file));
    listed.rows.push_back(std::move(row));
  }
  return listed;
}

std::string ToText(const ListedStep& listed) {
  std::string text =
      fmt::format("{}  {} operators, {} files, {}\n  {}\n", StepName(listed.step), listed.operators,
                  listed.files, HumanBytes(listed.bytes), listed.step.path);
  for (const ListedOperator& row : listed.rows) text += LineOf(row);
  return text;
}

json ToJsonObject(const ListedStep& listed) {
  const DumpStep& step = listed.step;
  return {{"folder", step.path},           {"rank", step.rank},
          {"world_size", step.world_size}, {"time", step.time},
          {"model", step.model},           {"step", step.index ? json(*step.index) : json()},
          {"operators", listed.operators}, {"files", listed.files},
          {"bytes", listed.bytes},         {"rows", listed.rows}};
}

Result<FolderStatistics> StatisticsOf(const std::string& folder, const std::string& only) {
  FolderStatistics statistics;
  statistics.folder = folder;
  NPUMESH_ASSIGN_OR_RETURN(statistics.files, StatisticsFiles(folder, only));
  const Result<std::unique_ptr<TensorSource>> source = OpenTensorFolder(folder);
  if (!source.ok()) {
    return statistics.files.empty() ? Result<FolderStatistics>(source.status()) : statistics;
  }
  for (const SourceOperator& op : (*source)->operators()) {
    if (op.key.find(only) == std::string::npos && op.name.find(only) == std::string::npos) continue;
    NPUMESH_RETURN_IF_ERROR(AddTensors(**source, op, statistics));
  }
  return statistics;
}

std::string ToText(const FolderStatistics& statistics) {
  std::string text;
  for (const StatisticsFile& file : statistics.files) {
    text += fmt::format("{} ({})\n{}", Printable(file.name), Printable(file.type), file.content);
  }
  for (const ListedTensor& row : statistics.tensors) text += LineOf(row);
  return text;
}

json ToJsonObject(const FolderStatistics& statistics) {
  const auto tensor = [](const ListedTensor& row) {
    return json{{"name", row.name},          {"type", row.type},
                {"side", Name(row.side)},    {"index", row.index},
                {"tensor", row.tensor},      {"moments", MomentsJson(row.moments)},
                {"said", SaidJson(row.said)}};
  };
  return {{"folder", statistics.folder},
          {"files", statistics.files},
          {"tensors", ListOf(statistics.tensors, tensor)}};
}

}  // namespace npumesh
