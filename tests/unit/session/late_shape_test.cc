// Graphs whose shapes are only known while they run: stages, their plans, and what crosses a cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "graph/io/model_file.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LateShapeTest : public testing::Test {
 protected:
  void WithSession(const std::function<void(Session&)>& body,
                   SessionOptions options = LateSession()) {
    RunInSession(g_, options, body);
  }

  Value NonZero(Value x) { return g_.Op("NonZero", {{"x", x}}); }

  // The integers of an output.
  static std::vector<int64_t> Ints(const Result<std::vector<Tensor>>& outputs, size_t index = 0) {
    EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
    return outputs.ok() ? IntsIn((*outputs)[index]) : std::vector<int64_t>();
  }

  GraphBuilder g_;
};

TEST_F(LateShapeTest, WhatFollowsIsPlannedForTheShapeThatCameOut) {
  const Value x = g_.Data("x", IntType({-1}));
  const Value found = NonZero(g_.Op("Negate", {{"x", x}}));
  g_.Output({g_.Op("Plus", {{"x1", found}, {"x2", found}}), g_.Op("Shape", {{"x", found}})});
  WithSession([](Session& session) {
    const auto first = session.Run({IntTensor({5, 0, 7})});
    EXPECT_THAT(Ints(first, 0), ElementsAre(0, 4));
    EXPECT_THAT(Ints(first, 1), ElementsAre(2, 1));
    EXPECT_EQ(session.stats().plans, 2u);
    EXPECT_THAT(Ints(session.Run({IntTensor({0, 1, 1})})), ElementsAre(2, 4));
    EXPECT_EQ(session.stats().plans, 2u);  // another place, the same shape
    EXPECT_THAT(Ints(session.Run({IntTensor({0, 0, 1})})), ElementsAre(4));
    EXPECT_EQ(session.stats().plans, 3u);  // another count: only what follows
    EXPECT_THAT(Ints(session.Run({IntTensor({0, 0, 0})})), IsEmpty());
    EXPECT_EQ(session.stats().plans, 4u);
    EXPECT_THAT(Ints(session.Run({IntTensor({9, 0, 7})})), ElementsAre(0, 4));
    EXPECT_EQ(session.stats().plans, 4u);
    EXPECT_EQ(session.stats().runs, 5u);
  });
}

TEST_F(LateShapeTest, LateOperatorsFollowEachOther) {
  const Value x = g_.Data("x", IntType({-1}));
  const Value found = NonZero(x);
  const Value again = NonZero(found);  // row 0 of `found` drops out
  g_.Output({again, found});
  WithSession([](Session& session) {
    const auto outputs = session.Run({IntTensor({1, 0, 1})});
    EXPECT_THAT(Ints(outputs, 0), ElementsAre(1, 0));
    EXPECT_THAT(Ints(outputs, 1), ElementsAre(0, 2));
  });
}

TEST_F(LateShapeTest, ValuesOfEarlierStagesDecideShapes) {
  const Value x = g_.Data("x", IntType({-1}));
  const Value count = g_.Op("Pick", {{"x", g_.Op("Shape", {{"x", NonZero(x)}})}, {"i", g_.Int(0)}});
  const Value total = g_.Op("Total", {{"x", NonZero(g_.Op("Move", {{"x", x}}))}});
  g_.Output({g_.Op("Zeros", {{"dims", g_.Op("Pack", {{"x0", count}})}}), total});
  WithSession([](Session& session) {
    const auto outputs = session.Run({IntTensor({1, 0, 1, 1})});
    EXPECT_THAT(Ints(outputs, 0), ElementsAre(0, 0, 0));
    EXPECT_THAT(Ints(outputs, 1), ElementsAre(5));
  });
}

