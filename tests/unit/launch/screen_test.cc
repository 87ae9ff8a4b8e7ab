#include "launch/screen/screen.h"

#include <gmock/gmock.h>

#include <random>

#include "launch/screen/fold.h"
#include "launch/screen/paint.h"

namespace npumesh {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  return words;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  return lines;
}

TEST(Fold, ContinuesBelowTheLastColumn) {
  EXPECT_EQ(Folded("ok      versions  npumesh 0.1.0, source abc, Open MPI 4.1.4\n", 40),
            "ok      versions  npumesh 0.1.0, source\n"
            "                  abc, Open MPI 4.1.4\n");
}

TEST(Fold, GoesDeeperWhereThereAreNoColumns) {
  EXPECT_EQ(Folded("  rank 2 breaks the law of equal sums at RmsNorm_1\n", 40),
            "  rank 2 breaks the law of equal sums at\n      RmsNorm_1\n");
}

TEST(Fold, LeavesWhatFitsAndWhatHasNoBlanks) {
  EXPECT_EQ(Folded("a  b\n\n c", 40), "a  b\n\n c");
  const std::string path(60, 'p');
  EXPECT_EQ(Folded(path, 40), path);
  EXPECT_EQ(Folded("aaaaaaaaaaaaaa  " + std::string(30, 'b') + " c", 40),
            "aaaaaaaaaaaaaa\n          " + std::string(30, 'b') + "\n                c");
  EXPECT_EQ(Folded("see " + path + " there", 40), "see\n    " + path + "\n    there");
  EXPECT_EQ(Folded(std::string(300, 'a') + " b", 0), std::string(300, 'a') + " b");
}

TEST(Fold, CountsCharactersAndNotBytes) {
  std::string line;
  for (int i = 0; i < 40; ++i) line += "\u00e4";
  EXPECT_EQ(WidthOf(line), 40u);
  EXPECT_EQ(Folded(line, 40), line);
}

// Whatever the text is: no word is lost, no line is too long for another reason than one word, and
// a second time changes nothing.
TEST(Fold, KeepsTheWordsOfAnyText) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      const uint32_t dice = random() % 12;
      if (dice < 5)
        text += std::string(1 + random() % (dice == 0 ? 50 : 9), 'w');
      else if (dice < 8)
        text += ' ';
      else if (dice < 10)
        text += "  ";
      else if (dice == 10)
        text += "\n";
      else
        text += "\u20ac";
    }
    const int columns = 40 + static_cast<int>(random() % 60);
    const std::string folded = Folded(text, columns);
    EXPECT_EQ(Words(folded), Words(text)) << text;
    EXPECT_EQ(Folded(folded, columns), folded) << text;
    for (const std::string& line : Lines(folded)) {
      if (WidthOf(line) <= static_cast<size_t>(columns)) continue;
      const std::vector<std::string> words = Words(line);
      EXPECT_EQ(words.size(), 1u) << line;
    }
  }
}

TEST(Fold, AParagraphFillsItsLines) {
  EXPECT_EQ(Paragraph("one two  three four", 12, 4, 2), "one two\n  three four");
  EXPECT_EQ(Paragraph("", 12, 4, 2), "");
}

TEST(Paint, ColoursVerdictsAndNothingElse) {
  EXPECT_EQ(Painted("check: OK, 2 match\n"), "check: \x1b[32mOK\x1b[0m, 2 match\n");
  EXPECT_EQ(Painted("rank 1 DIFFERS: 4\n"), "rank 1 \x1b[31mDIFFERS\x1b[0m: 4\n");
  EXPECT_EQ(Painted("wrong  MPI\n"), "\x1b[31mwrong\x1b[0m  MPI\n");
  for (const char* plain : {"BOOKED OKAY\n", "not wrong\n", "is ok\n", "valid is what\n", ""}) {
    EXPECT_EQ(Painted(plain), plain);
  }
}

// The escapes taken away, it is the same text.
TEST(Paint, ChangesNoLetter) {
  const std::string text =
      "ok  a\nverdict: rank 2 is OK, error: DIFFERS\n4 ranks: valid\nwarning: x";
  std::string painted = Painted(text), plain;
  for (size_t i = 0; i < painted.size(); ++i) {
    if (painted[i] == '\x1b')
      i = painted.find('m', i);
    else
      plain += painted[i];
  }
  EXPECT_EQ(plain, text);
  EXPECT_NE(painted, text);
}

Screen With(Descriptor descriptor, std::map<std::string, std::string> variables) {
  return ScreenOf(descriptor, [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Screen, IsATerminalAFileOrARank) {
  const Screen file = With({}, {});
  EXPECT_EQ(file.columns, 0);
  EXPECT_FALSE(file.colours || file.terminal);
  const Screen terminal = With({true, 132}, {});
  EXPECT_EQ(terminal.columns, 132);
  EXPECT_TRUE(terminal.colours && terminal.terminal);
  const Screen rank = With({true, 132}, {{"PMIX_RANK", "0"}});
  EXPECT_EQ(rank.columns, 0);
  EXPECT_FALSE(rank.colours || rank.terminal);
}

TEST(Screen, FollowsVariables) {
  EXPECT_EQ(With({}, {{"COLUMNS", "80"}}).columns, 80);
  EXPECT_EQ(With({true, 132}, {{"COLUMNS", "80"}}).columns, 80);
  for (const char* unusable : {"", "wide", "39", "1001", "-80", "80x"}) {
    EXPECT_EQ(With({true, 132}, {{"COLUMNS", unusable}}).columns, 132) << unusable;
  }
  EXPECT_FALSE(With({true, 80}, {{"NO_COLOR", "1"}}).colours);
  EXPECT_TRUE(With({true, 80}, {{"NO_COLOR", ""}}).colours);
  EXPECT_FALSE(With({true, 80}, {{"TERM", "dumb"}}).colours);
  EXPECT_EQ(With({true, 0}, {}).columns, 0) << "a terminal that does not say its width";
}

TEST(Screen, ShowsFoldedAndColoured) {
  const std::string text = "ok  " + std::string(30, 'a') + " " + std::string(30, 'b') + "\n";
  EXPECT_EQ(Shown(text, {}), text);
  EXPECT_EQ(Shown(text, {.columns = 40, .colours = true}),
            "\x1b[32mok\x1b[0m  " + std::string(30, 'a') + "\n    " + std::string(30, 'b') + "\n");
}

}  // namespace
}  // namespace npumesh
