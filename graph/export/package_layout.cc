#include "graph/export/package_layout.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace npumesh {
namespace {

constexpr size_t kLongestPath = 4096;
constexpr size_t kLongestName = 255;

// No more than a file system takes, with room for the rank and the ending.
Status CheckName(std::string_view name, std::string_view what) {
  constexpr size_t kLongest = kLongestName - std::string_view("2147483647.air").size();
  const bool control = std::any_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (!name.empty() && name != "." && name != ".." && !control && name.size() <= kLongest) {
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{} \"{}\" is no file name; expected 1 to {} bytes without control characters", what,
               name.substr(0, 80), kLongest);
}

// The folder that stored paths begin with.
std::string StoredFolder(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path normal = fs::path(path).lexically_normal();
  std::error_code error;
  if (normal.is_absolute() || *normal.begin() != "..") return path;
  fs::path whole = fs::absolute(path, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return error ? path : "./" + whole.filename().string();
}

}  // namespace

std::string JoinPath(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

Result<PackageLayout> PackageLayout::Make(std::string export_path, std::string_view export_name,
                                          bool distributed) {
  if (export_path.empty()) {
    return Error(Code::kInvalidArgument, "export_path is empty; name the folder of the package");
  }
  if (export_path.size() > kLongestPath || export_path.find('\0') != std::string::npos) {
    return Error(Code::kInvalidArgument, "export_path has {} bytes; expected at most {}, none zero",
                 export_path.size(), kLongestPath);
  }
  const size_t slash = export_name.rfind('/');
  const auto name = slash == export_name.npos ? export_name : export_name.substr(slash + 1);
  NPUMESH_RETURN_IF_ERROR(CheckName(name, "export_name"));
  return PackageLayout{std::move(export_path), std::string(name), distributed};
}

std::string PackageLayout::AirName(int rank) const {
  return distributed ? fmt::format("{}{}.air", name, rank) : name + ".air";
}

std::string PackageLayout::RankFolder(int rank) const {
  return distributed ? fmt::format("rank_{}/", rank) : "";
}

std::string PackageLayout::StoredPath(int rank, std::string_view file) const {
  return JoinPath(StoredFolder(path), RankFolder(rank).append(file));
}

Result<std::string> WeightFileName(std::string_view parameter) {
  std::string file(parameter);
  for (char& c : file) {
    if (c == '.' || c == '/' || c == '\\' || c == ' ') c = '_';
  }
  NPUMESH_RETURN_IF_ERROR(CheckName(file, "the weight file"));
  return file;
}

}  // namespace npumesh
