// What tests of npumesh.h share: a world of one rank, models as bytes, tensors of vectors.
#ifndef NPUMESH_TESTS_UNIT_C_INTERFACE_C_WORLD_H_
#define NPUMESH_TESTS_UNIT_C_INTERFACE_C_WORLD_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/io/model_file.h"
#include "graph/ir/graph_builder.h"
#include "npumesh/npumesh.h"

namespace npumesh {

// A vector with the dims and the tensor that name it; the tensor is that of the vector now.
class CVector {
 public:
  CVector(std::vector<int32_t> values, std::vector<int64_t> dims, uint32_t flags = 0)
      : values_(std::move(values)), dims_(std::move(dims)), flags_(flags) {}
  explicit CVector(std::vector<int32_t> values, uint32_t flags = 0)
      : values_(std::move(values)), dims_{static_cast<int64_t>(values_.size())}, flags_(flags) {}

  npumesh_tensor tensor() {
    return {values_.data(), values_.size() * sizeof(int32_t),
            dims_.data(),   static_cast<int32_t>(dims_.size()),
            NPUMESH_INT32,  flags_};
  }
  std::vector<int32_t>& values() { return values_; }

 private:
  std::vector<int32_t> values_;
  std::vector<int64_t> dims_;
  uint32_t flags_;
};

class CWorldTest : public testing::Test {
 protected:
  static constexpr npumesh_option kSmall = {"NPUMESH_HBM_SIZE", "64M"};

  void SetUp() override {
    ASSERT_EQ(npumesh_init(&kSmall, 1, &world_), NPUMESH_OK) << npumesh_last_error();
  }
  void TearDown() override {
    EXPECT_EQ(npumesh_close(session_), NPUMESH_OK) << npumesh_last_error();
    EXPECT_EQ(npumesh_finalize(world_), NPUMESH_OK) << npumesh_last_error();
  }

  static std::string Bytes(GraphBuilder& g) {
    const Result<Model> model = g.Build();
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    const Result<std::string> bytes = SerializeAir(*model);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return *bytes;
  }
  // Makes session_ of the graph.
  void Load(GraphBuilder& g, const std::vector<npumesh_option>& options = {}) {
    const std::string bytes = Bytes(g);
    ASSERT_EQ(npumesh_load_bytes(world_, bytes.data(), bytes.size(), nullptr, options.data(),
                                 options.size(), &session_),
              NPUMESH_OK)
        << npumesh_last_error();
  }
  npumesh_code Run(const std::vector<npumesh_tensor>& inputs,
                   std::vector<npumesh_tensor>& outputs) {
    return npumesh_run(session_, inputs.data(), inputs.size(), outputs.data(), outputs.size());
  }
  npumesh_session_stats Stats() {
    npumesh_session_stats stats;
    EXPECT_EQ(npumesh_get_stats(session_, &stats, sizeof stats), NPUMESH_OK);
    return stats;
  }
  static std::vector<int32_t> Values(const npumesh_tensor& tensor) {
    const auto* const values = static_cast<const int32_t*>(tensor.data);
    return {values, values + tensor.bytes / sizeof(int32_t)};
  }

  npumesh_world* world_ = nullptr;
  npumesh_session* session_ = nullptr;
};

inline TensorType CInts(std::vector<int64_t> dims) {
  return {DataType::kInt32, Shape(std::move(dims))};
}

inline npumesh_tensor FreshTensor() {
  return {nullptr, 0, nullptr, 0, NPUMESH_UNDEFINED, 0};
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_C_INTERFACE_C_WORLD_H_
