#include "launch/mpirun/mpirun_plan.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace npumesh {
namespace {

namespace fs = std::filesystem;

std::string Words(const LaunchOptions& options, const Spread& spread, bool root = false) {
  const LaunchPlace place{"/usr/bin/mpirun", "/opt/npumesh", root, 2, {"run", "launch"}};
  return fmt::format("{}", fmt::join(MpirunWords(options, place, spread), " "));
}

TEST(MpirunWords, ASubCommandRunsThisBinary) {
  LaunchOptions options;
  options.ranks = 2;
  options.command = {"run", "mp/"};
  EXPECT_EQ(Words(options, {{}, 2, false}),
            "/usr/bin/mpirun -n 2 --bind-to none --tag-output -x LOCAL_WORLD_SIZE=2 /opt/npumesh "
            "run mp/");
  options.bind = "numa";
  EXPECT_EQ(Words(options, {{}, 2, true}, true),
            "/usr/bin/mpirun -n 2 --allow-run-as-root --oversubscribe --bind-to none --tag-output "
            "-x LOCAL_WORLD_SIZE=2 /opt/npumesh run mp/ --bind numa");
}

TEST(MpirunWords, AnotherProgramIsBoundByMpirun) {
  LaunchOptions options;
  options.ranks = 4;
  options.bind = "core";
  options.mpi_args = {"--mca", "btl", "self,tcp"};
  options.command = {"./run", "-v"};
  EXPECT_EQ(Words(options, {{{"a", 2}, {"b", 0}}, 2, false}),
            "/usr/bin/mpirun -n 4 --host a:2,b:2 --map-by ppr:2:node --mca oob_tcp_keepalive_time "
            "10 --mca oob_tcp_keepalive_intvl 5 --mca oob_tcp_keepalive_probes 3 --bind-to core "
            "--tag-output -x LOCAL_WORLD_SIZE=2 --mca btl self,tcp ./run -v");
}

TEST(FindProgram, LooksThroughTheFolders) {
  const fs::path folder = fs::path(testing::TempDir()) / "find_program";
  fs::create_directories(folder);
  std::ofstream(folder / "tool") << "#!/bin/true\n";
  const std::string path = "/nowhere::" + folder.string();
  EXPECT_EQ(FindProgram("tool", path, "toolbox").status().code(), Code::kNotFound);
  fs::permissions(folder / "tool", fs::perms::owner_all);
  EXPECT_EQ(*FindProgram("tool", path, "toolbox"), (folder / "tool").string());
  fs::remove_all(folder);
}

TEST(FindProgram, NamesThePackage) {
  const Status status = FindProgram("mpirun", "", "openmpi-bin").status();
  EXPECT_EQ(status.message(), "mpirun is not in PATH; install the Debian package openmpi-bin");
}

}  // namespace
}  // namespace npumesh