// No operator here is late, but how many elements of x are positive is a shape all the same. It was
// refused: "the value of limit is not known".
TEST_F(LateShapeTest, AComputedValueDecidesAShape) {
  const Value x = g_.Data("x", {DataType::kFloat, {-1}});
  const Value positive = g_.Op(
      "Cast",
      {{"x", g_.Op("Greater", {{"x1", x},
                               {"x2", g_.Const("zero", Tensor::FromVector<float>(
                                                           {DataType::kFloat, Shape()}, {0}))}})}},
      {{"dst_type", AttrValue::Int(9)}});
  const Value count = g_.Op("ReduceSum", {{"x", positive}, {"axes", g_.Ints({0})}});
  const Value places =
      g_.Op("Range", {{"start", g_.Int(0)}, {"limit", count}, {"delta", g_.Int(1)}});
  g_.Output({places, positive, g_.Op("Add", {{"x1", places}, {"x2", count}})});
  const auto floats = [](const std::vector<float>& values) {
    return Tensor::FromVector<float>({DataType::kFloat, {static_cast<int64_t>(values.size())}},
                                     values);
  };
  WithSession(
      [&](Session& session) {
        const auto two = session.Run({floats({1, -1, 3})});
        EXPECT_THAT(Ints(two, 0), ElementsAre(0, 1));
        EXPECT_THAT(Ints(two, 1), ElementsAre(1, 0, 1));
        EXPECT_THAT(Ints(two, 2), ElementsAre(2, 3));
        EXPECT_EQ(session.stats().plans, 2u);
        EXPECT_THAT(Ints(session.Run({floats({5, 5, -5})}), 2), ElementsAre(2, 3));
        EXPECT_EQ(session.stats().plans, 2u);  // the same count
        EXPECT_THAT(Ints(session.Run({floats({0, 0, 0})})), IsEmpty());
        EXPECT_EQ(session.stats().plans, 3u);
      },
      SessionOptions());
}

// A small integer input is known when a plan is made: no cut.
TEST_F(LateShapeTest, AKnownValueMakesNoStage) {
  const Value x = g_.Data("x", IntType({2}));
  const Value count = g_.Op("ReduceSum", {{"x", x}, {"axes", g_.Ints({0})}});
  g_.Output({g_.Op("Range", {{"start", g_.Int(0)}, {"limit", count}, {"delta", g_.Int(1)}})});
  WithSession(
      [](Session& session) {
        EXPECT_THAT(Ints(session.Run({IntTensor({1, 2})})), ElementsAre(0, 1, 2));
        EXPECT_EQ(session.stats().plans, 1u);
      },
      SessionOptions());
}

TEST_F(LateShapeTest, MaskedSelectAndUnique) {
  const Value x = g_.Data("x", IntType({-1}));
  const Value mask = g_.Data("mask", {DataType::kBool, {-1}});
  const Value chosen = g_.Op("MaskedSelect", {{"x", x}, {"mask", mask}});
  const Value kinds = g_.Op("Unique", {{"x", chosen}}, {}, "", 2);
  g_.Output({g_.Op("Negate", {{"x", kinds}})});
  WithSession([](Session& session) {
    const Tensor mask = Tensor::FromVector<uint8_t>({DataType::kBool, {4}}, {1, 1, 0, 1});
    EXPECT_THAT(Ints(session.Run({IntTensor({3, 8, 9, 3}), mask})), ElementsAre(-3, -8));
  });
}

TEST_F(LateShapeTest, ConstantsServeAllStages) {
  const Value x = g_.Data("x", IntType({2}));
  const Value one = g_.Const("one", IntTensor({1, 1}));
  const Value before = g_.Op("Plus", {{"x1", x}, {"x2", one}});
  const Value total = g_.Op("Total", {{"x", NonZero(before)}});
  g_.Output({g_.Op("Plus", {{"x1", before}, {"x2", one}}), total});
  WithSession([](Session& session) {
    const auto outputs = session.Run({IntTensor({4, -1})});
    EXPECT_THAT(Ints(outputs, 0), ElementsAre(6, 1));
    EXPECT_THAT(Ints(outputs, 1), ElementsAre(0));
    EXPECT_EQ(session.stats().constant_bytes, 16u);
  });
}

