// What a card would not take: `npumesh card`, and NPUMESH_CARD in run and validate; and runs beside
// runs with other options.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "graph/io/model_file.h"
#include "graph/ir/graph_builder.h"
#include "runtime/base/text/json.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string CardReport(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

class CliCard : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("NPUMESH_CARD");
    unsetenv("NPUMESH_CARD_CHECK");
  }
  static void Ask(const char* chip, const char* check = "warn") {
    ASSERT_EQ(setenv("NPUMESH_CARD", chip, 1), 0);
    ASSERT_EQ(setenv("NPUMESH_CARD_CHECK", check, 1), 0);
  }
  const TestFolder folder_;
};

TEST_F(CliCard, ListsAndShowsChips) {
  const CommandRun list = RunAlone({"card", "ls", "--json"});
  ASSERT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(json::parse(list.out).at("chips"), Not(IsEmpty()));
  const CommandRun shown = RunAlone({"card", "show", "Ascend910B3"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("streams       1984"));
  EXPECT_THAT(shown.out, HasSubstr("mgtk-experts: refused (561002): MoeGatingTopK"));
  const CommandRun other = RunAlone({"card", "show", "ascend910b33"});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("ascend910b3"));
}

TEST_F(CliCard, ChecksCallsThatAreTyped) {
  const char* const call = "MoeGatingTopK x=float32[16,4096] k=8";
  const CommandRun refused = RunAlone({"card", "check", "ascend910b3", call, "--json"});
  EXPECT_EQ(refused.code, 1) << refused.err;
  const json report = json::parse(refused.out);
  EXPECT_EQ(report.at("verdict"), "refused");
  EXPECT_EQ(report.at("findings").at(0).at("rule"), "mgtk-experts");
  EXPECT_EQ(report.at("findings").at(0).at("code"), 561002);
  std::ofstream(folder_ / "calls") << "# taken\nMoeGatingTopK x=float32[16,256] k=8\n";
  const CommandRun taken = RunAlone({"card", "check", "ascend910b3", "--calls", folder_ / "calls"});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("1 of 1 calls without a finding"));
  EXPECT_EQ(RunAlone({"card", "check", "ascend910b3"}).code, 3);
}

TEST_F(CliCard, RunTellsWhatTheShapesBreakOnAllRanks) {
  folder_.PutGatings(2, -1);
  Ask("ascend910b3");
  const CommandRun run = RunRanksOf(2, {"run", folder_.path(), "--dim", "x=4096", "--report",
                                        folder_ / "report.json", "--junit", folder_ / "junit.xml"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("npumesh run: warning: ranks 0-1: ascend910b3 refuses node \"gate\" "
                        "(MoeGatingTopK): there are 4096 experts"));
  const json report = json::parse(CardReport(folder_ / "report.json"));
  ASSERT_THAT(report.at("findings"), SizeIs(2));
  for (int rank = 0; rank < 2; ++rank) {
    const json& finding = report.at("findings").at(static_cast<size_t>(rank));
    EXPECT_EQ(finding.at("rank"), rank);
    EXPECT_EQ(finding.at("operator"), "gate");
    EXPECT_EQ(finding.at("severity"), "warning");
  }
  EXPECT_THAT(CardReport(folder_ / "junit.xml"), HasSubstr("card mgtk-experts gate"));
  const CommandRun taken = RunRanksOf(2, {"run", folder_.path(), "--dim", "x=256"});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.err, Not(HasSubstr("refuses")));
}

TEST_F(CliCard, RunFailsWhereItIsAskedTo) {
  folder_.PutGatings(1, 4096);
  Ask("ascend910b3", "fail");
  const CommandRun run = RunAlone({"run", folder_ / "m0.air"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("error code 561002"));
  Ask("rtx");
  EXPECT_THAT(RunAlone({"run", folder_ / "m0.air"}).err, HasSubstr("no chip \"rtx\" is known"));
}

TEST_F(CliCard, RunNamesCollectivesThatMayWaitForEachOthersCores) {
  GraphBuilder g("budgets");
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  std::vector<Value> sums;
  for (const char* const stream : {"one", "two"}) {
    sums.push_back(g.Op("HcomAllReduce", {{"x", x}},
                        {{"reduction", AttrValue::String("sum")},
                         {"group", AttrValue::String("hccl_world_group")},
                         {"_user_stream_label", AttrValue::String(stream)},
                         {"_op_vectorcore_num", AttrValue::String("32")}},
                        std::string("sum_") + stream));
  }
  g.Output(sums);
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_TRUE(SaveAir(*model, folder_ / "m0.air").ok());
  const auto run = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"run", folder_ / "m0.air", "--report", folder_ / "report.json"};
    all.insert(all.end(), words.begin(), words.end());
    return RunAlone(all);
  };
  EXPECT_THAT(run({}).err, Not(HasSubstr("collective-cores")));
  const CommandRun told = run({"-o", "debug.deadlock_check=true"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.err, HasSubstr("ascend910b1 refuses node \"sum_two\""));
  EXPECT_THAT(told.err, HasSubstr("32 + 32 > 48, a deadlock; error code 507034"));
  const json report = json::parse(CardReport(folder_ / "report.json"));
  ASSERT_THAT(report.at("findings"), SizeIs(1));
  EXPECT_EQ(report.at("findings").at(0).at("rule"), "collective-cores");
  Ask("", "fail");
  EXPECT_EQ(run({"-o", "debug.deadlock_check=true"}).code, 3);
}

TEST_F(CliCard, RunAgainstAnotherOptionNamesWhereTheyPart) {
  folder_.PutChains(1);
  const CommandRun same = RunAlone(
      {"run", folder_ / "m0.air", "--against", "session.precision_mode=must_keep_origin_dtype"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("no operator differs"));
  const CommandRun other =
      RunAlone({"run", folder_ / "m0.air", "--against", "session.precision_mode=force_fp16"});
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_THAT(other.out, HasSubstr("operators compared with session.precision_mode=force_fp16"));
  EXPECT_THAT(other.out, HasSubstr("float32 and float16, "));
  EXPECT_THAT(other.out, HasSubstr("rank 0 differs first: "));
  EXPECT_EQ(RunAlone({"run", folder_ / "m0.air", "--against", "session.precision=x"}).code, 3);
}

}  // namespace
}  // namespace npumesh
