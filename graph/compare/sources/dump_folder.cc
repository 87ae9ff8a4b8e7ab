#include "graph/compare/sources/dump_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "graph/compare/sources/msprobe_folder.h"
#include "graph/compare/sources/npy_folder.h"
#include "graph/dump/format/format_mapping.h"

namespace npumesh {
namespace {

constexpr std::string_view kOverflowType = "Opdebug";

struct DumpedTensor {
  std::string path;
  DumpTensor tensor;
};

class DumpFolder final : public TensorSource {
 public:
  explicit DumpFolder(std::string folder) : folder_(std::move(folder)) {}

  // Files come in order of time; a later one replaces what an earlier one had.
  void Add(const DumpFolderFile& file, const DumpRecord& record) {
    const std::string& key = file.name.op_name;
    const auto [place, added] = operators_by_key_.emplace(key, operators_.size());
    if (added) {
      const std::string& name = record.op_name.empty() ? key : record.op_name;
      operators_.push_back({key, name, file.name.op_type, {}, {}});
    }
    SourceOperator& op = operators_[place->second];
    AddTensors(file.path, op, Side::kInput, record.inputs);
    AddTensors(file.path, op, Side::kOutput, record.outputs);
  }

  const std::string& title() const override { return folder_; }
  const std::vector<SourceOperator>& operators() const override { return operators_; }

  Result<Tensor> Load(const std::string& key, Side side, int index) const override {
    const auto place = places_.find({key, side, index});
    if (place == places_.end()) return NoSuchTensor(*this, key, side, index);
    NPUMESH_ASSIGN_OR_RETURN(const DumpFile file, DumpFile::Open(place->second.path));
    return TensorOf(file, place->second.tensor);
  }

  std::string FileOf(const std::string& key, Side side, int index) const override {
    const auto place = places_.find({key, side, index});
    return place == places_.end() ? std::string() : place->second.path;
  }

  uint64_t AddressOf(const std::string& key, Side side, int index) const override {
    const auto place = places_.find({key, side, index});
    return place == places_.end() ? 0 : place->second.tensor.address;
  }

 private:
  void AddTensors(const std::string& path, SourceOperator& op, Side side,
                  const std::vector<DumpTensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const DumpTensor& tensor = tensors[i];
      const bool empty =
          tensor.size == 0 && !(tensor.type.shape.rank() > 0 && tensor.type.shape.elements() == 0);
      if (empty) continue;
      const auto index = static_cast<int>(i);
      AddIndex(op, side, index);
      places_[{op.key, side, index}] = {path, tensor};
    }
  }

  std::string folder_;
  std::vector<SourceOperator> operators_;
  std::map<std::string, size_t> operators_by_key_;
  std::map<std::tuple<std::string, Side, int>, DumpedTensor> places_;
};

Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code not_a_file;
    if (entry->is_regular_file(not_a_file)) names.push_back(entry->path().filename().string());
  }
  if (error) return Error(Code::kNotFound, "{}: {}", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool HoldsTensors(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return ParseDumpFileName(name).has_value() || ParseNpyName(name).has_value() ||
           name == kMappingFile;
  });
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 19 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

uint64_t ToNumber(const std::string& digits) {
  uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<uint64_t>(c - '0');
  return number;
}

// {time}/{device}[/{model}/{model id}[/{step}]] at the end of a path.
DumpStep Describe(const std::filesystem::path& path) {
  DumpStep step;
  step.path = path.string();
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::absolute(path).lexically_normal()) {
    if (!part.empty()) parts.push_back(part.string());
  }
  size_t time = parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (const std::optional<RankFolder> folder = ParseRankFolderName(parts[i])) {
      step.rank = folder->rank;
      step.world_size = folder->world_size;
    }
    if (parts[i].size() == 14 && IsNumber(parts[i])) time = i;
  }
  if (time == parts.size()) {
    if (IsNumber(parts.back())) step.index = ToNumber(parts.back());
    return step;
  }
  step.time = parts[time];
  if (time + 3 < parts.size()) {
    step.model = parts[time + 2];
    step.model_id = parts[time + 3];
  }
  if (time + 4 < parts.size() && IsNumber(parts[time + 4])) step.index = ToNumber(parts[time + 4]);
  return step;
}

DumpStep DescribeMsprobe(const std::string& path) {
  const MsprobePlace place = MsprobePlaceOf(path);
  DumpStep step;
  step.path = path;
  step.rank = place.rank;
  step.index = place.step;
  step.msprobe = true;
  return step;
}

