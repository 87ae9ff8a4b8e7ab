#include "graph/dump/format/format_data.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/base/files/secure_file.h"
#include "tests/fuzz/mutator.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

DumpTensor TensorOf(DataType dtype, Shape shape, uint64_t size) {
  DumpTensor tensor;
  tensor.type = {dtype, shape};
  tensor.original_shape = std::move(shape);
  tensor.size = size;
  return tensor;
}

DumpRecord Example() {
  DumpRecord record;
  record.op_name = "blk/0/Add.1";
  record.time_us = 1700000000123456;
  record.dfx_message = "why";
  record.inputs = {TensorOf(DataType::kFloat, {2, 1}, 8), TensorOf(DataType::kBfloat16, {0}, 0)};
  record.inputs[0].address = 0x1234567890;
  record.inputs[0].arg_index = 1;
  record.outputs = {TensorOf(DataType::kInt8, {1, 1, 3, 1}, 3)};
  record.outputs[0].format = DumpFormatNumber("FRACTAL_NZ");
  record.outputs[0].original_shape = Shape({3, 1});
  record.outputs[0].sub_format = 4;
  record.outputs[0].original_name = "Add";
  record.outputs[0].original_port = 1;
  record.buffers = {{2}};
  record.spaces = {{1, 7}};
  return record;
}

std::string ExampleFile() {
  return EncodeDumpHeader(Example()) + "ffffFFFF" + "iii" + "bb" + "w";
}

TEST(DumpData, HeaderIsTheWireFormByteForByte) {
  DumpRecord record;
  record.op_name = "A";
  record.time_us = 300;
  record.outputs = {TensorOf(DataType::kInt32, {2}, 8)};
  // By hand from the schema: version(1) "2.0", dump_time(2), output(3), op_name(6).
  const std::string output =
      std::string("\x08\x07\x10\x02\x1a\x03\x0a\x01\x02\x30\x08\x3a\x03\x0a\x01\x02", 16);
  const std::string message =
      "\x0a\x03"
      "2.0"
      "\x10\xac\x02"
      "\x1a\x10" +
      output +
      "\x32\x01"
      "A";
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(message.size());
  EXPECT_EQ(EncodeDumpHeader(record), expected + message);
}

TEST(DumpData, RoundTrip) {
  TemporaryFolder folder;
  const std::string path = folder.Path("Add.x.1.0.1");
  ASSERT_TRUE(WriteFile(path, ExampleFile(), FileKind::kDataDump).ok());
  const Result<DumpFile> file = DumpFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const DumpRecord& seen = file->record();
  const DumpRecord expected = Example();
  EXPECT_EQ(seen.op_name, expected.op_name);
  EXPECT_EQ(seen.time_us, expected.time_us);
  EXPECT_EQ(seen.dfx_message, expected.dfx_message);
  ASSERT_EQ(seen.inputs.size(), 2u);
  EXPECT_EQ(seen.inputs[0].type, expected.inputs[0].type);
  EXPECT_EQ(seen.inputs[0].address, 0x1234567890u);
  EXPECT_EQ(seen.inputs[0].arg_index, 1u);
  EXPECT_EQ(seen.inputs[1].type, expected.inputs[1].type);
  ASSERT_EQ(seen.outputs.size(), 1u);
  EXPECT_EQ(seen.outputs[0].type, expected.outputs[0].type);
  EXPECT_EQ(seen.outputs[0].original_shape, Shape({3, 1}));
  EXPECT_EQ(DumpFormatName(seen.outputs[0].format), "FRACTAL_NZ");
  EXPECT_EQ(seen.outputs[0].sub_format, 4);
  EXPECT_EQ(seen.outputs[0].original_name, "Add");
  EXPECT_EQ(seen.outputs[0].original_port, 1u);
  const auto text = [](std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text(file->payload(seen.inputs[0])), "ffffFFFF");
  EXPECT_EQ(text(file->payload(seen.inputs[1])), "");
  EXPECT_EQ(text(file->payload(seen.outputs[0])), "iii");
  EXPECT_EQ(text(file->payload(seen.buffers.at(0))), "bb");
  EXPECT_EQ(text(file->payload(seen.spaces.at(0))), "w");
  EXPECT_EQ(seen.spaces[0].arg_index, 7u);
}

