#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "graph/dump/format/format_mapping.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json.h"
#include "tests/unit/dump/dumper_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// x -> a = -x -> view -> b = a + x -> c = total(b)
class ChainTest : public DumperTest {
 protected:
  ChainTest() {
    const Value x = g_.Data("x", IntType({2}));
    const Value a = g_.Op("Negate", {{"x", x}}, {}, "blk/0/a");
    const Value shape = g_.Const("shape", IntTensor({2}));
    const Value view = g_.Op("Reshape", {{"x", a}, {"shape", shape}}, {}, "view");
    const Value b = g_.Op("Plus", {{"x1", view}, {"x2", x}}, {}, "b");
    g_.Output({g_.Op("Total", {{"x", b}}, {}, "c")});
  }
  const std::vector<Tensor> input_ = {IntTensor({5, 7})};
};

TEST_F(ChainTest, FilesAndTheirContent) {
  const DumpReport report = Dump(input_);
  EXPECT_TRUE(report.error.ok());
  const std::string folder = StepPath(0);
  EXPECT_EQ(folder, folder_.path() + "/worldsize1_global_rank0/20241121145738/0/" +
                        SanitizedName(model_->graph.name()) + "/1/0");
  // The view has no step; x is dumped beside each of its readers.
  EXPECT_THAT(Names(folder),
              ElementsAre("Data.x.0", "Data.x.1", "Negate.blk_0_a.0", "Plus.b.1", "Total.c.2"));
  EXPECT_EQ(Values(PathOf(folder, "Negate.blk_0_a")), "in 5 7 | out -5 -7");
  EXPECT_EQ(Values(PathOf(folder, "Plus.b")), "in -5 -7 | in 5 7 | out 0 0");
  EXPECT_EQ(Values(PathOf(folder, "Total.c")), "in 0 0 | out 0");
  EXPECT_EQ(Values(PathOf(folder, "Data.x.1")), "out 5 7");
  EXPECT_EQ(report.counts.files, 5u);
  const Result<DumpFile> file = DumpFile::Open(PathOf(folder, "Negate"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->record().op_name, "blk/0/a");  // the name in the graph
  EXPECT_EQ(file->record().inputs.at(0).type, IntType({2}));
  EXPECT_NE(file->record().inputs.at(0).address, 0u);
  EXPECT_EQ(
      file->record().time_us,
      ParseDumpFileName(std::filesystem::path(PathOf(folder, "Negate")).filename().string())->time);
}

TEST_F(ChainTest, Modes) {
  settings_.mode = DumpMode::kInput;
  Dump(input_);
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Negate.blk_0_a.0", "Plus.b.1", "Total.c.2"));
  EXPECT_EQ(Values(PathOf(StepPath(0), "Plus.b")), "in -5 -7 | in 5 7");
  settings_.mode = DumpMode::kOutput;
  place_.time = "20241121145739";
  Dump(input_);
  EXPECT_EQ(Values(PathOf(StepPath(0), "Plus.b")), "out 0 0");
  EXPECT_EQ(Values(PathOf(StepPath(0), "Data.x.0")), "out 5 7");
}

TEST_F(ChainTest, StepsAndDataIndex) {
  settings_.steps = *StepSet::Parse("1|3", false, "dump_step");
  const DumpReport report = Dump(input_, 5);
  EXPECT_EQ(report.steps, 2u);
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(std::filesystem::exists(StepPath(step)), step == 1 || step == 3) << step;
  }
  settings_.steps = StepSet();
  place_.time = "20241121145739";
  EXPECT_EQ(Dump(input_, 3).steps, 3u);
  EXPECT_TRUE(std::filesystem::exists(StepPath(2)));
}

TEST_F(ChainTest, LayersModelsAndBlacklists) {
  OperatorChoice choice;
  choice.layers = {"b", "view", "nowhere"};
  settings_.choices = {choice};
  Dump(input_);
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Data.x.1", "Plus.b.1"));

  settings_.choices = {OperatorChoice()};
  settings_.choices[0].model_name = "another";
  place_.time = "1";
  Dump(input_);
  EXPECT_THAT(Names(StepPath(0)), IsEmpty());

  settings_.choices[0].model_name = model_->graph.name();
  settings_.choices[0].type_blacklist = {{"Total", {}}, {"Plus", {{true, 0}, {false, 0}}}};
  place_.time = "2";
  Dump(input_);
  EXPECT_THAT(Names(StepPath(0)),
              ElementsAre("Data.x.0", "Data.x.1", "Negate.blk_0_a.0", "Plus.b.1"));
  EXPECT_EQ(Values(PathOf(StepPath(0), "Plus.b")), "in | in 5 7 | out");
}

