#include "launch/validate/checksum_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "graph/digest/sha256.h"
#include "graph/export/checksums.h"
#include "graph/export/package_layout.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr uint64_t kLargestList = uint64_t{64} << 20;
constexpr uint64_t kPiece = uint64_t{16} << 20;
// Files with other content that are named one by one.
constexpr size_t kMostNamed = 8;

// Pages that were read are given back, because a package may be larger than the memory.
std::string DigestOf(const MappedFile& file) {
  Sha256Sum sum;
  for (uint64_t done = 0; done < file.size(); done += kPiece) {
    const uint64_t bytes = std::min(kPiece, file.size() - done);
    sum.Add(std::span(file.data() + done, bytes));
    file.Release(file.data() + done, bytes);
  }
  return sum.Text();
}

Result<Checksums> ReadChecksums(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestList));
  return ParseChecksums(text);
}

}  // namespace

void CheckChecksums(const PackageFiles& files,
                    const std::function<void(size_t done, size_t files)>& progress,
                    Findings* findings) {
  const std::string list(kChecksumsName);
  if (!files.Has(list)) return;
  const Result<Checksums> checksums = ReadChecksums(files.PathOf(list));
  if (!checksums.ok()) return findings->Error(list, std::string(checksums.status().message()));
  std::set<std::string> told;
  for (const Finding& finding : findings->all()) {
    if (finding.severity == Severity::kError) told.insert(finding.subject);
  }
  size_t done = 0;
  size_t changed = 0;
  std::string last;
  for (const auto& [name, digest] : *checksums) {
    if (progress) progress(done, checksums->size());
    ++done;
    if (!files.Has(name) || told.contains(name)) continue;
    const auto file = MappedFile::Open(files.PathOf(name));
    if (!file.ok()) {
      findings->Error(name, std::string(file.status().message()));
    } else if (DigestOf(**file) != digest) {
      last = name;
      if (++changed > kMostNamed) continue;
      findings->Error(name,
                      fmt::format("its content is not what {} says: it was damaged or changed "
                                  "after the export",
                                  list));
    }
  }
  if (changed <= kMostNamed) return;
  findings->Error(
      last, fmt::format("and {} more files are not what {} says", changed - kMostNamed, list));
}

}  // namespace npumesh
