#include "runtime/base/text/phrase_book.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using ::testing::Ge;
using ::testing::HasSubstr;

// The texts of all string literals of a file of C++, literals beside each other joined, and what
// stands in {} left out, as a phrase has it.
std::string Literals(const std::string& code) {
  std::string all;
  for (size_t at = 0; at < code.size(); ++at) {
    if (code.compare(at, 3, "'\"'") == 0) at += 3;
    if (code[at] != '"') continue;
    std::string text;
    while (at < code.size() && code[at] == '"') {
      for (++at; at < code.size() && code[at] != '"' && code[at] != '\n'; ++at) {
        if (code[at] == '\\') ++at;
        text += code[at];
      }
      const size_t next = code.find_first_not_of(" \n\t", at + 1);
      if (next == code.npos || code[next] != '"') break;
      at = next;
    }
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
      plain += text[i];
      if (text[i] == '{' && text.find('}', i) != text.npos) i = text.find('}', i) - 1;
    }
    all += plain + '\n';
  }
  return all;
}

std::string LiteralsOfTheCode() {
  const std::filesystem::path root = NPUMESH_SOURCE_DIR;
  std::string all;
  for (const char* floor : {"runtime", "collectives", "graph", "launch"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / floor)) {
      const std::string path = entry.path().string();
      if ((!path.ends_with(".cc") && !path.ends_with(".h")) || path.ends_with("/chinese.cc"))
        continue;
      std::ifstream file(path, std::ios::binary);
      all += Literals({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    }
  }
  return all;
}

// The parts of a phrase between its values.
std::vector<std::string> Pieces(std::string_view phrase) {
  std::vector<std::string> pieces;
  while (true) {
    const size_t at = phrase.find("{}");
    const std::string_view piece = Trimmed(phrase.substr(0, at));
    if (piece.size() >= 3) pieces.emplace_back(piece);
    if (at == phrase.npos) return pieces;
    phrase.remove_prefix(at + 2);
  }
}

size_t ValuesOf(std::string_view phrase) {
  size_t count = 0;
  for (size_t at = phrase.find("{}"); at != phrase.npos; at = phrase.find("{}", at + 2)) ++count;
  return count;
}

TEST(PhraseBook, EnglishIsWhatTheCodeSays) {
  const std::string literals = LiteralsOfTheCode();
  ASSERT_THAT(literals, HasSubstr("did not come within {} s"));
  for (const Phrase& phrase : ChinesePhrases()) {
    for (const std::string& piece : Pieces(phrase.english)) {
      EXPECT_NE(literals.find(piece), std::string::npos)
          << "\"" << phrase.english << "\": no message has \"" << piece << "\" any more";
    }
  }
}

TEST(PhraseBook, EveryRowIsWholeAndStandsOnce) {
  EXPECT_THAT(ChinesePhrases().size(), Ge(60u));
  std::map<std::string_view, int> seen;
  for (const Phrase& phrase : ChinesePhrases()) {
    EXPECT_EQ(++seen[phrase.english], 1) << phrase.english;
    const std::string_view chinese = phrase.chinese;
    EXPECT_TRUE(std::any_of(chinese.begin(), chinese.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0xE4;  // a character of Chinese
    })) << phrase.english;
    EXPECT_EQ(phrase.english.find("; "), std::string_view::npos)
        << "taken apart: " << phrase.english;
    size_t used = 0;
    for (size_t value = 0; value < 10; ++value) {
      const bool there = chinese.find("{" + std::to_string(value) + "}") != chinese.npos;
      EXPECT_TRUE(!there || value < ValuesOf(phrase.english)) << phrase.english;
      used += there ? 1 : 0;
    }
    // Endings of a plural ("output{}") have no place in Chinese; all else is said.
    EXPECT_GE(used + (phrase.english.find("output{}") != phrase.english.npos ? 2 : 0) +
                  (phrase.english.find("wait{}") != phrase.english.npos ? 1 : 0) +
                  (phrase.english.find("differ{}") != phrase.english.npos ? 1 : 0),
              ValuesOf(phrase.english))
        << phrase.english;
  }
}