TEST_F(ChainTest, Ranges) {
  OperatorChoice choice;
  choice.ranges = {{"b", "c"}};
  settings_.choices = {choice};
  Dump(input_);
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Data.x.1", "Plus.b.1", "Total.c.2"));
  settings_.choices[0].ranges = {{"blk/0/a", "blk/0/a"}};
  place_.time = "1";
  Dump(input_);
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Data.x.0", "Negate.blk_0_a.0"));
}

TEST_F(ChainTest, SingleOperators) {
  settings_.models = false;
  settings_.single_operators = true;
  settings_.always_rank_folder = false;
  Dump(input_);
  EXPECT_THAT(Names(folder_.path() + "/20241121145738/0"),
              ElementsAre("Data.x.0", "Data.x.1", "Negate.blk_0_a.0", "Plus.b.1", "Total.c.2"));
  // Both: the list takes its own, the rest runs by itself.
  settings_.models = true;
  settings_.choices = {OperatorChoice()};
  settings_.choices[0].layers = {"c"};
  place_.time = "1";
  Dump(input_);
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Total.c.2"));
  EXPECT_EQ(Names(folder_.path() + "/1/0").size(), 4u);
}

TEST_F(ChainTest, Statistics) {
  settings_.content = DumpContent::kStatistics;
  const DumpReport report = Dump(input_);
  EXPECT_EQ(report.counts.files, 0u);
  EXPECT_EQ(report.counts.statistics_files, 5u);
  EXPECT_EQ(*ReadFile(PathOf(StepPath(0), "Plus.b")),
            "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg "
            "Value,Count,Nan Count,Negative Inf Count,Positive Inf Count\n"
            "Input,0,16,DT_INT64,ND,2,-5,-7,-6,2,0,0,0\n"
            "Input,1,16,DT_INT64,ND,2,7,5,6,2,0,0,0\n"
            "Output,0,16,DT_INT64,ND,2,0,0,0,2,0,0,0\n");
}

TEST_F(ChainTest, TheBoundDegradesToStatistics) {
  limits_.max_bytes = 60;  // Data.x and a: 16 + 32; b does not fit
  const DumpReport report = Dump(input_);
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Data.x.0", "Data.x.1.csv", "Negate.blk_0_a.0",
                                              "Plus.b.1.csv", "Total.c.2.csv"));
  EXPECT_EQ(report.degraded_files, 3u);
  EXPECT_EQ(report.degraded_bytes, 16u + 48u + 24u);
  const auto manifest = nlohmann::json::parse(*ReadFile(report.folder + "/manifest.json"));
  EXPECT_EQ(manifest["degraded_to_statistics"]["files"], 3);
  EXPECT_EQ(manifest["degraded_to_statistics"]["tensor_bytes"], 88);
  EXPECT_EQ(manifest["written"]["files"], 2);
  EXPECT_EQ(manifest["written"]["statistics_files"], 3);
  EXPECT_TRUE(manifest["error"].is_null());
}

// A process that was killed while it dumped leaves files on their way.
TEST_F(ChainTest, RemovesWhatAKilledDumpLeft) {
  const std::string root = RankRoot(settings_, place_);
  const std::string old = root + "/20240101000000/0/g/1/0";
  std::filesystem::create_directories(old);
  for (const char* name : {".Add.a.1.2.3.77.0.tmp", "Add.a.1.2.3"}) {
    ASSERT_TRUE(WriteFile(old + "/" + name, "x", FileKind::kDataDump).ok());
  }
  ASSERT_TRUE(WriteFile(root + "/.mine.1.tmp", "x", FileKind::kData).ok());
  const Dumper dumper(settings_, place_, limits_);
  EXPECT_FALSE(std::filesystem::exists(old + "/.Add.a.1.2.3.77.0.tmp"));
  EXPECT_TRUE(std::filesystem::exists(old + "/Add.a.1.2.3"));
  EXPECT_TRUE(std::filesystem::exists(root + "/.mine.1.tmp")) << "no folder of a dump";
}

