#include "launch/mpirun/mpirun_plan.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace npumesh {
namespace {

namespace fs = std::filesystem;

std::string WordsIn(const LaunchPlace& place, const LaunchOptions& options, const Spread& spread) {
  return fmt::format("{}", fmt::join(MpirunWords(options, place, spread), " "));
}

std::string Words(const LaunchOptions& options, const Spread& spread, bool root = false) {
  return WordsIn({"/usr/bin/mpirun", "/opt/npumesh", root, 2, {"run", "launch"}}, options, spread);
}

LaunchPlace OpenMpi5Place(bool root = false, std::string segments = "") {
  return {"mpirun", "/opt/npumesh", root, 2, {"run"}, std::move(segments), MpiLauncher::kOpenMpi5};
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

TEST(MpirunWords, PythonRunsThisBinaryWhichBecomesAProgramOfTheUser) {
  LaunchOptions options;
  options.ranks = 2;
  options.command = {"python", "train.py", "--bind"};
  options.bind = "core";
  LaunchPlace place{"/usr/bin/mpirun", "/opt/npumesh", false, 2, {"run", "python"}};
  place.variables = {"COLUMNS=80"};
  EXPECT_EQ(WordsIn(place, options, {{}, 2, false}),
            "/usr/bin/mpirun -n 2 --bind-to core --tag-output -x LOCAL_WORLD_SIZE=2 /opt/npumesh "
            "python train.py --bind");
  EXPECT_FALSE(RunsSubCommand(options, place));
}

TEST(MpirunWords, OnlyOurRanksLearnOfTheScreen) {
  LaunchPlace place{"/usr/bin/mpirun", "/opt/npumesh", false, 2, {"run"}};
  place.variables = {"COLUMNS=80", "A=b=c"};
  LaunchOptions options;
  const auto words = [&](MpiLauncher launcher, const char* command) {
    place.launcher = launcher;
    options.command = {command};
    return WordsIn(place, options, {{}, 1, false});
  };
  for (const MpiLauncher each : {MpiLauncher::kOpenMpi4, MpiLauncher::kOpenMpi5}) {
    EXPECT_THAT(words(each, "run"), testing::HasSubstr(" -x COLUMNS=80 -x A=b=c /opt/npumesh run"));
    EXPECT_THAT(words(each, "./program"), testing::Not(testing::HasSubstr("COLUMNS")));
  }
  EXPECT_THAT(words(MpiLauncher::kMpich, "run"),
              testing::HasSubstr(" -genv COLUMNS 80 -genv A b=c /opt/npumesh run"));
  EXPECT_THAT(words(MpiLauncher::kMpich, "./program"), testing::Not(testing::HasSubstr("COLUMNS")));
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

constexpr JobWords kOwn{.own = true, .refused = false, .verdict = false, .vanished = false};
constexpr JobWords kOther{};

TEST(JobCode, NpumeshsCodesPassThrough) {
  for (const int code : {0, 2, 3, 4, 5, 130}) EXPECT_EQ(JobCode(code, kOwn), code);
}

// Regression: a rank that was lost, and an MPI_Init that failed, passed as a comparison that
// differs.
TEST(JobCode, OneIsAVerdictOnlyWhenARankHasToldIt) {
  JobWords words = kOwn;
  EXPECT_EQ(JobCode(1, words), 4);
  words.verdict = true;
  EXPECT_EQ(JobCode(1, words), 1);
  words.vanished = true;
  EXPECT_EQ(JobCode(1, words), 5);
  EXPECT_EQ(JobCode(3, words), 3);
  words.own = words.verdict = false;
  EXPECT_EQ(JobCode(1, words), 5);
}

TEST(JobCode, ALostRankIsAPeerWhateverKilledIt) {
  for (const int code : {129, 134, 137, 139, 143}) {
    EXPECT_EQ(JobCode(code, kOwn), 5) << code;
    EXPECT_EQ(JobCode(code, kOther), 5) << code;
  }
}

TEST(JobCode, WhatMpirunCouldNotDoIsARunTimeError) {
  EXPECT_EQ(JobCode(255, kOwn), 4);
  JobWords refused = kOwn;
  refused.refused = true;
  EXPECT_EQ(JobCode(1, refused), 4);
  refused.own = false;
  EXPECT_EQ(JobCode(213, refused), 4);
}

TEST(JobCode, CodesOfOtherProgramsAreTheirs) {
  for (const int code : {1, 7, 42, 100, 255}) EXPECT_EQ(JobCode(code, kOther), code);
}

TEST(MpirunWords, RanksOfOneHostTalkThroughMemoryOnly) {
  LaunchOptions options;
  options.ranks = 2;
  options.command = {"./run"};
  const LaunchPlace place{"/usr/bin/mpirun", "/opt/npumesh", false, 2, {"run"}, "/dev/shm/job"};
  EXPECT_EQ(WordsIn(place, options, {{}, 2, false}),
            "/usr/bin/mpirun -n 2 --mca btl self,vader --mca btl_vader_backing_directory "
            "/dev/shm/job --bind-to none --tag-output -x LOCAL_WORLD_SIZE=2 ./run");
}

TEST(MpirunWords, OpenMpi5HasOtherWords) {
  LaunchOptions options;
  options.ranks = 2;
  options.command = {"./run"};
  EXPECT_EQ(WordsIn(OpenMpi5Place(false, "/dev/shm/job"), options, {{}, 2, false}),
            "mpirun -n 2 --pmixmca ptl_base_if_include lo --mca btl self,sm --mca "
            "btl_sm_backing_directory /dev/shm/job --bind-to none --output tag -x "
            "LOCAL_WORLD_SIZE=2 ./run");
  options.command = {"run", "mp/"};
  EXPECT_EQ(WordsIn(OpenMpi5Place(true), options, {{}, 2, true}),
            "mpirun -n 2 --allow-run-as-root --map-by :OVERSUBSCRIBE --pmixmca ptl_base_if_include "
            "lo --bind-to none --output tag -x LOCAL_WORLD_SIZE=2 /opt/npumesh run mp/");
}

TEST(MpirunWords, OpenMpi5MapsHostsAndOversubscribesInOneWord) {
  LaunchOptions options;
  options.ranks = 8;
  options.command = {"./run"};
  EXPECT_EQ(WordsIn(OpenMpi5Place(), options, {{{"a", 2}, {"b", 2}}, 4, true}),
            "mpirun -n 8 --host a:2,b:2 --map-by ppr:4:node:OVERSUBSCRIBE --prtemca "
            "oob_tcp_keepalive_time 10 --prtemca oob_tcp_keepalive_intvl 5 --prtemca "
            "oob_tcp_keepalive_probes 3 --bind-to none --output tag -x LOCAL_WORLD_SIZE=4 ./run");
}

LaunchPlace MpichPlace(bool root = false) {
  return {"mpiexec", "/opt/npumesh", root, 2, {"run"}, "", MpiLauncher::kMpich};
}

TEST(MpirunWords, HydraTagsAndExportsInItsOwnWords) {
  LaunchOptions options;
  options.ranks = 4;
  options.command = {"run", "mp/"};
  EXPECT_EQ(WordsIn(MpichPlace(true), options, {{}, 4, true}),
            "mpiexec -n 4 -prepend-pattern \x1f[%r]  -genv LOCAL_WORLD_SIZE 4 -iface lo -genv "
            "UCX_NET_DEVICES lo -disable-auto-cleanup /opt/npumesh run mp/");
  options.command = {"./run"};
  options.bind = "core";
  EXPECT_EQ(WordsIn(MpichPlace(), options, {{{"a", 2}, {"b", 2}}, 2, false}),
            "mpiexec -n 4 -prepend-pattern \x1f[%r]  -genv LOCAL_WORLD_SIZE 2 -bind-to core -hosts "
            "a:2,b:2 -ppn 2 ./run");
}

TEST(LauncherOf, GoesByNameAndMajorVersion) {
  EXPECT_EQ(LauncherOf("Open MPI", "4.1.4"), MpiLauncher::kOpenMpi4);
  EXPECT_EQ(LauncherOf("Open MPI", "5.0.7"), MpiLauncher::kOpenMpi5);
  EXPECT_EQ(LauncherOf("Open MPI", "10.0"), MpiLauncher::kOpenMpi5);
  EXPECT_EQ(LauncherOf("Open MPI", "6"), MpiLauncher::kOpenMpi5);
  EXPECT_EQ(LauncherOf("Open MPI", ""), MpiLauncher::kOpenMpi4);
  EXPECT_EQ(LauncherOf("Open MPI", "new"), MpiLauncher::kOpenMpi4);
  EXPECT_EQ(LauncherOf("MPI", "5.0"), MpiLauncher::kOpenMpi4);
  EXPECT_EQ(LauncherOf("MPICH", "4.2.1"), MpiLauncher::kMpich);
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
