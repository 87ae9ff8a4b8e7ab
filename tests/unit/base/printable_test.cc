#include "runtime/base/text/printable.h"

#include <gmock/gmock.h>

#include "runtime/base/status.h"

namespace npumesh {
namespace {

using namespace std::string_literals;
using testing::EndsWith;
using testing::StartsWith;

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text :
       {"", "layers/0/MatMul_3", "a\\b \"c\" d", "\xe5\x9b\xbe \xf0\x9f\x98\x80"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(Printable("a\x1b[31mb\x07"), "a\\x1b[31mb\\x07");
  EXPECT_EQ(Printable("x\nnpumesh run: forged\r\t"), "x\\nnpumesh run: forged\\r\\t");
  EXPECT_EQ(Printable("a\0b"s), "a\\x00b");
  EXPECT_EQ(Printable("\x7f"), "\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\x9b") << "the one-byte form of ESC [";
  EXPECT_EQ(Printable("\xe2\x80\xae|\xe2\x80\xa8"), "\\u202e|\\u2028");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(Printable("\xe5\x9b"), "\\xe5\\x9b") << "cut off";
}

TEST(Quotable, KeepsBothEndsOfLongText) {
  EXPECT_EQ(Quotable(std::string(200, 'a')), std::string(200, 'a'));
  const std::string quoted = Quotable("begin" + std::string(1 << 20, 'x') + "end");
  EXPECT_EQ(quoted.size(), kMostQuoted);
  EXPECT_THAT(quoted, StartsWith("beginxxx"));
  EXPECT_THAT(quoted, EndsWith("xxxend"));
  EXPECT_LE(Quotable(std::string(1000, '\n')).size(), kMostQuoted);
}

TEST(Quotable, CutsNoCharacterInTwo) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "\xe5\x9b\xbe";
  for (size_t from = 0; from < 3; ++from) {
    const std::string quoted = Quotable(std::string(from, 'a') + text);
    EXPECT_EQ(Printable(quoted), quoted) << from;
    EXPECT_LE(quoted.size(), kMostQuoted);
  }
}

TEST(AStatus, ForgesNoLine) {
  const std::string name = "n\nnpumesh run: all is well\x1b[2J";
  EXPECT_EQ(Error(Code::kCorrupt, "node \"{}\": wrong", name).message(),
            "node \"n\\nnpumesh run: all is well\\x1b[2J\": wrong");
}

TEST(AStatus, KeepsTheIndentedLinesOfAList) {
  const Status list = Error(Code::kCorrupt, "2 errors:\n  one\n  two");
  EXPECT_EQ(list.message(), "2 errors:\n  one\n  two");
  EXPECT_EQ(list.WithContext("file").message(), "file: 2 errors:\n  one\n  two");
}

TEST(AStatus, QuotesLittleOfHostileText) {
  const Status status = Error(Code::kCorrupt, "\"{}\" is no key", std::string(1 << 20, 'k'));
  EXPECT_EQ(status.message().size(), kMostQuoted + std::string_view("\"\" is no key").size());
  const Status unquoted = Error(Code::kCorrupt, "{} is no key", std::string(1 << 20, 'k'));
  EXPECT_LE(unquoted.message().size(), 4000u);
}

TEST(AStatus, IsTheSameAfterMoreContext) {
  const Status status = Error(Code::kCorrupt, "\"{}\"\n  \"{}\"", std::string(5000, 'a'), "\x1b");
  EXPECT_EQ(PrintableMessage(std::string(status.message())), status.message());
}

}  // namespace
}  // namespace npumesh