TEST_F(ChainTest, Permissions) {
  Dump(input_);
  struct stat info;
  ASSERT_EQ(stat(PathOf(StepPath(0), "Plus").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(stat(StepPath(0).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0027, 0u);
}

TEST_F(ChainTest, ManyRanksHaveAFolderEach) {
  settings_.always_rank_folder = false;
  place_.world_size = 4;
  place_.rank = 2;
  place_.device_id = 1;
  Dump(input_);
  EXPECT_EQ(StepPath(0), folder_.path() + "/worldsize4_global_rank2/20241121145738/1/" +
                             SanitizedName(model_->graph.name()) + "/1/0");
  EXPECT_EQ(Names(StepPath(0)).size(), 5u);
}

TEST_F(DumperTest, InputsThatAreOverwrittenAreSeenAsTheyWere) {
  const Value ref = g_.RefData("state", IntType({2}));
  const Value x = g_.Data("x", IntType({2}));
  const Value sum = g_.Op("Accumulate", {{"ref", ref}, {"value", x}}, {}, "sum");
  g_.Output({g_.Op("Negate", {{"x", sum}}, {}, "n")});
  Dump({IntTensor({1, 2}), IntTensor({10, 20})});
  EXPECT_EQ(Values(PathOf(StepPath(0), "Accumulate.sum")), "in 1 2 | in 10 20 | out 11 22");
  EXPECT_EQ(Values(PathOf(StepPath(0), "RefData.state.0")), "out 1 2");
}

// Buffers are used again within a run and from run to run; statistics are those of what lies there.
TEST_F(DumperTest, StatisticsFollowWhatIsWritten) {
  settings_.content = DumpContent::kStatistics;
  const Value ref = g_.RefData("state", IntType({1}));
  Value x = g_.Op("Accumulate", {{"ref", ref}, {"value", g_.Data("x", IntType({1}))}}, {}, "sum");
  for (int i = 0; i < 6; ++i) x = g_.Op("Negate", {{"x", x}}, {}, fmt::format("n{}", i));
  g_.Output({x});
  const std::vector<Tensor> inputs = {IntTensor({1}), IntTensor({10})};
  const Compiled model = CompileFor(inputs);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto executor = Executor::Create(**model, memory_);
  ASSERT_TRUE(executor.ok());
  Write(**executor, 0, inputs[0]);
  Write(**executor, 1, inputs[1]);
  Dumper dumper(settings_, place_, limits_);
  for (uint64_t run = 0; run < 3; ++run) ASSERT_TRUE((*executor)->Run(&dumper, run).ok());
  EXPECT_TRUE(dumper.Finish().error.ok());
  const auto rows = [&](int run, const std::string& name) {
    const std::string text = *ReadFile(PathOf(StepPath(run), name));
    return text.substr(text.find('\n') + 1);
  };
  const auto row = [](const char* side, int value, int index = 0) {
    return fmt::format("{0},{1},8,DT_INT64,ND,1,{2},{2},{2},1,0,0,0\n", side, index, value);
  };
  for (int run = 0; run < 3; ++run) {
    const int before = 1 + 10 * run;
    EXPECT_EQ(rows(run, "Accumulate.sum"),
              row("Input", before) + row("Input", 10, 1) + row("Output", before + 10));
    for (int i = 0; i < 6; ++i) {
      const int value = i % 2 == 0 ? before + 10 : -before - 10;
      EXPECT_EQ(rows(run, fmt::format("Negate.n{}", i)),
                row("Input", value) + row("Output", -value));
    }
  }
}

TEST_F(DumperTest, NamesThatNoFileCanHave) {
  const Value x = g_.Data("..", IntType({1}));
  const std::string long_name(300, 'n');
  g_.Output({g_.Op("Negate", {{"x", x}}, {}, long_name)});
  ASSERT_TRUE(CompileFor({IntTensor({3})}).ok());
  model_->graph.set_name(std::string(300, 'g'));
  const DumpReport report = Dump({IntTensor({3})});
  EXPECT_TRUE(report.error.ok()) << report.error.message();
  const std::string folder = StepPath(0);
  EXPECT_EQ(Values(PathOf(folder, "Data.__.0")), "out 3");
  const auto mapping = ReadMapping(folder);
  ASSERT_TRUE(mapping.ok());
  ASSERT_EQ(mapping->size(), 1u);
  EXPECT_TRUE(mapping->begin()->second.starts_with("Negate." + long_name + ".0.0."));
  EXPECT_EQ(Values(folder + "/" + mapping->begin()->first), "in 3 | out -3");
}

class WatchTest : public DumperTest {
 protected:
  WatchTest() {
    settings_.models = false;
    settings_.watch = true;
    settings_.mode = DumpMode::kOutput;
    const Value x = g_.Data("x", IntType({2}));
    const Value c = g_.Op("Move", {{"x", x}}, {}, "C");
    const Value a = g_.Op("Negate", {{"x", c}}, {}, "A");
    g_.Output({g_.Op("Total", {{"x", a}}, {}, "B"), c});
  }
};

TEST_F(WatchTest, WatchedOutputsAfterEachLayer) {
  settings_.choices = {OperatorChoice()};
  settings_.choices[0].layers = {"A", "B"};
  settings_.choices[0].watched = {"C"};
  Dump({IntTensor({1, 2})});
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Move.A_To_C.1", "Move.B_To_C.2", "Move.C.0"));
  EXPECT_EQ(Values(PathOf(StepPath(0), "Move.A_To_C")), "out 1 2");
  EXPECT_EQ(Values(PathOf(StepPath(0), "Move.C")), "out 1 2");
}

TEST_F(WatchTest, WithoutLayersAfterEveryOther) {
  settings_.choices = {OperatorChoice()};
  settings_.choices[0].watched = {"C", "A"};
  Dump({IntTensor({1, 2})});
  EXPECT_THAT(Names(StepPath(0)),
              ElementsAre("Move.B_To_C.2", "Move.C.0", "Negate.A.1", "Negate.B_To_A.2"));
}

TEST_F(WatchTest, AnOperatorInBothListsDumpsOnlyItself) {
  settings_.choices = {OperatorChoice()};
  settings_.choices[0].layers = {"C", "A"};
  settings_.choices[0].watched = {"C"};
  Dump({IntTensor({1, 2})});
  EXPECT_THAT(Names(StepPath(0)), ElementsAre("Move.A_To_C.1", "Move.C.0"));
}

TEST_F(DumperTest, ExceptionDump) {
  settings_.models = false;
  settings_.exception = ExceptionDump::kNormal;
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Fail", {{"x", x}}, {}, "unlucky")});
  Dumper dumper(settings_, place_, limits_);
  EXPECT_FALSE(RunUnder(dumper, {IntTensor({8, 9})}).ok());
  const std::string folder = folder_.path() + "/worldsize1_global_rank0/extra-info/data-dump/0";
  const std::string path = PathOf(folder, "Fail.unlucky.0");
  const Result<DumpFile> file = DumpFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_THAT(file->record().dfx_message, HasSubstr("out of luck"));
  EXPECT_EQ(file->record().inputs.at(0).size, 16u);
  EXPECT_EQ(file->record().outputs.at(0).arg_index, 1u);
  const auto name = ParseDumpFileName(std::filesystem::path(path).filename().string());
  ASSERT_TRUE(name.has_value());
  EXPECT_FALSE(name->stream.has_value());
  EXPECT_EQ(std::to_string(name->time).size(), 17u);
  EXPECT_FALSE(std::filesystem::exists(dumper.Finish().folder));
}

TEST_F(DumperTest, BriefExceptionDumpHasNoTensors) {
  settings_.models = false;
  settings_.exception = ExceptionDump::kBrief;
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Fail", {{"x", x}}, {}, "unlucky")});
  Dumper dumper(settings_, place_, limits_);
  EXPECT_FALSE(RunUnder(dumper, {IntTensor({8, 9})}).ok());
  const std::string folder = folder_.path() + "/worldsize1_global_rank0/extra-info/data-dump/0";
  EXPECT_EQ(Values(PathOf(folder, "exception_info.0.0")), "in | out");
}

}  // namespace
}  // namespace npumesh
