// Channels of tensors within a process: acl_tdt.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "acl/acl_tdt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/queues/data_queue.h"
#include "runtime/acl/queues/tdt_checks.h"

using npumesh::AclProcess;
using npumesh::CheckQueueTimeout;
using npumesh::DataQueue;
using npumesh::Fail;
using npumesh::HandleTable;
using npumesh::NeedLive;

// A tensor. Of the client: its data is the client's. Received: `own` is the data.
struct acltdtDataItem {
  acltdtTensorType kind = ACL_TENSOR_DATA_UNDEFINED;
  std::vector<int64_t> dims;
  aclDataType type = ACL_DT_UNDEFINED;
  void* data = nullptr;
  size_t bytes = 0;
  std::vector<std::byte> own;
};

namespace {

using Item = acltdtDataItem;
using Items = std::vector<std::shared_ptr<Item>>;

}  // namespace

struct acltdtDataset {
  std::string name;  // of the channel that it came from
  std::vector<acltdtDataItem*> items;
  Items received;  // those of `items` that it owns
};

struct acltdtChannelHandle {
  acltdtChannelHandle(const char* name, size_t capacity) : name(name), queue(capacity) {}

  const std::string name;
  DataQueue<Items> queue;
};

namespace {

constexpr size_t kUsualCapacity = 128;
constexpr size_t kMostDims = 128;

struct TensorObjects {
  HandleTable<acltdtDataItem> items;
  HandleTable<acltdtDataset> datasets;
  HandleTable<acltdtChannelHandle> channels;
};

TensorObjects& Objects() {
  static TensorObjects* const objects = new TensorObjects;
  return *objects;
}

// Null when it is not live; for functions that return a value.
std::shared_ptr<Item> FindItem(const char* function, const acltdtDataItem* handle) {
  std::shared_ptr<Item> item;
  static_cast<void>(NeedLive(function, Objects().items, handle, &item));
  return item;
}

aclError ReportQueue(const char* function, DataQueue<Items>::Outcome outcome,
                     const acltdtChannelHandle& channel) {
  using Outcome = DataQueue<Items>::Outcome;
  switch (outcome) {
    case Outcome::kDone:
      return ACL_SUCCESS;
    case Outcome::kFull:
      return Fail(ACL_ERROR_RT_QUEUE_FULL, function, "channel \"{}\" is full", channel.name);
    case Outcome::kEmpty:
      return Fail(ACL_ERROR_RT_QUEUE_EMPTY, function, "channel \"{}\" is empty", channel.name);
    case Outcome::kStopped:
      break;
  }
  return Fail(ACL_ERROR_FAILURE, function, "channel \"{}\" was stopped", channel.name);
}

// A copy that owns its data.
std::shared_ptr<Item> CopyOf(const Item& item) {
  auto copy = std::make_shared<Item>();
  copy->kind = item.kind;
  copy->dims = item.dims;
  copy->type = item.type;
  copy->bytes = item.bytes;
  const auto* const data = static_cast<const std::byte*>(item.data);
  if (item.bytes > 0) copy->own.assign(data, data + item.bytes);
  copy->data = copy->own.data();
  return copy;
}

aclError CreateChannel(const char* function, uint32_t device, const char* name, size_t capacity,
                       acltdtChannelHandle** handle) {
  if (name == nullptr || *name == '\0') {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "name is null or empty");
  }
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(function, static_cast<int32_t>(device)));
  auto channel = std::make_shared<acltdtChannelHandle>(name, capacity);
  *handle = channel.get();
  Objects().channels.Add(std::move(channel));
  return ACL_SUCCESS;
}

}  // namespace

acltdtTensorType acltdtGetTensorTypeFromItem(const acltdtDataItem* dataItem) try {
  const auto item = FindItem(__func__, dataItem);
  return item == nullptr ? ACL_TENSOR_DATA_UNDEFINED : item->kind;
} catch (...) {
  npumesh::FailThrown(__func__);
  return ACL_TENSOR_DATA_UNDEFINED;
}

aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem) try {
  const auto item = FindItem(__func__, dataItem);
  return item == nullptr ? ACL_DT_UNDEFINED : item->type;
} catch (...) {
  npumesh::FailThrown(__func__);
  return ACL_DT_UNDEFINED;
}

void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem) try {
  const auto item = FindItem(__func__, dataItem);
  return item == nullptr ? nullptr : item->data;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

size_t acltdtGetDataSizeFromItem(const acltdtDataItem* dataItem) try {
  const auto item = FindItem(__func__, dataItem);
  return item == nullptr ? 0 : item->bytes;
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem) try {
  const auto item = FindItem(__func__, dataItem);
  return item == nullptr ? 0 : item->dims.size();
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

aclError acltdtGetDimsFromItem(const acltdtDataItem* dataItem, int64_t* dims, size_t dimNum) try {
  std::shared_ptr<Item> item;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().items, dataItem, &item));
  NPUMESH_ACL_EXPECT(dimNum >= item->dims.size() && (dims != nullptr || dimNum == 0),
                     "dims is {}, dimNum is {}, expected room for {}", fmt::ptr(dims), dimNum,
                     item->dims.size());
  std::copy(item->dims.begin(), item->dims.end(), dims);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetSliceInfoFromItem(const acltdtDataItem* dataItem, size_t* sliceNum,
                                    size_t* sliceId) try {
  NPUMESH_ACL_EXPECT(sliceNum != nullptr && sliceId != nullptr, "sliceNum or sliceId is null");
  std::shared_ptr<Item> item;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().items, dataItem, &item));
  *sliceNum = 1;  // tensors travel as a whole
  *sliceId = 0;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

acltdtDataItem* acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t* dims, size_t dimNum,
                                     aclDataType dataType, void* data, size_t size) try {
  const bool tensor = tdtType == ACL_TENSOR_DATA_TENSOR;
  const bool end =
      tdtType == ACL_TENSOR_DATA_END_OF_SEQUENCE || tdtType == ACL_TENSOR_DATA_ABNORMAL;
  if ((!tensor && !end) || dimNum > kMostDims || (dims == nullptr && dimNum > 0) ||
      (data == nullptr && size > 0)) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__,
         "tdtType is {}, dimNum is {}, size is {}, expected type 0 to 2, at most {} dims, and data",
         static_cast<int>(tdtType), dimNum, size, kMostDims);
    return nullptr;
  }
  auto item = std::make_shared<Item>();
  item->kind = tdtType;
  item->dims.assign(dims, dims + dimNum);
  item->type = dataType;
  item->data = data;
  item->bytes = size;
  Item* const handle = item.get();
  Objects().items.Add(std::move(item));
  return handle;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtDestroyDataItem(acltdtDataItem* dataItem) try {
  std::shared_ptr<Item> item;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().items, dataItem, &item));
  static_cast<void>(Objects().items.Take(dataItem));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

acltdtDataset* acltdtCreateDataset(void) try {
  auto dataset = std::make_shared<acltdtDataset>();
  acltdtDataset* const handle = dataset.get();
  Objects().datasets.Add(std::move(dataset));
  return handle;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtDestroyDataset(acltdtDataset* dataset) try {
  std::shared_ptr<acltdtDataset> found;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().datasets, dataset, &found));
  for (const auto& item : found->received) static_cast<void>(Objects().items.Take(item.get()));
  static_cast<void>(Objects().datasets.Take(dataset));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index) try {
  std::shared_ptr<acltdtDataset> found;
  if (NeedLive(__func__, Objects().datasets, dataset, &found) != ACL_SUCCESS) return nullptr;
  if (index < found->items.size()) return found->items[index];
  Fail(ACL_ERROR_INVALID_PARAM, __func__, "index is {}, expected less than {}", index,
       found->items.size());
  return nullptr;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtAddDataItem(acltdtDataset* dataset, acltdtDataItem* dataItem) try {
  std::shared_ptr<acltdtDataset> found;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().datasets, dataset, &found));
  std::shared_ptr<Item> item;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().items, dataItem, &item));
  NPUMESH_ACL_EXPECT(found->received.empty(), "a received dataset takes no items");
  found->items.push_back(dataItem);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

