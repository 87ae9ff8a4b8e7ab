// Which files of a folder are a package, ours or a foreign one.
#ifndef NPUMESH_LAUNCH_VALIDATE_PACKAGE_FILES_H_
#define NPUMESH_LAUNCH_VALIDATE_PACKAGE_FILES_H_

#include <set>
#include <string>
#include <vector>

#include "launch/validate/findings.h"
#include "runtime/base/status.h"

namespace npumesh {

struct PackageFiles {
  std::string folder;
  std::vector<std::string> airs;  // by rank; empty where the file of a rank is missing
  bool distributed = false;       // the files are numbered by rank
  std::set<std::string> names;    // all files, relative, folders rank_<R> included

  std::string PathOf(const std::string& name) const { return folder + "/" + name; }
  bool Has(const std::string& name) const { return names.contains(name); }
  // dynamo.pbtxt of a rank.
  std::string TextOf(int rank) const;
};

// Lists `folder`. What is odd about names goes to `findings`. Errors: kNotFound, kIo;
// kInvalidArgument for a folder without an .air, which is no package.
Result<PackageFiles> ListPackage(const std::string& folder, Findings* findings);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_PACKAGE_FILES_H_
