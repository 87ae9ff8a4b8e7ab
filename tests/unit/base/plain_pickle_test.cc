#include "runtime/base/text/plain_pickle.h"

#include <gmock/gmock.h>

#include <charconv>

#include "tests/fuzz/mutator.h"

namespace npumesh {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

json Read(const std::string& bytes) {
  const Result<json> read = ReadPlainPickle(bytes, "p");
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.status().message());
  return read.ok() ? *read : json("failed");
}

std::string Refused(const std::string& bytes) {
  const Result<json> read = ReadPlainPickle(bytes, "p");
  EXPECT_FALSE(read.ok());
  return read.ok() ? "" : std::string(read.status().message());
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// The bytes of hexadecimal digits.
std::string Unhex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned byte = 0;
    const char* const end = digits.data() + i + 2;
    const auto [last, error] = std::from_chars(digits.data() + i, end, byte, 16);
    EXPECT_TRUE(error == std::errc() && last == end) << digits;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

TEST(PlainPickle, ReadsWhatPythonWrites) {
  // pickle.dumps({"a": [1, 2.5, None, True, -3, 1 << 40], "t": (1, "x")}, protocol=2)
  EXPECT_EQ(
      Read(Unhex("80027d71002858010000006171015d7102284b014740040000000000004e884afdffffff8a060000"
                 "000000016558010000007471034b015801000000787104867105752e")),
      json::parse(R"({"a": [1, 2.5, null, true, -3, 1099511627776], "t": [1, "x"]})"));
  // pickle.dumps(["ab", "ab", {}, b"y"], protocol=4)
  EXPECT_EQ(Read(Unhex("80049512000000000000005d94288c0261629468017d9443017994652e")),
            json::parse(R"(["ab", "ab", {}, "y"])"));
}

TEST(PlainPickle, WhatItWritesItReads) {
  const json data =
      json::parse(R"({"list": [0, -1, 255, 65536, -2147483648, 9223372036854775807, 0.1, ""],
                                    "none": null, "yes": true, "no": false, "text": "ä\n", "empty": {}})");
  EXPECT_EQ(Read(WritePlainPickle(data)), data);
}

TEST(PlainPickle, RefusesWhatNamesOrCallsSomething) {
  // pickle of an object whose __reduce__ is os.system("true")
  EXPECT_THAT(
      Refused(std::string("\x80\x02"
                          "cposix\nsystem\nX\x04\0\0\0true\x85R.")),
      HasSubstr("GLOBAL of posix.system, which is more than data; nothing of the file was run"));
  EXPECT_THAT(Refused(Bytes({0x80, 4, 0x8c, 1, 'o', 0x8c, 1, 's', 0x93, '.'})),
              HasSubstr("STACK_GLOBAL"));
  const std::pair<int, const char*> all[] = {
      {'R', "REDUCE"},     {'b', "BUILD"},      {'i', "INST"},   {'o', "OBJ"},
      {0x81, "NEWOBJ"},    {0x92, "NEWOBJ_EX"}, {'P', "PERSID"}, {'Q', "BINPERSID"},
      {0x82, "EXT1"},      {0x83, "EXT2"},      {0x84, "EXT4"},  {0x8f, "EMPTY_SET"},
      {0x96, "BYTEARRAY8"}};
  for (const auto& [opcode, name] : all) {
    EXPECT_THAT(Refused(Bytes({0x80, 2, 'N', opcode, '.'})),
                AllOf(HasSubstr(name), HasSubstr("at byte 3")));
  }
  EXPECT_THAT(Refused(Bytes({0x80, 2, 0xff, '.'})), HasSubstr("opcode 0xff"));
}

TEST(PlainPickle, DamagedOnesAreErrors) {
  EXPECT_THAT(Refused(Bytes({0x80, 9, 'N', '.'})), HasSubstr("protocol 9"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, 'N'})), HasSubstr("copied whole"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, '.'})), HasSubstr("0 values in the place of one"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, 'X', 255, 255, 255, 255, 'a', '.'})), HasSubstr("a text"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, 'h', 7, '.'})), HasSubstr("value 7 of the memo"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, 'N', 'K', 1, 'a', '.'})), HasSubstr("no list"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, '}', '(', 'K', 1, 'u', '.'})),
              HasSubstr("a key without a value"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, '}', ']', 'N', 's', '.'})),
              HasSubstr("neither text nor integer"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, 0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, '.'})),
              HasSubstr("9 bytes"));
  EXPECT_THAT(Refused(Bytes({0x80, 2, 'e', '.'})), HasSubstr("no mark"));
  // A list that contains itself, and one of one of one ... twice each.
  EXPECT_THAT(Refused(Bytes({0x80, 2, ']', 'q', 0, 'h', 0, 'a', '.'})), HasSubstr("deep"));
  std::string many = Bytes({0x80, 2, '(', ']', 'q', 0});
  for (int i = 0; i < 60; ++i) many += Bytes({']', 'h', i, 'a', 'h', i, 'a', 'q', i + 1});
  EXPECT_THAT(Refused(many + "t."), HasSubstr("more than 4194304 values"));
}

