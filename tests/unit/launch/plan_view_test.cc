// Plans for people: what they say agrees with the device, in text, JSON and picture.
#include "launch/view/plan_view.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include <regex>

#include "graph/ir/graph_builder.h"
#include "launch/view/plan_on_paper.h"
#include "launch/view/value_types.h"
#include "runtime/base/text/json.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TensorType FloatType(Shape shape) {
  return {DataType::kFloat, std::move(shape)};
}

// x [-1, 64]: two products, the first reduced over the ranks while the second is computed.
Model TwoBranches() {
  GraphBuilder g("two<branches>");
  const Value x = g.Data("x", FloatType({-1, 64}));
  const Value w =
      g.Const("w", Tensor::FromVector(FloatType({64, 64}), std::vector<float>(4096, 1)));
  const Value first = g.Op("MatMul", {{"x1", x}, {"x2", w}}, {}, "first");
  const Value sum = g.Op(
      "HcomAllReduce", {{"x", first}},
      {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String("hccl_world_group")}},
      "sum");
  const Value folded = g.Op("Neg", {{"x", w}}, {}, "folded");
  const Value second =
      g.Op("MatMul", {{"x1", x}, {"x2", folded}}, {}, "second \"quoted\" & <bent>");
  g.Op("Relu", {{"x", x}}, {}, "pruned");
  g.Output({g.Op("Add", {{"x1", sum}, {"x2", second}}, {}, "both")});
  return g.Build().value();
}

SessionOptions Overlapping() {
  SessionOptions options;
  options.compile.overlap_collectives = true;
  return options;
}

PlanView Plan(const SessionOptions& options = Overlapping()) {
  const Result<PlanView> plan =
      PlanOnPaper(TwoBranches(), {FloatType({8, 64})}, {}, options, {1, 2});
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return plan.ok() ? *plan : PlanView();
}

TEST(PlanOnPaper, IsWhatASessionTakesFromTheDevice) {
  for (const bool overlap : {false, true}) {
    SessionOptions options;
    options.compile.overlap_collectives = overlap;
    const PlanView plan = Plan(options);
    const auto statuses = OnRanks(2, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto session,
                               Session::Create(world, memory, TwoBranches(), options));
      const uint64_t before = memory.used_bytes();
      const Tensor x = Tensor::FromVector(FloatType({8, 64}), std::vector<float>(512, 2));
      for (int run = 0; run < 2; ++run) NPUMESH_RETURN_IF_ERROR(session->Run({x}).status());
      const uint64_t used = memory.used_bytes() - before;
      if (used == plan.peak_bytes && memory.peak_bytes() - before == used) return Status();
      return Error(Code::kInternal, "the plan says {}, the device gave {}", plan.peak_bytes, used);
    });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(PlanOnPaper, TellsStreamsAndWaits) {
  const PlanView plan = Plan();
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(plan.steps[1].name, "sum");
  EXPECT_TRUE(plan.steps[1].beside);
  EXPECT_EQ(plan.steps[1].done_by, 3);
  EXPECT_EQ(plan.steps[3].wait_for, 1);
  EXPECT_THAT(plan.folded, ElementsAre("folded"));
  EXPECT_THAT(plan.pruned, ElementsAre("pruned"));
  for (const PlanStepView& step : Plan(SessionOptions()).steps) EXPECT_FALSE(step.beside);
}

TEST(PlanOnPaper, NamesAnInputOfTheWrongType) {
  const Status status =
      PlanOnPaper(TwoBranches(), {FloatType({8, 65})}, {}, SessionOptions(), {0, 2}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"x\""));
}

