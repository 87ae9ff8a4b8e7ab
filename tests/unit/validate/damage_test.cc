// Damaged packages: every file flipped and cut 200 times. Nothing crashes; what is found has a
// name.
#include <gmock/gmock.h>

#include <random>

#include "launch/run/run_job.h"
#include "launch/validate/package_check.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests
using ::testing::HasSubstr;

constexpr int kRounds = 200;

// A flipped bit, or a cut.
std::string Damage(std::string bytes, std::mt19937_64& random) {
  if (random() % 4 == 0) {
    bytes.resize(random() % bytes.size());
    return bytes;
  }
  for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
  }
  return bytes;
}

// What `npumesh run` does with a package of one rank.
Status RunPackage(const std::string& folder) {
  Env env;
  env.hbm_bytes = uint64_t{4} << 20;
  RunOptions options;
  options.path = folder;
  return RunRanks(1, env, [&](World& world) -> Status {
    RunJob job(world, options);
    NPUMESH_RETURN_IF_ERROR(job.Prepare());
    NPUMESH_RETURN_IF_ERROR(job.LoadStep(0));
    return job.RunStep(0);
  })[0];
}

class Damaged : public ::testing::TestWithParam<bool> {};

TEST_P(Damaged, PackagesAreFoundOutByName) {
  const bool distributed = GetParam();
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "m";
  options.export_name = "net_rank";
  options.distributed = distributed;
  options.auto_atc_config_generated = true;
  options.weight_limit = 0;
  const Model model = SeedAllReduce("tag=;rank_list=0");
  ASSERT_TRUE(ExportAlone(model, options).ok());
  std::mt19937_64 random(7);
  int found = 0;
  for (const auto& [name, content] : ContentOf(options.export_path)) {
    const std::string path = options.export_path + "/" + name;
    for (int round = 0; round < kRounds; ++round) {
      Spill(path, Damage(content, random));
      const Result<PackageReport> report = CheckPackage(options.export_path);
      ASSERT_TRUE(report.ok()) << report.status().message();
      const std::string file = std::filesystem::path(name).filename().string();
      if (!report->findings.all().empty()) {
        ++found;
        EXPECT_THAT(ReportText(*report), HasSubstr(file));
      }
      if (name.ends_with(".pbtxt")) continue;  // nothing that runs reads it
      const Status ran = RunPackage(options.export_path);
      if (ran.ok()) continue;
      EXPECT_THAT(std::string(ran.message()), HasSubstr(file));
    }
    Spill(path, content);
  }
  EXPECT_GT(found, kRounds);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Damaged, ::testing::Bool());

}  // namespace
}  // namespace npumesh
