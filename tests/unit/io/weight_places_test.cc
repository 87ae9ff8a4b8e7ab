// What is told about the places of weights, and which links are refused.
#include "graph/io/weight_places.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A package "mp" that was written as "good", read from the folder "work".
class WeightPlaces : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::create_directories(folder_.Path("work"));
    fs::current_path(folder_.Path("work"));
    model_.path = folder_.Path("mp/m0.air");
    PutFile(model_.path, "");
  }
  void TearDown() override { fs::current_path(before_); }

  void AddWeight(const std::string& stored) {
    Node node;
    node.name = fmt::format("w{}", model_.graph.nodes().size());
    node.type = "FileConstant";
    node.attrs.emplace("file_path", AttrValue::String(stored));
    node.output_descs.resize(1);
    ASSERT_TRUE(model_.graph.Add(std::move(node)).ok());
  }

  std::vector<std::string> Notes(const WeightRules& rules = {}) {
    const auto notes = CheckWeightPlaces(model_, rules);
    EXPECT_TRUE(notes.ok()) << notes.status().ToString();
    return notes.ok() ? *notes : std::vector<std::string>();
  }
  std::string Refusal(Code code = Code::kInvalidArgument, const WeightRules& rules = {}) {
    const Status status = CheckWeightPlaces(model_, rules).status();
    EXPECT_EQ(status.code(), code);
    return std::string(status.message());
  }

  TemporaryFolder folder_;
  fs::path before_;
  Model model_;
};

TEST_F(WeightPlaces, NothingIsToldOfAWholePackage) {
  PutFile(folder_.Path("mp/rank_0/p1"), "1234");
  PutFile(folder_.Path("mp/rank_0/p2"), "1234");
  AddWeight("good/rank_0/p1");
  AddWeight(folder_.Path("mp/rank_0/p2"));
  EXPECT_THAT(Notes(), IsEmpty());
}

TEST_F(WeightPlaces, AnotherPackageOfTheSameNameIsToldOnce) {
  for (const char* name : {"p1", "p2", "p3"}) {
    PutFile(folder_.Path(fmt::format("mp/rank_0/{}", name)), "1234");
    PutFile(fmt::format("good/rank_0/{}", name), name == std::string("p1") ? "1234" : "1235");
    AddWeight(fmt::format("./good/rank_0/{}", name));
  }
  EXPECT_THAT(Notes(), ElementsAre(HasSubstr(
                           "mp/rank_0/p2 is taken from the package; \"./good/rank_0/p2\" below the "
                           "working directory has the same name and other content")));
}

TEST_F(WeightPlaces, TheSameFileOrTheSameBytesAreNoRival) {
  PutFile(folder_.Path("mp/rank_0/p1"), "1234");
  PutFile("good/rank_0/p1", "1234");
  AddWeight("good/rank_0/p1");
  EXPECT_THAT(Notes(), IsEmpty());
  fs::current_path(folder_.path());
  AddWeight("mp/rank_0/p1");  // from here it is the file itself
  EXPECT_THAT(Notes(), IsEmpty());
}

// A package that lacks a weight passed, because another package had it.
TEST_F(WeightPlaces, WhatThePackageLacksIsAnErrorWhereverItsPathLeads) {
  PutFile("good/rank_0/p1", "1234");
  PutFile(folder_.Path("other/p1"), "1234");
  for (const std::string& stored :
       {std::string("good/rank_0/p1"), folder_.Path("other/p1"), std::string("../other/p1")}) {
    model_.graph = Graph();
    AddWeight(stored);
    const std::string refusal = Refusal(Code::kNotFound);
    EXPECT_THAT(refusal, HasSubstr("mp/m0.air: the package lacks 1 weight; it is: node \"w0\" "));
    EXPECT_THAT(refusal, HasSubstr("\"" + stored + "\", looked for as " + folder_.Path("mp/")));
    EXPECT_THAT(refusal, HasSubstr("p1 is outside of the package: copy it there, or take it with "
                                   "--allow-outside"));
    EXPECT_THAT(Notes({.allow_outside = true}), SizeIs(1)) << stored;
  }
}

