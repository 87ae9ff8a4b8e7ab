#include "collectives/hccl/creation/rank_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

// Two servers of two devices each.
constexpr std::string_view kTable = R"({
  "version": "1.0", "status": "completed", "server_count": "2",
  "server_list": [
    {"server_id": "alpha", "host_ip": "10.1.0.1", "device": [
      {"device_id": "0", "device_ip": "10.2.0.1", "host_port": "16700", "rank_id": "0"},
      {"device_id": "1", "device_ip": "10.2.0.2", "host_port": "16701", "rank_id": "1"}]},
    {"server_id": "beta", "device": [
      {"device_id": "0", "device_ip": "10.2.1.1", "rank_id": "2"},
      {"device_id": "1", "device_ip": "10.2.1.2", "rank_id": "3"}]}]})";

std::string Replaced(std::string_view from, std::string_view to) {
  std::string text(kTable);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(RankTable, ReadsServers) {
  RankTable table;
  const Verdict verdict = ParseRankTable(kTable, &table);
  ASSERT_TRUE(verdict.ok()) << verdict.why;
  ASSERT_EQ(table.ranks.size(), 4u);
  EXPECT_EQ(table.ranks[3].device, 1);
  EXPECT_EQ(table.ranks[3].server, "beta");
  EXPECT_EQ(table.ranks[3].device_ip, "10.2.1.2");
}

TEST(RankTable, RefusesAsTheVendorDoes) {
  struct {
    const char* from;
    const char* to;
    HcclResult result;
    const char* says;
  } const cases[] = {
      {"{\n", "[\n", HCCL_E_PARA, "EI0004"},
      {"{\n", "{ // note\n", HCCL_E_PARA, "EI0004"},
      {"\"1.0\"", "\"3.0\"", HCCL_E_PARA, "\"3.0\""},
      {"\"1.0\"", "1.0", HCCL_E_PARA, "EI0017"},
      {"\"completed\"", "\"done\"", HCCL_E_PARA, "\"done\""},
      {"\"status\"", "\"state\"", HCCL_E_NOT_FOUND, "\"status\""},
      {"\"server_count\": \"2\"", "\"server_count\": \"3\"", HCCL_E_PARA, "EI0014"},
      {"\"server_count\": \"2\"", "\"server_count\": 2", HCCL_E_PARA, "EI0017"},
      {"\"server_list\"", "\"servers\"", HCCL_E_NOT_FOUND, "\"server_list\""},
      {"\"beta\"", "\"alpha\"", HCCL_E_PARA, "\"alpha\" twice"},
      {"\"beta\"", "\"\"", HCCL_E_PARA, "server_list[1].server_id"},
      {"10.1.0.1", "10.1.0.256", HCCL_E_PARA, "no IP address"},
      {"10.2.1.1", "10.2.0.1", HCCL_E_PARA, "one device_ip"},
      {"\"16701\"", "\"0\"", HCCL_E_PARA, "host_port"},
      {"\"16701\"", "\"16700\"", HCCL_E_PARA, "host_port 16700 twice"},
      {"\"device_id\": \"1\"", "\"device_id\": \"0\"", HCCL_E_PARA, "device_id 0 twice"},
      {"\"device_id\": \"1\"", "\"device_id\": \"-1\"", HCCL_E_PARA, "device_id"},
      {"\"device_id\": \"1\"", "\"device_id\": 1", HCCL_E_PARA, "EI0017"},
      {"\"rank_id\": \"3\"", "\"rank\": \"3\"", HCCL_E_NOT_FOUND,
       "server_list[1].device[1].rank_id"},
      {"\"rank_id\": \"3\"", "\"rank_id\": \"2\"", HCCL_E_UNAVAIL, "each once"},
      {"\"rank_id\": \"3\"", "\"rank_id\": \"4\"", HCCL_E_UNAVAIL, "each once"},
      {"\"device_ip\": \"10.2.1.1\", ", "", HCCL_E_NOT_FOUND, "\"device_ip\""},
      {"{\"device_id\": \"0\", \"device_ip\": \"10.2.1.1\", \"rank_id\": \"2\"}", "7", HCCL_E_PARA,
       "server_list[1].device[0]"},
  };
  for (const auto& [from, to, result, says] : cases) {
    RankTable table;
    const Verdict verdict = ParseRankTable(Replaced(from, to), &table);
    EXPECT_EQ(verdict.result, result) << from << " -> " << to << ": " << verdict.why;
    EXPECT_THAT(verdict.why, HasSubstr(says)) << from << " -> " << to;
  }
}

TEST(RankTable, ReadsSuperPods) {
  const std::string pods = Replaced("\"1.0\"", R"("1.2", "super_pod_list": [
        {"super_pod_id": "east", "server_list": [{"server_id": "alpha"}]},
        {"super_pod_id": "west", "server_list": [{"server_id": "beta"}]}])");
  RankTable table;
  ASSERT_TRUE(ParseRankTable(pods, &table).ok());
  EXPECT_EQ(table.super_pods, 2u);
  std::string twice = pods;
  twice.replace(twice.find("west"), 4, "east");
  EXPECT_EQ(ParseRankTable(twice, &table).result, HCCL_E_PARA);
}

