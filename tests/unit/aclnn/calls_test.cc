// The two phases of aclnn functions: executors, workspaces, views, captured streams, wrong calls.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_mul.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AclnnTest : public AclTest {
 protected:
  void SetUp() override {
    AclTest::SetUp();
    stream_ = NewStream();
    float one = 1;
    one_ = aclCreateScalar(&one, ACL_FLOAT);
  }
  void TearDown() override {
    EXPECT_EQ(aclDestroyScalar(one_), 0);
    AclTest::TearDown();
  }

  static float* NewFloats(const std::vector<float>& values) {
    auto* const memory = static_cast<float*>(Allocate(values.size() * sizeof(float)));
    std::copy(values.begin(), values.end(), memory);
    return memory;
  }
  static aclTensor* Vector(float* data, int64_t size, int64_t stride = 1, int64_t offset = 0) {
    const int64_t storage = offset + (size - 1) * stride + 1;
    return aclCreateTensor(&size, 1, ACL_FLOAT, &stride, offset, ACL_FORMAT_ND, &storage, 1, data);
  }
  aclnnStatus PrepareAdd(const aclTensor* x, const aclTensor* y, aclTensor* out) {
    return aclnnAddGetWorkspaceSize(x, y, one_, out, &bytes_, &executor_);
  }
  // The code of phase one for the best two of so many experts.
  static aclnnStatus PrepareGating(int64_t experts) {
    const auto tensor = [](aclDataType dtype, int64_t columns) {
      const int64_t dims[] = {2, columns}, strides[] = {columns, 1};
      return aclCreateTensor(dims, 2, dtype, strides, 0, ACL_FORMAT_ND, dims, 2,
                             Allocate(static_cast<size_t>(8 * columns)));
    };
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    return aclnnMoeGatingTopKGetWorkspaceSize(
        tensor(ACL_FLOAT, experts), nullptr, 2, 1, 1, 0, 0, 0, false, 1.0, 1e-20,
        tensor(ACL_FLOAT, 2), tensor(ACL_INT32, 2), tensor(ACL_FLOAT, experts), &bytes, &executor);
  }
  aclnnStatus ExecuteAdd() {
    void* const workspace = bytes_ == 0 ? nullptr : Allocate(bytes_);
    return aclnnAdd(workspace, bytes_, executor_, stream_);
  }
  void Synchronize() { EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS); }
  static std::string Words() {
    const char* const words = aclGetRecentErrMsg();
    return words == nullptr ? "" : words;
  }
  static std::vector<float> Floats(const float* data, size_t count) { return {data, data + count}; }

  aclrtStream stream_ = nullptr;
  aclScalar* one_ = nullptr;
  uint64_t bytes_ = 0;
  aclOpExecutor* executor_ = nullptr;
};

TEST_F(AclnnTest, ACardRefusesInPhaseOneWithItsCode) {
  EXPECT_EQ(PrepareGating(4096), 0) << Words();
  ASSERT_EQ(setenv("NPUMESH_CARD", "ascend910b3", 1), 0);
  EXPECT_EQ(PrepareGating(4095), 0) << "a line of the log";
  ASSERT_EQ(setenv("NPUMESH_CARD_CHECK", "fail", 1), 0);
  EXPECT_EQ(PrepareGating(256), 0) << Words();
  EXPECT_EQ(PrepareGating(4094), 561002);
  EXPECT_THAT(Words(), HasSubstr("there are 4094 experts; at most 2048 are taken"));
  unsetenv("NPUMESH_CARD");
  unsetenv("NPUMESH_CARD_CHECK");
  EXPECT_EQ(PrepareGating(4093), 0) << Words();
}

TEST_F(AclnnTest, AnExecutorEndsWithItsRun) {
  float* const x = NewFloats({1, 2, 3});
  float* const out = NewFloats({0, 0, 0});
  ASSERT_EQ(PrepareAdd(Vector(x, 3), Vector(x, 3), Vector(out, 3)), 0) << Words();
  EXPECT_EQ(bytes_, 0U);
  EXPECT_EQ(ExecuteAdd(), 0);
  Synchronize();
  EXPECT_THAT(Floats(out, 3), ElementsAre(2, 4, 6));
  EXPECT_EQ(ExecuteAdd(), 161002);
  EXPECT_THAT(Words(), HasSubstr("or one that has run"));
}