TEST_F(WeightPlaces, ManyThatAreNowhereAreOneLine) {
  for (int i = 0; i < 20; ++i) AddWeight(fmt::format("../mp/rank_0/p{}", i));
  const std::string refusal = Refusal(Code::kNotFound, {.allow_outside = true});
  EXPECT_THAT(refusal, HasSubstr("the package lacks 20 weights; the first: node \"w0\" "));
  EXPECT_THAT(refusal, HasSubstr("mp/rank_0/p0, "));
  EXPECT_THAT(refusal, ::testing::EndsWith("; export again, or copy the files there"));
  EXPECT_THAT(refusal, ::testing::Not(HasSubstr("p1")));
}

TEST_F(WeightPlaces, AModelThatIsNoFileHasNoPackage) {
  PutFile(folder_.Path("other/p1"), "1234");
  AddWeight(folder_.Path("other/p1"));
  model_.path = "model";
  EXPECT_THAT(Notes(), ElementsAre(HasSubstr("other/p1 is outside of the package ")));
}

TEST_F(WeightPlaces, WhatComesFromOutsideIsTold) {
  PutFile(folder_.Path("other/p1"), "1234");
  PutFile("good/rank_0/p2", "1234");
  PutFile("good/rank_0/p3", "1234");
  AddWeight(folder_.Path("other/p1"));
  AddWeight(folder_.Path("other/p1"));
  AddWeight("good/rank_0/p2");
  AddWeight("good/rank_0/p3");
  EXPECT_THAT(Notes({.allow_outside = true}),
              ElementsAre(HasSubstr("other/p1 is outside of the package "),
                          HasSubstr("lacks weight files; taken from outside: "
                                    "good/rank_0/p2 and 1 more")));
}

TEST_F(WeightPlaces, ManyFilesOutsideAreCounted) {
  const auto add = [&](int number) {
    const std::string path = folder_.Path(fmt::format("other/p{}", number));
    PutFile(path, "1234");
    AddWeight(path);
  };
  for (int i = 1; i <= 8; ++i) add(i);
  EXPECT_THAT(Notes({.allow_outside = true}), SizeIs(8));
  for (int i = 9; i <= 20; ++i) add(i);
  const std::vector<std::string> notes = Notes({.allow_outside = true});
  ASSERT_THAT(notes, SizeIs(9));
  EXPECT_THAT(notes[7], HasSubstr("other/p8 is outside of the package "));
  EXPECT_THAT(notes[8], HasSubstr("and 12 more weight files are outside of the package "));
}

TEST_F(WeightPlaces, ALinkThatLeadsOutIsRefused) {
  PutFile(folder_.Path("secret"), "1234");
  fs::create_directories(folder_.Path("mp/rank_0"));
  fs::create_symlink("../../secret", folder_.Path("mp/rank_0/p1"));
  AddWeight("good/rank_0/p1");
  EXPECT_THAT(Refusal(), HasSubstr("node \"w0\" (FileConstant): weight file "));
  EXPECT_THAT(Refusal(), HasSubstr("mp/rank_0/p1 is a link that leads out of "));
  EXPECT_THAT(Refusal(), HasSubstr("/secret; --allow-outside follows it"));
  EXPECT_THAT(Notes({.allow_outside = true}), IsEmpty());
}

TEST_F(WeightPlaces, ALinkedFolderOrAnAbsolutePathThroughALinkIsRefusedToo) {
  PutFile(folder_.Path("elsewhere/p1"), "1234");
  fs::create_directory_symlink("../elsewhere", folder_.Path("mp/rank_0"));
  AddWeight("good/rank_0/p1");
  EXPECT_THAT(Refusal(), HasSubstr("leads out of"));
  Model absolute;
  absolute.path = model_.path;
  std::swap(model_, absolute);
  AddWeight(folder_.Path("mp/rank_0/p1"));
  EXPECT_THAT(Refusal(), HasSubstr("leads out of"));
}

TEST_F(WeightPlaces, LinksInsideThePackageAndLinkedPackagesAreFine) {
  PutFile(folder_.Path("mp/p1"), "1234");
  fs::create_directories(folder_.Path("mp/rank_0"));
  fs::create_symlink("../p1", folder_.Path("mp/rank_0/p1"));
  fs::create_directory_symlink("mp", folder_.Path("latest"));
  AddWeight("good/rank_0/p1");
  EXPECT_THAT(Notes(), IsEmpty());
  model_.path = folder_.Path("latest/m0.air");
  EXPECT_THAT(Notes(), IsEmpty());
}

}  // namespace
}  // namespace npumesh::testing
