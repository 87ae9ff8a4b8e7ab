#include "graph/compare/sources/npy_folder.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/io/npy.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) / (name + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  void Write(const std::string& name, float value) const {
    const Tensor tensor = Tensor::FromVector<float>({DataType::kFloat, {1}}, {value});
    EXPECT_TRUE(WriteNpy(*this / name, tensor).ok());
  }

 private:
  std::filesystem::path path_;
};

TEST(NpyName, Forms) {
  struct Case {
    const char* file;
    NpyName name;
  };
  const std::vector<Case> cases = {
      {"Add.blk_0_Add_1.3.7.1700000000123456.output.0.npy",
       {"Add", "blk_0_Add_1", Side::kOutput, 0, 1700000000123456, 3}},
      {"MatMulV2.mm.4.1700000000123457.input.12.npy",
       {"MatMulV2", "mm", Side::kInput, 12, 1700000000123457, 4}},
      {"model.layer0/x.3.1700000000123456.npy",
       {"", "model_layer0_x", Side::kOutput, 3, 1700000000123456, 0}},
      {"mm.2.1700000000123456.npy", {"", "mm", Side::kOutput, 2, 1700000000123456, 0}},
      {"mm.input.1.npy", {"", "mm", Side::kInput, 1, 0, 0}},
      {"a.b.output.1.npy", {"", "a_b", Side::kOutput, 1, 0, 0}},
      {"Add_1.0.npy", {"", "Add_1", Side::kOutput, 0, 0, 0}},
  };
  for (const Case& c : cases) EXPECT_EQ(ParseNpyName(c.file), c.name) << c.file;
}

TEST(NpyName, NoForms) {
  for (const char* file : {"Add_1.npy", "Add_1.0.bin", "x.output.a.npy", ".npy", "output.0.x.npy",
                           "Add.-1.npy", "Add.99999999999999999999.npy"}) {
    EXPECT_FALSE(ParseNpyName(file)) << file;
  }
}

TEST(NpyFolder, ReadsInOrderOfTime) {
  const Folder folder("npy_order");
  folder.Write("Mul.second.2.7.1700000000000002.output.0.npy", 2);
  folder.Write("Add.first.1.7.1700000000000001.output.0.npy", 1);
  folder.Write("Add.first.1.7.1700000000000001.input.1.npy", 3);
  std::ofstream(folder / "mapping.csv") << "1,x\n";
  const Result<std::unique_ptr<TensorSource>> source = OpenNpyFolder(folder.path());
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  ASSERT_EQ((*source)->operators().size(), 2u);
  const SourceOperator& first = (*source)->operators()[0];
  EXPECT_EQ(first.key, "first");
  EXPECT_EQ(first.type, "Add");
  EXPECT_THAT(first.inputs, ElementsAre(1));
  EXPECT_THAT(first.outputs, ElementsAre(0));
  EXPECT_EQ((*source)->Load("second", Side::kOutput, 0)->as<float>()[0], 2);
  EXPECT_EQ((*source)->Load("second", Side::kInput, 0).status().code(), Code::kNotFound);
  EXPECT_EQ((*source)->FileOf("first", Side::kInput, 1),
            folder / "Add.first.1.7.1700000000000001.input.1.npy");
}

TEST(NpyFolder, TheLatestOfSeveralFilesCounts) {
  const Folder folder("npy_latest");
  folder.Write("Add.a.1.7.1700000000000009.output.0.npy", 9);
  folder.Write("Add.a.1.7.1700000000000001.output.0.npy", 1);
  const Result<std::unique_ptr<TensorSource>> source = OpenNpyFolder(folder.path());
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->Load("a", Side::kOutput, 0)->as<float>()[0], 9);
}

TEST(NpyFolder, Errors) {
  const Folder folder("npy_errors");
  EXPECT_EQ(OpenNpyFolder(folder / "absent").status().code(), Code::kNotFound);
  EXPECT_THAT(OpenNpyFolder(folder.path()).status().message(), testing::HasSubstr("no .npy file"));
  std::ofstream(folder / "Add.0.npy") << "not numpy";
  const Result<std::unique_ptr<TensorSource>> source = OpenNpyFolder(folder.path());
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->Load("Add", Side::kOutput, 0).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace npumesh