TEST(PlanView, TextSaysEverything) {
  const std::string text = ToText(Plan());
  for (const char* part :
       {"plan of two<branches>: 4 steps on 2 streams, peak ", "comm    HcomAllReduce", "#1",
        "first:0", "1-end", "folded while compiling (1)\n  folded\n", "pruned, unused"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

SessionOptions Fusing() {
  SessionOptions options;
  options.compile.fuses = [](std::string_view) { return true; };
  return options;
}

TEST(PlanView, TextSaysWhichKernelsAndWhyNothingIsFused) {
  const std::string text = ToText(Plan(Fusing()));
  EXPECT_THAT(text, HasSubstr("  kernel: panels, packed"));
  EXPECT_THAT(text, HasSubstr("  not fused by MatMulBiasActivationFusionPass: neither a sum nor an "
                              "activation of its type follows\n"));
  EXPECT_THAT(text, HasSubstr("  not fused by MatMulBiasActivationFusionPass: a collective gives "
                              "what is added\n"));
  EXPECT_THAT(ToText(Plan()), Not(HasSubstr("not fused by")));
}

TEST(PlanView, JsonSaysWhichKernelsAndWhyNothingIsFused) {
  const PlanView plan = Plan(Fusing());
  const json parsed = json::parse(ToJson(plan));
  ASSERT_EQ(parsed.at("steps").size(), plan.steps.size());
  for (const json& step : parsed.at("steps")) {
    if (step.at("type") != "MatMul") {
      EXPECT_EQ(step.at("kernel"), json());
      EXPECT_EQ(step.at("unfused"), json::array());
      continue;
    }
    EXPECT_TRUE(step.at("kernel").at("name").get<std::string>().starts_with("panels"));
    EXPECT_EQ(step.at("kernel").at("refused"), json::array());
    ASSERT_EQ(step.at("unfused").size(), 1u);
    EXPECT_EQ(step.at("unfused").at(0).at("pass"), "MatMulBiasActivationFusionPass");
    EXPECT_EQ(step.at("unfused").at(0).at("node"), step.at("name"));
    EXPECT_FALSE(step.at("unfused").at(0).at("why").get<std::string>().empty());
  }
}

TEST(PlanView, SaysWhatPrecisionModeChose) {
  SessionOptions options;
  options.precision.mode = "allow_fp32_to_fp16";
  const PlanView plan = Plan(options);
  EXPECT_THAT(ToText(plan), HasSubstr("types that precision_mode chose (7)\n"));
  EXPECT_THAT(ToText(plan), HasSubstr("float16 for float32: allow_fp32_to_fp16\n"));
  const json parsed = json::parse(ToJson(plan));
  ASSERT_EQ(parsed.at("precision").size(), plan.precision.size());
  std::vector<std::string> names;
  for (const json& choice : parsed.at("precision")) names.push_back(choice.at("name"));
  EXPECT_THAT(names, testing::IsSupersetOf({"first", "first/cast_x1", "first/cast_y"}));
  EXPECT_EQ(json::parse(ToJson(Plan())).at("precision"), json::array());
}

TEST(PlanView, JsonAddsUp) {
  const PlanView plan = Plan();
  const json parsed = json::parse(ToJson(plan));
  EXPECT_EQ(parsed.at("graph"), "two<branches>");
  EXPECT_EQ(parsed.at("memory").at("peak_bytes"), plan.peak_bytes);
  EXPECT_EQ(parsed.at("steps").at(1).at("stream"), "communication");
  EXPECT_EQ(parsed.at("steps").at(0).at("wait_for"), json());
  uint64_t end = 0;
  uint64_t live = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    uint64_t at_once = 0;
    for (const json& tensor : parsed.at("tensors")) {
      end = std::max(end, tensor.at("offset").get<uint64_t>() + tensor.at("bytes").get<uint64_t>());
      const bool alive = tensor.at("first") <= i && i <= tensor.at("last");
      if (alive) at_once += tensor.at("bytes").get<uint64_t>();
    }
    EXPECT_EQ(parsed.at("steps").at(i).at("live_bytes"), at_once);
    live = std::max(live, at_once);
  }
  EXPECT_EQ(end, plan.arena_bytes);
  EXPECT_EQ(live, plan.live_bytes);
}

struct Rectangle {
  double x, y, width, height;
  uint64_t offset, bytes;
};

std::vector<Rectangle> TensorsIn(const std::string& svg) {
  static const std::regex kRectangle(
      "<rect class=\"(?:tensor|kept)\" x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" "
      "height=\"([0-9.]+)\" data-first=\"[0-9]+\" data-last=\"[0-9]+\" data-offset=\"([0-9]+)\" "
      "data-bytes=\"([0-9]+)\"/>");
  std::vector<Rectangle> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), kRectangle), end; it != end; ++it) {
    const auto number = [&](size_t group) { return std::stod((*it)[group].str()); };
    found.push_back({number(1), number(2), number(3), number(4), static_cast<uint64_t>(number(5)),
                     static_cast<uint64_t>(number(6))});
  }
  return found;
}

