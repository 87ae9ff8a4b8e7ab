// Ranks as threads on two simulated hosts.
#include <gmock/gmock.h>

#include <mutex>

#include "launch/doctor/doctor.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

TEST(Doctor, ReportsOncePerHostOnEveryRank) {
  std::mutex mutex;
  std::vector<std::vector<HostReport>> all;
  const auto statuses = RunRanks(
      3, TestEnv(),
      [&](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const auto circle, RankCircle::Create(world));
        const std::string versions = world.node() == 0 ? "npumesh 1" : "npumesh 2";
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<HostReport> reports,
                                 ExamineHosts(world, *circle, {"4.1.4", versions}, "v4.1.4"));
        const std::lock_guard lock(mutex);
        all.push_back(reports);
        return Status();
      },
      {2, 1});
  ExpectAllOk(statuses);
  ASSERT_EQ(all.size(), 3u);
  for (const std::vector<HostReport>& reports : all) {
    ASSERT_EQ(reports.size(), 2u);
    EXPECT_EQ(ToText(reports), ToText(all[0]));
    EXPECT_TRUE(AnyWrong(reports));
    const std::string text = ToText(reports);
    EXPECT_THAT(text, testing::HasSubstr("npumesh 2, but the first host has npumesh 1"));
    EXPECT_EQ(reports[1].findings.back().subject, "clock");
    EXPECT_EQ(reports[1].findings.back().severity, Severity::kInfo);
  }
}

}  // namespace
}  // namespace npumesh
