// The smoke form of the libFuzzer programs: every file of the corpus, findings of earlier runs
// among them, and a few damages of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/files/secure_file.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/seeds.h"

namespace npumesh::fuzz {

void PrintTo(const Target& target, std::ostream* out) {
  *out << target.name;
}

namespace {

namespace fs = std::filesystem;

constexpr int kMutationsOfAFile = 40;

std::vector<std::string> CorpusOf(const Target& target) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(NPUMESH_CORPUS) / target.name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const fs::path& path : paths) files.push_back(ReadFile(path.string()).value());
  return files;
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, HoldsWhatMustHold) {
  const std::vector<std::string> files = CorpusOf(GetParam());
  ASSERT_FALSE(files.empty());
  for (const std::string& bytes : files) EXPECT_EQ(GetParam().check(bytes), "") << bytes;
}

// `write_corpus tests/fuzz/corpus` brings it up to date.
TEST_P(Corpus, HasEverySeed) {
  const std::vector<std::string> files = CorpusOf(GetParam());
  for (const std::string& seed : GetParam().seeds) {
    EXPECT_NE(std::find(files.begin(), files.end(), seed), files.end()) << seed;
  }
}

TEST_P(Corpus, DamagedFilesHoldIt) {
  const std::vector<std::string> files = CorpusOf(GetParam());
  Mutator mutator(17);
  for (const std::string& bytes : files) {
    for (int i = 0; i < kMutationsOfAFile; ++i) {
      const std::string damaged = mutator.Mutate(bytes, files);
      ASSERT_EQ(GetParam().check(damaged), "") << damaged;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(AllTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace npumesh::fuzz
