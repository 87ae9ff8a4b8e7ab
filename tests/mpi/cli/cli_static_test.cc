// Static kernels as a user asks for them: what they leave behind, for how many ranks, and what is
// refused.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kSwitch[] = "experimental_config.aclgraph._aclnn_static_shape_kernel=true";
constexpr char kBuildDir[] = "experimental_config.aclgraph._aclnn_static_shape_kernel_build_dir=";

class CliStatic : public testing::Test {
 protected:
  CliStatic() {
    fs::create_directory(folder_ / "build");
    setenv("NPUMESH_KERNEL_STORE", (folder_ / "store").c_str(), 1);
    setenv("ASCEND_WORK_PATH", (folder_ / "work").c_str(), 1);
  }
  ~CliStatic() override {
    unsetenv("NPUMESH_KERNEL_STORE");
    unsetenv("ASCEND_WORK_PATH");
    unsetenv("LOCAL_WORLD_SIZE");
  }

  CommandRun Run(int ranks, const std::string& outputs, std::vector<std::string> options = {}) {
    std::vector<std::string> words = {"run", folder_.path(), "--outputs", folder_ / outputs};
    for (const std::string& option : options) words.insert(words.end(), {"-o", option});
    return RunRanksOf(ranks, words);
  }
  CommandRun RunStatic(int ranks, const std::string& outputs,
                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"mode=reduce-overhead", kSwitch,
                                        kBuildDir + (folder_ / "build")};
    options.insert(options.end(), more.begin(), more.end());
    return Run(ranks, outputs, options);
  }

  static std::set<std::string> NamesIn(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  }
  // The ..._outputs folders.
  std::set<std::string> Trees() const {
    return NamesIn(fs::path(folder_ / "build") / "aclnn_static_shape_kernel_outputs");
  }

  // A tree as the seed has it.
  void ExpectTree(const std::string& name) const {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(name, parts, std::regex("([0-9]{20})_([0-9]+)_outputs"))) << name;
    const std::string pid = parts[2];
    const fs::path tree = fs::path(folder_ / "build") / "aclnn_static_shape_kernel_outputs" / name;
    int packages = 0;
    for (const std::string& entry : NamesIn(tree)) {
      if (entry == pid || entry == pid + "_debug") continue;
      EXPECT_TRUE(std::regex_match(entry, std::regex("static_kernel_[0-9]{14}\\.run"))) << entry;
      ++packages;
    }
    EXPECT_EQ(packages, 1);
    const std::set<std::string> chosen = NamesIn(tree / pid),
                                all = NamesIn(tree / (pid + "_debug"));
    EXPECT_EQ(chosen.size(), 4u);
    EXPECT_GE(all.size(), chosen.size());
    for (const std::string& file : chosen) {
      EXPECT_TRUE(std::regex_match(
          file, std::regex("(Add|Relu|Mul|SoftmaxV2)_float_ND_3_20_[0-9]+\\.json")))
          << file;
    }
  }

  // The endings of the files of kernel_meta, one of a kind.
  std::set<std::string> MetaEndings() const {
    std::set<std::string> endings;
    if (!fs::exists(folder_ / "work/kernel_meta")) return endings;
    for (const std::string& name : NamesIn(fs::path(folder_ / "work") / "kernel_meta")) {
      endings.insert(std::regex_replace(name, std::regex("^.*_[0-9a-f]{32}"), ""));
    }
    return endings;
  }

  static std::string Bytes(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    EXPECT_TRUE(stream.good()) << file;
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  // A shell that finds nothing to do ends well.
  static void ExpectCutsAreRefused(const std::string& package) {
    const std::string whole = Bytes(package);
    const std::string cut = package + ".cut.run";
    for (size_t bytes = 0; bytes <= 13; ++bytes) {
      std::ofstream(cut, std::ios::binary | std::ios::trunc) << whole.substr(0, bytes);
      const CommandRun run = RunAlone({"kernels", "install", cut});
      EXPECT_EQ(run.code, 3) << bytes << " bytes: " << run.out << run.err;
      EXPECT_THAT(run.err, HasSubstr(bytes <= 10 ? "is cut off or damaged" : ".cut.run")) << bytes;
    }
  }

  void ExpectEqualOutputs(int ranks, const std::string& a, const std::string& b) const {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string file = "rank_" + std::to_string(rank) + "/0.npy";
      EXPECT_EQ(Bytes(fs::path(folder_ / a) / file), Bytes(fs::path(folder_ / b) / file)) << rank;
    }
  }

  const TestFolder folder_;
};

