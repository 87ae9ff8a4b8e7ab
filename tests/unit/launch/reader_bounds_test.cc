#include "launch/run/reader_bounds.h"

#include <gmock/gmock.h>

#include <array>

#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::Pair;

const TensorType kIds = {DataType::kInt64, {4}};
const TensorType kTable = {DataType::kFloat, {5, 32}};

std::map<int64_t, int64_t> BoundsOf(GraphBuilder& g) {
  const Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? ReaderBounds(*model, BuiltinOps()) : std::map<int64_t, int64_t>();
}

TEST(Lookups, AreReadFromTheAxesOfOperators) {
  const std::array<std::string_view, 3> lookups[] = {
      {"Gather", "indices", "x"},
      {"GatherV2", "indices", "x"},
      {"GatherElements", "index", "x"},
      {"GatherNd", "indices", "x"},
      {"EmbeddingBag", "indices", "weight"},
      {"InplaceIndexAdd", "indices", "var"},
      {"Scatter", "indices", "var"},
      {"ScatterDiv", "indices", "var"},
      {"ScatterElements", "indices", "data"},
      {"ScatterNdMax", "indices", "var"},
      {"ScatterPaKvCache", "slot_mapping", "key_cache"},
      {"ScatterUpdate", "indices", "var"},
      {"SparseSoftmaxCrossEntropyWithLogits", "labels", "features"},
  };
  for (const auto& [type, positions, data] : lookups) {
    const std::vector<AxisLookup>& found = BuiltinOps().Find(type)->axes.lookups();
    ASSERT_EQ(found.size(), 1u) << type;
    EXPECT_EQ(found[0].positions, positions) << type;
    EXPECT_EQ(found[0].data, data) << type;
  }
}

TEST(ReaderBounds, AreTheLeastDimensionOfWhatIsLookedUp) {
  GraphBuilder g("lookup");
  const Value ids = g.Data("ids", kIds);
  const Value table = g.FileConstant("table", kTable, "w");
  g.Output({g.Op("Gather", {{"x", table}, {"indices", ids}})});
  EXPECT_THAT(BoundsOf(g), ElementsAre(Pair(0, 5)));
}

TEST(ReaderBounds, FollowCastsAndViews) {
  GraphBuilder g("lookup");
  const Value x = g.Data("x", {DataType::kFloat, {8}});
  const Value ids = g.Data("ids", {DataType::kInt32, {4}});
  const Value wide = g.Op("Cast", {{"x", ids}}, {{"dst_type", AttrValue::Int(9)}});
  const Value column = g.Op("Reshape", {{"x", wide}, {"shape", g.Ints({4, 1})}});
  const Value cache = g.RefData("cache", {DataType::kFloat, {3, 16}});
  const Value same = g.Op("Identity", {{"x", cache}});
  g.Output({g.Op("ScatterNdUpdate", {{"var", same}, {"indices", column}, {"updates", x}})});
  EXPECT_THAT(BoundsOf(g), ElementsAre(Pair(1, 3)));
}

// Whatever the registry calls a view or a permutation, also operators that no list here names.
TEST(ReaderBounds, FollowPermutations) {
  GraphBuilder g("lookup");
  const Value ids = g.Data("ids", {DataType::kInt64, {4, 2}});
  const Value turned =
      g.Op("TransposeD", {{"x", ids}}, {{"perm", AttrValue::Ints(std::vector<int64_t>{1, 0})}});
  const Value table = g.FileConstant("table", kTable, "w");
  g.Output({g.Op("Gather", {{"x", table}, {"indices", turned}})});
  EXPECT_THAT(BoundsOf(g), ElementsAre(Pair(0, 5)));
}

TEST(ReaderBounds, AreTheLeastOfSeveralReaders) {
  GraphBuilder g("lookup");
  const Value ids = g.Data("ids", kIds);
  const Value small = g.Data("small", {DataType::kFloat, {2, 9}});
  const Value table = g.FileConstant("table", kTable, "w");
  g.Output({g.Op("GatherV2", {{"x", table}, {"indices", ids}, {"axis", g.Int(0)}}),
            g.Op("GatherV2", {{"x", small}, {"indices", ids}, {"axis", g.Int(1)}})});
  EXPECT_THAT(BoundsOf(g), ElementsAre(Pair(0, 2)));
}

TEST(ReaderBounds, LeaveOutWhatTheyDoNotKnow) {
  GraphBuilder g("lookup");
  const Value ids = g.Data("ids", kIds);
  const Value open = g.Data("open", {DataType::kFloat, {-1, -1}});
  const Value also = g.Data("also", kIds);
  const Value sum = g.Op("Add", {{"x1", open}, {"x2", open}});
  g.Output({g.Op("Gather", {{"x", open}, {"indices", ids}}),
            g.Op("Gather", {{"x", sum}, {"indices", ids}}),
            g.Op("Add", {{"x1", also}, {"x2", ids}})});
  EXPECT_THAT(BoundsOf(g), ElementsAre());
}

// What is looked up with must be integers of the port for positions.
TEST(ReaderBounds, AreOfThePositionsOnly) {
  GraphBuilder g("lookup");
  const Value values = g.Data("values", {DataType::kInt32, {5, 6}});
  const Value ids = g.Data("ids", kIds);
  g.Output({g.Op("Gather", {{"x", values}, {"indices", ids}})});
  EXPECT_THAT(BoundsOf(g), ElementsAre(Pair(1, 5)));
}

}  // namespace
}  // namespace npumesh
