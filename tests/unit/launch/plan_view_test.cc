// Plans for people: what they say agrees with the device, in text, JSON and picture.
#include "launch/view/plan_view.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "graph/ir/graph_builder.h"
#include "launch/view/plan_on_paper.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TensorType Floats(Shape shape) {
  return {DataType::kFloat, std::move(shape)};
}

// x [-1, 64]: two products, the first reduced over the ranks while the second is computed.
Model TwoBranches() {
  GraphBuilder g("two<branches>");
  const Value x = g.Data("x", Floats({-1, 64}));
  const Value w = g.Const("w", Tensor::FromVector(Floats({64, 64}), std::vector<float>(4096, 1)));
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
  const Result<PlanView> plan = PlanOnPaper(TwoBranches(), {Floats({8, 64})}, {}, options, {1, 2});
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
      const Tensor x = Tensor::FromVector(Floats({8, 64}), std::vector<float>(512, 2));
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
      PlanOnPaper(TwoBranches(), {Floats({8, 65})}, {}, SessionOptions(), {0, 2}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"x\""));
}

TEST(PlanView, TextSaysEverything) {
  const std::string text = ToText(Plan());
  for (const char* part : {"plan of two<branches>: 4 steps on 2 streams, peak ",
                           "comm    HcomAllReduce", "#1", "first:0", "1-end",
                           "folded while compiling (1)\n  folded\n", "pruned, nobody reads them"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
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

TEST(PlanView, AnEmptyPlanIsAPicture) {
  EXPECT_THAT(ToSvg(PlanView()), HasSubstr("</svg>"));
  EXPECT_THAT(ToText(PlanView()), HasSubstr("0 steps"));
}

}  // namespace
}  // namespace npumesh
