// What tests of the dumper share: a graph of tiny operators, its runs, and the files they leave.
#ifndef NPUMESH_TESTS_UNIT_DUMP_DUMPER_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_DUMP_DUMPER_FIXTURE_H_

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/dump/writer/dumper.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/engine/engine_fixture.h"

namespace npumesh {

class DumperTest : public EngineTest {
 protected:
  DumperTest() {
    settings_.path = folder_.path();
    settings_.models = true;
    settings_.mode = DumpMode::kAll;
    place_.time = "20241121145738";
  }

  // Runs the graph `times` times under `dumper`; the status of the last run.
  Status RunUnder(StepObserver& dumper, const std::vector<Tensor>& inputs, int times = 1) {
    const Compiled model = CompileFor(inputs);
    if (!model.ok()) return model.status();
    const auto executor = Executor::Create(**model, memory_);
    if (!executor.ok()) return executor.status();
    Status status;
    for (int i = 0; i < times; ++i) {
      for (size_t k = 0; k < inputs.size(); ++k) Write(**executor, static_cast<int>(k), inputs[k]);
      status = (*executor)->Run(&dumper, static_cast<uint64_t>(i)).status();
    }
    return status;
  }

  // Dumps `times` runs and finishes.
  DumpReport Dump(const std::vector<Tensor>& inputs, int times = 1) {
    Dumper dumper(settings_, place_, limits_);
    const Status status = RunUnder(dumper, inputs, times);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return dumper.Finish();
  }

  std::string ModelPath() const { return ModelFolder(settings_, place_, model_->graph.name()); }
  std::string StepPath(int index) const { return ModelPath() + "/" + std::to_string(index); }

  // "Type.name.task" of the files of a folder, sorted; statistics with ".csv" behind it.
  static std::vector<std::string> Names(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const auto name = ParseDumpFileName(entry.path().filename().string());
      if (!entry.is_regular_file() || !name) continue;
      names.push_back(fmt::format("{}.{}.{}{}", name->op_type, name->op_name, name->task,
                                  name->stats ? ".csv" : ""));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // The only file of `folder` whose name begins so.
  static std::string PathOf(const std::string& folder, const std::string& begin) {
    std::string path;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (!entry.path().filename().string().starts_with(begin + ".")) continue;
      EXPECT_EQ(path, "") << "two files begin with " << begin;
      path = entry.path().string();
    }
    EXPECT_NE(path, "") << "no file begins with " << begin;
    return path;
  }

  // The int64 values of its inputs and outputs: "in 1 2 | out 3".
  static std::string Values(const std::string& path) {
    const Result<DumpFile> file = DumpFile::Open(path);
    if (!file.ok()) return file.status().ToString();
    std::string text;
    for (const bool input : {true, false}) {
      const auto& tensors = input ? file->record().inputs : file->record().outputs;
      for (const DumpTensor& tensor : tensors) {
        if (!text.empty()) text += " | ";
        text += input ? "in" : "out";
        const std::span<const std::byte> bytes = file->payload(tensor);
        for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
          int64_t value = 0;
          std::memcpy(&value, bytes.data() + i, 8);
          text += fmt::format(" {}", value);
        }
      }
    }
    return text;
  }

  TemporaryFolder folder_;
  DumpSettings settings_;
  DumpPlace place_;
  DumpLimits limits_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_DUMP_DUMPER_FIXTURE_H_
