// Observers of graphs that take several plans: cut graphs, late operators, loops.
#include <gmock/gmock.h>

#include <filesystem>

#include "graph/dump/format/format_data.h"
#include "graph/dump/format/format_name.h"
#include "graph/inject/fault_injector.h"
#include "runtime/base/log.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

// x -> minus -> found (NonZero) -> twice -> total; behind the cut also `sum` of minus, in `late`.
Model CutModel() {
  GraphBuilder g("cut");
  const Value minus = g.Op("Negate", {{"x", g.Data("x", IntType({-1}))}}, {}, "minus");
  const Value found = g.Op("NonZero", {{"x", minus}}, {}, "found");
  const Value twice = g.Op("Plus", {{"x1", found}, {"x2", found}}, {}, "twice");
  const Value total = g.Op("Total", {{"x", twice}}, {}, "total");
  const Value sum = g.Op("Total", {{"x", minus}}, {}, "sum");
  g.Output({twice, g.Op("Plus", {{"x1", total}, {"x2", sum}}, {}, "late")});
  return std::move(g.Build()).value();
}

// The count falls to zero, x doubles each turn.
Model LoopModel() {
  GraphBuilder g("main");
  const Value count = g.Data("count", IntType({}));
  const Value x = g.Data("x", IntType({-1}));
  const Value loop = g.Op("While", {{"input0", count}, {"input1", x}}, {}, "loop", 2);
  g.Output({g.Op("Negate", {{"x", g.Port(loop, 1)}}, {}, "after")});
  GraphBuilder cond("cond");
  cond.Output({cond.Op("Move", {{"x", cond.Data("left", IntType({}))}}, {}, "left_now")});
  GraphBuilder body("body");
  const Value left = body.Data("left", IntType({}));
  const Value now = body.Data("now", IntType({-1}));
  body.Output({body.Op("Plus", {{"x1", left}, {"x2", body.Int(-1)}}, {}, "less"),
               body.Op("Plus", {{"x1", now}, {"x2", now}}, {}, "double")});
  Model model = std::move(g.Build()).value();
  model.subgraphs = {std::move(cond.Build()).value().graph, std::move(body.Build()).value().graph};
  model.graph.node(model.graph.Find("loop")).subgraphs = {"cond", "body"};
  return model;
}

class PartsTest : public testing::Test {
 protected:
  PartsTest() {
    DumpSettings settings;
    settings.path = folder_.path();
    settings.models = true;
    settings.mode = DumpMode::kOutput;
    options_.tensor_dump.operators = settings;
  }

  DumpSettings& settings() { return *options_.tensor_dump.operators; }

  // A run for each set of inputs; outputs of the last one.
  Result<std::vector<Tensor>> Run(const Model& model,
                                  const std::vector<std::vector<Tensor>>& inputs,
                                  StepObserver* observer = nullptr) {
    std::vector<Tensor> outputs;
    const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, memory, model, options_));
      for (const std::vector<Tensor>& each : inputs) {
        NPUMESH_ASSIGN_OR_RETURN(outputs, session->Run(each, observer));
      }
      report_ = session->FinishDump();
      return report_.error;
    });
    if (!statuses[0].ok()) return statuses[0];
    return outputs;
  }

  // "graph/data_index Type.name.task" of every dump file.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const auto parsed = ParseDumpFileName(entry.path().filename().string());
      if (!entry.is_regular_file() || !parsed) continue;
      const fs::path step = entry.path().parent_path();
      names.push_back(
          fmt::format("{}/{} {}.{}.{}", step.parent_path().parent_path().filename().string(),
                      step.filename().string(), parsed->op_type, parsed->op_name, parsed->task));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryFolder folder_;
  SessionOptions options_ = LateSession();
  DumpReport report_;
};

// Symptom: each plan counted as a separate step, and NonZero could not be dumped at all.
TEST_F(PartsTest, AStepOfACutGraphIsOneDataIndex) {
  ASSERT_TRUE(Run(CutModel(), {{IntTensor({5, 0, 7, 9, 9})}, {IntTensor({0, 3, 0})}}).ok());
  std::vector<std::string> expected;
  for (const int step : {0, 1}) {
    for (const char* name : {"Data.x.0", "Negate.minus.0", "NonZero.found.2", "Plus.late.5",
                             "Plus.twice.3", "Total.sum.1", "Total.total.4"}) {
      expected.push_back(fmt::format("cut/{} {}", step, name));
    }
  }
  EXPECT_THAT(Files(), ElementsAreArray(expected));
  EXPECT_EQ(report_.steps, 2u);
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("NonZero") || !entry.path().parent_path().string().ends_with("/1")) {
      continue;
    }
    const auto file = DumpFile::Open(entry.path().string());
    ASSERT_TRUE(file.ok());
    int64_t place = 0;
    std::memcpy(&place, file->payload(file->record().outputs[0]).data(), sizeof(place));
    EXPECT_EQ(place, 1);  // of the 3
  }
}

