// write_vendor_profiles FOLDER RANKS: the vendor's files of a made-up job, for readers in other
// languages.
#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "runtime/base/text/parse.h"
#include "runtime/msprof/vendor_files.h"
#include "tests/unit/msprof/made_up_profile.h"

namespace npumesh {
namespace {

Status Run(const std::string& folder, std::string_view ranks) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t count, ParseInt(ranks, 1, 64, "RANKS"));
  std::vector<RankProfile> profiles;
  for (int rank = 0; rank < count; ++rank) {
    profiles.push_back(MadeUpRank(rank, static_cast<int>(count)));
  }
  return WriteVendorFiles(profiles, folder, 1'763'865'100'000'000'000);
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: write_vendor_profiles FOLDER RANKS\n");
    return 2;
  }
  const npumesh::Status status = npumesh::Run(argv[1], argv[2]);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.message());
  return status.ok() ? 0 : 1;
}
