// Writes the page of a made-up run, for the tests that open it: make_page <file> <ranks> <spans>.
#include <cstdio>
#include <optional>

#include "launch/profile/profile_page.h"
#include "runtime/base/parse.h"
#include "runtime/base/secure_file.h"
#include "tests/unit/profile_view/profiles.h"

namespace npumesh::testing {
namespace {

Status MakePage(const std::string& path, std::string_view ranks, std::string_view spans) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t rank_count, ParseInt(ranks, 1, 64, "ranks"));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t span_count, ParseInt(spans, 1, 10'000'000, "spans"));
  std::vector<RankProfile> profiles =
      LikelyRun(static_cast<int>(rank_count), static_cast<size_t>(span_count));
  profiles.back().ended = false;  // so that the page has a warning
  const CommonClock clock(profiles);
  const ProfileFacts facts = FactsOf(profiles, CollectiveCalls(profiles), clock);
  return WriteFile(path, ProfilePage(profiles, clock, facts, MachineLimits{100, 10}).html,
                   FileKind::kData);
}

}  // namespace
}  // namespace npumesh::testing

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: make_page <file> <ranks> <spans>\n");
    return 2;
  }
  const npumesh::Status status = npumesh::testing::MakePage(argv[1], argv[2], argv[3]);
  if (!status.ok()) std::fprintf(stderr, "make_page: %s\n", status.ToString().c_str());
  return npumesh::ExitCode(status);
}
