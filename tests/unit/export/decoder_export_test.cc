// The decoder example exported in parts, loaded from the package and run: the same numbers as
// whole.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/io/model_file.h"
#include "graph/session/session.h"
#include "launch/samples/decoder_model.h"
#include "runtime/device/device_memory.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests

DecoderConfig SmallDecoder() {
  DecoderConfig config;
  config.hidden = 64;
  config.ffn = 128;
  config.sequence = 8;
  return config;
}

Result<std::vector<float>> RunDecoder(World& world, Model model) {
  NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
  NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, std::move(model)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           session->Run({DecoderInput(SmallDecoder())}));
  return ToFloats(outputs[0]);
}

std::vector<float> WholeDecoder() {
  std::vector<float> output;
  const Status status = RunRanks(1, Env(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(SmallDecoder(), 0, 1));
    NPUMESH_ASSIGN_OR_RETURN(output, RunDecoder(world, std::move(model)));
    return Status();
  })[0];
  EXPECT_TRUE(status.ok()) << status.message();
  return output;
}

class DecoderExport : public ::testing::TestWithParam<int> {};

TEST_P(DecoderExport, RunsAsTheWholeDecoder) {
  const std::vector<float> expected = WholeDecoder();
  for (const uint64_t limit : {uint64_t{0}, kWeightLimit}) {
    const ExportFolder folder;
    ExportOptions options;
    options.export_path = folder / "mp";
    options.export_name = "decoder";
    options.weight_limit = limit;
    Env env;
    env.hbm_bytes = uint64_t{16} << 20;
    std::vector<std::vector<float>> outputs(static_cast<size_t>(GetParam()));
    const auto statuses = RunRanks(GetParam(), env, [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(Model model,
                               BuildDecoder(SmallDecoder(), world.rank(), world.size()));
      NPUMESH_ASSIGN_OR_RETURN(const ExportSummary exported,
                               DynamoExport(world, std::move(model), options));
      EXPECT_EQ(exported.external, limit == 0);
      NPUMESH_ASSIGN_OR_RETURN(Model loaded, LoadModel(exported.air));
      loaded.path = exported.air;
      NPUMESH_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(world.rank())],
                               RunDecoder(world, std::move(loaded)));
      return Status();
    });
    for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
    for (const std::vector<float>& output : outputs) {
      ASSERT_EQ(output.size(), expected.size());
      for (size_t i = 0; i < output.size(); ++i) {
        ASSERT_NEAR(output[i], expected[i], 1e-4) << i;  // as the example itself
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DecoderExport, ::testing::Values(2, 4, 8));

}  // namespace
}  // namespace npumesh
