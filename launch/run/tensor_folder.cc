#include "launch/run/tensor_folder.h"

#include <algorithm>
#include <filesystem>

#include "graph/io/npy.h"
#include "runtime/base/files/leftovers.h"
#include "runtime/base/files/named_path.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

}  // namespace

Result<TensorFolder> TensorFolder::ToWrite(std::string folder, int rank, uint64_t steps) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kData));
  TensorFolder result;
  result.folder_ = std::move(folder);
  result.rank_folder_ = fmt::format("rank_{}", rank);
  result.has_steps_ = steps > 1;
  return result;
}

Result<TensorFolder> TensorFolder::ToRead(const std::string& folder, int rank, int size) {
  NPUMESH_RETURN_IF_ERROR(NeedFolder(folder, "name a folder of .npy files"));
  TensorFolder result;
  result.folder_ = folder;
  result.has_steps_ = IsFolder(fs::path(folder) / "step_0");
  result.rank_folder_ = fmt::format("rank_{}", rank);
  const fs::path set = result.has_steps_ ? fs::path(folder) / "step_0" : fs::path(folder);
  if (IsFolder(set / result.rank_folder_)) return result;
  if (size > 1) {
    return Error(Code::kNotFound, "{}: no such folder; every rank needs its own",
                 (set / result.rank_folder_).string());
  }
  result.rank_folder_.clear();
  return result;
}

std::string TensorFolder::File(uint64_t step, int64_t index) const {
  fs::path path(folder_);
  if (has_steps_) path /= fmt::format("step_{}", step);
  if (!rank_folder_.empty()) path /= rank_folder_;
  return (path / fmt::format("{}.npy", index)).string();
}

std::vector<std::string> TensorFolder::OtherFiles(const std::set<int64_t>& indexes) const {
  std::set<std::string> expected;
  for (const int64_t index : indexes) expected.insert(fmt::format("{}.npy", index));
  std::vector<std::string> others;
  std::error_code error;
  const fs::path folder = fs::path(File(0, 0)).parent_path();
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".npy") && !expected.contains(name)) others.push_back(it->path().string());
  }
  std::sort(others.begin(), others.end());
  return others;
}

Result<Tensor> TensorFolder::Read(uint64_t step, int64_t index) const {
  return ReadNpy(File(step, index));
}

Status TensorFolder::Write(uint64_t step, int64_t index, const Tensor& tensor) const {
  const std::string file = File(step, index);
  const std::string folder = fs::path(file).parent_path().string();
  const std::string below = fs::path(folder).lexically_relative(folder_).string();
  NPUMESH_RETURN_IF_ERROR(MakeFoldersBelow(folder_, below, FileKind::kData));
  if (index == 0) ClearLeftoversOf(folder, LeftoverDepth::kFolder);
  return WriteNpy(file, tensor);
}

}  // namespace npumesh
