#include "launch/dump/convert.h"

#include <sys/stat.h>

#include "graph/io/npy.h"
#include "runtime/base/float16.h"
#include "tests/unit/dump_tools/dump_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Convert : public DumpFixture {
 protected:
  // The only .npy of an operator with this one output.
  Tensor RoundTrip(const Tensor& output) {
    WriteOperator("in", "Add", "a", 1, {}, {output});
    const auto converted = ConvertFolder(Path("in"), Path("out"), {});
    EXPECT_TRUE(converted.ok()) << converted.status().ToString();
    EXPECT_THAT(converted->failed, SizeIs(0));
    Result<Tensor> tensor = ReadNpy(Path("out/Add.a.1.7.1700000000000001.output.0.npy"));
    EXPECT_TRUE(tensor.ok()) << tensor.status().ToString();
    return *std::move(tensor);
  }
};

TEST_F(Convert, NamesAndPermissionsAreThoseOfMsaccucmp) {
  WriteOperator("in", "Add", "blk/a", 3, {Floats({1}), Floats({2})}, {Floats({3})});
  const auto converted = ConvertFolder(Path("in"), Path("out"), {});
  ASSERT_TRUE(converted.ok());
  EXPECT_EQ(converted->files, 3u);
  for (const char* tail : {"input.0", "input.1", "output.0"}) {
    const std::string path =
        Path("out/Add.blk_a.3.7.1700000000000003.") + std::string(tail) + ".npy";
    struct stat info = {};
    ASSERT_EQ(stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
}

TEST_F(Convert, BytesAreExact) {
  const Tensor halves = Tensor::FromVector<Float16>(
      {DataType::kFloat16, {2, 1}}, {Float16::FromBits(0x0001), Float16::FromBits(0xfc00)});
  const Tensor back = RoundTrip(halves);
  EXPECT_EQ(back.type(), halves.type());
  EXPECT_EQ(std::memcmp(back.data(), halves.data(), halves.bytes()), 0);
}

TEST_F(Convert, Bfloat16BecomesFloat32) {
  const Tensor brain =
      Tensor::FromVector<Bfloat16>({DataType::kBfloat16, {2}}, {Bfloat16(1.5f), Bfloat16(-2)});
  EXPECT_THAT(RoundTrip(brain).as<float>(), ElementsAre(1.5f, -2));
}

TEST_F(Convert, ScalarsAndEmptyTensors) {
  EXPECT_EQ(RoundTrip(Tensor::FromVector<float>({DataType::kFloat, {}}, {4})).type().ToString(),
            "float32[1]");
  EXPECT_EQ(NumpyForm(Tensor::Allocate({DataType::kFloat, {0, 4}}))->type().ToString(),
            "float64[0]");
}

TEST_F(Convert, SingleBitsAreUnpacked) {
  const Tensor bits = Tensor::FromString({DataType::kUint1, {10}}, std::string("\xa1\x80", 2));
  EXPECT_THAT(NumpyForm(bits)->as<uint8_t>(), ElementsAre(1, 0, 1, 0, 0, 0, 0, 1, 1, 0));
}

TEST_F(Convert, OneBadFileDoesNotStopTheOthers) {
  WriteOperator("in", "Add", "a", 1, {},
                {Tensor::FromString({DataType::kInt4, {2}}, std::string(1, '\x12'))});
  WriteOperator("in", "Add", "b", 2, {}, {Floats({1})});
  const auto converted = ConvertFolder(Path("in"), Path("out"), {});
  ASSERT_TRUE(converted.ok());
  EXPECT_EQ(converted->files, 1u);
  EXPECT_THAT(converted->failed, ElementsAre(HasSubstr("DT_INT4 cannot be written as .npy")));
  std::ifstream list(Path("out/convert_failed_file_list.txt"));
  std::string line;
  std::getline(list, line);
  EXPECT_THAT(line, HasSubstr("Add.a.1"));
}

TEST_F(Convert, FractalNzBecomesNdWithoutPadding) {
  // [3, 2, 16, 16] holds [20, 40]: element (m, n) stands at block n / 16, m / 16.
  Tensor nz = Tensor::Allocate({DataType::kFloat16, {3, 2, 16, 16}});
  auto* values = reinterpret_cast<Float16*>(nz.mutable_data());
  for (int m = 0; m < 20; ++m) {
    for (int n = 0; n < 40; ++n) {
      values[((n / 16 * 2 + m / 16) * 16 + m % 16) * 16 + n % 16] =
          Float16(static_cast<float>(m * 40 + n));
    }
  }
  const Result<Tensor> nd = NzToNd(nz, {20, 40});
  ASSERT_TRUE(nd.ok());
  for (int i = 0; i < 800; ++i) {
    ASSERT_EQ(static_cast<float>(nd->as<Float16>()[static_cast<size_t>(i)]), i);
  }
  EXPECT_THAT(NzToNd(nz, {40, 20, 1}).status().message(), HasSubstr("does not hold"));
  EXPECT_FALSE(NzToNd(nz, {33, 40}).ok());
}

TEST_F(Convert, FractalNzKeepsItsStorageUnlessAskedFor) {
  Tensor nz = Tensor::Allocate({DataType::kFloat, {1, 1, 16, 16}});
  DumpRecord record;
  record.outputs.push_back(Describe(nz));
  record.outputs[0].format = DumpFormatNumber("FRACTAL_NZ");
  record.outputs[0].original_shape = {3, 5};
  DumpFileName name;
  name.op_type = "MatMul";
  name.op_name = "m";
  name.stream = 1;
  name.time = 1700000000000000;
  Write("in", name, record, std::string(nz.bytes(), '\0'));
  ASSERT_TRUE(ConvertFolder(Path("in"), Path("raw"), {}).ok());
  EXPECT_EQ(ReadNpy(Path("raw/MatMul.m.0.1.1700000000000000.output.0.npy"))->type().ToString(),
            "float32[1,1,16,16]");
  ASSERT_TRUE(ConvertFolder(Path("in"), Path("nd"), {.to_nd = true}).ok());
  EXPECT_EQ(ReadNpy(Path("nd/MatMul.m.0.1.1700000000000000.output.0.3x5.npy"))->type().ToString(),
            "float32[3,5]");
}

}  // namespace
}  // namespace npumesh
