// Where the files of a package lie, as TorchAir's dynamo_export puts them:
//
//   one card                         several cards, or a distributed run of one
//   <path>/dynamo.pbtxt              <path>/<name><rank>.air
//   <path>/<name>.air                <path>/rank_<rank>/dynamo.pbtxt
//   <path>/<weight files>            <path>/rank_<rank>/<weight files>
//   <path>/checksums.sha256          <path>/checksums.sha256
//                                    <path>/model_relation_config.json, numa_config.json
#ifndef NPUMESH_GRAPH_EXPORT_PACKAGE_LAYOUT_H_
#define NPUMESH_GRAPH_EXPORT_PACKAGE_LAYOUT_H_

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

inline constexpr std::string_view kPbtxtName = "dynamo.pbtxt";
inline constexpr std::string_view kChecksumsName = "checksums.sha256";
inline constexpr std::string_view kRelationConfigName = "model_relation_config.json";
inline constexpr std::string_view kNumaConfigName = "numa_config.json";

struct PackageLayout {
  std::string path;  // the export path as it was typed, nothing normalised
  std::string name;  // of the .air, without rank and ending
  bool distributed = false;

  // `export_name` may be a path, of which the last component counts. Errors (kInvalidArgument): an
  // empty path, a name that names no file, a component longer than 255 bytes or a path of more than
  // 4096.
  static Result<PackageLayout> Make(std::string export_path, std::string_view export_name,
                                    bool distributed);

  // "mp_rank0.air", relative to the package; without the number for one card.
  std::string AirName(int rank) const;
  // "rank_0/", relative to the package; empty for one card.
  std::string RankFolder(int rank) const;
  // What `file_path` of a FileConstant says: the export path as typed, the rank's folder, the file.
  // Of a path that climbs ("../mp") the last component ("./mp"), because every relative path means:
  // run from the folder above the package.
  std::string StoredPath(int rank, std::string_view file) const;
};

// `folder` + "/" + `name`, without a second slash.
std::string JoinPath(std::string_view folder, std::string_view name);

// The file of a weight: '.', '/', '\' and blanks of its name become '_', so that a name is one file
// of the rank's folder. Error (kInvalidArgument) names a weight that has no such file name.
Result<std::string> WeightFileName(std::string_view parameter);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_PACKAGE_LAYOUT_H_