TEST_F(PartsTest, LayersAreFoundInEveryPlan) {
  settings().choices.emplace_back().layers = {"found", "total", "nobody"};
  settings().mode = DumpMode::kInput;
  testing::internal::CaptureStderr();
  SetLogLevel(LogLevel::kWarning);
  ASSERT_TRUE(Run(CutModel(), {{IntTensor({5, 0, 7, 9, 9})}}).ok());
  SetLogLevel(LogLevel::kError);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(Files(), ElementsAre("cut/0 NonZero.found.2", "cut/0 Total.total.4"));
  EXPECT_THAT(log, HasSubstr("dump layer \"nobody\" is not dumped: graph \"cut\" has no such"));
  EXPECT_THAT(log, Not(HasSubstr("\"found\"")));
  EXPECT_THAT(log, Not(HasSubstr("\"total\"")));
}

TEST_F(PartsTest, ARangeGoesOverACut) {
  OperatorChoice& choice = settings().choices.emplace_back();
  choice.ranges = {{"found", "twice"}};
  ASSERT_TRUE(Run(CutModel(), {{IntTensor({5, 0, 7, 9, 9})}, {IntTensor({0, 3, 0})}}).ok());
  EXPECT_THAT(Files(), ElementsAre("cut/0 NonZero.found.2", "cut/0 Plus.twice.3",
                                   "cut/1 NonZero.found.2", "cut/1 Plus.twice.3"));
}

TEST_F(PartsTest, TurnsOfALoopHaveTasksOfTheirOwn) {
  const auto outputs = Run(LoopModel(), {{IntTensor(Shape(), {2}), IntTensor({1, 3})},
                                         {IntTensor(Shape(), {0}), IntTensor({1, 3})}});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  // The condition is asked three times, the body runs twice.
  std::vector<std::string> names;
  for (const std::string& name : Files()) {
    if (name.find(" Data.") == std::string::npos) names.push_back(name);
  }
  EXPECT_THAT(names,
              ElementsAre("body/0 Plus.double.2", "body/0 Plus.double.5", "body/0 Plus.less.1",
                          "body/0 Plus.less.4", "cond/0 Move.left_now.0", "cond/0 Move.left_now.3",
                          "cond/0 Move.left_now.6", "cond/1 Move.left_now.0",
                          "main/0 Negate.after.7", "main/1 Negate.after.1"));
}

TEST_F(PartsTest, ALateOperatorCanBeCorrupted) {
  Fault fault = *ParseFault("corrupt:rank=0,op=found,element=0");
  FaultInjector injector({fault}, 0, 7);
  const auto wrong = Run(CutModel(), {{IntTensor({5, 0, 7, 9, 9})}}, &injector);
  ASSERT_TRUE(wrong.ok()) << wrong.status().ToString();
  EXPECT_THAT(IntsIn((*wrong)[0]), ElementsAre(2, 4, 6, 8));  // 0 became 1
  EXPECT_TRUE(injector.CheckFound().ok());
  fault.op = "nobody";
  FaultInjector misses({fault}, 0, 7);
  ASSERT_TRUE(Run(CutModel(), {{IntTensor({0, 3, 0})}}, &misses).ok());
  EXPECT_EQ(misses.CheckFound().code(), Code::kNotFound);
}

TEST_F(PartsTest, ARunKnowsWhetherItIsAllOfItsStep) {
  class Count final : public StepObserver {
   public:
    Status BeforeRun(const RunView& run) override {
      ++(run.part ? parts : wholes);
      return Status();
    }
    int parts = 0;
    int wholes = 0;
  };
  Count cut;
  ASSERT_TRUE(Run(CutModel(), {{IntTensor({0, 3, 0})}}, &cut).ok());
  EXPECT_EQ(cut.parts, 3);  // a stage, the NonZero, a stage
  EXPECT_EQ(cut.wholes, 0);
  GraphBuilder g("whole");
  g.Output({g.Op("Negate", {{"x", g.Data("x", IntType({-1}))}}, {}, "minus")});
  Count whole;
  ASSERT_TRUE(Run(std::move(g.Build()).value(), {{IntTensor({0, 3, 0})}}, &whole).ok());
  EXPECT_EQ(whole.parts, 0);
  EXPECT_EQ(whole.wholes, 1);
}

}  // namespace
}  // namespace npumesh