Status Walk(const std::filesystem::path& folder, int depth, std::vector<DumpStep>& steps) {
  constexpr int kMostLevels = 30;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder.string()));
  if (IsMsprobeFolder(folder.string())) {  // what is below belongs to it
    steps.push_back(DescribeMsprobe(folder.string()));
    return Status();
  }
  if (HoldsTensors(names)) steps.push_back(Describe(folder));
  if (depth == kMostLevels) return Status();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_symlink(error) || !entry->is_directory(error)) continue;
    NPUMESH_RETURN_IF_ERROR(Walk(entry->path(), depth + 1, steps));
  }
  if (error) return Error(Code::kIo, "{}: {}", folder.string(), error.message());
  return Status();
}

// How many ranks msProbe saw is not in its files: as many as left a folder. Error: two folders of
// one rank and step, such as those of processes without a rank.
Status CompleteMsprobe(std::vector<DumpStep>& steps) {
  int ranks = 1;
  for (const DumpStep& step : steps) ranks = std::max(ranks, step.rank + 1);
  std::map<std::pair<int, std::optional<uint64_t>>, std::string> seen;
  for (DumpStep& step : steps) {
    if (!step.msprobe) continue;
    step.world_size = ranks;
    const auto [other, added] = seen.emplace(std::pair(step.rank, step.index), step.path);
    if (added) continue;
    return Error(
        Code::kInvalidArgument,
        "{} and {} are both of rank {} and of one step; name one of them, or a folder with "
        "one run",
        other->second, step.path, step.rank);
  }
  return Status();
}

}  // namespace

Result<std::vector<DumpFolderFile>> ListDumpFiles(const std::string& folder) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  NPUMESH_ASSIGN_OR_RETURN(const auto mapping, ReadMapping(folder));
  std::vector<DumpFolderFile> files;
  for (const std::string& stored : names) {
    const auto mapped = mapping.find(stored);
    const std::string& name = mapped == mapping.end() ? stored : mapped->second;
    std::optional<DumpFileName> parsed = ParseDumpFileName(name);
    if (parsed) files.push_back({*std::move(parsed), folder + "/" + stored, name});
  }
  std::stable_sort(files.begin(), files.end(),
                   [](const DumpFolderFile& a, const DumpFolderFile& b) {
                     return std::tie(a.name.time, a.name.task) < std::tie(b.name.time, b.name.task);
                   });
  return files;
}

Tensor TensorOf(const DumpFile& file, const DumpTensor& tensor) {
  TensorType type = tensor.type;
  const bool fits =
      BitsOf(type.dtype) > 0 && type.shape.is_static() && type.shape.Check().ok() &&
      BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements())) == tensor.size;
  if (!fits) type = {DataType::kInt8, Shape({static_cast<int64_t>(tensor.size)})};
  Tensor copy = Tensor::Allocate(type);
  const auto payload = file.payload(tensor);
  if (!payload.empty()) std::memcpy(copy.mutable_data(), payload.data(), payload.size());
  return copy;
}

Result<std::unique_ptr<TensorSource>> OpenDumpFolder(const std::string& folder) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(folder));
  auto source = std::make_unique<DumpFolder>(folder);
  for (const DumpFolderFile& file : files) {
    if (file.name.stats || file.name.op_type == kOverflowType) continue;
    NPUMESH_ASSIGN_OR_RETURN(const DumpFile data, DumpFile::Open(file.path));
    source->Add(file, data.record());
  }
  if (source->operators().empty()) {
    return Error(
        Code::kNotFound, "{}: no dump file with tensors{}", folder,
        files.empty() ? "" : "; statistics cannot be compared, dump with dump_data tensor");
  }
  return std::unique_ptr<TensorSource>(std::move(source));
}

Result<std::vector<DumpStep>> FindDumpSteps(const std::string& root) {
  std::vector<DumpStep> steps;
  NPUMESH_RETURN_IF_ERROR(Walk(root, 0, steps));
  if (steps.empty()) {
    return Error(Code::kNotFound,
                 "{}: neither dump files nor .npy files nor a dump of msProbe in it or below",
                 root);
  }
  NPUMESH_RETURN_IF_ERROR(CompleteMsprobe(steps));
  std::stable_sort(steps.begin(), steps.end(), [](const DumpStep& a, const DumpStep& b) {
    return std::tie(a.rank, a.time, a.model, a.model_id, a.index, a.path) <
           std::tie(b.rank, b.time, b.model, b.model_id, b.index, b.path);
  });
  return steps;
}

Result<std::unique_ptr<TensorSource>> OpenTensorFolder(const std::string& folder) {
  if (IsMsprobeFolder(folder)) return OpenMsprobeFolder(folder);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(folder));
  return files.empty() ? OpenNpyFolder(folder) : OpenDumpFolder(folder);
}

}  // namespace npumesh
