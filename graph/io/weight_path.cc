#include "graph/io/weight_path.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "graph/io/offline_file.h"

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

  const std::vector<WeightPlace>& all() const { return all_; }

 private:
  fs::path package_;
  std::vector<WeightPlace> all_;
};

// Those in the package come first, wherever the path leads: a package may have been moved.
std::vector<WeightPlace> PlacesOf(const fs::path& path, const fs::path& package) {
  Places places(package);
  const fs::path above = package.parent_path();
  const fs::path folder = path.parent_path().filename();
  const bool below = path.is_relative() && *path.begin() != "..";
  if (below) places.Add(package / path, package);
  if (below && IsBelow(above / path, package)) places.Add(above / path, package);
  if (!below && IsBelow(AbsolutePath(path), package)) places.Add(path, package);
  if (!folder.empty() && folder != "..") places.Add(package / folder / path.filename(), package);
  places.Add(package / path.filename(), package);
  if (below) {
    places.Add(path, AbsolutePath("."));
    places.Add(above / path, above);
  } else {
    places.Add(path, fs::path());
  }
  return places.all();
}

std::vector<WeightPlace> PlacesOf(const std::string& stored, const std::string& model_path) {
  const fs::path path = fs::path(stored).lexically_normal();
  return path.empty() ? std::vector<WeightPlace>() : PlacesOf(path, PackageFolder(model_path));
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

Result<WeightPlace> FindWeightFile(const std::string& stored, const std::string& model_path) {
  if (stored == kInThisFile) return WeightPlace{model_path, PackageFolder(model_path), true};
  const std::vector<WeightPlace> places = PlacesOf(stored, model_path);
  const auto found = std::find_if(places.begin(), places.end(), IsFile);
  if (found != places.end()) return *found;
  if (fs::path(stored).is_absolute()) return WeightPlace{stored, fs::path(), false};
  return Error(Code::kNotFound, "\"{}\" is in none of: {}", stored,
               fmt::join(FilesOf(places), ", "));
}

std::vector<std::string> PlacesInPackage(const std::string& stored, const std::string& model_path) {
  if (stored == kInThisFile) return {model_path};
  std::vector<WeightPlace> places = PlacesOf(stored, model_path);
  std::erase_if(places, [](const WeightPlace& place) { return !place.in_package; });
  return FilesOf(places);
}

}  // namespace npumesh
