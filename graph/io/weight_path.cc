#include "graph/io/weight_path.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

fs::path Absolute(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return (error ? path : absolute).lexically_normal();
}

bool IsInside(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

fs::path PackageFolder(const std::string& model_path) {
  const fs::path folder = fs::path(model_path).parent_path();
  return Absolute(folder.empty() ? "." : folder);
}

void AddOnce(const fs::path& place, std::vector<std::string>* places) {
  std::string text = place.lexically_normal().string();
  if (std::find(places->begin(), places->end(), text) == places->end()) {
    places->push_back(std::move(text));
  }
}

// Best first. Places built from a path that climbs out are left out.
std::vector<std::string> Places(const fs::path& path, const fs::path& package) {
  std::vector<std::string> places;
  AddOnce(path, &places);
  if (*path.begin() != "..") {
    AddOnce(package / path, &places);
    AddOnce(package.parent_path() / path, &places);
  }
  const fs::path folder = path.parent_path().filename();
  if (!folder.empty() && folder != "..") AddOnce(package / folder / path.filename(), &places);
  AddOnce(package / path.filename(), &places);
  return places;
}

bool IsFile(const std::string& place) {
  std::error_code error;
  return fs::is_regular_file(place, error);
}

}  // namespace

Result<std::string> FindWeightFile(const std::string& stored, const std::string& model_path) {
  const fs::path path = fs::path(stored).lexically_normal();
  if (path.is_absolute()) return stored;
  const fs::path package = PackageFolder(model_path);
  if (path.empty() || (*path.begin() == ".." && !IsInside(Absolute(path), package))) {
    return Error(Code::kInvalidArgument,
                 "\"{}\" is neither below the working directory nor below the package {}", stored,
                 package.string());
  }
  const std::vector<std::string> places = Places(path, package);
  const auto found = std::find_if(places.begin(), places.end(), IsFile);
  if (found == places.end()) {
    return Error(Code::kNotFound, "\"{}\" is in none of: {}", stored, fmt::join(places, ", "));
  }
  if (found != places.begin()) {
    NPUMESH_WARNING_ONCE("weight file \"{}\" is not below the working directory; taken from {}",
                         stored, *found);
  }
  return *found;
}

}  // namespace npumesh
