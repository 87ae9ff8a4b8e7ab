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

TEST(JobCode, NpumeshsCodesPassThrough) {
  for (const int code : {0, 1, 2, 3, 4, 5, 130}) EXPECT_EQ(JobCode(code, true, false), code);
}

TEST(JobCode, ALostRankIsAPeerWhateverKilledIt) {
  for (const int code : {129, 134, 137, 139, 143}) {
    EXPECT_EQ(JobCode(code, true, false), 5) << code;
    EXPECT_EQ(JobCode(code, false, false), 5) << code;
  }
}

TEST(JobCode, WhatMpirunCouldNotDoIsARunTimeError) {
  EXPECT_EQ(JobCode(255, true, false), 4);
  EXPECT_EQ(JobCode(1, true, true), 4);
  EXPECT_EQ(JobCode(213, false, true), 4);
}

TEST(JobCode, CodesOfOtherProgramsAreTheirs) {
  for (const int code : {1, 7, 42, 100, 255}) EXPECT_EQ(JobCode(code, false, false), code);
}

TEST(MpirunWords, RanksOfOneHostTalkThroughMemoryOnly) {
  LaunchOptions options;
  options.ranks = 2;
  options.command = {"./run"};
  const LaunchPlace place{"/usr/bin/mpirun", "/opt/npumesh", false, 2, {"run"}, "/dev/shm/job"};
  EXPECT_EQ(fmt::format("{}", fmt::join(MpirunWords(options, place, {{}, 2, false}), " ")),
            "/usr/bin/mpirun -n 2 --mca btl self,vader --mca btl_vader_backing_directory "
            "/dev/shm/job --bind-to none --tag-output -x LOCAL_WORLD_SIZE=2 ./run");
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
