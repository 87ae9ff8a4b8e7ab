#include "graph/export/checksums.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <span>

#include "graph/digest/sha256.h"
#include "tests/unit/export/export_models.h"

namespace npumesh::testing {
namespace {

using ::testing::HasSubstr;

// sha256sum(1) of "abc" and of nothing, and of a name with a backslash.
TEST(Checksums, AreWrittenAsSha256sumWritesThem) {
  const Checksums checksums = {{"a\\b", Sha256("abc")}, {"rank_0/p1", Sha256("")}};
  const std::string text =
      "\\ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\\\\b\n"
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  rank_0/p1\n";
  EXPECT_EQ(ChecksumsText(checksums), text);
  EXPECT_EQ(ParseChecksums(text).value(), checksums);
  const std::string binary = Sha256("") + " *p\n";
  EXPECT_EQ(ParseChecksums(binary)->begin()->first, "p");
}

TEST(Checksums, PiecesAreTheSameAsTheWhole) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7);
  for (const size_t piece : {1, 63, 64, 65, 999}) {
    Sha256Sum sum;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      sum.Add(std::as_bytes(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at))));
    }
    EXPECT_EQ(sum.Text(), Sha256(bytes)) << piece;
  }
}

TEST(Checksums, WhatIsNoneNamesItsLine) {
  const std::string digest(64, 'a');
  const std::pair<std::string, std::string> cases[] = {
      {"\n", "line 1 is not a SHA-256"},
      {digest + "\n", "line 1 is not a SHA-256"},
      {digest + "  \n", "line 1 is not a SHA-256"},
      {digest + "  p\n" + std::string(64, 'A') + "  q\n", "line 2 is not a SHA-256"},
      {digest + "x p\n", "line 1 is not a SHA-256"},
      {digest + "  ../p\n", "line 1: \"../p\" is no file of the package"},
      {digest + "  a/../../p\n", "is no file of the package"},
      {digest + "  /etc/passwd\n", "is no file of the package"},
      {digest + "  .\n", "is no file of the package"},
      {digest + "  p/\n", "is no file of the package"},
      {digest + "  p\n" + digest + "  p\n", "line 2: \"p\" comes twice"},
  };
  for (const auto& [text, words] : cases) {
    const Status status = ParseChecksums(text).status();
    EXPECT_EQ(status.code(), Code::kCorrupt) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words)) << text;
  }
  const std::string whole = digest + "  p1\n" + digest + "  p2\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<Checksums> cut = ParseChecksums(whole.substr(0, size));
    EXPECT_EQ(cut.ok(), size == 0 || size >= 136 || (size >= 67 && size <= 69)) << size;
  }
}

TEST(Checksums, AnExportListsEveryOtherFile) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "mp";
  options.auto_atc_config_generated = true;
  options.weight_limit = 0;
  for (const Status& status : ExportOn(
           2, [](int) { return SeedAllReduce("tag=;rank_list=0,1"); }, options)) {
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Checksums expected;
  for (const std::string& name : FilesOf(folder / "mp")) {
    if (name != "checksums.sha256") expected[name] = Sha256OfFile(folder / ("mp/" + name)).value();
  }
  EXPECT_EQ(expected.size(), 10u);
  EXPECT_EQ(ParseChecksums(Slurp(folder / "mp/checksums.sha256")).value(), expected);
}

}  // namespace
}  // namespace npumesh::testing