TEST_F(AclnnTest, ARepeatableOneRunsAgainAtOtherAddresses) {
  float* const x = NewFloats({1, 2, 3});
  float* const other = NewFloats({10, 20, 30});
  float* const out = NewFloats({0, 0, 0});
  aclTensor* const tensor = Vector(x, 3);
  ASSERT_EQ(PrepareAdd(tensor, Vector(x, 3), Vector(out, 3)), 0);
  EXPECT_EQ(aclSetTensorAddr(executor_, 0, tensor, other), 161002);  // not repeatable
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor_), 0);
  EXPECT_EQ(ExecuteAdd(), 0);
  Synchronize();
  EXPECT_THAT(Floats(out, 3), ElementsAre(2, 4, 6));
  EXPECT_EQ(aclSetTensorAddr(executor_, 0, tensor, other), 0);
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), 0);
  EXPECT_EQ(address, other);
  EXPECT_EQ(ExecuteAdd(), 0);
  Synchronize();
  EXPECT_THAT(Floats(out, 3), ElementsAre(11, 22, 33));
  EXPECT_EQ(aclSetTensorAddr(executor_, 3, tensor, other), 161002);
  EXPECT_EQ(aclSetTensorAddr(executor_, 0, tensor, &address), 161002);
  EXPECT_EQ(aclSetTensorAddr(executor_, 0, tensor, nullptr), 161001);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor_), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor_), 161002);
  EXPECT_EQ(aclDestroyAclOpExecutor(nullptr), 161001);
}

// Each view reads every second element, and the result overwrites what the other one reads.
TEST_F(AclnnTest, InitAndFinalizeAreThoseOfTheInterface) {
  EXPECT_EQ(aclnnInit(nullptr), 0);
  EXPECT_EQ(aclnnFinalize(), 0);  // aclInit came first, so it goes on
  float* const x = NewFloats({1, 2});
  ASSERT_EQ(PrepareAdd(Vector(x, 2), Vector(x, 2), Vector(x, 2)), 0);
  EXPECT_EQ(ExecuteAdd(), 0);
  Synchronize();
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclnnInit(nullptr), 0);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclnnFinalize(), 0);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  AclTest::SetUp();  // as the test began
  stream_ = NewStream();
}

TEST_F(AclnnTest, ViewsThatOverlapAreReadBeforeTheyAreWritten) {
  float* const block = NewFloats({1, 10, 2, 20, 3, 30, 4});
  aclTensor* const even = Vector(block, 3, 2);
  aclTensor* const odd = Vector(block, 3, 2, 1);
  aclTensor* const shifted = Vector(block, 3, 1, 1);
  ASSERT_EQ(PrepareAdd(even, odd, shifted), 0) << Words();
  EXPECT_EQ(bytes_, 2 * 64U);  // for what is read
  EXPECT_EQ(aclnnAdd(nullptr, 0, executor_, stream_), 161002);
  EXPECT_THAT(Words(), HasSubstr("the workspace has 0 bytes, expected 128"));
  EXPECT_EQ(ExecuteAdd(), 0);
  Synchronize();
  EXPECT_THAT(Floats(block, 7), ElementsAre(1, 11, 22, 33, 3, 30, 4));
}

TEST_F(AclnnTest, ACapturedStreamTakesCallsDown) {
  float* const x = NewFloats({1, 2});
  float* const out = NewFloats({0, 0});
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(PrepareAdd(Vector(x, 2), Vector(out, 2), Vector(out, 2)), 0);
  EXPECT_EQ(bytes_, 0U);  // in place
  EXPECT_EQ(aclnnAdd(nullptr, 0, executor_, stream_), 0);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_THAT(Floats(out, 2), ElementsAre(0, 0));
  for (int run = 0; run < 3; ++run) ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
  Synchronize();
  EXPECT_THAT(Floats(out, 2), ElementsAre(3, 6));
}

