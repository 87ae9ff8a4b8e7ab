#include "launch/ranks/model_choice.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace npumesh {
namespace {

using testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(SplitNumber, CutsTheDigitsAtTheEndOfTheStem) {
  struct Case {
    std::string name, prefix;
    std::optional<int> number;
    std::string extension;
  };
  const std::vector<Case> cases = {
      {"mp_rank0.air", "mp_rank", 0, ".air"},
      {"llama_tp12.air", "llama_tp", 12, ".air"},
      {"export.air", "export", std::nullopt, ".air"},
      {"rank03.air", "rank", 3, ".air"},
      {"7.air", "", 7, ".air"},
      {"v2_final.air", "v2_final", std::nullopt, ".air"},
      {"big99999999999.air", "big99999999999", std::nullopt, ".air"},
  };
  for (const Case& c : cases) {
    const NumberedName parts = SplitNumber(c.name);
    EXPECT_EQ(parts.prefix, c.prefix) << c.name;
    EXPECT_EQ(parts.number, c.number) << c.name;
    EXPECT_EQ(parts.extension, c.extension) << c.name;
  }
}

struct Choice {
  Names names;
  int rank, size;
  std::string chosen;  // empty: an error
  std::string error;
};

TEST(ChooseFromFolder, TakesTheFileOfTheRank) {
  const std::vector<Choice> cases = {
      {{"mp_rank0.air", "mp_rank1.air", "numa_config.json"}, 1, 2, "mp_rank1.air", ""},
      {{"export.air", "p1"}, 0, 1, "export.air", ""},
      {{"llama_tp1.air"}, 0, 1, "llama_tp1.air", ""},
      {{"rank00.air", "rank01.air"}, 1, 2, "rank01.air", ""},
      {{}, 0, 1, "", "found nothing"},
      {{"export.air"}, 0, 2, "", "found export.air, expected one file for each of 2 ranks"},
      {{"mp_rank0.air"}, 1, 2, "", "no .air whose name ends in 1"},
      {{"a0.air", "b0.air"}, 0, 1, "", "2 files for rank 0: a0.air, b0.air; name one of them"},
      {{"z0.air", "z1.air", "z2.air", "z3.air"}, 1, 2, "", "it is for 4 ranks, but 2 were started"},
  };
  for (const Choice& c : cases) {
    const Result<std::string> chosen = ChooseFromFolder(c.names, c.rank, c.size);
    EXPECT_EQ(chosen.ok() ? *chosen : "", c.chosen) << chosen.status().message();
    EXPECT_THAT(std::string(chosen.status().message()), HasSubstr(c.error));
  }
}

TEST(ChooseSibling, FollowsTheNumberOfTheNamedFile) {
  const Names two = {"mp_rank0.air", "mp_rank1.air"};
  const std::vector<Choice> cases = {
      {two, 1, 2, "mp_rank1.air", ""},
      {two, 0, 1, "mp_rank0.air", ""},
      {{"mp_rank0.air"}, 1, 2, "", "rank 1 of 2 needs mp_rank1.air"},
      {{"mp_rank0.air", "mp_rank1.air", "mp_rank2.air"}, 0, 2, "", "start 3 ranks"},
      {{"mp_rank0.air", "mp_rank1.pbtxt"}, 1, 2, "", "needs mp_rank1.air"},
  };
  for (const Choice& c : cases) {
    const Result<std::string> chosen = ChooseSibling("mp_rank0.air", c.names, c.rank, c.size);
    EXPECT_EQ(chosen.ok() ? *chosen : "", c.chosen) << chosen.status().message();
    EXPECT_THAT(std::string(chosen.status().message()), HasSubstr(c.error));
  }
}

TEST(ChooseSibling, AFileWithoutNumberServesAllRanks) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(*ChooseSibling("export.air", {"export.air"}, rank, 3), "export.air");
  }
}

TEST(ChooseModelFile, LooksAtTheDisk) {
  const std::filesystem::path folder = testing::TempDir() + "/model_choice";
  std::filesystem::create_directories(folder);
  for (const char* name : {"m0.air", "m1.air"}) std::ofstream(folder / name) << "x";
  EXPECT_EQ(*ChooseModelFile(folder.string(), 1, 2), (folder / "m1.air").string());
  EXPECT_EQ(*ChooseModelFile((folder / "m0.air").string(), 1, 2), (folder / "m1.air").string());
  const Result<std::string> missing = ChooseModelFile((folder / "no.air").string(), 0, 1);
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("no.air: no such file"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace npumesh
