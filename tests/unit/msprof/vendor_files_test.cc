#include "runtime/msprof/vendor_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "runtime/base/text/json.h"
#include "runtime/msprof/communication_json.h"
#include "runtime/msprof/report_file.h"
#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/msprof/made_up_profile.h"

namespace npumesh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kNow = 1'763'865'100'000'000'000;

// What stands below a folder, by path.
using Tree = std::map<std::string, std::string>;

Tree Read(const std::string& folder) {
  Tree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = std::filesystem::relative(entry.path(), folder).string();
    tree[path] = ReadFile(entry.path().string()).value();
  }
  return tree;
}

// The only file whose path contains `part`.
std::string One(const Tree& tree, std::string_view part) {
  std::string found = "no file " + std::string(part);
  for (const auto& [path, text] : tree) {
    if (path.find(part) == std::string::npos) continue;
    EXPECT_THAT(found, HasSubstr("no file")) << path;
    found = text;
  }
  return found;
}

// A product, an addition and a collective in one iteration, with moments that people can add.
RankProfile SmallProfile() {
  ProfileMaker maker(1, 2);
  maker.owner().training_trace = true;
  maker.owner().start_realtime_ns = 1'700'000'000'000'000'000;
  maker.owner().fp_point = "mm";
  ProfiledTask product;
  product.name = "mm";
  product.type = "MatMul";
  product.state = "static";
  product.graph = "model";
  product.input_shapes = {"2,3", ""};
  product.input_types = {"FLOAT", "FLOAT"};
  product.input_formats = {"ND", "ND"};
  product.output_shapes = {"2,4"};
  product.output_types = {"FLOAT"};
  product.output_formats = {"ND"};
  const uint32_t mm = maker.Task(product);
  const uint32_t add = maker.Task("a \"quoted\", name\n", "Add");
  const uint32_t reduce = maker.Task("r", "HcomAllReduce");
  const uint32_t world = maker.Group("g", 1, {0, 1});
  maker.Iteration(4, 1'000, 11'000);
  maker.Compute(mm, 2'000, 4'500);
  maker.Compute(add, 5'000, 5'001);
  maker.Call(reduce, world, 0, 4'000, 5'000, 8'000, 2'000'000);
  return std::move(maker.profile());
}

Tree Write(const RankProfile& profile, const TemporaryFolder& folder) {
  const Status status = WriteVendorFiles(profile, {folder.path(), kNow, {}});
  EXPECT_TRUE(status.ok()) << status.message();
  return Read(folder.path());
}

TEST(VendorFiles, OpSummaryHasOperatorsAndCallsByBegin) {
  const TemporaryFolder folder;
  EXPECT_EQ(One(Write(SmallProfile(), folder), "op_summary_"),
            "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,"
            "Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Num,Mix Block Num,"
            "HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
            "Output Data Types,Output Formats,Context ID\n"
            "1,1,0,0,mm,MatMul,static,AI_CORE,1700000000000002.000\t,2.500,0.000,0,0,NO,"
            "\"2,3;\",FLOAT;FLOAT,ND;ND,\"2,4\",FLOAT,ND,N/A\n"
            "1,N/A,N/A,N/A,hcom_allReduce__469_0_1,hcom_allReduce_,N/A,COMMUNICATION,"
            "1700000000000004.000\t,4.000,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"
            "1,N/A,1,0,\"a \"\"quoted\"\", name\\n\",Add,N/A,AI_VECTOR_CORE,"
            "1700000000000005.000\t,0.001,0.500,0,0,NO,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n");
}

TEST(VendorFiles, StepTraceHasPointsAndCalls) {
  const TemporaryFolder folder;
  EXPECT_EQ(One(Write(SmallProfile(), folder), "step_trace_2"),
            "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),"
            "FP to BP Time(us),Iteration Refresh(us),Data Aug Bound(us),Model ID,"
            "Reduce Start(us),Reduce Duration(us)\n"
            "1,4,1700000000000002.000\t,N/A,1700000000000011.000\t,10.000,N/A,N/A,N/A,1,"
            "1700000000000004.000\t,4.000\n");
}

TEST(VendorFiles, StepTimesAddUp) {
  const TemporaryFolder folder;
  EXPECT_EQ(One(Write(SmallProfile(), folder), "step_trace_time.csv"),
            "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,"
            "Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing\n"
            "1,4,2.501,3.499,0.501,4.000,4.000,10.000,0.000,3.499,1.000\n");
}

TEST(VendorFiles, StatisticsAreByTotal) {
  const TemporaryFolder folder;
  const Tree tree = Write(MadeUpRank(0, 2), folder);
  EXPECT_EQ(One(tree,
                "msprof/PROF_000001_20251123023004123_00004000OGHHJCKE/"
                "mindstudio_profiler_output/op_statistic_"),
            "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),"
            "Max Time(us),Ratio(%)\n"
            "0,Add,AI_VECTOR_CORE,6,1204.500,1.500,200.750,400.000,67.878\n"
            "0,MatMulV2,AI_CORE,6,570.012,90.000,95.002,100.004,32.122\n");
  EXPECT_EQ(One(tree, "communication_statistic_"),
            "Device_id,OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),"
            "Ratio(%)\n"
            "0,hcom_allReduce_,3,420.012,140.004,140.004,140.004,68.293\n"
            "0,hcom_allGather_,3,120.000,40.000,40.000,40.000,19.512\n"
            "0,hcom_receive_,3,45.000,15.000,15.000,15.000,7.317\n"
            "0,hcom_send_,3,30.000,10.000,10.000,10.000,4.878\n");
  EXPECT_EQ(One(tree, "api_statistic_"),
            "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
            "host,acl,aclmdlExecute,2999.400,3,999.800,999.800,999.800,0.000\n"
            "host,runtime,host to device,3.000,3,1.000,1.000,1.000,0.000\n");
}

TEST(VendorFiles, OptionsDecideWhatIsThere) {
  RankProfile profile = SmallProfile();
  profile.owner.training_trace = false;
  profile.owner.task_trace = false;
  const TemporaryFolder folder;
  const Tree tree = Write(profile, folder);
  std::vector<std::string> tables;
  for (const auto& [path, text] : tree) {
    if (path.ends_with(".csv")) tables.push_back(path.substr(path.rfind('/') + 1));
  }
  EXPECT_THAT(tables,
              ElementsAre("api_statistic_20251123023140.csv",
                          "communication_statistic_20251123023140.csv", "step_trace_time.csv"));
  EXPECT_THAT(One(tree, "mindstudio_profiler_output/msprof_"),
              testing::Not(HasSubstr("\"Task Id\"")));
}

TEST(VendorFiles, TimelineNamesLayersAndConnectsThem) {
  const TemporaryFolder folder;
  const json events =
      json::parse(One(Write(SmallProfile(), folder), "mindstudio_profiler_output/msprof_"));
  std::map<uint64_t, std::string> layers;
  json task, begin, end;
  for (const json& event : events) {
    if (event["name"] == "process_name") {
      layers[event["pid"].get<uint64_t>()] = event["args"]["name"].get<std::string>();
    }
    if (event["name"] == "mm") task = event;
    if (event["ph"] == "s" && begin.is_null()) begin = event;
    if (event["ph"] == "f" && end.is_null()) end = event;
  }
  const uint64_t pid = uint64_t{4001} << 10;
  EXPECT_THAT(layers, ElementsAre(testing::Pair(pid + 7 * 32 + 31, "CANN"),
                                  testing::Pair(pid + 14 * 32 + 1, "Ascend Hardware"),
                                  testing::Pair(pid + 16 * 32 + 1, "Communication"),
                                  testing::Pair(pid + 31 * 32 + 1, "Overlap Analysis")));
  EXPECT_EQ(task["ts"], "1700000000000002.000");
  EXPECT_EQ(task["dur"], 2.5);
  EXPECT_EQ(task["args"]["connection_id"], 1);
  EXPECT_EQ(begin["name"], "HostToDevice1");
  EXPECT_EQ(begin["ts"], "1700000000000001.000");
  EXPECT_EQ(end["id"], "1");
  EXPECT_EQ(end["bp"], "e");
  EXPECT_EQ(end["pid"], task["pid"]);
}

// Streams run tasks when the call that put them there has returned.
TEST(VendorFiles, ArrowsBeginAtTheCallThatAStreamTookTheTaskFrom) {
  RankProfile profile = SmallProfile();
  const auto found = std::find_if(profile.spans.begin(), profile.spans.end(),
                                  [](const Span& span) { return span.kind == SpanKind::kTask; });
  ASSERT_NE(found, profile.spans.end());
  Span call;
  call.kind = SpanKind::kApi;
  call.lane = kHostLane;
  call.begin_ns = found->begin_ns - 900;
  call.end_ns = found->begin_ns - 700;
  found->arrived_ns = found->begin_ns - 800;
  profile.spans.push_back(call);
  const TemporaryFolder folder;
  const json events =
      json::parse(One(Write(profile, folder), "mindstudio_profiler_output/msprof_"));
  std::vector<std::string> begins;
  for (const json& event : events) {
    if (event["ph"] == "s") begins.push_back(event["ts"]);
  }
  EXPECT_THAT(begins, testing::Contains("1700000000000001.100"));
}

TEST(VendorFiles, CommunicationHasTimesAndLinks) {
  const TemporaryFolder folder;
  const RankProfile profile = SmallProfile();
  ASSERT_TRUE(WriteVendorFiles(profile, {folder.path(), kNow, {0, 0}}).ok());
  const Tree tree = Read(folder.path());
  const json calls = json::parse(One(tree, "analyze/communication.json"));
  ASSERT_EQ(calls.size(), 1U);
  const json& call = calls.begin().value();
  const json times = {{"Start Timestamp(us)", 1700000000000004.0},
                      {"Elapse Time(ms)", 0.004},
                      {"Transit Time(ms)", 0.003},
                      {"Wait Time(ms)", 0.001},
                      {"Synchronization Time(ms)", 0.001},
                      {"Idle Time(ms)", 0.0},
                      {"Wait Time Ratio", 0.25},
                      {"Synchronization Time Ratio", 0.25}};
  EXPECT_EQ(call["Communication Time Info"], times);
  EXPECT_EQ(call["Communication Bandwidth Info"]["HCCS"]["Size Distribution"],
            json::parse("{\"2\": [1, 0.003]}"));
  const json matrix = json::parse(One(tree, "analyze/communication_matrix.json"));
  EXPECT_EQ(matrix.begin().key(), calls.begin().key());
  const json& links = matrix.begin().value();
  EXPECT_EQ(links["1-1"]["Transport Type"], "LOCAL");
  EXPECT_EQ(links["1-0"]["Transport Type"], "HCCS");
  EXPECT_EQ(links["1-0"]["Transit Size(MB)"], 2.0);
  EXPECT_EQ(links.size(), 2U);
}

TEST(Links, CrossNodesByRdmaAndAddUp) {
  const std::vector<int> nodes = {0, 0, 1, 1};
  const RankProfile profile = MadeUpRank(1, 4);
  const json matrix = MsprofMatrix(VendorRowsOf(profile, nodes));
  for (const auto& [name, links] : matrix.items()) {
    if (!name.starts_with("hcom_allReduce")) continue;
    EXPECT_EQ(links["1-0"]["Transport Type"], "HCCS");
    EXPECT_EQ(links["1-2"]["Transport Type"], "RDMA");
    EXPECT_EQ(links["1-3"]["Transport Type"], "RDMA");
    double megabytes = 0;
    for (const auto& [link, what] : links.items())
      megabytes += what["Transit Size(MB)"].get<double>();
    EXPECT_DOUBLE_EQ(megabytes, 4.194305);
  }
  for (const auto& [name, links] : matrix.items()) {
    if (name.starts_with("hcom_send")) {
      EXPECT_TRUE(links.contains("1-2")) << name;
    }
    if (name.starts_with("hcom_receive")) {
      EXPECT_TRUE(links.contains("0-1")) << name;
    }
  }
}

TEST(VendorRows, CallsOfOneNameAreToldApart) {
  ProfileMaker maker(0, 1);
  const uint32_t reduce = maker.Task("r", "HcomAllReduce");
  const uint32_t world = maker.Group("g", 1, {0});
  maker.Call(reduce, world, 5, 10, 10, 20, 8);
  maker.Call(reduce, world, 5, 30, 30, 40, 8);
  maker.Call(reduce, 0, 5, 50, 50, 60, 8);  // of a group that the profile does not know
  const VendorRows rows = VendorRowsOf(maker.profile(), {});
  ASSERT_EQ(rows.calls.size(), 3U);
  EXPECT_TRUE(rows.calls[0].name.ends_with("_5_1"));
  EXPECT_TRUE(rows.calls[1].name.ends_with("_5_2"));
  EXPECT_NE(rows.calls[2].group, rows.calls[0].group);
}

TEST(VendorFiles, EmptyProfilesAreFilesWithoutRows) {
  const TemporaryFolder folder;
  ProfileMaker maker(0, 1);
  const Tree tree = Write(maker.profile(), folder);
  EXPECT_EQ(One(tree, "step_trace_time.csv"),
            "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,"
            "Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing\n"
            "0,,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000\n");
  EXPECT_EQ(One(tree, "analyze/communication.json"), "{}\n");
  EXPECT_TRUE(json::parse(One(tree, "trace_view.json")).is_array());
}

TEST(VendorFiles, NamesOfAnyBytesAreWritten) {
  ProfileMaker maker(0, 1);
  maker.owner().host = "a/b+c\n";
  maker.Iteration(0, 0, 100);
  maker.Compute(maker.Task("\xff\x01\",", "Add\xc3"), 10, 20);
  maker.Call(maker.Task("", "HcomSend"), maker.Group("\xfe@", 1, {0}), 0, 30, 40, 50, 1);
  const TemporaryFolder folder;
  const Tree tree = Write(maker.profile(), folder);
  EXPECT_THAT(TorchFolderName(maker.owner()), HasSubstr("a-b-c-_rank0_"));
  EXPECT_TRUE(json::parse(One(tree, "trace_view.json")).is_array());
}

TEST(VendorFiles, ASecondExportIsRefused) {
  const TemporaryFolder folder;
  const RankProfile profile = SmallProfile();
  const Tree before = Write(profile, folder);
  const Status again = WriteVendorFiles(profile, {folder.path(), kNow + 5'000'000'000, {}});
  EXPECT_EQ(again.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(again.message()), HasSubstr("it exists already; remove it or export"));
  EXPECT_EQ(Read(folder.path()), before);
}

TEST(VendorFiles, AreWholeOrNotThere) {
  const RankProfile profile = SmallProfile();
  int failures = 0;
  for (int fail_at = 1;; ++fail_at) {
    const TemporaryFolder folder;
    FlakyFileSystem flaky(fail_at);
    const Status status = WriteVendorFiles(profile, {folder.path(), kNow, {}}, flaky);
    if (!flaky.failed()) {
      EXPECT_TRUE(status.ok()) << status.message();
      break;
    }
    ++failures;
    ASSERT_FALSE(status.ok()) << fail_at;
    EXPECT_THAT(Read(folder.path()), IsEmpty()) << fail_at;
  }
  EXPECT_GT(failures, 50);
}

TEST(VendorFiles, RanksHaveFoldersOfTheirOwn) {
  const TemporaryFolder folder;
  std::vector<RankProfile> profiles;
  for (int rank = 0; rank < 4; ++rank) profiles.push_back(MadeUpRank(rank, 4));
  // Ranks that are threads of one process.
  for (RankProfile& profile : profiles) profile.owner.process = 7;
  ASSERT_TRUE(WriteVendorFiles(profiles, folder.path(), kNow).ok());
  for (const char* kind : {"msprof", "torch"}) {
    const std::filesystem::directory_iterator entries(folder.Path(kind));
    EXPECT_EQ(std::distance(begin(entries), end(entries)), 4) << kind;
  }
}

TEST(CsvTable, LongTablesAreSlices) {
  const TemporaryFolder folder;
  CsvTable table({folder.path(), "t", "20251123023140"}, "a,b", 5, RealFileSystem(), 2);
  for (int row = 0; row < 5; ++row) table.Add({"", std::to_string(row)});
  ASSERT_TRUE(table.Finish().ok());
  const Tree tree = Read(folder.path());
  EXPECT_THAT(tree, ElementsAre(testing::Pair("t_slice_0_20251123023140.csv", "a,b\n,0\n,1\n"),
                                testing::Pair("t_slice_1_20251123023140.csv", "a,b\n,2\n,3\n"),
                                testing::Pair("t_slice_2_20251123023140.csv", "a,b\n,4\n")));
}

TEST(CsvTable, AFullLastSliceIsTheLast) {
  const TemporaryFolder folder;
  CsvTable table({folder.path(), "t", "1"}, "a", 4, RealFileSystem(), 2);
  for (int row = 0; row < 4; ++row) table.Add({std::to_string(row)});
  ASSERT_TRUE(table.Finish().ok());
  EXPECT_THAT(folder.List(), ElementsAre("t_slice_0_1.csv", "t_slice_1_1.csv"));
}

}  // namespace
}  // namespace npumesh
