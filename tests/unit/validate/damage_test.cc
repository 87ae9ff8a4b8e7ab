// Damaged packages: every file flipped and cut 200 times. Nothing crashes; what is found has a
// name.
#include <gmock/gmock.h>

#include <random>

#include "graph/io/model_file.h"
#include "graph/session/session.h"
#include "launch/validate/package_check.h"
#include "runtime/device/device_memory.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests

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

// The first error of loading and running a package of one rank, as `npumesh run` would.
Status RunPackage(const std::string& folder, const std::string& air) {
  Env env;
  env.hbm_bytes = uint64_t{4} << 20;
  return RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(Model model, LoadModel(folder + "/" + air));
    model.path = folder + "/" + air;
    SessionOptions options;
    NPUMESH_ASSIGN_OR_RETURN(options.groups, ReadGroupTable(folder));
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto session,
                             Session::Create(world, *memory, std::move(model), options));
    std::vector<Tensor> inputs;
    for (const InputSpec& input : session->inputs()) {
      const Shape& shape = input.declared.shape;
      if (!shape.Check().ok() || !shape.is_static() || shape.elements() > 64) return Status();
      if (BitsOf(input.declared.dtype) == 0) return Status();
      inputs.push_back(Tensor::Allocate(input.declared));
    }
    return session->Run(inputs).status();
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
  const std::string air = distributed ? "net_rank0.air" : "net_rank.air";
  std::mt19937_64 random(7);
  int found = 0;
  for (const auto& [name, content] : ContentOf(options.export_path)) {
    const std::string path = options.export_path + "/" + name;
    for (int round = 0; round < kRounds; ++round) {
      Spill(path, Damage(content, random));
      const Result<PackageReport> report = CheckPackage(options.export_path);
      ASSERT_TRUE(report.ok()) << report.status().message();
      const std::string text = ReportText(*report);
      if (report->findings.all().empty()) continue;
      ++found;
      EXPECT_THAT(text, ::testing::HasSubstr(std::filesystem::path(name).filename().string()));
      if (name.ends_with(".pbtxt") || round % 4 != 0) continue;
      const Status ran = RunPackage(options.export_path, air);
      if (ran.code() == Code::kCorrupt) {
        EXPECT_NE(std::string(ran.message()), "");
      }
    }
    Spill(path, content);
  }
  EXPECT_GT(found, kRounds);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Damaged, ::testing::Bool());

}  // namespace
}  // namespace npumesh
