// Queues and routes within a process: acl_tdt_queue.h.
#include "acl/acl_tdt_queue.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "runtime/acl/memory/copy.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/queues/queue_room.h"
#include "runtime/acl/queues/shared_buffers.h"
#include "runtime/acl/queues/tdt_checks.h"

using npumesh::CheckQueueTimeout;
using npumesh::Fail;
using npumesh::HandleTable;
using npumesh::NeedLive;
using npumesh::QueueRoom;
using npumesh::SharedBuffer;
using npumesh::SharedBuffers;

struct tagMemQueueAttr {
  std::string name;
  uint32_t depth = QueueRoom::kLeastDepth;
};

struct acltdtQueueRoute {
  uint32_t from = 0;
  uint32_t to = 0;
  int32_t status = ACL_TDT_QUEUE_ROUTE_UNBIND;
};

struct acltdtQueueRouteList {
  std::vector<acltdtQueueRoute> routes;
};

struct acltdtQueueRouteQueryInfo {
  std::optional<acltdtQueueRouteQueryMode> mode;
  std::optional<uint32_t> from;
  std::optional<uint32_t> to;
};

namespace {

struct QueueObjects {
  HandleTable<tagMemQueueAttr> attributes;
  HandleTable<acltdtQueueRoute> routes;
  HandleTable<acltdtQueueRouteList> lists;
  HandleTable<acltdtQueueRouteQueryInfo> queries;
};

QueueObjects& Queues() {
  static QueueObjects* const objects = new QueueObjects;
  return *objects;
}

template <typename T>
T* Make(HandleTable<T>& table) {
  auto object = std::make_shared<T>();
  return static_cast<T*>(table.Add(std::move(object)));
}

template <typename T>
aclError Destroy(const char* function, HandleTable<T>& table, const T* handle) {
  return table.Take(handle) != nullptr ? ACL_SUCCESS : npumesh::NotLive(function, handle);
}

// A value of the client that is set or got.
template <typename T>
aclError SetValue(const char* function, size_t len, const void* from, T* value) {
  if (from == nullptr || len != sizeof(T)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the value is at {}, len is {}, expected {}",
                fmt::ptr(from), len, sizeof(T));
  }
  std::memcpy(value, from, sizeof(T));
  return ACL_SUCCESS;
}

template <typename T>
aclError GetValue(const char* function, const T& value, size_t len, size_t* bytes, void* to) {
  if (bytes == nullptr || to == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "paramRetSize or param is null");
  }
  *bytes = sizeof(T);
  if (len < sizeof(T)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "len is {}, expected at least {}", len,
                sizeof(T));
  }
  std::memcpy(to, &value, sizeof(T));
  return ACL_SUCCESS;
}

aclError CheckUserData(const char* function, const void* data, size_t size) {
  if (size <= SharedBuffer::kUserBytes && (data != nullptr || size == 0)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "userData is {}, userDataSize is {}, expected at most {}", fmt::ptr(data), size,
              SharedBuffer::kUserBytes);
}

aclError SetName(const char* function, size_t len, const void* param, std::string* name) {
  const char* text = nullptr;
  NPUMESH_ACL_TRY(SetValue(function, len, param, &text));
  if (text == nullptr || strnlen(text, QueueRoom::kMostNameBytes + 1) > QueueRoom::kMostNameBytes) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the name is null or longer than {} characters",
                QueueRoom::kMostNameBytes);
  }
  *name = text;
  return ACL_SUCCESS;
}

aclError SetDepth(const char* function, size_t len, const void* param, uint32_t* depth) {
  uint32_t wish = 0;
  NPUMESH_ACL_TRY(SetValue(function, len, param, &wish));
  if (wish < QueueRoom::kLeastDepth || wish > QueueRoom::kMostDepth) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the depth is {}, expected {} to {}", wish,
                QueueRoom::kLeastDepth, QueueRoom::kMostDepth);
  }
  *depth = wish;
  return ACL_SUCCESS;
}

// Which routes a query means.
aclError CheckQuery(const char* function, const acltdtQueueRouteQueryInfo& query) {
  if (!query.mode) return Fail(ACL_ERROR_INVALID_PARAM, function, "the query has no mode");
  const bool needs_from = *query.mode == ACL_TDT_QUEUE_ROUTE_QUERY_SRC ||
                          *query.mode == ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST;
  const bool needs_to = *query.mode == ACL_TDT_QUEUE_ROUTE_QUERY_DST ||
                        *query.mode == ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST;
  if ((needs_from && !query.from) || (needs_to && !query.to)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the query lacks the queue of its {}",
                needs_from && !query.from ? "source" : "destination");
  }
  return ACL_SUCCESS;
}