TEST_F(LateShapeTest, RefDataIsOneStorageInAllStages) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value x = g_.Data("x", IntType({2}));
  const Value before = g_.Op("Move", {{"x", ref}});
  const Value stored = g_.Op("Accumulate", {{"ref", ref}, {"value", x}});
  const Value flat = g_.Op("Reshape", {{"x", stored}, {"shape", g_.Ints({2, 1})}});
  const Value found = NonZero(stored);
  // Behind the cut: a write through the view of what was written before it.
  const Value count = g_.Op("Shape", {{"x", found}});
  const Value again = g_.Op(
      "Accumulate",
      {{"ref", flat}, {"value", g_.Op("Reshape", {{"x", count}, {"shape", g_.Ints({2, 1})}})}});
  g_.Output({before, again});
  WithSession([](Session& session) {
    const auto first = session.Run({IntTensor({10, 0}), IntTensor({1, 0})});
    EXPECT_THAT(Ints(first, 0), ElementsAre(10, 0));
    EXPECT_THAT(Ints(first, 1), ElementsAre(12, 1));
    const Result<Tensor> kept = session.ReadRef(0);
    ASSERT_TRUE(kept.ok()) << kept.status().ToString();
    EXPECT_THAT(IntsIn(*kept), ElementsAre(12, 1));
    const auto second = session.Run({Tensor(), IntTensor({0, 1})});
    EXPECT_THAT(Ints(second, 0), ElementsAre(12, 1));
    EXPECT_THAT(Ints(second, 1), ElementsAre(14, 3));
  });
}

TEST_F(LateShapeTest, LateReadersComeBeforeTheWriter) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value zeros = g_.Const("zeros", IntTensor({0, 0}));
  g_.Output({NonZero(ref), g_.Op("Store", {{"ref", ref}, {"value", zeros}})});
  WithSession([](Session& session) {
    const auto outputs = session.Run({IntTensor({0, 3})});
    EXPECT_THAT(Ints(outputs, 0), ElementsAre(1));
    EXPECT_THAT(Ints(outputs, 1), ElementsAre(0, 0));
  });
}

TEST_F(LateShapeTest, OldPlansOfEachStageMakeRoom) {
  const Value x = g_.Data("x", IntType({3}));
  g_.Output({g_.Op("Move", {{"x", NonZero(x)}})});
  SessionOptions options = LateSession();
  options.max_plans = 1;
  WithSession(
      [](Session& session) {
        EXPECT_EQ(Ints(session.Run({IntTensor({1, 1, 1})})).size(), 3u);
        EXPECT_EQ(Ints(session.Run({IntTensor({0, 1, 1})})).size(), 2u);
        EXPECT_EQ(Ints(session.Run({IntTensor({1, 1, 1})})).size(), 3u);
        EXPECT_EQ(session.stats().plans, 4u);
      },
      options);
}

TEST_F(LateShapeTest, ErrorsBehindTheCutNameTheirNode) {
  const Value x = g_.Data("x", IntType({-1}));
  g_.Output({g_.Op("Fail", {{"x", NonZero(x)}}, {}, "unlucky")});
  WithSession([](Session& session) {
    const Status status = session.Run({IntTensor({1})}).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("node \"unlucky\" (Fail)"));
  });
}

TEST_F(LateShapeTest, PrepareStopsAtTheCut) {
  const Value x = g_.Data("x", IntType({-1}));
  g_.Output({NonZero(g_.Op("Negate", {{"x", x}}))});
  WithSession([](Session& session) {
    const auto plan = session.Prepare({IntTensor({1, 0})});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    ASSERT_EQ((*plan)->steps().size(), 1u);
    EXPECT_EQ((*plan)->steps()[0].type, "Negate");
  });
}

// One file for each stage, and no more for other shapes.
TEST_F(LateShapeTest, TheGraphDumpHasEveryStage) {
  const TemporaryFolder folder;
  SessionOptions options = LateSession();
  options.graph_dump.type = "txt";
  options.graph_dump.path = folder.path();
  const Value x = g_.Data("x", IntType({-1}));
  const Value found = NonZero(g_.Op("Negate", {{"x", x}}, {}, "front"));
  g_.Output({g_.Op("Plus", {{"x1", found}, {"x2", found}}, {}, "behind")});
  WithSession(
      [](Session& session) {
        for (const Tensor& input : {IntTensor({5, 0, 7}), IntTensor({1, 1})}) {
          ASSERT_TRUE(session.Run({input}).ok());
        }
      },
      options);
  std::map<std::string, std::string> nodes = {{"dynamo_original_", "behind"},
                                              {"dynamo_optimized_graph", "front"},
                                              {"dynamo_optimized_stage_1_graph", "behind"}};
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
    const Result<Model> model = LoadModel(entry.path());
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    for (const auto& [prefix, node] : nodes) {
      if (!entry.path().filename().string().starts_with(prefix)) continue;
      EXPECT_NE(model->graph.Find(node), kNoNode) << entry.path();
    }
  }
  EXPECT_EQ(files, 3u);
}

}  // namespace
}  // namespace npumesh