TEST_F(AclnnTest, WrongCallsAreTold) {
  float* const x = NewFloats({1, 2, 3});
  aclTensor* const tensor = Vector(x, 3);
  EXPECT_EQ(PrepareAdd(nullptr, tensor, tensor), 161001);
  EXPECT_THAT(Words(), HasSubstr("aclnnAddGetWorkspaceSize: self is null"));
  EXPECT_EQ(aclnnAddGetWorkspaceSize(tensor, tensor, one_, tensor, nullptr, &executor_), 161001);
  EXPECT_EQ(PrepareAdd(tensor, reinterpret_cast<aclTensor*>(this), tensor), 161002);
  EXPECT_THAT(Words(), HasSubstr("other is not what the function takes, or was destroyed"));
  float value = 1;
  aclScalar* const scalar = aclCreateScalar(&value, ACL_FLOAT);
  ASSERT_EQ(aclDestroyScalar(scalar), 0);
  EXPECT_EQ(aclnnAddGetWorkspaceSize(tensor, tensor, scalar, tensor, &bytes_, &executor_), 161002);
  EXPECT_THAT(Words(), HasSubstr("alpha is not what the function takes, or was destroyed"));
  const int64_t dims[] = {3};
  aclTensor* const blocks =
      aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_NC1HWC0_C04, dims, 1, x);
  EXPECT_EQ(PrepareAdd(blocks, tensor, tensor), 161002);
  EXPECT_THAT(Words(), HasSubstr("self NC1HWC0_C04 of shape [3]"));
  float host[3] = {};
  EXPECT_EQ(PrepareAdd(tensor, Vector(host, 3), tensor), 161002);
  EXPECT_THAT(Words(), HasSubstr("is no device memory of 12 bytes"));
  EXPECT_EQ(PrepareAdd(tensor, tensor, Vector(NewFloats({0, 0}), 2)), 161002);
  EXPECT_THAT(Words(), HasSubstr("out is float32[2], expected [3]"));
  ASSERT_EQ(PrepareAdd(tensor, tensor, Vector(NewFloats({0, 0, 0}), 3)), 0);
  EXPECT_EQ(aclnnMul(nullptr, 0, executor_, stream_), 161002);
  EXPECT_THAT(Words(), HasSubstr("the executor is one of aclnnAdd"));
  EXPECT_EQ(aclnnAdd(nullptr, 0, executor_, this), 361001);
  EXPECT_EQ(aclnnAdd(nullptr, 0, nullptr, stream_), 161001);
  EXPECT_EQ(aclDestroyTensor(tensor), 0);
  EXPECT_EQ(aclDestroyTensor(tensor), 161002);
  EXPECT_EQ(aclCreateTensor(nullptr, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, x),
            nullptr);
}

TEST_F(AclnnTest, CallsOfOneFormSharePlansAndOthersDoNot) {
  float* const x = NewFloats({0, 1, 2, 3, 4, 5});
  float* const out = NewFloats({0, 0, 0, 0, 0, 0});
  for (const int64_t size : {3, 6, 3, 1}) {
    std::fill(out, out + 6, -1.0F);
    ASSERT_EQ(PrepareAdd(Vector(x, size), Vector(x, size), Vector(out, size)), 0);
    ASSERT_EQ(ExecuteAdd(), 0);
    Synchronize();
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(out[i], i < size ? static_cast<float>(2 * i) : -1.0F);
    }
  }
}

// What was planned ends with the process's devices.
TEST_F(AclnnTest, PlansDoNotOutliveTheDevices) {
  for (int round = 0; round < 2; ++round) {
    float* const x = NewFloats({1, 2, 3});
    float* const out = NewFloats({0, 0, 0});
    ASSERT_EQ(PrepareAdd(Vector(x, 3), Vector(x, 3), Vector(out, 3)), 0);
    ASSERT_EQ(ExecuteAdd(), 0);
    Synchronize();
    EXPECT_THAT(Floats(out, 3), ElementsAre(2, 4, 6));
    ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    stream_ = NewStream();
  }
}

}  // namespace
}  // namespace npumesh