bool Matches(const acltdtQueueRouteQueryInfo& query, const QueueRoom::Route& route) {
  switch (*query.mode) {
    case ACL_TDT_QUEUE_ROUTE_QUERY_SRC:
      return route.first == *query.from;
    case ACL_TDT_QUEUE_ROUTE_QUERY_DST:
      return route.second == *query.to;
    case ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST:
      return route == QueueRoom::Route(*query.from, *query.to);
    case ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL:
      break;  // a bound route has no state but this
  }
  return false;
}

aclError Accept(const SharedBuffer&) {
  return ACL_SUCCESS;
}

}  // namespace

acltdtQueueAttr* acltdtCreateQueueAttr(void) try { return Make(Queues().attributes); } catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtDestroyQueueAttr(const acltdtQueueAttr* attr) try {
  return Destroy(__func__, Queues().attributes, attr);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtSetQueueAttr(acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            const void* param) try {
  std::shared_ptr<tagMemQueueAttr> found;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().attributes, attr, &found));
  NPUMESH_ACL_EXPECT(type == ACL_TDT_QUEUE_NAME_PTR || type == ACL_TDT_QUEUE_DEPTH_UINT32,
                     "type is {}, expected 0 or 1", static_cast<int>(type));
  return type == ACL_TDT_QUEUE_NAME_PTR ? SetName(__func__, len, param, &found->name)
                                        : SetDepth(__func__, len, param, &found->depth);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetQueueAttr(const acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            size_t* paramRetSize, void* param) try {
  std::shared_ptr<tagMemQueueAttr> found;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().attributes, attr, &found));
  NPUMESH_ACL_EXPECT(type == ACL_TDT_QUEUE_NAME_PTR || type == ACL_TDT_QUEUE_DEPTH_UINT32,
                     "type is {}, expected 0 or 1", static_cast<int>(type));
  if (type == ACL_TDT_QUEUE_DEPTH_UINT32) {
    return GetValue(__func__, found->depth, len, paramRetSize, param);
  }
  const char* const name = found->name.c_str();
  return GetValue(__func__, name, len, paramRetSize, param);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtCreateQueue(const acltdtQueueAttr* attr, uint32_t* qid) try {
  NPUMESH_ACL_EXPECT(qid != nullptr, "qid is null");
  auto wish = std::make_shared<tagMemQueueAttr>();
  if (attr != nullptr) NPUMESH_ACL_TRY(NeedLive(__func__, Queues().attributes, attr, &wish));
  return QueueRoom::OfProcess().Create(__func__, wish->name, wish->depth, qid);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtDestroyQueue(uint32_t qid) try {
  return QueueRoom::OfProcess().Destroy(__func__, qid);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtEnqueue(uint32_t qid, acltdtBuf buf, int32_t timeout) try {
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  NPUMESH_ACL_TRY(QueueRoom::OfProcess().Check(__func__, qid));
  std::shared_ptr<SharedBuffer> head;
  NPUMESH_ACL_TRY(SharedBuffers::OfProcess().Take(__func__, buf, &head));
  const aclError error = QueueRoom::OfProcess().Put(__func__, qid, head, timeout);
  if (error != ACL_SUCCESS) SharedBuffers::OfProcess().Add(std::move(head));
  return error;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtDequeue(uint32_t qid, acltdtBuf* buf, int32_t timeout) try {
  NPUMESH_ACL_EXPECT(buf != nullptr, "buf is null");
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  std::shared_ptr<SharedBuffer> head;
  NPUMESH_ACL_TRY(QueueRoom::OfProcess().Get(__func__, qid, timeout, Accept, &head));
  *buf = SharedBuffers::OfProcess().Add(std::move(head));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtEnqueueData(uint32_t qid, const void* data, size_t dataSize, const void* userData,
                           size_t userDataSize, int32_t timeout, uint32_t rsv) try {
  NPUMESH_ACL_EXPECT(data != nullptr, "data is null");
  NPUMESH_ACL_EXPECT(rsv == 0, "rsv is {}, expected 0", rsv);
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  NPUMESH_ACL_TRY(CheckUserData(__func__, userData, userDataSize));
  NPUMESH_ACL_TRY(QueueRoom::OfProcess().Check(__func__, qid));
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(SharedBuffers::OfProcess().Make(__func__, dataSize, &buffer));
  npumesh::Copy copy;
  NPUMESH_ACL_TRY(npumesh::CheckCopy(
      __func__, {buffer->area->bytes, dataSize, data, dataSize, ACL_MEMCPY_DEFAULT}, &copy));
  npumesh::CopyNow(copy);
  buffer->length = dataSize;
  if (userDataSize > 0) std::memcpy(buffer->user.data(), userData, userDataSize);
  return QueueRoom::OfProcess().Put(__func__, qid, std::move(buffer), timeout);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtDequeueData(uint32_t qid, void* data, size_t dataSize, size_t* retDataSize,
                           void* userData, size_t userDataSize, int32_t timeout) try {
  NPUMESH_ACL_EXPECT(data != nullptr && retDataSize != nullptr, "data or retDataSize is null");
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  NPUMESH_ACL_TRY(CheckUserData(__func__, userData, userDataSize));
  npumesh::Copy copy;
  const auto fits = [&, function = __func__](const SharedBuffer& buffer) {
    *retDataSize = buffer.length;
    if (buffer.length <= dataSize) {
      return npumesh::CheckCopy(
          function, {data, dataSize, buffer.area->bytes, buffer.length, ACL_MEMCPY_DEFAULT}, &copy);
    }
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "dataSize is {}, the buffer has {} bytes of data", dataSize, buffer.length);
  };
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(QueueRoom::OfProcess().Get(__func__, qid, timeout, fits, &buffer));
  if (copy.bytes > 0) npumesh::CopyNow(copy);
  if (userDataSize > 0) std::memcpy(userData, buffer->user.data(), userDataSize);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGrantQueue(uint32_t qid, int32_t pid, uint32_t permission, int32_t timeout) try {
  constexpr uint32_t kAll = ACL_TDT_QUEUE_PERMISSION_MANAGE | ACL_TDT_QUEUE_PERMISSION_DEQUEUE |
                            ACL_TDT_QUEUE_PERMISSION_ENQUEUE;
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  NPUMESH_ACL_EXPECT(permission != 0 && (permission & ~kAll) == 0,
                     "permission is {:#x}, expected a union of {:#x}", permission, kAll);
  NPUMESH_ACL_TRY(QueueRoom::OfProcess().Check(__func__, qid));
  if (pid == getpid()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
              "queues are within a process; process {} cannot use this one. Share memory with it "
              "(aclrtIpcMemGetExportKey)",
              pid);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtAttachQueue(uint32_t qid, int32_t timeout, uint32_t* permission) try {
  NPUMESH_ACL_EXPECT(permission != nullptr, "permission is null");
  NPUMESH_ACL_TRY(CheckQueueTimeout(__func__, timeout));
  NPUMESH_ACL_TRY(QueueRoom::OfProcess().Check(__func__, qid));
  *permission = ACL_TDT_QUEUE_PERMISSION_MANAGE | ACL_TDT_QUEUE_PERMISSION_DEQUEUE |
                ACL_TDT_QUEUE_PERMISSION_ENQUEUE;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

acltdtQueueRoute* acltdtCreateQueueRoute(uint32_t srcId, uint32_t dstId) try {
  auto* const route = Make(Queues().routes);
  route->from = srcId;
  route->to = dstId;
  return route;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtDestroyQueueRoute(const acltdtQueueRoute* route) try {
  return Destroy(__func__, Queues().routes, route);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetQueueRouteParam(const acltdtQueueRoute* route, acltdtQueueRouteParamType type,
                                  size_t len, size_t* paramRetSize, void* param) try {
  std::shared_ptr<acltdtQueueRoute> found;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().routes, route, &found));
  switch (type) {
    case ACL_TDT_QUEUE_ROUTE_SRC_UINT32:
      return GetValue(__func__, found->from, len, paramRetSize, param);
    case ACL_TDT_QUEUE_ROUTE_DST_UINT32:
      return GetValue(__func__, found->to, len, paramRetSize, param);
    case ACL_TDT_QUEUE_ROUTE_STATUS_INT32:
      return GetValue(__func__, found->status, len, paramRetSize, param);
  }
  return Fail(ACL_ERROR_INVALID_PARAM, __func__, "type is {}, expected 0 to 2",
              static_cast<int>(type));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

acltdtQueueRouteList* acltdtCreateQueueRouteList(void) try {
  return Make(Queues().lists);
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtDestroyQueueRouteList(const acltdtQueueRouteList* routeList) try {
  return Destroy(__func__, Queues().lists, routeList);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtAddQueueRoute(acltdtQueueRouteList* routeList, const acltdtQueueRoute* route) try {
  std::shared_ptr<acltdtQueueRouteList> list;
  std::shared_ptr<acltdtQueueRoute> added;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().lists, routeList, &list));
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().routes, route, &added));
  list->routes.push_back(*added);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetQueueRoute(const acltdtQueueRouteList* routeList, size_t index,
                             acltdtQueueRoute* route) try {
  std::shared_ptr<acltdtQueueRouteList> list;
  std::shared_ptr<acltdtQueueRoute> result;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().lists, routeList, &list));
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().routes, route, &result));
  NPUMESH_ACL_EXPECT(index < list->routes.size(), "index is {}, the list has {} routes", index,
                     list->routes.size());
  *result = list->routes[index];
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

size_t acltdtGetQueueRouteNum(const acltdtQueueRouteList* routeList) try {
  std::shared_ptr<acltdtQueueRouteList> list;
  const bool live = NeedLive(__func__, Queues().lists, routeList, &list) == ACL_SUCCESS;
  return live ? list->routes.size() : 0;
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

aclError acltdtBindQueueRoutes(acltdtQueueRouteList* qRouteList) try {
  std::shared_ptr<acltdtQueueRouteList> list;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().lists, qRouteList, &list));
  NPUMESH_ACL_EXPECT(!list->routes.empty(), "the list has no routes");
  std::vector<QueueRoom::Route> routes;
  for (const auto& route : list->routes) routes.emplace_back(route.from, route.to);
  const std::vector<aclError> codes = QueueRoom::OfProcess().Bind(__func__, routes);
  for (size_t i = 0; i < codes.size(); ++i) {
    list->routes[i].status =
        codes[i] == ACL_SUCCESS ? ACL_TDT_QUEUE_ROUTE_BIND : ACL_TDT_QUEUE_ROUTE_BIND_ABNORMAL;
  }
  const auto failed =
      std::find_if(codes.begin(), codes.end(), [](aclError code) { return code != ACL_SUCCESS; });
  return failed == codes.end() ? ACL_SUCCESS : *failed;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtUnbindQueueRoutes(acltdtQueueRouteList* qRouteList) try {
  std::shared_ptr<acltdtQueueRouteList> list;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().lists, qRouteList, &list));
  aclError first = ACL_SUCCESS;
  for (auto& route : list->routes) {
    const aclError error = QueueRoom::OfProcess().Unbind(__func__, {route.from, route.to});
    if (error == ACL_SUCCESS) route.status = ACL_TDT_QUEUE_ROUTE_UNBIND;
    if (first == ACL_SUCCESS) first = error;
  }
  return first;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

acltdtQueueRouteQueryInfo* acltdtCreateQueueRouteQueryInfo(void) try {
  return Make(Queues().queries);
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acltdtDestroyQueueRouteQueryInfo(const acltdtQueueRouteQueryInfo* info) try {
  return Destroy(__func__, Queues().queries, info);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtSetQueueRouteQueryInfo(acltdtQueueRouteQueryInfo* param,
                                      acltdtQueueRouteQueryInfoParamType type, size_t len,
                                      const void* value) try {
  std::shared_ptr<acltdtQueueRouteQueryInfo> query;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().queries, param, &query));
  uint32_t number = 0;
  NPUMESH_ACL_TRY(SetValue(__func__, len, value, &number));
  switch (type) {
    case ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32:
      query->from = number;
      return ACL_SUCCESS;
    case ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32:
      query->to = number;
      return ACL_SUCCESS;
    case ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM:
      NPUMESH_ACL_EXPECT(number <= ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST ||
                             number == ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL,
                         "the mode is {}, expected 0, 1, 2 or 100", number);
      query->mode = static_cast<acltdtQueueRouteQueryMode>(number);
      return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, __func__, "type is {}, expected 0 to 2",
              static_cast<int>(type));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtQueryQueueRoutes(const acltdtQueueRouteQueryInfo* queryInfo,
                                acltdtQueueRouteList* qRouteList) try {
  std::shared_ptr<acltdtQueueRouteQueryInfo> query;
  std::shared_ptr<acltdtQueueRouteList> list;
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().queries, queryInfo, &query));
  NPUMESH_ACL_TRY(NeedLive(__func__, Queues().lists, qRouteList, &list));
  NPUMESH_ACL_TRY(CheckQuery(__func__, *query));
  list->routes.clear();
  for (const auto& route : QueueRoom::OfProcess().Routes()) {
    if (!Matches(*query, route)) continue;
    list->routes.push_back({route.first, route.second, ACL_TDT_QUEUE_ROUTE_BIND});
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
