// Channels of tensors.
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "acl/acl_tdt.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class ChannelTest : public AclTest {
 protected:
  void SetUp() override {
    AclTest::SetUp();
    channel_ = acltdtCreateChannelWithCapacity(0, "tensors", 2);
    ASSERT_NE(channel_, nullptr);
  }
  // A dataset of one tensor of int32, whose data is the caller's.
  static acltdtDataset* DatasetOf(std::vector<int32_t>& data) {
    const int64_t dims[] = {static_cast<int64_t>(data.size())};
    acltdtDataItem* const item = acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 1, ACL_INT32,
                                                      data.data(), data.size() * 4);
    acltdtDataset* const dataset = acltdtCreateDataset();
    EXPECT_EQ(acltdtAddDataItem(dataset, item), ACL_SUCCESS);
    return dataset;
  }
  static std::vector<int32_t> DataOf(const acltdtDataset* dataset) {
    const acltdtDataItem* const item = acltdtGetDataItem(dataset, 0);
    const auto* const data = static_cast<const int32_t*>(acltdtGetDataAddrFromItem(item));
    return std::vector<int32_t>(data, data + acltdtGetDataSizeFromItem(item) / 4);
  }
  static void DestroyWithItem(acltdtDataset* dataset) {
    EXPECT_EQ(acltdtDestroyDataItem(acltdtGetDataItem(dataset, 0)), ACL_SUCCESS);
    EXPECT_EQ(acltdtDestroyDataset(dataset), ACL_SUCCESS);
  }

  acltdtChannelHandle* channel_ = nullptr;
};

