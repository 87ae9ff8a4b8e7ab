#include "graph/io/weight_path.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <vector>

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Places, best first, each once.
class Places {
 public:
  explicit Places(fs::path package) : package_(std::move(package)) {}

  // One that a folder other than the package holds is in the package if it lies below it.
  void Add(const fs::path& place, const fs::path& folder) {
    const bool in_package = IsBelow(AbsolutePath(place), package_);
    std::string file = place.lexically_normal().string();
    const auto known = std::find_if(all_.begin(), all_.end(), [&](const WeightPlace& other) {
      return AbsolutePath(other.file) == AbsolutePath(file);
    });
    if (known == all_.end()) {
      all_.push_back({std::move(file), in_package ? package_ : folder, in_package});
    }
  }

  std::vector<WeightPlace>& all() { return all_; }

 private:
  fs::path package_;
  std::vector<WeightPlace> all_;
};

// Places built from a path that climbs out are left out.
std::vector<WeightPlace> PlacesOf(const fs::path& path, const fs::path& package,
                                  WeightSearch search) {
  Places places(package);
  const fs::path above = package.parent_path();
  const fs::path folder = path.parent_path().filename();
  const bool climbs = *path.begin() == "..";
  if (!climbs) places.Add(package / path, package);
  if (!climbs && IsBelow(above / path, package)) places.Add(above / path, package);
  if (climbs && IsBelow(AbsolutePath(path), package)) places.Add(path, package);
  if (!folder.empty() && folder != "..") places.Add(package / folder / path.filename(), package);
  places.Add(package / path.filename(), package);
  if (search == WeightSearch::kPackage) return places.all();
  if (!climbs) {
    places.Add(path, AbsolutePath("."));
    places.Add(above / path, above);
  }
  return places.all();
}

bool IsFile(const WeightPlace& place) {
  std::error_code error;
  return fs::is_regular_file(place.file, error);
}

std::vector<std::string> FilesOf(const std::vector<WeightPlace>& places) {
  std::vector<std::string> files;
  for (const WeightPlace& place : places) files.push_back(place.file);
  return files;
}

}  // namespace

fs::path AbsolutePath(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path normal = (error ? path : absolute).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

fs::path PackageFolder(const std::string& model_path) {
  const fs::path folder = fs::path(model_path).parent_path();
  return AbsolutePath(folder.empty() ? "." : folder);
}

std::optional<fs::path> LinkTargetOutside(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  fs::path target = fs::canonical(file, error);
  if (error) return std::nullopt;
  const fs::path home = fs::canonical(folder, error);
  if (error || IsBelow(target, home)) return std::nullopt;
  return target;
}

Result<WeightPlace> FindWeightFile(const std::string& stored, const std::string& model_path,
                                   WeightSearch search) {
  const fs::path path = fs::path(stored).lexically_normal();
  const fs::path package = PackageFolder(model_path);
  if (path.is_absolute()) {
    const bool inside = IsBelow(path, package);
    return WeightPlace{stored, inside ? package : fs::path(), inside};
  }
  if (path.empty() || (*path.begin() == ".." && !IsBelow(AbsolutePath(path), package))) {
    return Error(Code::kInvalidArgument,
                 "\"{}\" is neither below the working directory nor below the package {}", stored,
                 package.string());
  }
  const std::vector<WeightPlace> places = PlacesOf(path, package, search);
  const auto found = std::find_if(places.begin(), places.end(), IsFile);
  if (found != places.end()) return *found;
  return Error(Code::kNotFound, "\"{}\" is in none of: {}", stored,
               fmt::join(FilesOf(places), ", "));
}

}  // namespace npumesh
