#include "launch/run/dim_bindings.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::HasSubstr;

std::vector<InputSpec> UnboundInputs() {
  InputSpec x;
  x.name = "x";
  x.index = 0;
  x.declared = {DataType::kFloat, {-1, -1, 4}};
  InputSpec ids;
  ids.name = "block.ids";
  ids.index = 5;
  ids.declared = {DataType::kInt64, {-1}};
  return {x, ids};
}

std::string Applied(const std::vector<std::string>& texts) {
  const Result<DimBindings> bindings = DimBindings::Parse(texts);
  if (!bindings.ok()) return std::string(bindings.status().message());
  const Result<std::vector<TensorType>> types = bindings->Apply(UnboundInputs());
  if (!types.ok()) return std::string(types.status().message());
  return (*types)[0].ToString() + " " + (*types)[1].ToString();
}

TEST(DimBindings, BindInputsByNameIndexAndAxis) {
  EXPECT_EQ(Applied({"x=3", "block.ids=7"}), "float32[3,3,4] int64[7]");
  EXPECT_EQ(Applied({"0=3", "5=7"}), "float32[3,3,4] int64[7]");
  EXPECT_EQ(Applied({"x.0=2", "x.1=3", "5.0=7"}), "float32[2,3,4] int64[7]");
  EXPECT_EQ(Applied({"block.ids.0=1", "0.1=9", "x=2"}), "float32[2,9,4] int64[1]");
}

TEST(DimBindings, ErrorsSayWhatToWrite) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "open dimensions: x.0, x.1, block.ids.0; bind each, for example --dim x.0=2"},
      {{"x"}, "--dim \"x\": expected NAME=VALUE"},
      {{"=3"}, "expected NAME=VALUE"},
      {{"x=0"}, "--dim x"},
      {{"x=many"}, "many"},
      {{"y=3"}, "--dim y: no such input, axis or dimension; the graph has x (float32[-1,-1,4])"},
      {{"x.7=3"}, "--dim x.7: no such input, axis or dimension"},
      {{"x.2=3"}, "--dim x.2: nothing to bind, the graph declares float32[-1,-1,4]"},
  };
  for (const auto& [texts, error] : cases) EXPECT_THAT(Applied(texts), HasSubstr(error));
}

TEST(DimBindings, AnUnknownRankNeedsAValue) {
  InputSpec x;
  x.name = "x";
  x.declared = {DataType::kFloat, Shape::UnknownRank()};
  const Result<std::vector<TensorType>> types = DimBindings::Parse({})->Apply({x});
  EXPECT_THAT(std::string(types.status().message()), HasSubstr("give its value with --inputs"));
}

}  // namespace
}  // namespace npumesh
