// Folders of dump files for the tests of the tools that read them.
#ifndef NPUMESH_TESTS_UNIT_DUMP_TOOLS_DUMP_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_DUMP_TOOLS_DUMP_FIXTURE_H_

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "graph/dump/format/format_data.h"
#include "graph/dump/format/format_name.h"
#include "graph/ir/tensor.h"

namespace npumesh {

// A folder that is gone after the test.
class DumpFixture : public testing::Test {
 protected:
  DumpFixture()
      : root_(std::filesystem::path(testing::TempDir()) /
              ("dump_tools_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(root_);
  }
  ~DumpFixture() override { std::filesystem::remove_all(root_); }

  std::string Path(const std::string& below = {}) const {
    return below.empty() ? root_.string() : (root_ / below).string();
  }

  static DumpTensor Describe(const Tensor& tensor) {
    DumpTensor described;
    described.type = tensor.type();
    described.original_shape = tensor.shape();
    described.size = tensor.bytes();
    described.address = 4096;
    return described;
  }

  // Writes `record` with the bytes of its tensors in order; returns the path.
  std::string Write(const std::string& folder, const DumpFileName& name, const DumpRecord& record,
                    const std::string& payload) const {
    std::filesystem::create_directories(root_ / folder);
    const std::string path = (root_ / folder / name.ToString()).string();
    std::ofstream(path, std::ios::binary) << EncodeDumpHeader(record) << payload;
    return path;
  }

  // One operator with inputs and outputs, as dump mode all writes it.
  std::string WriteOperator(const std::string& folder, const std::string& type,
                            const std::string& name, uint32_t task,
                            const std::vector<Tensor>& inputs,
                            const std::vector<Tensor>& outputs) const {
    DumpRecord record;
    record.op_name = name;
    std::string payload;
    for (const Tensor& tensor : inputs) record.inputs.push_back(Describe(tensor));
    for (const Tensor& tensor : outputs) record.outputs.push_back(Describe(tensor));
    for (const std::vector<Tensor>* side : {&inputs, &outputs}) {
      for (const Tensor& tensor : *side) {
        payload.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
      }
    }
    DumpFileName file;
    file.op_type = type;
    file.op_name = name;
    file.task = task;
    file.stream = 7;
    file.time = 1700000000000000 + task;
    return Write(folder, file, record, payload);
  }

  static Tensor Floats(std::vector<float> values) {
    const auto count = static_cast<int64_t>(values.size());
    return Tensor::FromVector(TensorType{DataType::kFloat, {count}}, values);
  }

 private:
  std::filesystem::path root_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_DUMP_TOOLS_DUMP_FIXTURE_H_