class CliStaticRanks : public CliStatic, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CliStaticRanks, testing::Values(1, 2, 4));

TEST_P(CliStaticRanks, LeaveTheTreeOfTheSeedAndTheSameNumbers) {
  const int ranks = GetParam();
  folder_.PutChains(ranks);
  const CommandRun plain = Run(ranks, "plain");
  ASSERT_EQ(plain.code, 0) << plain.err;
  const CommandRun fast = RunStatic(ranks, "fast");
  ASSERT_EQ(fast.code, 0) << fast.err;
  EXPECT_EQ(Trees().size(), static_cast<size_t>(ranks));
  for (const std::string& tree : Trees()) ExpectTree(tree);
  ExpectEqualOutputs(ranks, "plain", "fast");
  EXPECT_THAT(RunAlone({"kernels", "verify"}).out, HasSubstr("every static kernel is whole"));
}

// A compiler that says that it was called.
TEST_F(CliStatic, CompileOnceOnEachNode) {
  std::ofstream(folder_ / "cxx") << "#!/bin/sh\necho x >> " << (folder_ / "calls")
                                 << "\nexec c++ \"$@\"\n";
  fs::permissions(folder_ / "cxx", fs::perms::owner_all);
  setenv("CXX", (folder_ / "cxx").c_str(), 1);
  folder_.PutChains(4);
  EXPECT_EQ(RunStatic(4, "first").code, 0);
  EXPECT_EQ(NamesIn(fs::path(folder_ / "store") / "manifests").size(), 1u);
  const std::string before = Bytes(folder_ / "store/manifests/" +
                                   *NamesIn(fs::path(folder_ / "store") / "manifests").begin());
  // --version is asked by each rank; what compiles comes once.
  EXPECT_EQ(RunStatic(4, "second").code, 0);
  EXPECT_EQ(before, Bytes(folder_ / "store/manifests/" +
                          *NamesIn(fs::path(folder_ / "store") / "manifests").begin()));
  unsetenv("CXX");
  ExpectEqualOutputs(4, "first", "second");
}

TEST_F(CliStatic, ACompilerThatFailsIsOneWarning) {
  std::ofstream(folder_ / "cxx")
      << "#!/bin/sh\ncase \"$*\" in *--version*) echo 'bad 1.0'; exit 0;; "
         "esac\necho 'internal error: segmentation fault' >&2\nexit 1\n";
  fs::permissions(folder_ / "cxx", fs::perms::owner_all);
  setenv("CXX", (folder_ / "cxx").c_str(), 1);
  folder_.PutChains(2);
  const CommandRun run = RunStatic(2, "fast");
  unsetenv("CXX");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err + run.out, HasSubstr("could not be built"));
  EXPECT_THAT(run.err + run.out, HasSubstr("internal error: segmentation fault"));
  ASSERT_EQ(Run(2, "plain").code, 0);
  ExpectEqualOutputs(2, "plain", "fast");
}

TEST_F(CliStatic, AreRefusedElsewhere) {
  folder_.PutChains(1);
  const CommandRun mode = Run(1, "o", {kSwitch});
  EXPECT_EQ(mode.code, 3);
  EXPECT_THAT(mode.err, HasSubstr("needs mode \"reduce-overhead\""));
  const CommandRun profiled =
      RunStatic(1, "o", {"profiler.experimental_config.record_op_args=true"});
  EXPECT_EQ(profiled.code, 3);
  EXPECT_THAT(profiled.err, HasSubstr("skip_first=0"));
  EXPECT_EQ(RunStatic(1, "o",
                      {"profiler.experimental_config.record_op_args=true",
                       "profiler.schedule.skip_first=1"})
                .code,
            0);
  const CommandRun absent =
      Run(1, "o", {"mode=reduce-overhead", kSwitch, std::string(kBuildDir) + "/no/such/folder"});
  EXPECT_EQ(absent.code, 3);
  EXPECT_THAT(absent.err, HasSubstr("/no/such/folder"));
}

