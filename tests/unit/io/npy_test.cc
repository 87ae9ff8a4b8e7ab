// .npy: what NumPy writes, what it never writes, and how other dtypes travel.
#include "graph/io/npy.h"

#include <gmock/gmock.h>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using ::testing::HasSubstr;

// A file of version `major`.0 with this dictionary, padded as NumPy does.
std::string Npy(std::string dict, std::string_view data, int major = 1) {
  const size_t fixed = major == 1 ? 10 : 12;
  dict.append((64 - (fixed + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  std::string file("\x93NUMPY", 6);
  file += {static_cast<char>(major), 0, static_cast<char>(dict.size() & 0xff),
           static_cast<char>(dict.size() >> 8)};
  if (major > 1) file += std::string(2, '\0');
  return file + dict + std::string(data);
}

std::string Dict(std::string_view descr, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
}

class NpyTest : public ::testing::Test {
 protected:
  Result<Tensor> Read(std::string_view content) {
    return ReadNpy(PutFile(folder_.Path("a.npy"), content));
  }
  TemporaryFolder folder_;
};

TEST_F(NpyTest, WritesWhatNumpyWrites) {
  struct Case {
    DataType dtype;
    std::string_view descr;
  };
  const Case cases[] = {
      {DataType::kBool, "|b1"},      {DataType::kInt8, "|i1"},
      {DataType::kUint8, "|u1"},     {DataType::kInt16, "<i2"},
      {DataType::kUint16, "<u2"},    {DataType::kInt32, "<i4"},
      {DataType::kUint32, "<u4"},    {DataType::kInt64, "<i8"},
      {DataType::kUint64, "<u8"},    {DataType::kFloat16, "<f2"},
      {DataType::kFloat, "<f4"},     {DataType::kDouble, "<f8"},
      {DataType::kComplex64, "<c8"}, {DataType::kComplex128, "<c16"},
      {DataType::kBfloat16, "<u2"},  {DataType::kFloat8E4M3Fn, "|u1"},
  };
  struct ShapeCase {
    Shape shape;
    std::string_view text;
  };
  const ShapeCase shapes[] = {{Shape(), "()"},
                              {Shape({3}), "(3,)"},
                              {Shape({2, 4}), "(2, 4)"},
                              {Shape({2, 0, 1}), "(2, 0, 1)"}};
  for (const Case& c : cases) {
    for (const ShapeCase& s : shapes) {
      const TensorType type{c.dtype, s.shape};
      std::string data(type.bytes(), '\0');
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 37);
      const std::string path = folder_.Path("w.npy");
      ASSERT_TRUE(WriteNpy(path, Tensor::FromString(type, data)).ok());
      EXPECT_EQ(ReadFile(path).value(), Npy(Dict(c.descr, s.text), data));
      const auto read = ReadNpy(path);
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      const auto same = ReinterpretAs(*read, c.dtype);
      ASSERT_TRUE(same.ok()) << same.status().ToString();
      EXPECT_EQ(same->type(), type);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(same->data()), type.bytes()), data);
    }
  }
}

TEST_F(NpyTest, ReadsEveryLegalHeader) {
  const std::string dicts[] = {
      Dict("<i2", "(2,)"),
      Dict("=i2", "( 2 , )"),
      Dict("|i2", "(2,)"),
      "{\"shape\":(2,),\"descr\":\"<i2\",\"fortran_order\":False}",
      " {'fortran_order': False,'descr': '<i2', 'shape': (2,1)} ",
  };
  for (const std::string& dict : dicts) {
    for (int major : {1, 2, 3}) {
      const auto tensor = Read(Npy(dict, "\1\2\3\4", major));
      ASSERT_TRUE(tensor.ok()) << dict << tensor.status().ToString();
      EXPECT_EQ(tensor->dtype(), DataType::kInt16);
      EXPECT_EQ(tensor->as<int16_t>()[1], 0x0403);
    }
  }
  EXPECT_TRUE(Read(Npy(Dict(">i1", "(4,)"), "1234")).ok());  // one byte has no order
}

TEST_F(NpyTest, AlignsData) {
  // Old NumPy padded to 16 bytes only.
  std::string file("\x93NUMPY\1\0", 8);
  const std::string dict = Dict("<i4", "(1,)") + "\n";
  file += {static_cast<char>(dict.size()), 0};
  const auto tensor = Read(file + dict + Dict("", "").substr(0, 4));
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 64, 0u);
}

