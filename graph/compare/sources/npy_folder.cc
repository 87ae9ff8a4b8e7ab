#include "graph/compare/sources/npy_folder.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "graph/io/npy.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr std::string_view kExtension = ".npy";

std::vector<std::string_view> SplitDots(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<uint64_t> Number(std::string_view text) {
  const Result<int64_t> number = ParseInt(text, 0, std::numeric_limits<int64_t>::max(), "name");
  if (!number.ok()) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

// The number of a tensor among those of its operator.
std::optional<int> Index(std::string_view text) {
  const Result<int64_t> number = ParseInt(text, 0, 99'999, "name");
  if (!number.ok()) return std::nullopt;
  return static_cast<int>(*number);
}

std::string Join(const std::vector<std::string_view>& parts, size_t count) {
  std::string joined;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) joined += '.';
    joined += parts[i];
  }
  return OperatorKey(joined);
}

// {type}.{name}.{task}[.{stream}].{timestamp}, what stands before ".output.0".
bool ParseDumpStem(const std::vector<std::string_view>& parts, NpyName& name) {
  if (parts.size() != 4 && parts.size() != 5) return false;
  const std::optional<uint64_t> task = Number(parts[2]);
  const std::optional<uint64_t> timestamp = Number(parts.back());
  if (!task || !timestamp || !Number(parts[3])) return false;
  name.type = parts[0];
  name.key = parts[1];
  name.task = *task;
  name.timestamp = *timestamp;
  return true;
}

struct NpyFile {
  NpyName name;
  std::string path;
};

class NpyFolder final : public TensorSource {
 public:
  NpyFolder(std::string folder, std::vector<NpyFile> files) : folder_(std::move(folder)) {
    std::stable_sort(files.begin(), files.end(), [](const NpyFile& a, const NpyFile& b) {
      return std::tie(a.name.timestamp, a.name.task) < std::tie(b.name.timestamp, b.name.task);
    });
    std::map<std::string, size_t> places;
    for (NpyFile& file : files) {
      const NpyName& name = file.name;
      const auto [place, added] = places.emplace(name.key, operators_.size());
      if (added) operators_.push_back({name.key, name.key, name.type, {}, {}});
      AddIndex(operators_[place->second], name.side, name.index);
      files_[{name.key, name.side, name.index}] = std::move(file.path);
    }
  }

  const std::string& title() const override { return folder_; }
  const std::vector<SourceOperator>& operators() const override { return operators_; }

  Result<Tensor> Load(const std::string& key, Side side, int index) const override {
    const std::string file = FileOf(key, side, index);
    if (file.empty()) return NoSuchTensor(*this, key, side, index);
    return ReadNpy(file);
  }

  std::string FileOf(const std::string& key, Side side, int index) const override {
    const auto file = files_.find({key, side, index});
    return file == files_.end() ? std::string() : file->second;
  }

 private:
  std::string folder_;
  std::vector<SourceOperator> operators_;
  std::map<std::tuple<std::string, Side, int>, std::string> files_;
};

}  // namespace

std::optional<NpyName> ParseNpyName(std::string_view file_name) {
  if (!file_name.ends_with(kExtension)) return std::nullopt;
  file_name.remove_suffix(kExtension.size());
  std::vector<std::string_view> parts = SplitDots(file_name);
  NpyName name;
  if (parts.size() < 2) return std::nullopt;
  const std::string_view side = parts[parts.size() - 2];
  if (side == "input" || side == "output") {
    const std::optional<int> index = Index(parts.back());
    if (!index || parts.size() < 3) return std::nullopt;
    name.side = side == "input" ? Side::kInput : Side::kOutput;
    name.index = *index;
    parts.resize(parts.size() - 2);
    if (!ParseDumpStem(parts, name)) name.key = Join(parts, parts.size());
    return name;
  }
  const std::optional<uint64_t> timestamp = Number(parts.back());
  const std::optional<int> golden_index = Index(side);
  if (timestamp && golden_index && parts.size() >= 3) {
    name.index = *golden_index;
    name.timestamp = *timestamp;
    name.key = Join(parts, parts.size() - 2);
    return name;
  }
  const std::optional<int> index = Index(parts.back());
  if (!index) return std::nullopt;
  name.index = *index;
  name.key = Join(parts, parts.size() - 1);
  return name;
}

Result<std::unique_ptr<TensorSource>> OpenNpyFolder(const std::string& folder) {
  std::error_code error;
  std::vector<NpyFile> files;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  if (error) return Error(Code::kNotFound, "{}: {}", folder, error.message());
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    std::optional<NpyName> name = ParseNpyName(path.filename().string());
    if (name) files.push_back({*std::move(name), path.string()});
  }
  if (files.empty()) {
    return Error(Code::kNotFound, "{}: no .npy file with the name of a tensor, such as Add_1.0.npy",
                 folder);
  }
  return std::unique_ptr<TensorSource>(std::make_unique<NpyFolder>(folder, std::move(files)));
}

}  // namespace npumesh
