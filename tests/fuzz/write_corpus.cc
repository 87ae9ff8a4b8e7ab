// Writes the seeds of all targets: write_corpus <folder>. Files of other names, findings of earlier
// runs, stay.
#include <fmt/format.h>

#include <cstdio>

#include "runtime/base/files/secure_file.h"
#include "tests/fuzz/seeds.h"

namespace npumesh::fuzz {
namespace {

Status WriteSeeds(const std::string& corpus) {
  for (const Target& target : AllTargets()) {
    const std::string folder = corpus + "/" + target.name;
    NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kData));
    for (size_t i = 0; i < target.seeds.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(
          WriteFile(fmt::format("{}/seed_{}", folder, i), target.seeds[i], FileKind::kData));
    }
  }
  return Status();
}

}  // namespace
}  // namespace npumesh::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_corpus FOLDER\n", stderr);
    return 2;
  }
  const npumesh::Status written = npumesh::fuzz::WriteSeeds(argv[1]);
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.ToString().c_str());
  return npumesh::ExitCode(written);
}