TEST(RankTable, ReadsTheOldTemplate) {
  RankTable table;
  const Verdict verdict = ParseRankTable(R"({"status": "completed", "group_count": "1",
    "group_list": [{"group_name": "g", "instance_count": "1", "device_count": "2",
      "instance_list": [{"pod_name": "p", "server_id": "s", "devices": [
        {"device_id": "4"}, {"device_id": "5"}]}]}]})",
                                         &table);
  ASSERT_TRUE(verdict.ok()) << verdict.why;
  ASSERT_EQ(table.ranks.size(), 2u);
  EXPECT_EQ(table.ranks[1].device, 5);
}

TEST(RankTable, ReadsVersion2) {
  RankTable table;
  const Verdict verdict =
      ParseRankTable(R"({"version": "2.0", "status": "completed", "rank_count": 1,
    "rank_list": [{"rank_id": 0, "local_id": 0, "device_id": 3, "level_list": [{"net_layer": 0,
      "net_type": "CLOS", "rank_addr_list": [{"addr_type": "IPV4", "addr": "10.0.0.1"}]}]}]})",
                     &table);
  ASSERT_TRUE(verdict.ok()) << verdict.why;
  EXPECT_EQ(table.ranks.at(0).device, 3);
}

TEST(RankTable, HostileTextIsRefusedQuietly) {
  RankTable table;
  EXPECT_EQ(ParseRankTable("", &table).result, HCCL_E_PARA);
  EXPECT_EQ(ParseRankTable(std::string(100000, '['), &table).result, HCCL_E_PARA);
  EXPECT_EQ(ParseRankTable("{\"version\": \"\xff\"}", &table).result, HCCL_E_PARA);
  for (size_t cut = 0; cut < kTable.size(); cut += 7) {
    EXPECT_FALSE(ParseRankTable(kTable.substr(0, cut), &table).ok());
  }
}

// Regression: what is no JSON was refused without a place, and a table without "version" for the
// lack of a key that only the old template has.
TEST(RankTable, SaysWhereItIsNoJson) {
  RankTable table;
  const auto why = [&](const std::string& text) { return ParseRankTable(text, &table).why; };
  EXPECT_THAT(why(""), testing::HasSubstr("is not a JSON object: line 1, column 1"));
  EXPECT_THAT(why("{\"status\": \"completed\",\n}"), testing::HasSubstr("line 2, column 1"));
  EXPECT_THAT(why("{\"status\": \"comp"), testing::HasSubstr("line 1, column 17"));
  EXPECT_THAT(why("[]"), testing::HasSubstr("it is an array"));
  EXPECT_THAT(why(R"({"status": "completed"})"),
              testing::HasSubstr("has neither \"version\" (1.0, 1.1, 1.2 or 2.0) nor"));
}

TEST(RankTable, FilesMustBeThereAndComplete) {
  const TemporaryFolder folder;
  RankTable table;
  const auto load = [&](const std::string& name) {
    return LoadRankTable(folder.path() + "/" + name, std::chrono::seconds(1), &table);
  };
  EXPECT_EQ(load("absent.json").result, HCCL_E_PARA);
  EXPECT_EQ(load("table.txt").result, HCCL_E_PARA);
  std::ofstream(folder.path() + "/table.json") << kTable;
  EXPECT_TRUE(load("table.json").ok());
  std::ofstream(folder.path() + "/slow.json") << Replaced("completed", "initializing");
  EXPECT_EQ(load("slow.json").result, HCCL_E_TIMEOUT);
}

}  // namespace
}  // namespace npumesh
