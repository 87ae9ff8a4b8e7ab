// Const and FileConstant: bytes against shapes, places of files, ranges.
#include "graph/io/weights.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Node Const(DataType dtype, std::optional<Shape> shape, std::string data) {
  TensorAttr value;
  value.desc = std::make_shared<TensorDesc>();
  value.desc->dtype = dtype;
  value.desc->shape = std::move(shape);
  value.data = std::make_shared<const std::string>(std::move(data));
  Node node;
  node.name = "w";
  node.type = "Const";
  node.attrs.emplace("value", AttrValue(value));
  return node;
}

TEST(ConstWeight, TakesWhatTheShapeNeeds) {
  struct Case {
    DataType dtype;
    std::optional<Shape> shape;
    std::string data;
    uint64_t bytes;
  };
  const Case cases[] = {
      {DataType::kFloat, Shape({2, 1}), "12345678", 8},
      {DataType::kFloat, Shape({1}), "12345678", 4},  // a view brings its whole storage
      {DataType::kFloat, Shape(), "1234", 4},
      {DataType::kFloat, std::nullopt, "1234", 4},
      {DataType::kFloat, Shape({0, 3}), "", 0},
      {DataType::kBfloat16, Shape({3}), "123456", 6},
      {DataType::kInt4, Shape({3}), "12", 2},
      {DataType::kBool, Shape({2}), std::string("\0\1", 2), 2},
  };
  for (const Case& c : cases) {
    const auto tensor = LoadWeight(Const(c.dtype, c.shape, c.data), "m.air");
    ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
    EXPECT_EQ(tensor->bytes(), c.bytes);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor->data()), c.bytes),
              c.data.substr(0, c.bytes));
  }
}

TEST(ConstWeight, Errors) {
  struct Case {
    Node node;
    Code code;
    std::string_view expected;
  };
  Node constant = Const(DataType::kFloat, Shape({2}), "1234567");
  Node empty;
  empty.name = "w";
  empty.type = "Constant";
  Node other = empty;
  other.type = "Add";
  const Case cases[] = {
      {constant, Code::kCorrupt,
       "m.air: node \"w\" (Const): attr \"value\": 7 bytes; float32[2] needs 8"},
      {Const(DataType::kString, Shape({1}), "abc"), Code::kUnsupported, "dtype string"},
      {Const(DataType::kUndefined, Shape({1}), "abc"), Code::kUnsupported, "dtype undefined"},
      {Const(DataType::kFloat, Shape({-1}), "abcd"), Code::kCorrupt, "expected known dimensions"},
      {Const(DataType::kFloat, Shape::UnknownRank(), "abcd"), Code::kCorrupt, "shape [?]"},
      {Const(DataType::kFloat, Shape({1ll << 40, 1ll << 40}), "abcd"), Code::kCorrupt, "shape"},
      {empty, Code::kCorrupt, "attr \"value\": absent"},
      {other, Code::kInvalidArgument, "expected Const"},
  };
  for (const Case& c : cases) {
    const Status status = LoadWeight(c.node, "m.air").status();
    EXPECT_EQ(status.code(), c.code) << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected));
  }
}

Node FileConstant(std::string path, Shape shape = Shape({2})) {
  Node node;
  node.name = "w";
  node.type = "FileConstant";
  node.attrs.emplace("shape", AttrValue::Ints(shape.dims()));
  node.attrs.emplace("dtype", AttrValue::Type(DataType::kInt32));
  node.attrs.emplace("file_path", AttrValue::String(std::move(path)));
  return node;
}

std::string Words(std::initializer_list<int32_t> values) {
  std::string bytes(values.size() * sizeof(int32_t), '\0');
  std::copy(values.begin(), values.end(), reinterpret_cast<int32_t*>(bytes.data()));
  return bytes;
}

class FileWeight : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::create_directories(folder_.Path("work"));
    std::filesystem::current_path(folder_.Path("work"));
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  // First element of the weight, or -1 with the error reported.
  static int32_t First(const Node& node, const std::string& model) {
    const auto tensor = LoadWeight(node, model);
    EXPECT_TRUE(tensor.ok()) << tensor.status().ToString();
    return tensor.ok() ? tensor->as<int32_t>()[0] : -1;
  }

  TemporaryFolder folder_;
  std::filesystem::path before_;
};

TEST_F(FileWeight, IsSearchedInOrder) {
  const std::string model = folder_.Path("mp/m0.air");
  PutFile(model, "");
  // From the last place to the first: each new file wins over the ones before it.
  const std::pair<std::string, int32_t> places[] = {{"out/rank_0/p1", 1},
                                                    {"work/out/rank_0/p1", 2},
                                                    {"mp/p1", 3},
                                                    {"mp/rank_0/p1", 4},
                                                    {"mp/out/rank_0/p1", 5}};
  for (const auto& [place, value] : places) {
    PutFile(folder_.Path(place), Words({value, 0}));
    EXPECT_EQ(First(FileConstant("./out/rank_0/p1"), model), value) << place;
  }
  EXPECT_EQ(First(FileConstant(folder_.Path("mp/p1")), model), 3);
}

// The folder above leads back into the package when the path begins with its name.
TEST_F(FileWeight, ThePathOfThePackageItselfComesBeforeItsEnd) {
  const std::string model = folder_.Path("mp/m0.air");
  PutFile(model, "");
  PutFile(folder_.Path("mp/p1"), Words({1, 0}));
  PutFile(folder_.Path("mp/deep/rank_0/p1"), Words({2, 0}));
  EXPECT_EQ(First(FileConstant("./mp/deep/rank_0/p1"), model), 2);
}