TEST(PlainPickle, TextsAreNotRepeatedWithoutEnd) {
  std::string many = Bytes({0x80, 2, 'X', 0, 0, 1, 0}) + std::string(65536, 'a') + "q";
  many += Bytes({0, '0'});  // POP is no opcode of plain data
  EXPECT_THAT(Refused(many + "."), HasSubstr("0x30"));
  many.resize(many.size() - 1);
  many.insert(2, "(");
  for (int i = 0; i < 5000; ++i) many += Bytes({'h', 0});
  EXPECT_THAT(Refused(many + "t."), HasSubstr("repeated to more than"));
}

// What torch.save writes of a tensor, without the places of the memo.
TEST(PlainPickle, ObjectsAreWrittenDownAndNotMade) {
  const std::string tensor =
      Bytes({0x80, 2}) + "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\n" +
      "U\x01" + "0U\x03" + "cpuK\x08tQK" + Bytes({0}) + "K\x02\x85K\x01\x85\x89" +
      "ccollections\nOrderedDict\n)RtR.";
  const Result<json> read = ReadPickleOfObjects(tensor, "p");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, json::parse(R"({
    "call": {"name": "torch._utils._rebuild_tensor_v2"},
    "arguments": [{"outside": ["storage", {"name": "torch.FloatStorage"}, "0", "cpu", 8]}, 0, [2],
                  [1], false, {"call": {"name": "collections.OrderedDict"}, "arguments": []}]})"));
  EXPECT_THAT(Refused(tensor), HasSubstr("GLOBAL of torch._utils._rebuild_tensor_v2"));
}

TEST(PlainPickle, ObjectsOfProtocolFour) {
  const std::string object =
      Bytes({0x80, 4, 0x8c, 1, 'm', 0x8c, 1, 'C', 0x93, ')', 0x81, '}', 'b', '.'});
  const Result<json> read = ReadPickleOfObjects(object, "p");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, json::parse(R"({"call": {"name": "m.C"}, "arguments": [], "state": {}})"));
}

TEST(PlainPickle, DamagedObjectsAreErrors) {
  const auto refused = [](const std::string& bytes) {
    const Result<json> read = ReadPickleOfObjects(bytes, "p");
    return read.ok() ? read->dump() : std::string(read.status().message());
  };
  EXPECT_THAT(refused(Bytes({0x80, 2, 'c', 'm', '.'})), HasSubstr("a line without an end"));
  EXPECT_THAT(refused(Bytes({0x80, 2, 'N', 'R', '.'})), HasSubstr("not there"));
  EXPECT_THAT(refused(Bytes({0x80, 2, 'Q', '.'})), HasSubstr("not there"));
  EXPECT_THAT(refused(Bytes({0x80, 4, 'N', 'N', 0x93, '.'})), HasSubstr("a name that is no text"));
  EXPECT_THAT(refused(Bytes({0x80, 2, 'N', 'N', 'b', '.'})), HasSubstr("no object"));
  EXPECT_THAT(refused(Bytes({0x80, 2, 'N', 'N', 'R', 'N', 'b', 'N', 'b', '.'})),
              HasSubstr("a second state"));
  EXPECT_THAT(refused(Bytes({0x80, 2, 'N', 'i', '.'})), HasSubstr("INST"));
}

TEST(PlainPickle, AnyBytesGiveDataOrAnError) {
  const std::string seed =
      WritePlainPickle(json::parse(R"({"entries": [{"a": [1, 2], "b": "x"}], "v": 1.5})"));
  fuzz::Mutator mutator(7);
  size_t read = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string bytes = mutator.Mutate(seed, {seed});
    const Result<json> data = ReadPlainPickle(bytes, "p");
    read += data.ok() ? 1 : 0;
    EXPECT_TRUE(data.ok() || !data.status().message().empty());
  }
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace npumesh
