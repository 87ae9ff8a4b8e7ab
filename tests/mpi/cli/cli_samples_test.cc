// Every sample graph that another tool chain wrote, on its number of ranks, against its goldens.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "runtime/base/text/json.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Folders that hold a meta.json, sorted.
std::vector<fs::path> Samples() {
  std::vector<fs::path> samples;
  std::error_code absent;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(NPUMESH_SHARED_DIR) / "samples", absent)) {
    if (entry.path().filename() == "meta.json") samples.push_back(entry.path().parent_path());
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

TEST(CliSamples, MatchTheirGoldens) {
  const std::vector<fs::path> samples = Samples();
  if (samples.empty()) GTEST_SKIP() << "no samples in " << NPUMESH_SHARED_DIR;
  for (const fs::path& sample : samples) {
    const auto meta = nlohmann::json::parse(std::ifstream(sample / "meta.json"));
    const auto tolerance = [&](const char* name) { return meta.at("tolerance").at(name).dump(); };
    const CommandRun run =
        RunRanksOf(meta.at("world_size").get<int>(),
                   {"run", sample, "--inputs", sample / "inputs", "--check", sample / "golden",
                    "--rtol", tolerance("rtol"), "--atol", tolerance("atol")});
    EXPECT_EQ(run.code, 0) << sample << "\n" << run.out << run.err;
  }
}

// What a user types first: no tolerance at all.
TEST(CliSamples, MatchTheirGoldensAtTheDefaultTolerance) {
  const std::vector<fs::path> samples = Samples();
  if (samples.empty()) GTEST_SKIP() << "no samples in " << NPUMESH_SHARED_DIR;
  for (const fs::path& sample : samples) {
    const auto meta = nlohmann::json::parse(std::ifstream(sample / "meta.json"));
    const CommandRun run =
        RunRanksOf(meta.at("world_size").get<int>(),
                   {"run", sample, "--inputs", sample / "inputs", "--check", sample / "golden"});
    EXPECT_EQ(run.code, 0) << sample << "\n" << run.out << run.err;
  }
}

// In machine code for their shapes, whatever of them has a static kernel.
TEST(CliSamples, MatchTheirGoldensWithStaticKernels) {
  const std::vector<fs::path> samples = Samples();
  if (samples.empty()) GTEST_SKIP() << "no samples in " << NPUMESH_SHARED_DIR;
  const TestFolder folder;
  setenv("NPUMESH_KERNEL_STORE", (folder / "store").c_str(), 1);
  for (const fs::path& sample : samples) {
    const auto meta = nlohmann::json::parse(std::ifstream(sample / "meta.json"));
    const std::string graph = "experimental_config.aclgraph.";
    const CommandRun run =
        RunRanksOf(meta.at("world_size").get<int>(),
                   {"run", sample, "--inputs", sample / "inputs", "--check", sample / "golden",
                    "-o", "mode=reduce-overhead", "-o", graph + "_aclnn_static_shape_kernel=true",
                    "-o", graph + "_aclnn_static_shape_kernel_build_dir=" + folder.path()});
    EXPECT_EQ(run.code, 0) << sample << "\n" << run.out << run.err;
    EXPECT_THAT(run.err, testing::Not(testing::HasSubstr("could not be built"))) << sample;
  }
  unsetenv("NPUMESH_KERNEL_STORE");
  EXPECT_FALSE(fs::is_empty(fs::path(folder / "store"))) << "no sample had a static kernel";
}

}  // namespace
}  // namespace npumesh