// Whatever path the export recorded, the package comes first.
TEST_F(FileWeight, IsTakenFromThePackageWhereverItsPathLeads) {
  const std::string model = folder_.Path("moved/m0.air");
  PutFile(model, "");
  PutFile(folder_.Path("out/rank_0/p1"), Words({1, 0}));
  PutFile(folder_.Path("moved/rank_0/p1"), Words({2, 0}));
  for (const std::string& stored :
       {std::string("../out/rank_0/p1"), std::string("x/../../out/rank_0/p1"),
        std::string("../../../../../../../../none/rank_0/p1"), folder_.Path("out/rank_0/p1"),
        std::string("/none/rank_0/p1"), folder_.Path("moved/rank_0/p1")}) {
    EXPECT_EQ(First(FileConstant(stored), model), 2) << stored;
  }
  EXPECT_EQ(First(FileConstant("../out/rank_0/p1"), folder_.Path("empty/m0.air")), 1);
}

TEST_F(FileWeight, WorksWithARelativeModelPath) {
  PutFile("m.air", "");
  PutFile("p1", Words({7, 0}));
  EXPECT_EQ(First(FileConstant("export_file/p1"), "m.air"), 7);
  EXPECT_EQ(First(FileConstant("p1"), ""), 7);
}

TEST_F(FileWeight, LocationComesFirstWithOffsetAndLength) {
  PutFile("p1", Words({1, 2}));
  std::string large(256, '\0');
  large.replace(64, 8, Words({3, 4}));
  large.replace(100, 8, Words({5, 6}));
  PutFile("all", large);
  Node node = FileConstant("p1");
  node.attrs["location"] = AttrValue::String("all");
  node.attrs["offset"] = AttrValue::Int(64);
  EXPECT_EQ(First(node, "m.air"), 3);
  node.attrs["offset"] = AttrValue::Int(100);  // unaligned: copied
  node.attrs["length"] = AttrValue::Int(8);
  const auto tensor = LoadWeight(node, "m.air");
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  EXPECT_THAT(tensor->as<int32_t>(), ElementsAre(5, 6));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 64, 0u);
  node.attrs["location"] = AttrValue::String("");
  EXPECT_EQ(First(node, "m.air"), 1);
}

TEST_F(FileWeight, LongerFilesAndEmptyTensorsAreFine) {
  PutFile("long", Words({9, 8, 7}));
  PutFile("empty", "");
  EXPECT_EQ(First(FileConstant("long"), "m.air"), 9);
  const auto tensor = LoadWeight(FileConstant("empty", Shape({0, 5})), "m.air");
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  EXPECT_EQ(tensor->bytes(), 0u);
  EXPECT_EQ(tensor->shape(), Shape({0, 5}));
}

TEST_F(FileWeight, ErrorsNameEverything) {
  PutFile("short", "1234567");
  PutFile("p1", Words({1, 2}));
  const auto ranged = [](int64_t offset, int64_t length) {
    Node node = FileConstant("p1");
    node.attrs["location"] = AttrValue::String("p1");
    node.attrs["offset"] = AttrValue::Int(offset);
    node.attrs["length"] = AttrValue::Int(length);
    return node;
  };
  Node no_shape = FileConstant("p1");
  no_shape.attrs.erase("shape");
  Node no_dtype = FileConstant("p1");
  no_dtype.attrs["dtype"] = AttrValue::Int(5);
  Node no_file = FileConstant("");
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  struct Case {
    Node node;
    Code code;
    std::string_view expected;
  };
  const Case cases[] = {
      {FileConstant("none"), Code::kNotFound, "attr \"file_path\": \"none\" is in none of: "},
      {FileConstant("/none/p"), Code::kNotFound, "/none/p"},
      {FileConstant("short"), Code::kCorrupt, "8 bytes are needed and the file has 7"},
      {FileConstant("../none"), Code::kNotFound, "\"../none\" is in none of: "},
      {FileConstant("."), Code::kNotFound, "\".\" is in none of: "},
      {FileConstant(".."), Code::kNotFound, "\"..\" is in none of: "},
      {ranged(4, 8), Code::kCorrupt, "offset 4 and length 8"},
      {ranged(0, 4), Code::kCorrupt, "offset 0 and length 4"},
      {ranged(-1, 8), Code::kCorrupt, "offset -1"},
      {ranged(0, -8), Code::kCorrupt, "length -8"},
      {ranged(kMax, 8), Code::kCorrupt, "offset 9223372036854775807"},
      {ranged(kMax, kMax), Code::kCorrupt, "length 9223372036854775807"},
      {no_shape, Code::kCorrupt, "attr \"shape\": absent"},
      {no_dtype, Code::kCorrupt, "attr \"dtype\": 5 is no dtype"},
      {no_file, Code::kNotFound, "neither \"location\" nor \"file_path\""},
      {FileConstant("p1", Shape({kMax / 32, 1})), Code::kCorrupt, "are needed"},
  };
  for (const Case& c : cases) {
    const Status status = LoadWeight(c.node, "m.air").status();
    EXPECT_EQ(status.code(), c.code) << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected));
    EXPECT_THAT(std::string(status.message()), HasSubstr("m.air: node \"w\" (FileConstant)"));
  }
}

TEST_F(FileWeight, ClimbingInsideThePackageIsAllowed) {
  PutFile(folder_.Path("pkg/deep/p1"), Words({6, 0}));
  EXPECT_EQ(First(FileConstant("../pkg/deep/p1"), folder_.Path("pkg/m.air")), 6);
  PutFile("p2", Words({5, 0}));
  EXPECT_EQ(First(FileConstant("x/../p2"), "m.air"), 5);
}

}  // namespace
}  // namespace npumesh::testing
