#include "launch/npu_smi/npu_smi.h"

#include <gmock/gmock.h>

#include <sstream>

namespace npumesh {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

Env EnvOf(int devices, uint64_t megabytes) {
  Env env;
  env.device_count = devices;
  env.hbm_bytes = megabytes << 20;
  return env;
}

std::string Answer(const Env& env, const Words& words) {
  const Result<std::string> answer = NpuSmi(env, words);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? *answer : std::string();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Scripts take the third word of line 7 for the chip, and numbers in front of the HBM's size.
TEST(NpuSmi, TheTableHasWhatScriptsRead) {
  const std::vector<std::string> lines = LinesOf(Answer(EnvOf(2, 65536), {"info"}));
  ASSERT_GT(lines.size(), 12U);
  EXPECT_EQ(WordsOf(lines[6])[2], "910B1");
  EXPECT_EQ(WordsOf(lines[6])[1], "0");
  EXPECT_THAT(lines[7], HasSubstr("0    / 65536"));
  EXPECT_EQ(WordsOf(lines[9])[1], "1");
  EXPECT_THAT(lines[1], HasSubstr("simulated"));
  for (const std::string& line : lines) EXPECT_EQ(line.size(), 98U) << line;
}

TEST(NpuSmi, ProcessesAreBelowTheirHeading) {
  const std::string text = Answer(EnvOf(2, 64), {"info"});
  const size_t heading = text.find("Process id");
  ASSERT_NE(heading, std::string::npos);
  EXPECT_THAT(text.substr(heading), AllOf(HasSubstr("No running processes found in NPU 0"),
                                          HasSubstr("No running processes found in NPU 1")));
}

TEST(NpuSmi, ListCountsDevices) {
  const std::string text = Answer(EnvOf(3, 64), {"info", "-l"});
  EXPECT_THAT(text, HasSubstr("        Total Count                    : 3\n"));
  EXPECT_THAT(text, HasSubstr("        NPU ID                         : 2\n"));
  EXPECT_THAT(text, Not(HasSubstr(": 4\n")));
}

TEST(NpuSmi, OneDeviceWithoutVariables) {
  EXPECT_THAT(Answer(Env(), {"info", "-l"}), HasSubstr("Total Count                    : 1\n"));
  EXPECT_THAT(Answer(Env(), {"info", "-t", "memory"}),
              HasSubstr("HBM Capacity(MB)               : 65536\n"));
}

TEST(NpuSmi, ChipsHaveTheirLogicIds) {
  const std::vector<std::string> lines = LinesOf(Answer(EnvOf(2, 64), {"info", "-m"}));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(WordsOf(lines[2]), ::testing::ElementsAre("1", "0", "1", "Ascend", "910B1"));
}

TEST(NpuSmi, BoardOfAChipNamesIt) {
  EXPECT_THAT(Answer(EnvOf(2, 64), {"info", "-t", "board", "-i", "1", "-c", "0"}),
              AllOf(HasSubstr("NPU ID                         : 1\n"),
                    HasSubstr("Chip Name                      : 910B1\n")));
  const std::string board = Answer(EnvOf(2, 64), {"info", "-t", "board", "-i", "0"});
  EXPECT_THAT(board, AllOf(HasSubstr("Product Name                   : npumesh simulated NPU\n"),
                           Not(HasSubstr("Chip Name"))));
}

TEST(NpuSmi, EachTypeTellsOfAllDevices) {
  for (const char* type : {"board", "common", "health", "memory", "product", "usages"}) {
    const std::string text = Answer(EnvOf(2, 64), {"info", "-t", type});
    EXPECT_THAT(text, AllOf(HasSubstr("NPU ID                         : 0\n"),
                            HasSubstr("NPU ID                         : 1\n")))
        << type;
    EXPECT_THAT(Answer(Env(), {"-h"}), HasSubstr(type));
  }
}

TEST(NpuSmi, WhatIsUnknownIsNamed) {
  const auto refusal = [](const Words& words) {
    const Result<std::string> answer = NpuSmi(EnvOf(2, 64), words);
    EXPECT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), Code::kInvalidArgument);
    return std::string(answer.status().message());
  };
  EXPECT_THAT(refusal({"set"}), HasSubstr("\"set\": expected info, -v or -h"));
  EXPECT_THAT(refusal({"info", "-x"}), HasSubstr("\"-x\": expected -l, -m"));
  EXPECT_THAT(refusal({"info", "-t"}), HasSubstr("-t: expected a word behind it"));
  EXPECT_THAT(refusal({"info", "-t", "fan"}), HasSubstr("-t fan: expected one of board, common"));
  EXPECT_THAT(refusal({"info", "-t", "board", "-i", "2"}), HasSubstr("-i"));
  EXPECT_THAT(refusal({"info", "-t", "board", "-i", "0", "-c", "1"}), HasSubstr("-c"));
}

}  // namespace
}  // namespace npumesh
