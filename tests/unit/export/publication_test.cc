// A package appears whole or not at all: every file operation fails once.
#include <gmock/gmock.h>

#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests

// The real file system without waiting for the disk: nothing here loses power.
class UnsyncedFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path, mode_t mode) override {
    NPUMESH_ASSIGN_OR_RETURN(auto file, RealFileSystem().Create(path, mode));
    return std::unique_ptr<WritableFile>(std::make_unique<File>(std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path, mode_t mode) override {
    NPUMESH_ASSIGN_OR_RETURN(auto file, RealFileSystem().OpenAtEnd(path, mode));
    return std::unique_ptr<WritableFile>(std::make_unique<File>(std::move(file)));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return RealFileSystem().Rename(from, to);
  }
  Status Remove(const std::string& path) override { return RealFileSystem().Remove(path); }
  Status MakeFolder(const std::string& path, mode_t mode) override {
    return RealFileSystem().MakeFolder(path, mode);
  }
  Status SyncFolder(const std::string&) override { return Status(); }

 private:
  class File final : public WritableFile {
   public:
    explicit File(std::unique_ptr<WritableFile> base) : base_(std::move(base)) {}
    Status Append(std::span<const std::byte> bytes) override { return base_->Append(bytes); }
    Status Sync() override { return Status(); }
    Status Close() override { return base_->Close(); }

   private:
    std::unique_ptr<WritableFile> base_;
  };
};

struct Case {
  std::string name;
  int ranks;
  bool existing;  // an older package, and a foreign file, are there
};

class Publication : public ::testing::TestWithParam<Case> {};

TEST_P(Publication, IsWholeOrNothingAtEveryFailure) {
  const auto& [name, ranks, existing] = GetParam();
  const auto export_to = [ranks = ranks](const std::string& path, bool dynamic, FileSystem* fs) {
    ExportOptions options;
    options.export_path = path;
    options.export_name = "m";
    options.dynamic = dynamic;
    options.auto_atc_config_generated = true;
    options.weight_limit = 0;
    options.file_system = fs;
    const std::string group = ranks == 1 ? "tag=;rank_list=0" : "tag=;rank_list=0,1";
    return ExportOn(
        ranks, [&](int) { return SeedAllReduce(group); }, options);
  };
  UnsyncedFileSystem unsynced;
  bool failed = true;
  int failures = 0;
  for (int at = 1; failed; ++at) {
    const ExportFolder folder;
    // The path is a part of the files; this way it is the same in every round.
    const std::string target = folder / "a/mp";
    if (existing) {
      for (const Status& status : export_to(target, false, &unsynced)) ASSERT_TRUE(status.ok());
      Spill(target + "/mine.txt", "stays");
    }
    const auto before = ContentOf(folder.path());
    FlakyFileSystem flaky(at, unsynced);
    const auto statuses = export_to(target, true, &flaky);
    failed = flaky.failed();
    auto after = ContentOf(folder.path());
    if (!statuses[0].ok()) {
      ++failures;
      for (const Status& status : statuses) {
        EXPECT_EQ(status.message(), statuses[0].message());
        EXPECT_EQ(status.code(), Code::kIo);
      }
      EXPECT_EQ(after, before) << "call " << at;
      EXPECT_EQ(std::filesystem::exists(folder / "a"), existing) << "call " << at;
      continue;
    }
    // Only what is left aside may tell that a last removal failed.
    std::erase_if(after, [](const auto& file) {
      return file.first.find(".npumesh-export") != std::string::npos;
    });
    const size_t package = ranks == 1 ? 5 : 11;
    EXPECT_EQ(after.size(), package + (existing ? 1 : 0)) << "call " << at;
    for (const auto& [file, content] : after) {
      if (!file.ends_with(".air")) continue;
      EXPECT_TRUE(!before.contains(file) || before.at(file) != content) << file;
    }
  }
  EXPECT_GT(failures, 20);
}

INSTANTIATE_TEST_SUITE_P(All, Publication,
                         ::testing::Values(Case{"one_new", 1, false}, Case{"one_again", 1, true},
                                           Case{"two_new", 2, false}, Case{"two_again", 2, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace npumesh
