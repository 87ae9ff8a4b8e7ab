#include "launch/dump/overflow_report.h"

#include <fstream>

#include "launch/dump/convert.h"
#include "runtime/base/float16.h"
#include "tests/unit/dump_tools/dump_fixture.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

template <typename T>
void Put(std::string& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Magic, version 0, one AI core entry of 11 fields: model 1, stream 7, task 3, ..., status 64.
std::string NewRecord() {
  std::string bytes(2048, '\0');
  Put<uint32_t>(bytes, 0, 0x5A5A5A5A);
  Put<uint32_t>(bytes, 8, 1);
  Put<uint32_t>(bytes, 12, 0);
  Put<uint32_t>(bytes, 20, 88);
  const std::vector<uint64_t> fields = {1, 7, 3, 0, 65535, 65535, 0, 0, 0, 0, 64};
  for (size_t i = 0; i < fields.size(); ++i) Put(bytes, 24 + 8 * i, fields[i]);
  return bytes;
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(OverflowRecord, NewForm) {
  const std::string record = NewRecord();
  const auto entries = ParseOverflowRecord(Bytes(record), "file");
  ASSERT_TRUE(entries.ok()) << entries.status().ToString();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ((*entries)[0].accelerator, "AI Core");
  EXPECT_EQ((*entries)[0].stream_id, 7u);
  EXPECT_EQ((*entries)[0].task_id, 3u);
  EXPECT_EQ((*entries)[0].status, 64u);
  EXPECT_EQ((*entries)[0].fields["context_id"], 65535u);
}

TEST(OverflowRecord, OldForm) {
  std::string record(2048, '\0');
  for (size_t i = 0; i < 6; ++i) Put<uint64_t>(record, 256 + 8 * i, 10 + i);
  const auto entries = ParseOverflowRecord(Bytes(record), "file");
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ((*entries)[0].accelerator, "AI Core");
  EXPECT_EQ((*entries)[0].task_id, 12u);
}

// As the vendor's tool writes it, to the character.
TEST(OverflowRecord, JsonOfTheNewForm) {
  std::string record = NewRecord();
  Put<uint64_t>(record, 24 + 8 * 6, 0x1234);  // pc_start
  const auto json = OverflowJson(Bytes(record), "file");
  ASSERT_TRUE(json.ok()) << json.status().ToString();
  EXPECT_EQ(json->dump(),
            R"({"magic":"0x5a5a5a5a","version":0,"acc_list":{"valid":1,"acc_type":"AIC","rsv":0,)"
            R"("data_len":88,"data":{"model_id":1,"stream_id":7,"task_id":3,"task_type":0,)"
            R"("context_id":65535,"thread_id":65535,"pc_start":"0x1234","para_base":"0x0",)"
            R"("core_id":0,"block_id":0,"status":64}}})");
  Put<uint32_t>(record, 4, 1);  // version 1: four words of status
  Put<uint32_t>(record, 20, 112);
  EXPECT_EQ(OverflowJson(Bytes(record), "file")->at("acc_list").at("data").at("status").dump(),
            "[64,0,0,0]");
  Put<uint32_t>(record, 12, 3);
  EXPECT_EQ(OverflowJson(Bytes(record), "file")->at("acc_list").at("data").at("src_addr"),
            "0x1234");
}

TEST(OverflowRecord, JsonOfTheOldForm) {
  std::string record(2048, '\0');
  for (size_t i = 0; i < 6; ++i) Put<uint64_t>(record, 256 + 8 * i, 10 + i);
  for (size_t i = 0; i < 3; ++i) Put<uint64_t>(record, 1024 + 8 * i, 20 + i);
  Put<uint64_t>(record, 768, 5);
  const auto json = OverflowJson(Bytes(record), "file");
  ASSERT_TRUE(json.ok()) << json.status().ToString();
  EXPECT_EQ(json->dump(),
            R"({"DHA Atomic Add":{"model_id":0,"stream_id":0,"task_id":0,"task_type":0,)"
            R"("pc_start":"0x0","para_base":"0x0","status":0},"L2 Atomic Add":{"model_id":0,)"
            R"("stream_id":0,"task_id":0,"task_type":0,"pc_start":"0x0","para_base":"0x0",)"
            R"("status":5},"AI Core":{"model_id":10,"stream_id":11,"task_id":12,"task_type":13,)"
            R"("pc_start":"0xe","para_base":"0xf","kernel_code":"0x14","block_idx":21,)"
            R"("status":22}})");
}

TEST(OverflowRecord, HostileBytesGiveAnErrorOrEntries) {
  const std::string record = NewRecord();
  for (size_t length = 0; length < 200; ++length) {
    (void)ParseOverflowRecord(Bytes(record.substr(0, length)), "file").ok();
    (void)OverflowJson(Bytes(record.substr(0, length)), "file").ok();
  }
  for (size_t byte = 0; byte < 32; ++byte) {
    for (const char value : {'\xff', '\x7f', '\x01'}) {
      std::string changed = record;
      changed[byte] = value;
      (void)ParseOverflowRecord(Bytes(changed), "file").ok();
      (void)OverflowJson(Bytes(changed), "file").ok();
    }
  }
  std::string long_field = record;
  Put<uint32_t>(long_field, 20, 0xffffffff);
  EXPECT_THAT(ParseOverflowRecord(Bytes(long_field), "file").status().message(),
              HasSubstr("end behind the record"));
  std::string unknown = record;
  Put<uint32_t>(unknown, 12, 9);
  EXPECT_THAT(ParseOverflowRecord(Bytes(unknown), "file").status().message(),
              HasSubstr("accelerator 9"));
  EXPECT_THAT(ParseOverflowRecord(Bytes("short"), "file").status().message(),
              HasSubstr("no overflow record"));
}

class Overflows : public DumpFixture {};

TEST_F(Overflows, AreTracedToTheirOperator) {
  const Tensor half = Tensor::FromVector<Float16>({DataType::kFloat16, {2}},
                                                  {Float16(2), Float16::FromBits(0x7c00)});
  WriteOperator("0", "Exp", "wrong", 3, {Floats({12, 1})}, {half});
  WriteOperator("0", "Add", "right", 4, {}, {Floats({1})});
  const std::string payload = NewRecord();
  DumpRecord record;
  record.op_name = "Node_OpDebug";
  record.outputs.push_back(Describe(Tensor::Allocate({DataType::kUint8, {2048}})));
  DumpFileName name;
  name.op_type = "Opdebug";
  name.op_name = "Node_OpDebug";
  name.task = 3;
  name.stream = 7;
  name.time = 1700000000000009;
  Write("0", name, record, payload);
  const auto overflows = FindOverflows(*FindDumpSteps(Path()));
  ASSERT_TRUE(overflows.ok()) << overflows.status().ToString();
  ASSERT_EQ(overflows->size(), 1u);
  EXPECT_EQ((*overflows)[0].op_name, "wrong");
  const auto text = OverflowText(*overflows, 5);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("wrong (Exp) on AI Core: model 1, stream 7, task 3"));
  EXPECT_THAT(*text, HasSubstr("output 0 float16[2]: largest finite magnitude 2, NaN 0, Inf 1"));
  const auto converted = ConvertFolder(Path("0"), Path("out"), {});
  ASSERT_TRUE(converted.ok()) << converted.status().ToString();
  EXPECT_EQ(converted->files, 4u);  // three tensors and the record
  std::ifstream json(Path("out/Opdebug.Node_OpDebug.3.7.1700000000000009.output.0.json"));
  EXPECT_EQ(nlohmann::json::parse(json).at("acc_list").at("data").at("task_id"), 3);
  EXPECT_FALSE(
      std::ifstream(Path("out/Opdebug.Node_OpDebug.3.7.1700000000000009.output.0.npy")).good());
}

}  // namespace
}  // namespace npumesh