TEST(PlanView, PictureShowsEveryTensorOnce) {
  const PlanView plan = Plan();
  const std::string svg = ToSvg(plan);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, HasSubstr("second &quot;quoted&quot; &amp; &lt;bent&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<bent>")));
  EXPECT_THAT(svg, HasSubstr("class=\"comm\""));
  const std::vector<Rectangle> tensors = TensorsIn(svg);
  ASSERT_EQ(tensors.size(), plan.tensors.size());
  uint64_t peak = 0;
  for (size_t a = 0; a < tensors.size(); ++a) {
    const Rectangle& one = tensors[a];
    peak = std::max(peak, one.offset + one.bytes);
    EXPECT_GT(one.width, 0);
    for (size_t b = a + 1; b < tensors.size(); ++b) {
      const Rectangle& other = tensors[b];
      constexpr double kRounding = 0.02;
      EXPECT_TRUE(
          one.x + one.width <= other.x + kRounding || other.x + other.width <= one.x + kRounding ||
          one.y + one.height <= other.y + kRounding || other.y + other.height <= one.y + kRounding);
    }
  }
  EXPECT_EQ(peak, plan.arena_bytes);
}

// x [4]: NonZero of Neg(x); behind it what hangs on the count, and what waited for a branch.
Model ThreeStages() {
  GraphBuilder g("staged");
  const Value x = g.Data("x", FloatType({4}));
  const Value negated = g.Op("Neg", {{"x", x}}, {}, "negated");
  const Value found = g.Op("NonZero", {{"x", negated}}, {}, "found");
  const Value doubled = g.Op("Add", {{"x1", found}, {"x2", found}}, {}, "doubled");
  const Value again = g.Op("NonZero", {{"x", doubled}}, {}, "again");
  g.Output({g.Op("Neg", {{"x", again}}, {}, "last")});
  return g.Build().value();
}

