// An export that is killed at any of its file operations: what is there is the old package or the
// new one, or the next export takes it back.
#include <gmock/gmock.h>

#include "graph/export/work_folder.h"
#include "runtime/base/files/path_lock.h"
#include "tests/unit/base/deadly_file_system.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests
namespace fs = std::filesystem;

using Content = std::map<std::string, std::string>;

class KilledExport : public ::testing::Test {
 protected:
  KilledExport() {
    old_ = AfterExport(false);
    old_["mine.txt"] = "stays";
    new_ = AfterExport(true);
    new_["mine.txt"] = "stays";
  }

  bool Export(bool dynamic, FileSystem& files, int ranks = 1) const {
    ExportOptions options;
    options.export_path = target_;
    options.export_name = "m";
    options.dynamic = dynamic;
    options.weight_limit = 0;
    options.file_system = &files;
    options.distributed = true;
    const std::string group = ranks == 1 ? "tag=;rank_list=0" : "tag=;rank_list=0,1";
    const std::string machine = "pack:1 core:2 pu:1";  // which is quicker to ask than the real one
    for (const Status& status : ExportOn(
             ranks, [&](int) { return SeedAllReduce(group); }, options, {}, machine)) {
      if (!status.ok()) return false;
    }
    return true;
  }

  void Reset(const Content& content) const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry);
    for (const auto& [name, text] : content) Spill(target_ + "/" + name, text);
  }

  Content Now() const {
    Content content = fs::exists(target_) ? ContentOf(target_) : Content();
    std::erase_if(content, [](const auto& file) { return file.first.starts_with(".npumesh"); });
    return content;
  }

  Content AfterExport(bool dynamic) const {
    Reset({});
    DeadlyFileSystem files(0);
    EXPECT_TRUE(Export(dynamic, files));
    return Now();
  }

  // The next export is whole, and leaves nothing else. Every third time, to save some.
  void ExpectRecovery(int at) const {
    if (at % 3 != 0) return;
    DeadlyFileSystem files(0);
    ASSERT_TRUE(Export(true, files)) << "after call " << at;
    EXPECT_EQ(Now(), new_) << "after call " << at;
    EXPECT_TRUE(LeftoversOf(target_).empty()) << "after call " << at;
  }

  ExportFolder folder_;
  std::string target_ = folder_ / "a/mp";
  Content old_;
  Content new_;
};

TEST_F(KilledExport, ANewPackageIsWholeOrAbsent) {
  std::erase_if(new_, [](const auto& file) { return file.first == "mine.txt"; });
  bool survives = false;
  int at = 1;
  for (; !survives; ++at) {
    Reset({});
    survives = Survives([&] {
      DeadlyFileSystem files(at);
      return Export(true, files);
    });
    const Content now = Now();
    EXPECT_TRUE(now.empty() || now == new_) << "call " << at;
    ExpectRecovery(at);
  }
  EXPECT_GT(at, 20);
}

TEST_F(KilledExport, AnExistingPackageIsTheOldOrTheNewOne) {
  bool survives = false;
  int at = 1;
  int replaced = 0;
  for (; !survives; ++at) {
    Reset(old_);
    survives = Survives([&] {
      DeadlyFileSystem files(at);
      return Export(true, files);
    });
    const Content now = Now();
    EXPECT_TRUE(now == old_ || now == new_) << "call " << at;
    replaced += now == new_ ? 1 : 0;
    for (const Leftover& leftover : LeftoversOf(target_)) {
      EXPECT_FALSE(leftover.interrupted || leftover.running);
    }
    ExpectRecovery(at);
  }
  EXPECT_GT(at, 20);
  EXPECT_GT(replaced, 1);
}

// From within the folder it cannot be exchanged.
class ReplacedFileByFile : public KilledExport {
 protected:
  ReplacedFileByFile() : here_(fs::current_path()) {}
  ~ReplacedFileByFile() override { fs::current_path(here_); }

  // False when the export was killed at this call.
  bool ExportFromWithin(int at) const {
    return Survives([&] {
      fs::current_path(target_);
      DeadlyFileSystem files(at);
      return Export(true, files);
    });
  }

  fs::path here_;
};

TEST_F(ReplacedFileByFile, IsTakenBackByTheNextExport) {
  bool survives = false;
  int at = 1;
  int mixed = 0;
  for (; !survives; ++at) {
    Reset(old_);
    survives = ExportFromWithin(at);
    const Content now = Now();
    bool interrupted = false;
    for (const Leftover& leftover : LeftoversOf(target_)) {
      interrupted = interrupted || leftover.interrupted;
      EXPECT_FALSE(leftover.running);
    }
    EXPECT_TRUE(interrupted || now == old_ || now == new_) << "call " << at;
    if (interrupted) {
      mixed += now != old_ && now != new_ ? 1 : 0;
      ASSERT_TRUE(ClearLeftovers(target_, RealFileSystem()).ok());
      EXPECT_EQ(Now(), old_) << "call " << at;
    }
    ExpectRecovery(at);
  }
  EXPECT_GT(mixed, 3);
}

TEST_F(ReplacedFileByFile, TakingBackMayBeKilledToo) {
  int at = 1;
  const auto interrupted = [this] {
    const std::vector<Leftover> leftovers = LeftoversOf(target_);
    return leftovers.size() == 1 && leftovers[0].interrupted && Now() != old_ && Now() != new_;
  };
  // The last call that leaves a mixture: most is to be taken back.
  int last = 0;
  for (bool survives = false; !survives; ++at) {
    Reset(old_);
    survives = ExportFromWithin(at);
    if (!survives && interrupted()) last = at;
  }
  ASSERT_GT(last, 0);
  bool survives = false;
  for (int kill_at = 1; !survives; ++kill_at) {
    Reset(old_);
    ExportFromWithin(last);
    ASSERT_TRUE(interrupted());
    survives = Survives([&] {
      DeadlyFileSystem files(kill_at);
      return ClearLeftovers(target_, files).ok();
    });
    ASSERT_TRUE(ClearLeftovers(target_, RealFileSystem()).ok());
    EXPECT_EQ(Now(), old_) << "killed at call " << kill_at;
    EXPECT_TRUE(LeftoversOf(target_).empty());
  }
}

TEST_F(KilledExport, OneThatIsAtWorkIsLeftAlone) {
  Reset(old_);
  const WorkFolder work = WorkFolder::Beside(target_, "beside.1.1");
  fs::create_directories(work.fresh());
  PathLock lock;
  ASSERT_TRUE(lock.Take(work.path));
  ASSERT_EQ(LeftoversOf(target_).size(), 1u);
  EXPECT_TRUE(LeftoversOf(target_)[0].running);
  ASSERT_TRUE(ClearLeftovers(target_, RealFileSystem()).ok());
  EXPECT_TRUE(fs::exists(work.fresh()));
}

TEST_F(KilledExport, AForeignJournalLeadsNowhereElse) {
  Reset(old_);
  const WorkFolder work = WorkFolder::In(target_, "in.1.1");
  for (const char* name : {"../../secret\n", "/etc/passwd\n", "\n", "a/../../b\n"}) {
    Spill(work.journal(), name);
    const Status status = ClearLeftovers(target_, RealFileSystem());
    EXPECT_EQ(status.code(), Code::kCorrupt) << name;
  }
  EXPECT_EQ(Now(), old_);
}

}  // namespace
}  // namespace npumesh
