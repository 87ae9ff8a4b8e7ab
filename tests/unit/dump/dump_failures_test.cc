// What a dump does when the disk does not: one error, a run that goes on, whole files only.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/dump/dumper_fixture.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

// Every regular file below `folder` that is a dump file can be read; nothing half written is left.
void ExpectOnlyWholeFiles(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
    const auto parsed = ParseDumpFileName(name);
    if (parsed && !parsed->stats) {
      const Result<DumpFile> file = DumpFile::Open(entry.path().string());
      EXPECT_TRUE(file.ok()) << file.status().ToString();
    }
  }
}

// A full disk: writes fail once `room` bytes are there.
class FullDisk final : public FileSystem {
 public:
  explicit FullDisk(uint64_t room) : room_(room) {}

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path, mode_t mode) override {
    NPUMESH_ASSIGN_OR_RETURN(auto file, RealFileSystem().Create(path, mode));
    return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path, mode_t mode) override {
    NPUMESH_ASSIGN_OR_RETURN(auto file, RealFileSystem().OpenAtEnd(path, mode));
    return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, std::move(file)));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return RealFileSystem().Rename(from, to);
  }
  Status Remove(const std::string& path) override { return RealFileSystem().Remove(path); }
  Status MakeFolder(const std::string& path, mode_t mode) override {
    return RealFileSystem().MakeFolder(path, mode);
  }
  Status SyncFolder(const std::string& path) override { return RealFileSystem().SyncFolder(path); }

 private:
  class File final : public WritableFile {
   public:
    File(FullDisk& disk, std::unique_ptr<WritableFile> file)
        : disk_(disk), file_(std::move(file)) {}
    Status Append(std::span<const std::byte> bytes) override {
      const uint64_t fits = std::min<uint64_t>(disk_.room_, bytes.size());
      disk_.room_ -= fits;
      NPUMESH_RETURN_IF_ERROR(file_->Append(bytes.first(fits)));
      if (fits == bytes.size()) return Status();
      return Error(Code::kIo, "cannot write: No space left on device");
    }
    Status Sync() override { return file_->Sync(); }
    Status Close() override { return file_->Close(); }

   private:
    FullDisk& disk_;
    std::unique_ptr<WritableFile> file_;
  };

  uint64_t room_;
};

class DumpFailureTest : public DumperTest {
 protected:
  DumpFailureTest() {
    Value x = g_.Data("x", IntType({64}));
    for (int i = 0; i < 8; ++i) x = g_.Op("Negate", {{"x", x}}, {}, fmt::format("n{}", i));
    g_.Output({x});
  }
  std::vector<Tensor> Inputs() const { return {IntTensor(std::vector<int64_t>(64, 3))}; }
};

TEST_F(DumpFailureTest, AFullDiskStopsTheDumpAndNotTheRun) {
  FullDisk disk(4000);  // three whole files and a piece
  Dumper dumper(settings_, place_, limits_, disk);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(RunUnder(dumper, Inputs(), 2).ok());
  const DumpReport report = dumper.Finish();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(std::string(report.error.message()), HasSubstr("No space left on device"));
  EXPECT_GT(report.counts.files, 1u);
  EXPECT_EQ(report.counts.files + report.counts.lost_files, 18u);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr("the dump stops after"));
  ExpectOnlyWholeFiles(folder_.path());
}

TEST_F(DumpFailureTest, OrStopsTheRunIfAsked) {
  FullDisk disk(4000);
  limits_.stop_on_error = true;
  limits_.queue_bytes = 1;  // one record at a time, so the error is seen at the next
  Dumper dumper(settings_, place_, limits_, disk);
  const Status status = RunUnder(dumper, Inputs(), 2);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dump: "));
}

TEST_F(DumpFailureTest, EveryFailingCallLeavesWholeFiles) {
  for (int fail_at = 1;; ++fail_at) {
    TemporaryFolder folder;
    settings_.path = folder.path();
    FlakyFileSystem fs(fail_at);
    Dumper dumper(settings_, place_, limits_, fs);
    EXPECT_TRUE(RunUnder(dumper, Inputs()).ok());
    const DumpReport report = dumper.Finish();
    ExpectOnlyWholeFiles(folder.path());
    if (!fs.failed()) {
      EXPECT_TRUE(report.error.ok());
      EXPECT_EQ(report.counts.files, 9u);
      break;
    }
    EXPECT_FALSE(report.error.ok()) << fail_at;
  }
}

TEST_F(DumpFailureTest, AFolderThatVanishes) {
  Dumper dumper(settings_, place_, limits_);
  std::filesystem::remove_all(folder_.path());
  ASSERT_TRUE(WriteFile(folder_.path(), "a file in its place", FileKind::kData).ok());
  EXPECT_TRUE(RunUnder(dumper, Inputs()).ok());
  EXPECT_THAT(std::string(dumper.Finish().error.message()), HasSubstr(folder_.path()));
}