TEST_F(ChannelTest, ATensorArrivesAsItWasSent) {
  std::vector<int32_t> data = {1, 2, 3};
  acltdtDataset* const sent = DatasetOf(data);
  ASSERT_EQ(acltdtSendTensor(channel_, sent, 0), ACL_SUCCESS);
  data = {7, 7, 7};  // the channel has its own
  size_t size = 0;
  ASSERT_EQ(acltdtQueryChannelSize(channel_, &size), ACL_SUCCESS);
  EXPECT_EQ(size, 1u);
  acltdtDataset* const received = acltdtCreateDataset();
  ASSERT_EQ(acltdtReceiveTensor(channel_, received, 0), ACL_SUCCESS);
  ASSERT_EQ(acltdtGetDatasetSize(received), 1u);
  EXPECT_EQ(DataOf(received), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_STREQ(acltdtGetDatasetName(received), "tensors");
  EXPECT_STREQ(acltdtGetDatasetName(sent), "");
  acltdtDataItem* const item = acltdtGetDataItem(received, 0);
  EXPECT_EQ(acltdtGetTensorTypeFromItem(item), ACL_TENSOR_DATA_TENSOR);
  EXPECT_EQ(acltdtGetDataTypeFromItem(item), ACL_INT32);
  ASSERT_EQ(acltdtGetDimNumFromItem(item), 1u);
  int64_t dim = 0;
  ASSERT_EQ(acltdtGetDimsFromItem(item, &dim, 1), ACL_SUCCESS);
  EXPECT_EQ(dim, 3);
  EXPECT_EQ(acltdtGetDimsFromItem(item, &dim, 0), ACL_ERROR_INVALID_PARAM);
  size_t slices = 0;
  size_t slice = 9;
  ASSERT_EQ(acltdtGetSliceInfoFromItem(item, &slices, &slice), ACL_SUCCESS);
  EXPECT_EQ(slices, 1u);
  EXPECT_EQ(slice, 0u);
  EXPECT_EQ(acltdtReceiveTensor(channel_, received, 0), ACL_ERROR_INVALID_PARAM);  // not empty
  ASSERT_EQ(acltdtDestroyDataset(received), ACL_SUCCESS);
  EXPECT_EQ(acltdtGetDataAddrFromItem(item), nullptr);  // it went with its dataset
  DestroyWithItem(sent);
}

TEST_F(ChannelTest, AChannelIsFullOrEmpty) {
  std::vector<int32_t> data = {1};
  acltdtDataset* const sent = DatasetOf(data);
  acltdtDataset* const received = acltdtCreateDataset();
  EXPECT_EQ(acltdtReceiveTensor(channel_, received, 0), ACL_ERROR_RT_QUEUE_EMPTY);
  EXPECT_EQ(acltdtReceiveTensor(channel_, received, 1), ACL_ERROR_RT_QUEUE_EMPTY);
  ASSERT_EQ(acltdtSendTensor(channel_, sent, -1), ACL_SUCCESS);
  ASSERT_EQ(acltdtSendTensor(channel_, sent, -1), ACL_SUCCESS);
  EXPECT_EQ(acltdtSendTensor(channel_, sent, 0), ACL_ERROR_RT_QUEUE_FULL);
  ASSERT_EQ(acltdtCleanChannel(channel_), ACL_SUCCESS);
  EXPECT_EQ(acltdtSendTensor(channel_, sent, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtSendTensor(channel_, sent, -2), ACL_ERROR_INVALID_PARAM);
  DestroyWithItem(sent);
}

TEST_F(ChannelTest, ThreadsWaitForEachOther) {
  constexpr int32_t kCount = 500;
  std::thread sender([this] {
    for (int32_t i = 0; i < kCount; ++i) {
      std::vector<int32_t> data(static_cast<size_t>(i % 7) + 1, i);
      acltdtDataset* const sent = DatasetOf(data);
      EXPECT_EQ(acltdtSendTensor(channel_, sent, -1), ACL_SUCCESS);
      DestroyWithItem(sent);
    }
  });
  for (int32_t i = 0; i < kCount; ++i) {
    acltdtDataset* const received = acltdtCreateDataset();
    ASSERT_EQ(acltdtReceiveTensor(channel_, received, -1), ACL_SUCCESS);
    EXPECT_EQ(DataOf(received), std::vector<int32_t>(static_cast<size_t>(i % 7) + 1, i));
    ASSERT_EQ(acltdtDestroyDataset(received), ACL_SUCCESS);
  }
  sender.join();
}

TEST_F(ChannelTest, AStoppedChannelWakesItsThreads) {
  std::thread receiver([this] {
    acltdtDataset* const received = acltdtCreateDataset();
    EXPECT_EQ(acltdtReceiveTensor(channel_, received, -1), ACL_ERROR_FAILURE);
    EXPECT_EQ(acltdtDestroyDataset(received), ACL_SUCCESS);
  });
  ASSERT_EQ(acltdtStopChannel(channel_), ACL_SUCCESS);
  receiver.join();
  ASSERT_EQ(acltdtDestroyChannel(channel_), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyChannel(channel_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtStopChannel(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(ChannelTest, CallsAreChecked) {
  EXPECT_EQ(acltdtCreateChannelWithCapacity(0, "x", 1), nullptr);
  EXPECT_EQ(acltdtCreateChannel(0, ""), nullptr);
  EXPECT_EQ(acltdtCreateChannel(0, nullptr), nullptr);
  EXPECT_EQ(acltdtCreateChannel(5, "x"), nullptr);
  const int64_t dims[] = {1};
  EXPECT_EQ(acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, nullptr, 1, ACL_INT32, nullptr, 0),
            nullptr);
  EXPECT_EQ(acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 1, ACL_INT32, nullptr, 4), nullptr);
  EXPECT_EQ(acltdtCreateDataItem(ACL_TENSOR_DATA_SLICE_TENSOR, dims, 1, ACL_INT32, nullptr, 0),
            nullptr);
  EXPECT_EQ(acltdtGetTensorTypeFromItem(nullptr), ACL_TENSOR_DATA_UNDEFINED);
  EXPECT_EQ(acltdtGetDataTypeFromItem(nullptr), ACL_DT_UNDEFINED);
  EXPECT_EQ(acltdtGetDataSizeFromItem(nullptr), 0u);
  EXPECT_EQ(acltdtGetDataItem(nullptr, 0), nullptr);
  EXPECT_EQ(acltdtDestroyDataItem(nullptr), ACL_ERROR_INVALID_PARAM);
  acltdtDataset* const empty = acltdtCreateDataset();
  EXPECT_EQ(acltdtGetDataItem(empty, 0), nullptr);
  EXPECT_EQ(acltdtSendTensor(channel_, empty, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtAddDataItem(empty, nullptr), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(acltdtDestroyDataset(empty), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyDataset(empty), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtGetDatasetSize(empty), 0u);
}

}  // namespace
}  // namespace npumesh
