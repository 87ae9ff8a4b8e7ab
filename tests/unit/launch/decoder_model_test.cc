#include "launch/samples/decoder_model.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace npumesh {
namespace {

int Count(const Model& model, std::string_view type) {
  const auto& nodes = model.graph.nodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [&](const Node& node) { return node.type == type; }));
}

TEST(BuildDecoder, TwoCollectivesALayerAndNoneOnOneRank) {
  const DecoderConfig config;
  EXPECT_EQ(Count(*BuildDecoder(config, 0, 1), "HcomAllReduce"), 0);
  for (const int ranks : {2, 4, 8}) {
    EXPECT_EQ(Count(*BuildDecoder(config, ranks - 1, ranks), "HcomAllReduce"), 2 * config.layers);
  }
}

TEST(BuildDecoder, RefusesWhatCannotBeSplit) {
  DecoderConfig config;
  EXPECT_EQ(BuildDecoder(config, 0, 3).status().code(), Code::kInvalidArgument);
  config.dtype = DataType::kInt32;
  EXPECT_EQ(BuildDecoder(config, 0, 1).status().code(), Code::kInvalidArgument);
  config = DecoderConfig();
  config.hidden = 260;
  EXPECT_EQ(BuildDecoder(config, 0, 1).status().code(), Code::kInvalidArgument);
}

TEST(DecoderInput, IsTheSameEveryTime) {
  const DecoderConfig config;
  EXPECT_EQ(ToFloats(DecoderInput(config)), ToFloats(DecoderInput(config)));
}

}  // namespace
}  // namespace npumesh