TEST_F(DumpFailureTest, AReadOnlyFolder) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  Dumper dumper(settings_, place_, limits_);
  std::filesystem::permissions(
      folder_.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_TRUE(RunUnder(dumper, Inputs()).ok());
  const Status error = dumper.Finish().error;
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  EXPECT_THAT(std::string(error.message()), HasSubstr("Permission denied"));
}

TEST_F(DumpFailureTest, ALinkInTheWay) {
  TemporaryFolder target;
  std::filesystem::create_directories(folder_.path() + "/worldsize1_global_rank0");
  ASSERT_TRUE(CompileFor(Inputs()).ok());
  std::filesystem::create_directories(std::filesystem::path(StepPath(0)).parent_path());
  std::filesystem::create_symlink(target.path(), StepPath(0));
  Dumper dumper(settings_, place_, limits_);
  EXPECT_TRUE(RunUnder(dumper, Inputs()).ok());
  EXPECT_THAT(std::string(dumper.Finish().error.message()), HasSubstr("symbolic link"));
  EXPECT_TRUE(target.List().empty());
}

// A disk slower than the run: what waits stays within the bound.
TEST(DumpWriterTest, TheQueueIsBounded) {
  class SlowDisk final : public FileSystem {
   public:
    std::atomic<bool> open{false};
    Result<std::unique_ptr<WritableFile>> Create(const std::string& path, mode_t mode) override {
      while (!open) std::this_thread::yield();
      return RealFileSystem().Create(path, mode);
    }
    Result<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path, mode_t mode) override {
      return RealFileSystem().OpenAtEnd(path, mode);
    }
    Status Rename(const std::string& from, const std::string& to) override {
      return RealFileSystem().Rename(from, to);
    }
    Status Remove(const std::string& path) override { return RealFileSystem().Remove(path); }
    Status MakeFolder(const std::string& path, mode_t mode) override {
      return RealFileSystem().MakeFolder(path, mode);
    }
    Status SyncFolder(const std::string&) override { return Status(); }
  };
  TemporaryFolder folder;
  SlowDisk disk;
  DumpWriter writer(1000, -1, disk);
  std::atomic<int> submitted{0};
  std::thread run([&] {
    for (int i = 0; i < 20; ++i) {
      DumpFileJob job;
      job.folder = folder.path();
      job.name = std::to_string(i);
      job.head = std::string(300, 'x');
      writer.Submit(std::move(job));
      ++submitted;
    }
  });
  while (submitted < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(submitted, 3);  // 900 of 1000 bytes
  disk.open = true;
  run.join();
  EXPECT_TRUE(writer.Finish().ok());
  EXPECT_EQ(writer.counts().files, 20u);
  EXPECT_EQ(folder.List().size(), 20u);
}

TEST(DumpWriterTest, BuffersAreUsedAgain) {
  TemporaryFolder folder;
  DumpWriter writer(uint64_t{1} << 20, -1, RealFileSystem());
  DumpBuffer buffer = writer.Take(5000);
  const std::byte* memory = buffer.data();
  writer.Return(std::move(buffer));
  DumpBuffer again = writer.Take(4000);
  EXPECT_EQ(again.data(), memory);
  EXPECT_EQ(again.size(), 0u);
  EXPECT_TRUE(writer.Finish().ok());
}

class LongChainTest : public DumperTest {
 protected:
  // Dumps the outputs of a chain of so many operators, an even number, so many times.
  void DumpChain(size_t operators, int steps) {
    Value x = g_.Data("x", IntType({1}));
    for (size_t i = 0; i < operators; ++i) {
      x = g_.Op("Negate", {{"x", x}}, {}, fmt::format("n{}", i));
    }
    g_.Output({x});
    settings_.mode = DumpMode::kOutput;
    const DumpReport report = Dump({IntTensor({3})}, steps);
    EXPECT_TRUE(report.error.ok()) << report.error.message();
    const size_t files = operators + 1;  // and the Data
    EXPECT_EQ(report.counts.files, static_cast<size_t>(steps) * files);
    for (int step = 0; step < steps; ++step) EXPECT_EQ(Names(StepPath(step)).size(), files);
    const std::string last = fmt::format("Negate.n{}", operators - 1);
    EXPECT_EQ(Values(PathOf(StepPath(steps - 1), last)), "out 3");
  }
};

TEST_F(LongChainTest, AThousandOperatorsFiveTimes) {
  DumpChain(1000, 5);
}

TEST_F(LongChainTest, TenThousandOperatorsFiveTimes) {
  DumpChain(10000, 5);
}

}  // namespace
}  // namespace npumesh