// A row that stands behind a more general one would never be found.
TEST(PhraseBook, EveryRowIsReached) {
  for (const Phrase& phrase : ChinesePhrases()) {
    std::string english;
    std::string chinese(phrase.chinese);
    size_t number = 0;
    for (size_t at = 0; at < phrase.english.size(); ++at) {
      if (phrase.english.compare(at, 2, "{}") != 0) {
        english += phrase.english[at];
        continue;
      }
      const std::string value = "v" + std::to_string(number);
      const std::string place = "{" + std::to_string(number++) + "}";
      const size_t there = chinese.find(place);
      if (there != chinese.npos) chinese.replace(there, place.size(), value);
      english += value;
      ++at;
    }
    EXPECT_EQ(InChinese(english), chinese);
  }
}

TEST(PhraseBook, AHangIsTold) {
  EXPECT_EQ(InChinese("rank 0 has waited 10 s in allreduce \"a; b\" (group tp, call 3) for rank 2, "
                      "which is not in "
                      "any collective since 9.8 s (its last call of this group is 2), and for rank "
                      "3, which is on "
                      "another node, where it cannot be seen from here; rank 1 waits here too; "
                      "gives up at 17:33:33, "
                      "1836 s after it began"),
            "rank 0 在 allreduce \"a; b\" (group tp, call 3) 中已等待 10 秒，等待的是 rank "
            "2，它已有 9.8 s "
            "不在任何集合通信中（它在该通信域的最后一次调用是第 2 次），以及 "
            "rank 3，它在另一个节点上，从这里看不到；rank 1 也在此等待；将在 17:33:33 放弃（开始后 "
            "1836 秒）");
}

TEST(PhraseBook, NamesBeforeAPhraseStay) {
  EXPECT_EQ(InChinese("a/b: mine.air: no such file"), "a/b: mine.air：没有这样的文件");
  EXPECT_EQ(InChinese("rank 3 has left the group after call 5"),
            "rank 3 已离开通信域 （第 5 次调用之后）");
  EXPECT_EQ(InChinese("  verdict: rank 2: it differs"), "  结论：rank 2: it differs");
}

TEST(PhraseBook, WhatIsInNoRowStays) {
  for (const char* text :
       {"", " ", "hello", "a: b: c; d", "{}", "rank", "rank 3", "\"unclosed; quote"}) {
    EXPECT_EQ(InChinese(text), text);
  }
  const std::string data(5000, ';');
  EXPECT_EQ(InChinese(data), data);
}

// Text that is made to be slow to take apart.
TEST(PhraseBook, LongLinesTakeNoTime) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 2 == 0 ? "rank 1: " : ": , which ";
  EXPECT_FALSE(InChinese(text).empty());
}

TEST(PhraseBook, WhoSpeaksChinese) {
  using Variables = std::map<std::string, std::string>;
  const auto speaks = [](const Variables& set) {
    return SpeaksChinese([&](const char* name) {
      const auto it = set.find(name);
      return it == set.end() ? nullptr : it->second.c_str();
    });
  };
  EXPECT_FALSE(speaks({}));
  EXPECT_TRUE(speaks({{"NPUMESH_LANG", "zh"}}));
  EXPECT_TRUE(speaks({{"LANG", "zh_CN.UTF-8"}}));
  EXPECT_TRUE(speaks({{"LANG", "zh_CN"}}));
  EXPECT_TRUE(speaks({{"LC_MESSAGES", "zh_CN.utf8"}, {"LANG", "C"}}));
  EXPECT_FALSE(speaks({{"LANG", "zh_CN.GB18030"}}));
  EXPECT_FALSE(speaks({{"LANG", "zh_CN.UTF-8"}, {"LC_ALL", "C"}}));
  EXPECT_FALSE(speaks({{"LANG", "zh_CN.UTF-8"}, {"NPUMESH_LANG", "en"}}));
  EXPECT_TRUE(speaks({{"LANG", "zh_CN.UTF-8"}, {"NPUMESH_LANG", ""}}));
}

}  // namespace
}  // namespace npumesh
