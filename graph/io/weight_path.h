// Where the file of a FileConstant is. Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_WEIGHT_PATH_H_
#define NPUMESH_GRAPH_IO_WEIGHT_PATH_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// The folder of a model file, absolute and normal.
std::filesystem::path PackageFolder(const std::string& model_path);
std::filesystem::path AbsolutePath(const std::filesystem::path& path);
// By names alone: `path` is `folder` or lies below it. Both absolute and normal.
bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& folder);

// Where `file` leads when all links are followed, if that is not below `folder`, links followed
// too.
std::optional<std::filesystem::path> LinkTargetOutside(const std::filesystem::path& file,
                                                       const std::filesystem::path& folder);

struct WeightPlace {
  std::string file;
  // The folder below which it was looked for, which no link in its way may leave: the package, or
  // the one that holds a relative path from outside; empty for a path that names its own place.
  std::filesystem::path folder;
  bool in_package = false;
};

// The first existing place of `stored`, in the order that LoadWeight documents; an absolute path
// that exists nowhere is its own place. Error: kNotFound lists all places.
Result<WeightPlace> FindWeightFile(const std::string& stored, const std::string& model_path);

// The places of `stored` inside of the package, existing or not, best first.
std::vector<std::string> PlacesInPackage(const std::string& stored, const std::string& model_path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WEIGHT_PATH_H_
