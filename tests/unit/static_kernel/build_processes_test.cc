// Processes that build in one store at once, and are killed while they do.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "graph/static_kernel/store/kernel_lock.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/deadly_file_system.h"
#include "tests/unit/static_kernel/store_fixture.h"

namespace npumesh {
namespace {

using npumesh::testing::FakeCompiler;
using npumesh::testing::InProcess;
using npumesh::testing::InProcesses;
using npumesh::testing::Kernel;
using npumesh::testing::NamesIn;
using npumesh::testing::PlanOf;
using npumesh::testing::SymbolsOf;
using npumesh::testing::TextsOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Builders : public ::testing::Test {
 protected:
  void Reset() {
    home_.emplace();
    root_ = home_->Path("kernels");
  }
  // "8 there, 0 failed", or the error.
  std::string Build(const BuildPlan& plan, FileSystem& fs = RealFileSystem(),
                    const StoreReader& reader = ReadStoreFile) const {
    auto store = KernelStore::Open(root_, fs, reader);
    if (!store.ok()) return std::string(store.status().message());
    const auto outcome = store->Build(plan, SystemCompiler::Find);
    if (!outcome.ok()) return std::string(outcome.status().message());
    const int all = outcome->compiled + outcome->found + outcome->awaited;
    if (all != static_cast<int>(outcome->objects.size())) return "counts are wrong";
    return fmt::format("{} there, {} failed", all, outcome->failures.size());
  }
  std::string BuildShare(BuildPlan plan, int sharers, int share) const {
    plan.sharers = sharers;
    plan.share = share;
    return Build(plan);
  }
  void ExpectCleanAndWhole(int kernels) const {
    auto store = KernelStore::Open(root_);
    ASSERT_TRUE(store.ok());
    EXPECT_THAT(TextsOf(store->Verify()), IsEmpty());
    EXPECT_EQ(store->List().size(), static_cast<size_t>(kernels));
  }
  void ExpectNothingUnfinished() const {
    EXPECT_THAT(NamesIn(root_ + "/locks"), IsEmpty());
    EXPECT_THAT(NamesIn(root_ + "/work"), IsEmpty());
  }

  std::optional<TemporaryFolder> home_;
  std::string root_;
};

TEST_F(Builders, CompileEachKeyOnce) {
  constexpr int kKernels = 20;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    Reset();
    const FakeCompiler compiler;
    const int sharers = round % 2 == 0 ? 8 : 1;
    const auto said =
        InProcesses(8, [&](int k) { return BuildShare(PlanOf(kKernels), sharers, k % sharers); });
    EXPECT_THAT(said, Each("20 there, 0 failed"));
    EXPECT_EQ(compiler.compiled(), SymbolsOf(kKernels));
    ExpectCleanAndWhole(kKernels);
    ExpectNothingUnfinished();
  }
}

TEST_F(Builders, ShareTheWork) {
  Reset();
  const FakeCompiler compiler("sleep 1; cat $ready $sources > $out");
  const auto said = InProcesses(4, [&](int k) { return BuildShare(PlanOf(10), 4, k); });
  EXPECT_THAT(said, Each("10 there, 0 failed"));
  EXPECT_EQ(compiler.runs(), 4);
  EXPECT_EQ(compiler.compiled(), SymbolsOf(10));
}

TEST_F(Builders, RealCompilerIsCalledOnceForEachShare) {
  Reset();
  const FakeCompiler compiler(FakeCompiler::kIsReal);
  const auto said = InProcesses(2, [&](int k) { return BuildShare(PlanOf(4), 2, k); });
  EXPECT_THAT(said, Each("4 there, 0 failed"));
  EXPECT_EQ(compiler.compiled(), SymbolsOf(4));
}

TEST_F(Builders, DoWhatAnAbsentSharerWouldHaveDone) {
  Reset();
  const FakeCompiler compiler;
  const auto said = InProcesses(2, [&](int k) { return BuildShare(PlanOf(9), 3, k); });
  EXPECT_THAT(said, Each("9 there, 0 failed"));
  EXPECT_EQ(compiler.compiled(), SymbolsOf(9));
}

TEST_F(Builders, WhoWaitsSeesAFailure) {
  for (int round = 0; round < 3; ++round) {
    Reset();
    const FakeCompiler compiler(FakeCompiler::kRefuses);
    BuildPlan plan = PlanOf(1);
    plan.kernels[0] = Kernel(0, "// BROKEN");
    const auto said = InProcesses(8, [&](int) { return Build(plan); });
    EXPECT_THAT(said, Each("0 there, 1 failed"));
    EXPECT_EQ(compiler.runs(), 1) << "those who waited did not try again";
    compiler.Act(FakeCompiler::kWorks);
    EXPECT_EQ(Build(plan), "1 there, 0 failed") << "a later process tries again";
  }
}

TEST_F(Builders, TakeOverLocksOfTheDeadOnce) {
  for (int round = 0; round < 3; ++round) {
    Reset();
    ASSERT_TRUE(KernelStore::Open(root_).ok());
    LockOwner dead = LockOwner::Me();
    dead.started += 1;
    for (int k = 0; k < 5; ++k) {
      npumesh::testing::Write(root_ + "/locks/" + Kernel(k).key, dead.ToString());
    }
    const FakeCompiler compiler;
    EXPECT_THAT(InProcesses(8, [&](int) { return Build(PlanOf(5)); }), Each("5 there, 0 failed"));
    EXPECT_EQ(compiler.compiled(), SymbolsOf(5));
    ExpectNothingUnfinished();
  }
}

// On some network file systems a name is seen some time after it was made.
TEST_F(Builders, LateLookUpsCostNoSecondCompilation) {
  const StoreReader late = [](const std::string& path) -> Result<std::string> {
    struct stat info;
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (stat(path.c_str(), &info) == 0) {
      const int64_t age = (now.tv_sec - info.st_mtim.tv_sec) * 1000 +
                          (now.tv_nsec - info.st_mtim.tv_nsec) / 1'000'000;
      if (age < 50) return Error(Code::kNotFound, "not seen yet");
    }
    return ReadStoreFile(path);
  };
  for (int round = 0; round < 3; ++round) {
    Reset();
    const FakeCompiler compiler("sleep 1; cat $ready $sources > $out");
    const auto said = InProcesses(4, [&](int) { return Build(PlanOf(3), RealFileSystem(), late); });
    EXPECT_THAT(said, Each("3 there, 0 failed"));
    EXPECT_EQ(compiler.compiled(), SymbolsOf(3));
  }
}

TEST_F(Builders, AStoppedBuilderIsPassedOver) {
  Reset();
  ASSERT_TRUE(KernelStore::Open(root_).ok());
  const FakeCompiler compiler(
      "if mkdir $folder/first 2>/dev/null; then kill -STOP $PPID; sleep 3; "
      "kill -CONT $PPID; fi; cat $ready $sources > $out");
  const auto said = InProcesses(2, [&](int) {
    BuildPlan plan = PlanOf(2);
    plan.wait_limit = std::chrono::seconds(1);
    return Build(plan);
  });
  EXPECT_THAT(said, Each("2 there, 0 failed"));
  ExpectCleanAndWhole(2);
  ExpectNothingUnfinished();
}

TEST_F(Builders, KilledAtAnyCallLeaveACleanStore) {
  bool survives = false;
  int at = 1;
  for (; !survives; ++at) {
    SCOPED_TRACE(at);
    Reset();
    ASSERT_TRUE(KernelStore::Open(root_).ok());
    const FakeCompiler compiler;
    survives = Survives([&] {
      DeadlyFileSystem fs(at);
      return Build(PlanOf(2), fs) == "2 there, 0 failed";
    });
    EXPECT_THAT(TextsOf(KernelStore::Open(root_)->Verify()), IsEmpty());
    EXPECT_EQ(Build(PlanOf(2)), "2 there, 0 failed");
    ExpectCleanAndWhole(2);
    KernelStore::Open(root_)->Collect(std::chrono::hours::max());
    ExpectNothingUnfinished();
    EXPECT_LE(NamesIn(root_ + "/objects").size(), 2u);
    EXPECT_EQ(Build(PlanOf(2)), "2 there, 0 failed");
  }
  EXPECT_GT(at, 25);
}

TEST_F(Builders, KilledWhileTheyCompileAreReplacedByTheOthers) {
  const std::string once = "if mkdir $folder/first 2>/dev/null; then ";
  for (const std::string& acts :
       {once + "kill -KILL $PPID; exit 1; fi; ", once + "echo part > $out; kill -KILL $PPID; fi; ",
        once + "cat $ready $sources > $out; kill -KILL $PPID; exit 0; fi; "}) {
    SCOPED_TRACE(acts);
    Reset();
    const FakeCompiler compiler(acts + FakeCompiler::kWorks);
    const auto said = InProcesses(4, [&](int k) { return BuildShare(PlanOf(6), 4, k); });
    EXPECT_EQ(std::count(said.begin(), said.end(), ""), 1) << "the one that was killed";
    EXPECT_EQ(std::count(said.begin(), said.end(), "6 there, 0 failed"), 3);
    ExpectCleanAndWhole(6);
    EXPECT_EQ(Build(PlanOf(7)), "7 there, 0 failed");
    KernelStore::Open(root_)->Collect(std::chrono::hours::max());
    ExpectNothingUnfinished();
  }
}

// A key of a killed builder is free at once, not after the time limit of a wait.
TEST_F(Builders, NoProcessWaitsForADeadOne) {
  Reset();
  const FakeCompiler compiler("kill -KILL $PPID; exit 1");
  EXPECT_EQ(InProcess([&] {
              Build(PlanOf(3));
              return 0;
            }),
            1000 + SIGKILL);
  EXPECT_EQ(NamesIn(root_ + "/locks").size(), 3u);
  compiler.Act(FakeCompiler::kWorks);
  BuildPlan plan = PlanOf(3);
  plan.wait_limit = std::chrono::seconds(100'000);
  EXPECT_EQ(Build(plan), "3 there, 0 failed");
  ExpectNothingUnfinished();
}

}  // namespace
}  // namespace npumesh