TEST_F(CliStatic, ANumberOfLocalRanksThatIsNotTrueIsRefused) {
  folder_.PutChains(2);
  setenv("LOCAL_WORLD_SIZE", "3", 1);
  const CommandRun wrong = RunStatic(2, "o");
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.err, HasSubstr("LOCAL_WORLD_SIZE is 3, but 2 rank(s)"));
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  EXPECT_EQ(RunStatic(2, "o").code, 0);
}

TEST_F(CliStatic, LeaveTheFilesOfTheirDebugLevel) {
  folder_.PutChains(2);
  ASSERT_EQ(Run(2, "plain").code, 0);
  const std::vector<std::set<std::string>> expected = {{},
                                                       {".o", ".json", ".cce", "_loc.json"},
                                                       {".o", ".json", ".cce", "_loc.json"},
                                                       {".o", ".json"},
                                                       {".o", ".json", ".cce", "_compute.json"}};
  for (size_t level = 0; level < expected.size(); ++level) {
    fs::remove_all(folder_ / "work");
    const std::string outputs = "debug" + std::to_string(level);
    const CommandRun run =
        RunStatic(2, outputs, {"session.op_debug_level=" + std::to_string(level)});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.err + run.out, testing::Not(HasSubstr("kernel_meta")));
    EXPECT_EQ(fs::exists(folder_ / "work"), level > 0);
    EXPECT_EQ(MetaEndings(), expected[level]) << level;
    ExpectEqualOutputs(2, "plain", outputs);
  }
}

TEST_F(CliStatic, ADebugLevelWithoutStaticKernelsIsOneWarning) {
  folder_.PutChains(1);
  const CommandRun run = Run(1, "o", {"session.op_debug_level=1"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, HasSubstr("kernel_meta will hold nothing"));
  EXPECT_THAT(run.err, HasSubstr(kSwitch));
  EXPECT_FALSE(fs::exists(folder_ / "work"));
}

TEST_F(CliStatic, AKernelMetaThatIsNoFolderIsRefused) {
  folder_.PutChains(1);
  fs::create_directory(folder_ / "work");
  std::ofstream(folder_ / "work/kernel_meta") << "mine";
  const CommandRun run = RunStatic(1, "o", {"session.op_debug_level=3"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("work/kernel_meta is no folder"));
  EXPECT_EQ(Bytes(folder_ / "work/kernel_meta"), "mine");
}

// Another machine of this kind: an empty store, and no compiler.
TEST_F(CliStatic, APackageBringsItsKernels) {
  folder_.PutChains(1);
  ASSERT_EQ(RunStatic(1, "first").code, 0);
  const fs::path tree =
      fs::path(folder_ / "build") / "aclnn_static_shape_kernel_outputs" / *Trees().begin();
  std::string package;
  for (const std::string& name : NamesIn(tree)) {
    if (name.ends_with(".run")) package = tree / name;
  }
  setenv("NPUMESH_KERNEL_STORE", (folder_ / "other").c_str(), 1);
  const CommandRun install = RunAlone({"kernels", "install", package});
  EXPECT_EQ(install.code, 0) << install.err;
  EXPECT_THAT(RunAlone({"kernels", "ls"}).out, HasSubstr("1 static kernel(s)"));
  setenv("CXX", "/no/such/compiler", 1);
  const CommandRun run = RunStatic(1, "second");
  unsetenv("CXX");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err + run.out, testing::Not(HasSubstr("could not be built")));
  ExpectEqualOutputs(1, "first", "second");
  EXPECT_EQ(RunAlone({"kernels", "uninstall", package}).code, 0);
  EXPECT_THAT(RunAlone({"kernels", "ls"}).out, HasSubstr("0 static kernel(s)"));
  ExpectCutsAreRefused(package);
}

}  // namespace
}  // namespace npumesh