size_t acltdtGetDatasetSize(const acltdtDataset* dataset) try {
  std::shared_ptr<acltdtDataset> found;
  if (NeedLive(__func__, Objects().datasets, dataset, &found) != ACL_SUCCESS) return 0;
  return found->items.size();
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

const char* acltdtGetDatasetName(const acltdtDataset* dataset) try {
  std::shared_ptr<acltdtDataset> found;
  if (NeedLive(__func__, Objects().datasets, dataset, &found) != ACL_SUCCESS) return nullptr;
  return found->name.c_str();
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

acltdtChannelHandle* acltdtCreateChannel(uint32_t deviceId, const char* name) try {
  acltdtChannelHandle* handle = nullptr;
  static_cast<void>(CreateChannel(__func__, deviceId, name, kUsualCapacity, &handle));
  return handle;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

acltdtChannelHandle* acltdtCreateChannelWithCapacity(uint32_t deviceId, const char* name,
                                                     size_t capacity) try {
  acltdtChannelHandle* handle = nullptr;
  if (capacity < 2 || capacity > 8192) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "capacity is {}, expected 2 to 8192", capacity);
    return nullptr;
  }
  static_cast<void>(CreateChannel(__func__, deviceId, name, capacity, &handle));
  return handle;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtStopChannel(acltdtChannelHandle* handle) try {
  std::shared_ptr<acltdtChannelHandle> channel;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().channels, handle, &channel));
  channel->queue.Stop();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtDestroyChannel(acltdtChannelHandle* handle) try {
  std::shared_ptr<acltdtChannelHandle> channel;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().channels, handle, &channel));
  channel->queue.Stop();
  static_cast<void>(Objects().channels.Take(handle));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtCleanChannel(acltdtChannelHandle* handle) try {
  std::shared_ptr<acltdtChannelHandle> channel;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().channels, handle, &channel));
  channel->queue.Clear();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtSendTensor(const acltdtChannelHandle* handle, const acltdtDataset* dataset,
                          int32_t timeout) try {
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  std::shared_ptr<acltdtChannelHandle> channel;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().channels, handle, &channel));
  std::shared_ptr<acltdtDataset> sent;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().datasets, dataset, &sent));
  NPUMESH_ACL_EXPECT(!sent->items.empty(), "the dataset has no items");
  Items copies;
  for (const acltdtDataItem* item : sent->items) {
    std::shared_ptr<Item> live;
    NPUMESH_ACL_TRY(NeedLive(__func__, Objects().items, item, &live));
    copies.push_back(CopyOf(*live));
  }
  return ReportQueue(__func__, channel->queue.Push(std::move(copies), timeout), *channel);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtReceiveTensor(const acltdtChannelHandle* handle, acltdtDataset* dataset,
                             int32_t timeout) try {
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  std::shared_ptr<acltdtChannelHandle> channel;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().channels, handle, &channel));
  std::shared_ptr<acltdtDataset> into;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().datasets, dataset, &into));
  NPUMESH_ACL_EXPECT(into->items.empty(), "the dataset has {} items, expected an empty one",
                     into->items.size());
  Items items;
  NPUMESH_ACL_TRY(ReportQueue(__func__, channel->queue.Pop(&items, timeout), *channel));
  into->name = channel->name;
  for (const auto& item : items) {
    Objects().items.Add(item);
    into->items.push_back(item.get());
  }
  into->received = std::move(items);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtQueryChannelSize(const acltdtChannelHandle* handle, size_t* size) try {
  NPUMESH_ACL_EXPECT(size != nullptr, "size is null");
  std::shared_ptr<acltdtChannelHandle> channel;
  NPUMESH_ACL_TRY(NeedLive(__func__, Objects().channels, handle, &channel));
  *size = channel->queue.size();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
