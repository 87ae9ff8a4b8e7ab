// Tuning as a user asks for it: what it leaves behind, and that a second run finds it.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class CliTuning : public testing::Test {
 protected:
  CliTuning() {
    fs::create_directory(folder_ / "work");
    setenv("TNG_LOG_LEVEL", "1", 1);
  }
  ~CliTuning() override { unsetenv("TNG_LOG_LEVEL"); }

  CommandRun Tune(int ranks, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"run", folder_.path(),
                                      "-o",  "aoe_config.aoe_mode=2",
                                      "-o",  "aoe_config.work_path=" + (folder_ / "work")};
    words.insert(words.end(), more.begin(), more.end());
    return RunRanksOf(ranks, words);
  }
  std::vector<std::string> Records() const {
    std::vector<std::string> paths;
    const std::string folder = folder_ / "work/npumesh_tuning";
    if (!fs::exists(folder)) return paths;
    for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
    return paths;
  }

  const TestFolder folder_;
};

TEST_F(CliTuning, ASecondRunFindsWhatTheFirstMeasured) {
  folder_.PutProducts(2);
  const CommandRun first = Tune(2);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(Records().size(), 1u);
  EXPECT_THAT(first.err, HasSubstr("1 operators tuned, 0 found in records"));
  EXPECT_THAT(first.err, HasSubstr("0 operators tuned, 1 found in records"));
  const CommandRun second = Tune(2);
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, Not(HasSubstr("1 operators tuned")));
  EXPECT_THAT(second.err, HasSubstr("0 operators tuned, 1 found in records"));
}

TEST_F(CliTuning, ADamagedRecordIsOneWarning) {
  folder_.PutProducts(1);
  ASSERT_EQ(Tune(1).code, 0);
  ASSERT_EQ(Records().size(), 1u);
  const std::string path = Records()[0];
  fs::resize_file(path, fs::file_size(path) / 2);
  const CommandRun run = Tune(1);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr(path + " is passed over, and measured anew: it is no JSON object"));
  EXPECT_THAT(run.err, HasSubstr("1 operators tuned"));
}

TEST_F(CliTuning, OfASessionInAnyMode) {
  folder_.PutProducts(1);
  const CommandRun run =
      RunAlone({"run", folder_ / "m0.air", "-o", "session.auto_tune_mode=RL,GA", "-o",
                "mode=reduce-overhead", "-o", "aoe_config.work_path=" + (folder_ / "work")});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(Records().size(), 1u);
}

TEST_F(CliTuning, AWrongFileOfOperatorsIsAnError) {
  folder_.PutProducts(1);
  std::ofstream(folder_ / "tune.cfg") << "{\"tune_ops_type\": \"MatMulV2\"}";
  const CommandRun run = Tune(1, {"-o", "aoe_config.aoe_config_file=" + (folder_ / "tune.cfg")});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("tune_ops_type: expected a list of texts"));
  EXPECT_TRUE(Records().empty());
}

}  // namespace
}  // namespace npumesh