TEST_F(NpyTest, RefusesHostileFiles) {
  struct Case {
    std::string file;
    Code code;
    std::string_view expected;
  };
  const Case cases[] = {
      {"", Code::kCorrupt, "magic"},
      {"\x93NUMPX\1", Code::kCorrupt, "magic"},
      {std::string("\x93NUMPY\4\0\0\0", 10), Code::kUnsupported, "version 4.0"},
      {std::string("\x93NUMPY\1\1\0\0", 10), Code::kUnsupported, "version 1.1"},
      {std::string("\x93NUMPY\2\0\0\0", 10), Code::kCorrupt, "inside its header"},
      {std::string("\x93NUMPY\1\0\xff\xff{", 11), Code::kCorrupt, "a header of 65535 bytes"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff{", 13), Code::kCorrupt, "4294967295"},
      {Npy("", ""), Code::kCorrupt, "expected '{'"},
      {Npy("{}", ""), Code::kCorrupt, "the keys descr, fortran_order and shape"},
      {Npy("{'descr': '<f4'}", ""), Code::kCorrupt, "the keys"},
      {Npy("{'descr': '<f4', 'descr': '<f4'}", ""), Code::kCorrupt, "each once"},
      {Npy("{'what': 1}", ""), Code::kCorrupt, "each once"},
      {Npy("{'descr", ""), Code::kCorrupt, "closing quote"},
      {Npy(Dict("<f4", "(2)"), "12345678"), Code::kCorrupt, "a tuple"},
      {Npy(Dict("<f4", "(2,,)"), "12345678"), Code::kCorrupt, "a dimension"},
      {Npy(Dict("<f4", "(2 2)"), "12345678"), Code::kCorrupt, "','"},
      {Npy(Dict("<f4", "(-2,)"), ""), Code::kCorrupt, "a dimension"},
      {Npy(Dict("<f4", "(2"), ""), Code::kCorrupt, "header at byte"},
      {Npy(Dict("<f4", "(99999999999999999999,)"), ""), Code::kCorrupt, "a dimension"},
      {Npy(Dict("<f4", "(9223372036854775807,)"), ""), Code::kInvalidArgument, "63 bits"},
      {Npy(Dict("<f4", "(4294967296, 4294967296, 0)"), ""), Code::kInvalidArgument, "63 bits"},
      {Npy(Dict("<f4", "(1073741824,)"), "1234"), Code::kCorrupt, "needs 4294967296"},
      {Npy(Dict("<f4", "(2,)"), "1234567"), Code::kCorrupt, "7 bytes of elements"},
      {Npy(Dict("<f4", "(2,)"), "123456789"), Code::kCorrupt, "9 bytes of elements"},
      {Npy(Dict(">f4", "(1,)"), "1234"), Code::kUnsupported, "big endian"},
      {Npy(Dict("|O", "(1,)"), "1234"), Code::kUnsupported, "'|O'"},
      {Npy(Dict("<U4", "(1,)"), "1234"), Code::kUnsupported, "'<U4'"},
      {Npy(Dict("", "(1,)"), "1234"), Code::kUnsupported, "''"},
      {Npy("{'descr': [('a', '<f4')], }", "1234"), Code::kUnsupported, "a record"},
      {Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "1234"), Code::kUnsupported,
       "C order"},
      {Npy("{'descr': '<f4', 'fortran_order': Maybe}", "1234"), Code::kCorrupt, "True or False"},
      {Npy(Dict("<f4", "(1,)") + " x", "1234"), Code::kCorrupt, "nothing behind"},
      {Npy(Dict(
               "<f4", "(" +
                          [] {
                            std::string ones;
                            for (int i = 0; i < 65; ++i) ones += "1,";
                            return ones;
                          }() +
                          ")"),
           "1234"),
       Code::kCorrupt, "at most 64"},
  };
  for (const Case& c : cases) {
    const Status status = Read(c.file).status();
    EXPECT_EQ(status.code(), c.code) << status.ToString() << c.file;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected)) << c.file;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a.npy"));
  }
  EXPECT_EQ(ReadNpy(folder_.Path("none.npy")).status().code(), Code::kNotFound);
}

TEST_F(NpyTest, RefusesDtypesWithoutWholeBytes) {
  const Tensor packed = Tensor::Allocate({DataType::kInt4, Shape({3})});
  const Status status = WriteNpy(folder_.Path("x.npy"), packed);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(std::string(status.message()), HasSubstr("x.npy: int4[3] has no .npy form"));
  EXPECT_TRUE(folder_.List().empty());
}

TEST_F(NpyTest, ReinterpretsStorageTypesOnly) {
  const Tensor bits = Tensor::Allocate({DataType::kUint16, Shape({3})});
  EXPECT_EQ(ReinterpretAs(bits, DataType::kBfloat16)->dtype(), DataType::kBfloat16);
  EXPECT_EQ(ReinterpretAs(bits, DataType::kUint16)->dtype(), DataType::kUint16);
  const Status status = ReinterpretAs(bits, DataType::kFloat16).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "a tensor of uint16 cannot be read as float16");
  const Tensor flags = Tensor::Allocate({DataType::kInt8, Shape({3})});
  EXPECT_EQ(ReinterpretAs(flags, DataType::kBool)->dtype(), DataType::kBool);
}

}  // namespace
}  // namespace npumesh::testing
