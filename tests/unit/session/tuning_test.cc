// Sessions that tune: the same numbers, records in the work folder, and nothing to measure again.
#include <gmock/gmock.h>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::SizeIs;

// relu(x w) w for x float16 [4, 32]; rows = -1: they are open.
Model ProductModel(int64_t rows = 4) {
  GraphBuilder g("products");
  const Value x = g.Data("x", {DataType::kFloat16, {rows, 32}});
  Tensor weight = Tensor::Allocate({DataType::kFloat16, {32, 32}});
  auto* const bits = reinterpret_cast<uint16_t*>(weight.mutable_data());
  for (int i = 0; i < 32 * 32; ++i) bits[i] = i % 5 == 0 ? 0x3c00 : 0;  // 1 or 0
  const Value w = g.Const("w", weight);
  const Value product = g.Op("MatMulV2", {{"x1", x}, {"x2", w}}, {}, "first");
  const Value relu = g.Op("Relu", {{"x", product}});
  g.Output({g.Op("MatMulV2", {{"x1", relu}, {"x2", w}}, {}, "second")});
  return *g.Build();
}

Tensor Ones() {
  return Tensor::FromVector<uint16_t>({DataType::kFloat16, {4, 32}},
                                      std::vector<uint16_t>(4 * 32, 0x3c00));
}

class SessionTuning : public testing::Test {
 protected:
  SessionOptions Options() const {
    SessionOptions options;
    options.compile.fuses = [](std::string_view) { return true; };
    options.tuning.emplace();
    options.tuning->work_path = folder_.path();
    options.tuning->step_budget = std::chrono::milliseconds(5);
    return options;
  }

  // The bytes of the output, and what the session tuned.
  struct Outcome {
    std::vector<uint16_t> output;
    std::optional<TuningStats> stats;
  };
  static Outcome Run(const SessionOptions& options, Model model) {
    Outcome outcome;
    const std::vector<Status> statuses =
        OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
          NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                                   Session::Create(world, memory, model, options));
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({Ones()}));
          const auto elements = outputs[0].as<uint16_t>();
          outcome.output.assign(elements.begin(), elements.end());
          if (session->tuning_stats() != nullptr) outcome.stats = *session->tuning_stats();
          return Status();
        });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
    return outcome;
  }

  std::vector<std::string> RecordsIn() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.Path("npumesh_tuning"))) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const TemporaryFolder folder_;
};

TEST_F(SessionTuning, GivesTheSameNumbersAndMeasuresOnce) {
  SessionOptions plain = Options();
  plain.tuning.reset();
  const Outcome expected = Run(plain, ProductModel());
  EXPECT_FALSE(expected.stats);
  const Outcome tuned = Run(Options(), ProductModel());
  EXPECT_EQ(tuned.output, expected.output);
  ASSERT_TRUE(tuned.stats);
  // The products differ: one has an activation.
  EXPECT_EQ(tuned.stats->measured, 2);
  EXPECT_EQ(tuned.stats->found, 0);
  const Outcome again = Run(Options(), ProductModel());
  EXPECT_EQ(again.output, expected.output);
  EXPECT_EQ(again.stats->measured, 0);
  EXPECT_EQ(again.stats->found, 2);
  EXPECT_THAT(RecordsIn(), SizeIs(2));
}

TEST_F(SessionTuning, LeavesGraphsWithOpenDimensionsAlone) {
  const Outcome outcome = Run(Options(), ProductModel(-1));
  EXPECT_FALSE(outcome.stats);
  EXPECT_THAT(folder_.List(), SizeIs(0));
}

TEST_F(SessionTuning, OnlyWhatTheFileSays) {
  SessionOptions options = Options();
  options.tuning->selection.names = {"second"};
  EXPECT_EQ(Run(options, ProductModel()).stats->measured, 1);
}

}  // namespace
}  // namespace npumesh
