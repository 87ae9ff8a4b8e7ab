// 200 desyncs with one fault each and 50 jobs without, in the formats of four libraries: the rank
// at which to look first is the one that did it.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "launch/record/foreign/job_folder.h"
#include "tests/unit/foreign_record/made_up_job.h"

namespace npumesh::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;

constexpr int kDesyncs = 50;  // of each library

// A folder with files, which goes when this does.
class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "/job_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  void Add(const std::map<std::string, std::string>& files) {
    for (const auto& [name, text] : files) {
      const std::filesystem::path file = std::filesystem::path(path_) / name;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file, std::ios::binary) << text;
    }
  }

 private:
  std::string path_;
};

std::string Story(const Job& job) {
  return BlameText(job.joined.blame) + "\n" + JoinedText(job.records, job.joined);
}

class MadeUpJobs : public ::testing::TestWithParam<Library> {};

TEST_P(MadeUpJobs, TheCulpritIsBlamed) {
  // A report of RAS knows no sizes.
  std::vector<Fault> faults = {Fault::kMissing, Fault::kSkipped, Fault::kOther, Fault::kOrder,
                               Fault::kDead};
  if (GetParam() != Library::kRas) faults.push_back(Fault::kSize);
  for (int i = 0; i < kDesyncs; ++i) {
    const Fault fault = faults[static_cast<size_t>(i) % faults.size()];
    const MadeUpJob made(fault, static_cast<uint32_t>(1000 + i));
    Folder folder;
    folder.Add(made.Files(GetParam()));
    const Result<Job> job = ReadJob(folder.path());
    ASSERT_TRUE(job.ok()) << i << ": " << job.status().message();
    const Blame& blame = job->joined.blame;
    const std::string story =
        fmt::format("job {}, fault {}: {}", i, static_cast<int>(fault), Story(*job));
    if (fault == Fault::kOrder) {
      EXPECT_EQ(blame.cause, Cause::kCircle) << story;
      EXPECT_EQ(blame.ranks.size(), 2u) << story;
      EXPECT_THAT(blame.ranks, Contains(made.culprits()[0])) << story;
    } else {
      EXPECT_THAT(blame.ranks, ElementsAreArray(made.culprits())) << story;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, MadeUpJobs,
                         ::testing::Values(Library::kPickle, Library::kJson, Library::kRas,
                                           Library::kHccl));

TEST(CleanJobs, NoneRaisesAnAlarm) {
  for (int i = 0; i < 50; ++i) {
    const MadeUpJob made(Fault::kNone, static_cast<uint32_t>(5000 + i));
    Folder folder;
    folder.Add(made.Files(static_cast<Library>(i % 4)));
    const Result<Job> job = ReadJob(folder.path());
    ASSERT_TRUE(job.ok()) << i << ": " << job.status().message();
    EXPECT_TRUE(job->joined.problems.empty()) << i << ": " << Story(*job);
    EXPECT_EQ(job->records.size(), static_cast<size_t>(made.ranks()));
  }
}

}  // namespace
}  // namespace npumesh::testing