TEST(DumpData, BytesBehindTheLastTensorAreAllowed) {
  EXPECT_TRUE(DecodeDump(AsBytes(ExampleFile() + "more"), "x").ok());
}

TEST(DumpData, EveryCutIsAnError) {
  const std::string whole = ExampleFile();
  for (size_t length = 0; length < whole.size(); ++length) {
    const Result<DumpRecord> record = DecodeDump(AsBytes(whole.substr(0, length)), "cut.file");
    ASSERT_FALSE(record.ok()) << length;
    EXPECT_EQ(record.status().code(), Code::kCorrupt);
    EXPECT_TRUE(record.status().message().starts_with("cut.file: ")) << record.status().message();
  }
}

TEST(DumpData, ErrorsSayWhatIsWrong) {
  const auto message = [](const std::string& bytes) {
    return std::string(DecodeDump(AsBytes(bytes), "f").status().message());
  };
  EXPECT_EQ(message("short"), "f: 5 bytes are too few for a dump file");
  EXPECT_NE(message(std::string(8, '\xff') + "x").find("the header length is 18446744073709551615"),
            std::string::npos);
  EXPECT_EQ(message(std::string("\2\0\0\0\0\0\0\0\xff\xff", 10)),
            "f: its 2 header bytes are no DumpData message");
  DumpRecord record = Example();
  record.outputs[0].size = UINT64_MAX;  // sums that wrap must not pass
  EXPECT_NE(
      message(EncodeDumpHeader(record) + "12345678").find("output 0 has 18446744073709551615"),
      std::string::npos);
  record = Example();
  record.inputs[1].type.shape = Shape({-1});
  EXPECT_EQ(message(EncodeDumpHeader(record) + std::string(99, 'x')),
            "f: input 1: dimension 18446744073709551615 does not fit into 63 bits");
}

TEST(DumpData, DamagedFilesNeverCrash) {
  fuzz::Mutator mutator(5);
  const std::vector<std::string> seeds = {ExampleFile(), EncodeDumpHeader(DumpRecord{})};
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = mutator.Mutate(seeds[static_cast<size_t>(i) % 2], seeds);
    const Result<DumpRecord> record = DecodeDump(AsBytes(bytes), "fuzz");
    if (!record.ok()) continue;
    uint64_t end = 0;
    for (const DumpTensor& tensor : record->inputs) end = tensor.offset + tensor.size;
    for (const DumpTensor& tensor : record->outputs) end = tensor.offset + tensor.size;
    EXPECT_LE(end, bytes.size());
  }
}

TEST(DumpTypes, NumbersAreThoseOfDumpFiles) {
  // Where the numbering differs from both others.
  EXPECT_EQ(DumpTypeNumber(DataType::kFloat), 1);
  EXPECT_EQ(DumpTypeNumber(DataType::kInt32), 7);
  EXPECT_EQ(DumpTypeNumber(DataType::kBool), 11);
  EXPECT_EQ(DumpTypeNumber(DataType::kBfloat16), 27);
  EXPECT_EQ(DumpTypeNumber(DataType::kFloat8E5M2), 34);
  EXPECT_EQ(DumpTypeNumber(DataType::kHifloat4), 41);
  for (int number = 0; number < 42; ++number) {
    EXPECT_EQ(DumpTypeNumber(DataTypeFromDump(number)), number);
  }
  EXPECT_EQ(DataTypeFromDump(42), DataType::kUndefined);
  EXPECT_EQ(DataTypeFromDump(-1), DataType::kUndefined);
  EXPECT_EQ(DumpTypeName(DataType::kBfloat16), "DT_BF16");
}

TEST(DumpTypes, Formats) {
  EXPECT_EQ(DumpFormatNumber("NCHW"), 0);
  EXPECT_EQ(DumpFormatNumber("ND"), 2);
  EXPECT_EQ(DumpFormatNumber("FRACTAL_NZ"), 29);
  EXPECT_EQ(DumpFormatNumber("C1HWC0"), 49);
  EXPECT_EQ(DumpFormatNumber("no such format"), 2);
  EXPECT_EQ(DumpFormatName(29), "FRACTAL_NZ");
  EXPECT_EQ(DumpFormatName(50), "-");
  EXPECT_EQ(DumpFormatName(-1), "-");
}

}  // namespace
}  // namespace npumesh
