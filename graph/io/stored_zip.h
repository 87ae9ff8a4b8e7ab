// Zip archives whose members are stored as they are, as torch.save writes them.
#ifndef NPUMESH_GRAPH_IO_STORED_ZIP_H_
#define NPUMESH_GRAPH_IO_STORED_ZIP_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

struct ZipMember {
  std::string_view name;  // in the archive
  uint64_t offset = 0;    // where its bytes begin in the file
  uint64_t bytes = 0;
};

bool LooksLikeZip(std::string_view file);

// The members of a whole file in the order of its directory; they lie in the file. Checksums are
// not compared: torch can be told not to compute them. Errors: kCorrupt; kUnsupported for a
// compressed or encrypted member, and for an archive of several files.
Result<std::vector<ZipMember>> ListStoredZip(std::string_view file);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_STORED_ZIP_H_
