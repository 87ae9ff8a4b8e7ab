#include "graph/ops/op_library.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/custom_operator.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/op_test.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

std::string BadLibrary(const std::string& flaw) {
  return BAD_LIBRARY_PREFIX + flaw + ".so";
}

TEST(OpLibrary, ItsOperatorsRunLikeBuiltInOnes) {
  const auto registry = OperatorsWith({POLYNOMIAL_LIBRARY});
  ASSERT_TRUE(registry.ok()) << registry.status().ToString();
  EXPECT_NE((*registry)->Find("Add"), nullptr);
  const auto out =
      RunOp(**registry, {.type = "Polynomial",
                         .inputs = {{"x", Make<float>(DataType::kFloat, {2, 2}, {0, 1, 2, -3})}},
                         .attrs = {{"coefficients", AttrValue::Floats({1, 2, 3})}}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_THAT((*out)[0].as<float>(), testing::ElementsAre(1, 6, 17, 22));
}

TEST(OpLibrary, ItsOwnErrorsComeThrough) {
  const auto registry = OperatorsWith({POLYNOMIAL_LIBRARY});
  ASSERT_TRUE(registry.ok());
  const auto out = RunOp(**registry, {.type = "Polynomial",
                                      .inputs = {{"x", Make<int32_t>(DataType::kInt32, {1}, {0})}},
                                      .attrs = {{"coefficients", AttrValue::Floats({1})}}});
  EXPECT_EQ(out.status().code(), Code::kUnsupported);
  EXPECT_THAT(out.status().message(), HasSubstr("\"x\" is int32, expected float32"));
}

TEST(OpLibrary, NoneIsTheBuiltInRegistryItself) {
  const auto registry = OperatorsWith({});
  ASSERT_TRUE(registry.ok());
  EXPECT_EQ(registry->get(), &BuiltinOps());
}

// A copy of the example's library, for other permissions.
class LibraryCopy {
 public:
  LibraryCopy() {
    fs::copy_file(POLYNOMIAL_LIBRARY, path());
    fs::permissions(path(), fs::perms::owner_all);
    fs::permissions(folder_.path(), fs::perms::owner_all);
  }
  std::string path() const { return folder_.Path("lib.so"); }
  const std::string& folder() const { return folder_.path(); }
  Status Load(LibraryTrust trust = LibraryTrust::kOwner) const {
    return OperatorsWith({path()}, trust).status();
  }

 private:
  TemporaryFolder folder_;
};

TEST(OpLibrary, ThatEverybodyMayWriteIsRefused) {
  const LibraryCopy library;
  EXPECT_TRUE(library.Load().ok()) << library.Load().ToString();
  fs::permissions(library.path(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(library.Load().code(), Code::kInvalidArgument);
  EXPECT_THAT(library.Load().message(), AllOf(HasSubstr("all users may write " + library.path()),
                                              HasSubstr("--allow-writable-library")));
  EXPECT_TRUE(library.Load(LibraryTrust::kAnyone).ok());
}

TEST(OpLibrary, InAFolderThatEverybodyMayWriteIsRefused) {
  const LibraryCopy library;
  fs::permissions(library.folder(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(library.Load().message(),
              HasSubstr("all users may replace files in " + library.folder()));
  // Through a link, too.
  const TemporaryFolder elsewhere;
  fs::create_symlink(library.path(), elsewhere.Path("link.so"));
  EXPECT_FALSE(OperatorsWith({elsewhere.Path("link.so")}).ok());
  // And so does a link there to a library that is fine.
  const LibraryCopy good;
  fs::create_symlink(good.path(), library.folder() + "/link.so");
  EXPECT_FALSE(OperatorsWith({library.folder() + "/link.so"}).ok());
  // In a sticky folder only its owner replaces it.
  fs::permissions(library.folder(), fs::perms::sticky_bit, fs::perm_options::add);
  EXPECT_TRUE(library.Load().ok()) << library.Load().ToString();
}

struct Wrong {
  std::string path;
  Code code;
  std::string text;
};

TEST(OpLibrary, SaysInOneLineWhatIsWrong) {
  const std::string text_file = testing::TempDir() + "/no_library.so";
  std::ofstream(text_file) << "this is text, longer than the header of a library, but no library";
  const Wrong cases[] = {
      {"absent.so", Code::kNotFound, "absent.so"},
      {testing::TempDir(), Code::kInvalidArgument, "not a regular file"},
      {text_file, Code::kInvalidArgument, "cannot be loaded as a shared library"},
      {BadLibrary("no_entry"), Code::kInvalidArgument, "it has no symbol NpumeshOperatorAbi"},
      {BadLibrary("other_version"), Code::kUnsupported,
       fmt::format("operator interface {}, this npumesh has {}", kOperatorAbi.version + 1,
                   kOperatorAbi.version)},
      {BadLibrary("other_sizes"), Code::kUnsupported,
       fmt::format("operator interface {} (strings 0; sizes 0", kOperatorAbi.version)},
      {BadLibrary("taken_name"), Code::kInvalidArgument, "operator \"Add\" is known already"},
      {BadLibrary("no_infer"), Code::kInvalidArgument, "\"NoInfer\" has no shape inference"},
  };
  for (const Wrong& wrong : cases) {
    OpRegistry registry = BuiltinOps();
    const size_t before = registry.Types().size();
    const Status status = LoadOpLibrary(wrong.path, registry);
    EXPECT_EQ(status.code(), wrong.code) << status.ToString();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("operator library"), HasSubstr(wrong.path), HasSubstr(wrong.text)));
    EXPECT_EQ(status.message().find('\n'), std::string_view::npos);
    EXPECT_EQ(registry.Types().size(), before) << wrong.path;
  }
}

TEST(OpLibrary, TwiceTheSameIsANameThatIsTaken) {
  const auto registry = OperatorsWith({POLYNOMIAL_LIBRARY, POLYNOMIAL_LIBRARY});
  EXPECT_EQ(registry.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(registry.status().message(), HasSubstr("\"Polynomial\" is known already"));
}

TEST(OpLibrary, WhatAKernelThrowsIsAnErrorOfItsOperator) {
  const auto registry = OperatorsWith({BadLibrary("throws")});
  ASSERT_TRUE(registry.ok()) << registry.status().ToString();
  const auto out = RunOp(
      **registry, {.type = "Throws", .inputs = {{"x", Make<float>(DataType::kFloat, {1}, {0})}}});
  EXPECT_EQ(out.status().code(), Code::kInternal);
  EXPECT_THAT(out.status().message(), AllOf(HasSubstr("(Throws)"), HasSubstr("no luck")));
}

}  // namespace
}  // namespace npumesh
