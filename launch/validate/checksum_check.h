// Check of checksums.sha256, which `export` writes: is every file what it was then?
#ifndef NPUMESH_LAUNCH_VALIDATE_CHECKSUM_CHECK_H_
#define NPUMESH_LAUNCH_VALIDATE_CHECKSUM_CHECK_H_

#include <cstddef>
#include <functional>

#include "launch/validate/package_files.h"

namespace npumesh {

// Reads the files that checksums.sha256 lists; a package without it, and a listed file that is not
// there or that has an error in `findings`, are the business of other checks. A file with other
// content is an error. `progress`, which may be null, is told before each file.
void CheckChecksums(const PackageFiles& files,
                    const std::function<void(size_t done, size_t files)>& progress,
                    Findings* findings);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_CHECKSUM_CHECK_H_