TEST(PlanOnPaper, ShowsEveryStage) {
  const Result<PlanView> plan =
      PlanOnPaper(ThreeStages(), {FloatType({4})}, {}, SessionOptions(), {0, 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->stages, 3);
  ASSERT_EQ(plan->steps.size(), 1u);
  EXPECT_EQ(plan->steps[0].name, "negated");
  ASSERT_EQ(plan->late.size(), 1u);
  EXPECT_EQ(plan->late[0].name, "found");
  ASSERT_EQ(plan->later.size(), 2u);
  EXPECT_EQ(plan->later[0].outline.steps[0].name, "doubled");
  EXPECT_THAT(plan->later[0].outline.steps[0].outputs[0], HasSubstr("-1"));
  EXPECT_EQ(plan->later[0].outline.late[0].name, "again");
  EXPECT_EQ(plan->later[1].outline.steps[0].name, "last");
  EXPECT_TRUE(plan->later[1].plan.empty());
  const std::string text = ToText(*plan);
  for (const char* part :
       {"the first of 3 stages", "the stage ends with NonZero found", "stage 1: 1 operators",
        "reads found:0", "ends with  NonZero", "stage 2: 1 operators", "last"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const json parsed = json::parse(ToJson(*plan));
  EXPECT_EQ(parsed.at("stages"), 3);
  EXPECT_EQ(parsed.at("late").at(0).at("type"), "NonZero");
  EXPECT_EQ(parsed.at("later").at(1).at("steps").at(0).at("name"), "last");
  EXPECT_EQ(parsed.at("later").at(1).at("plan"), json());
}

// A stage whose inputs are all known is planned, though another one stands before it.
TEST(PlanOnPaper, PlansLaterStagesWhoseShapesAreKnown) {
  GraphBuilder g("known");
  const Value x = g.Data("x", FloatType({4}));
  const Value negated = g.Op("Neg", {{"x", x}}, {}, "negated");
  const Value found = g.Op("NonZero", {{"x", negated}}, {}, "found");
  const Value size = g.Op("Rank", {{"x", found}}, {}, "rank");
  const Value behind = g.Op("Relu", {{"x", negated}}, {}, "behind");
  g.Output({behind, size});
  const Result<PlanView> plan =
      PlanOnPaper(g.Build().value(), {FloatType({4})}, {}, SessionOptions(), {0, 1});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->stages, 2);
  ASSERT_EQ(plan->later.size(), 1u);
}

// s [8] through five operators, x [-1] through one.
Model Mixed() {
  GraphBuilder g("mixed");
  Value s = g.Data("s", FloatType({8}));
  for (int i = 0; i < 5; ++i) s = g.Op("Neg", {{"x", s}}, {}, fmt::format("s{}", i));
  g.Output({s, g.Op("Relu", {{"x", g.Data("x", FloatType({-1}))}}, {}, "d")});
  return g.Build().value();
}

TEST(PlanOnPaper, TellsStaticParts) {
  const auto plan_with = [](int64_t limit) {
    SessionOptions options;
    options.compile.static_ops_limit = limit;
    return PlanOnPaper(Mixed(), {FloatType({8}), FloatType({3})}, {}, options, {0, 1}).value();
  };
  const PlanView plan = plan_with(4);
  ASSERT_EQ(plan.parts.size(), 1u);
  EXPECT_EQ(plan.parts[0].operators, 5u);
  for (const PlanStepView& step : plan.steps) EXPECT_EQ(step.part, step.name == "d" ? -1 : 0);
  EXPECT_THAT(ToText(plan), HasSubstr("static parts, compiled once for all input shapes\n"
                                      "      0  5 operators, 5 steps, "));
  const json parsed = json::parse(ToJson(plan));
  EXPECT_EQ(parsed.at("parts").at(0).at("operators"), 5);
  EXPECT_TRUE(plan_with(6).parts.empty());
  EXPECT_THAT(ToText(plan_with(-1)), Not(HasSubstr("static part")));
}

TEST(OutlineOnPaper, SaysWhatIsKnownWithoutSizes) {
  const auto stages = OutlineOnPaper(Mixed(), SessionOptions(), {0, 1});
  ASSERT_TRUE(stages.ok()) << stages.status().ToString();
  ASSERT_EQ(stages->size(), 1u);
  const StageOutline& stage = (*stages)[0];
  EXPECT_THAT(stage.inputs, ElementsAre("s float32[8]", "x float32[-1]"));
  for (const OutlinedStep& step : stage.steps) {
    const bool open = step.name == "d";
    EXPECT_THAT(step.outputs, ElementsAre(open ? "float32[-1]" : "float32[8]"));
    EXPECT_EQ(step.part, open ? -1 : 0);
  }
  EXPECT_THAT(ToText(stage), HasSubstr("float32[8]  static part 0"));
}

TEST(OutlineOnPaper, RefusesAGraphThatNoInputFits) {
  GraphBuilder g;
  const Value x = g.Data("x", FloatType({-1, 3}));
  const Value y = g.Data("y", FloatType({-1, 4}));
  g.Output({g.Op("Add", {{"x1", x}, {"x2", y}}, {}, "sum")});
  const auto stages = OutlineOnPaper(g.Build().value(), SessionOptions(), {0, 1});
  EXPECT_THAT(std::string(stages.status().message()), HasSubstr("node \"sum\" (Add)"));
}

TEST(ValueTypes, ListsWhatIsKnown) {
  Model model = Mixed();
  const ValueTypes types = InferTypes(BuiltinOps(), nullptr, model);
  EXPECT_TRUE(types.open_inputs);
  EXPECT_EQ(types.known, 5u);
  EXPECT_EQ(types.partly, 1u);
  EXPECT_EQ(types.unknown, 0u);
  const std::string text = ToText(types);
  EXPECT_THAT(text, HasSubstr("values (6): 5 known, 1 in part, 0 unknown\n"));
  EXPECT_THAT(text, HasSubstr("float32[-1]\n"));
  EXPECT_EQ(model.graph.node(model.graph.Find("s0")).output_descs[0].shape, Shape({8}));
}

TEST(PlanView, AnEmptyPlanIsAPicture) {
  EXPECT_THAT(ToSvg(PlanView()), HasSubstr("</svg>"));
  EXPECT_THAT(ToText(PlanView()), HasSubstr("0 steps"));
}

}  // namespace
}  // namespace npumesh
