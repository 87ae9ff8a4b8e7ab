// Queues of buffers and the routes between them.
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_tdt_queue.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class QueueTest : public AclTest {
 protected:
  static uint32_t NewQueue(uint32_t depth = 2, const char* name = nullptr) {
    acltdtQueueAttr* const attr = acltdtCreateQueueAttr();
    EXPECT_EQ(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, sizeof depth, &depth),
              ACL_SUCCESS);
    if (name != nullptr) {
      EXPECT_EQ(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name), ACL_SUCCESS);
    }
    uint32_t queue = 0;
    EXPECT_EQ(acltdtCreateQueue(attr, &queue), ACL_SUCCESS);
    EXPECT_EQ(acltdtDestroyQueueAttr(attr), ACL_SUCCESS);
    return queue;
  }
  static aclError Put(uint32_t queue, int32_t number, int32_t timeout = 0) {
    return acltdtEnqueueData(queue, &number, sizeof number, nullptr, 0, timeout, 0);
  }
  // -1: the queue is empty.
  static int32_t Get(uint32_t queue, int32_t timeout = 0) {
    int32_t number = -1;
    size_t bytes = 0;
    const aclError error =
        acltdtDequeueData(queue, &number, sizeof number, &bytes, nullptr, 0, timeout);
    EXPECT_TRUE(error == ACL_SUCCESS || error == ACL_ERROR_RT_QUEUE_EMPTY) << error;
    return number;
  }
  static acltdtBuf NewBuffer(const std::string& text) {
    acltdtBuf buffer = nullptr;
    EXPECT_EQ(acltdtAllocBuf(64, ACL_TDT_NORMAL_MEM, &buffer), ACL_SUCCESS);
    void* data = nullptr;
    size_t size = 0;
    EXPECT_EQ(acltdtGetBufData(buffer, &data, &size), ACL_SUCCESS);
    EXPECT_EQ(size, 64u);
    std::memcpy(data, text.data(), text.size());
    EXPECT_EQ(acltdtSetBufDataLen(buffer, text.size()), ACL_SUCCESS);
    return buffer;
  }
  static std::string TextOf(acltdtBuf buffer) {
    void* data = nullptr;
    size_t size = 0;
    size_t length = 0;
    EXPECT_EQ(acltdtGetBufData(buffer, &data, &size), ACL_SUCCESS);
    EXPECT_EQ(acltdtGetBufDataLen(buffer, &length), ACL_SUCCESS);
    return std::string(static_cast<const char*>(data), length);
  }
  static aclError BindOrNot(bool bind, std::vector<std::pair<uint32_t, uint32_t>> routes,
                            std::vector<int32_t>* states = nullptr) {
    acltdtQueueRouteList* const list = acltdtCreateQueueRouteList();
    for (const auto& [from, to] : routes) {
      acltdtQueueRoute* const route = acltdtCreateQueueRoute(from, to);
      EXPECT_EQ(acltdtAddQueueRoute(list, route), ACL_SUCCESS);
      EXPECT_EQ(acltdtDestroyQueueRoute(route), ACL_SUCCESS);
    }
    const aclError error = bind ? acltdtBindQueueRoutes(list) : acltdtUnbindQueueRoutes(list);
    acltdtQueueRoute* const seen = acltdtCreateQueueRoute(0, 0);
    for (size_t i = 0; states != nullptr && i < acltdtGetQueueRouteNum(list); ++i) {
      int32_t state = -1;
      size_t bytes = 0;
      EXPECT_EQ(acltdtGetQueueRoute(list, i, seen), ACL_SUCCESS);
      EXPECT_EQ(acltdtGetQueueRouteParam(seen, ACL_TDT_QUEUE_ROUTE_STATUS_INT32, 4, &bytes, &state),
                ACL_SUCCESS);
      states->push_back(state);
    }
    EXPECT_EQ(acltdtDestroyQueueRoute(seen), ACL_SUCCESS);
    EXPECT_EQ(acltdtDestroyQueueRouteList(list), ACL_SUCCESS);
    return error;
  }
  // The bound routes that a query of this mode finds, as "from>to" texts.
  static std::string Found(uint32_t mode, uint32_t from, uint32_t to) {
    acltdtQueueRouteQueryInfo* const query = acltdtCreateQueueRouteQueryInfo();
    acltdtQueueRouteList* const list = acltdtCreateQueueRouteList();
    EXPECT_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 4, &mode),
              ACL_SUCCESS);
    EXPECT_EQ(
        acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32, 4, &from),
        ACL_SUCCESS);
    EXPECT_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32, 4, &to),
              ACL_SUCCESS);
    EXPECT_EQ(acltdtQueryQueueRoutes(query, list), ACL_SUCCESS);
    std::string text;
    acltdtQueueRoute* const route = acltdtCreateQueueRoute(0, 0);
    for (size_t i = 0; i < acltdtGetQueueRouteNum(list); ++i) {
      size_t bytes = 0;
      EXPECT_EQ(acltdtGetQueueRoute(list, i, route), ACL_SUCCESS);
      EXPECT_EQ(acltdtGetQueueRouteParam(route, ACL_TDT_QUEUE_ROUTE_SRC_UINT32, 4, &bytes, &from),
                ACL_SUCCESS);
      EXPECT_EQ(acltdtGetQueueRouteParam(route, ACL_TDT_QUEUE_ROUTE_DST_UINT32, 4, &bytes, &to),
                ACL_SUCCESS);
      text += (text.empty() ? "" : " ") + std::to_string(from) + ">" + std::to_string(to);
    }
    EXPECT_EQ(acltdtDestroyQueueRoute(route), ACL_SUCCESS);
    EXPECT_EQ(acltdtDestroyQueueRouteQueryInfo(query), ACL_SUCCESS);
    EXPECT_EQ(acltdtDestroyQueueRouteList(list), ACL_SUCCESS);
    return text;
  }
};

TEST_F(QueueTest, AttributesAreKept) {
  acltdtQueueAttr* const attr = acltdtCreateQueueAttr();
  const char* name = "frames";
  const char* seen = nullptr;
  uint32_t depth = 0;
  size_t bytes = 0;
  ASSERT_EQ(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name), ACL_SUCCESS);
  ASSERT_EQ(acltdtGetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof seen, &bytes, &seen),
            ACL_SUCCESS);
  EXPECT_STREQ(seen, "frames");
  EXPECT_EQ(bytes, sizeof(char*));
  ASSERT_EQ(acltdtGetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &bytes, &depth), ACL_SUCCESS);
  EXPECT_EQ(depth, 2u);
  for (const uint32_t wrong : {0u, 1u, 8193u}) {
    EXPECT_EQ(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &wrong),
              ACL_ERROR_INVALID_PARAM);
  }
  const std::string long_name(128, 'n');
  name = long_name.c_str();
  EXPECT_EQ(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, 4, &name), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtSetQueueAttr(attr, static_cast<acltdtQueueAttrType>(2), 4, &depth),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtGetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, 3, &bytes, &depth),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDestroyQueueAttr(attr), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueueAttr(attr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtSetQueueAttr(nullptr, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &depth),
            ACL_ERROR_INVALID_PARAM);
}

TEST_F(QueueTest, ANameIsOfOneQueue) {
  const uint32_t queue = NewQueue(2, "one");
  acltdtQueueAttr* const attr = acltdtCreateQueueAttr();
  const char* const name = "one";
  ASSERT_EQ(acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name), ACL_SUCCESS);
  uint32_t again = 0;
  EXPECT_EQ(acltdtCreateQueue(attr, &again), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
  EXPECT_EQ(acltdtCreateQueue(attr, &again), ACL_SUCCESS);
  EXPECT_NE(again, queue);
  EXPECT_EQ(acltdtDestroyQueue(again), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueue(again), ACL_ERROR_INVALID_QUEUE_ID);
  EXPECT_EQ(acltdtDestroyQueueAttr(attr), ACL_SUCCESS);
  EXPECT_EQ(acltdtCreateQueue(nullptr, &again), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueue(again), ACL_SUCCESS);
  EXPECT_EQ(acltdtCreateQueue(nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(QueueTest, DataComeOutInOrderFromHostAndDevice) {
  const uint32_t queue = NewQueue(2);
  auto* const device = static_cast<int32_t*>(Allocate(8));
  device[0] = 11;
  device[1] = 12;
  const char user[] = "about it";
  ASSERT_EQ(acltdtEnqueueData(queue, device, 8, user, sizeof user, 0, 0), ACL_SUCCESS);
  ASSERT_EQ(Put(queue, 13), ACL_SUCCESS);
  device[0] = 0;  // the queue has its own copy
  EXPECT_EQ(Put(queue, 14), ACL_ERROR_RT_QUEUE_FULL);
  EXPECT_EQ(Put(queue, 14, 1), ACL_ERROR_RT_QUEUE_FULL);
  size_t bytes = 0;
  int32_t small = 0;
  EXPECT_EQ(acltdtDequeueData(queue, &small, 4, &bytes, nullptr, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(bytes, 8u);  // and it is still there
  char read[sizeof user] = "";
  ASSERT_EQ(acltdtDequeueData(queue, device, 8, &bytes, read, sizeof read, 0), ACL_SUCCESS);
  EXPECT_EQ(device[0], 11);
  EXPECT_EQ(device[1], 12);
  EXPECT_STREQ(read, user);
  EXPECT_EQ(Get(queue), 13);
  EXPECT_EQ(acltdtDequeueData(queue, &small, 4, &bytes, nullptr, 0, 0), ACL_ERROR_RT_QUEUE_EMPTY);
  EXPECT_EQ(acltdtDequeueData(queue, &small, 4, &bytes, nullptr, 0, 1), ACL_ERROR_RT_QUEUE_EMPTY);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
}

TEST_F(QueueTest, RefusesWrongData) {
  const uint32_t queue = NewQueue();
  int32_t number = 1;
  size_t bytes = 0;
  char user[97] = "";
  EXPECT_EQ(acltdtEnqueueData(queue, nullptr, 4, nullptr, 0, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtEnqueueData(queue, &number, 0, nullptr, 0, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtEnqueueData(queue, &number, 4, nullptr, 0, -2, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtEnqueueData(queue, &number, 4, user, 97, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtEnqueueData(queue, &number, 4, nullptr, 1, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtEnqueueData(queue, &number, 4, nullptr, 0, 0, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtEnqueueData(queue + 1, &number, 4, nullptr, 0, 0, 0), ACL_ERROR_INVALID_QUEUE_ID);
  EXPECT_EQ(acltdtDequeueData(queue, nullptr, 4, &bytes, nullptr, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDequeueData(queue, &number, 4, nullptr, nullptr, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDequeueData(queue + 1, &number, 4, &bytes, nullptr, 0, 0),
            ACL_ERROR_INVALID_QUEUE_ID);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
}

TEST_F(QueueTest, BuffersGoInAndComeOut) {
  const uint32_t queue = NewQueue();
  acltdtBuf const buffer = NewBuffer("one");
  ASSERT_EQ(acltdtSetBufUserData(buffer, "user", 5, 91), ACL_SUCCESS);
  ASSERT_EQ(acltdtEnqueue(queue, buffer, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtFreeBuf(buffer), ACL_ERROR_INVALID_PARAM);  // the queue has it
  EXPECT_EQ(acltdtEnqueue(queue, buffer, 0), ACL_ERROR_INVALID_PARAM);
  acltdtBuf received = nullptr;
  ASSERT_EQ(acltdtDequeue(queue, &received, 0), ACL_SUCCESS);
  EXPECT_EQ(TextOf(received), "one");
  char user[5] = "";
  ASSERT_EQ(acltdtGetBufUserData(received, user, 5, 91), ACL_SUCCESS);
  EXPECT_STREQ(user, "user");
  EXPECT_EQ(acltdtDequeue(queue, &received, 0), ACL_ERROR_RT_QUEUE_EMPTY);
  ASSERT_EQ(acltdtEnqueue(queue, received, 0), ACL_SUCCESS);
  ASSERT_EQ(Put(queue, 5), ACL_SUCCESS);
  acltdtBuf const third = NewBuffer("three");
  EXPECT_EQ(acltdtEnqueue(queue, third, 0), ACL_ERROR_RT_QUEUE_FULL);
  EXPECT_EQ(TextOf(third), "three");  // is still the client's
  EXPECT_EQ(acltdtFreeBuf(third), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
  EXPECT_EQ(acltdtEnqueue(queue, NewBuffer("four"), 0), ACL_ERROR_INVALID_QUEUE_ID);
  EXPECT_EQ(acltdtDequeue(queue, &received, 0), ACL_ERROR_INVALID_QUEUE_ID);
  EXPECT_EQ(acltdtDequeue(queue, nullptr, 0), ACL_ERROR_INVALID_PARAM);
}

TEST_F(QueueTest, ChainsTravelWhole) {
  acltdtBuf const head = NewBuffer("head");
  acltdtBuf const part = NewBuffer("part");
  ASSERT_EQ(acltdtAppendBufChain(head, part), ACL_SUCCESS);
  EXPECT_EQ(acltdtAppendBufChain(head, part), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtAppendBufChain(head, head), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtAppendBufChain(part, NewBuffer("x")), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtFreeBuf(part), ACL_ERROR_INVALID_PARAM);
  const uint32_t queue = NewQueue();
  EXPECT_EQ(acltdtEnqueue(queue, part, 0), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(acltdtEnqueue(queue, head, 0), ACL_SUCCESS);
  acltdtBuf received = nullptr;
  ASSERT_EQ(acltdtDequeue(queue, &received, 0), ACL_SUCCESS);
  uint32_t parts = 0;
  ASSERT_EQ(acltdtGetBufChainNum(received, &parts), ACL_SUCCESS);
  EXPECT_EQ(parts, 2u);
  acltdtBuf second = nullptr;
  ASSERT_EQ(acltdtGetBufFromChain(received, 1, &second), ACL_SUCCESS);
  EXPECT_EQ(TextOf(second), "part");
  ASSERT_EQ(acltdtGetBufFromChain(received, 0, &second), ACL_SUCCESS);
  EXPECT_EQ(second, received);
  EXPECT_EQ(acltdtGetBufFromChain(received, 2, &second), ACL_ERROR_INVALID_PARAM);
  for (parts = 2; parts < 128; ++parts) {
    EXPECT_EQ(acltdtAppendBufChain(received, NewBuffer("more")), ACL_SUCCESS);
  }
  EXPECT_EQ(acltdtAppendBufChain(received, NewBuffer("much")), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtFreeBuf(received), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
}

// The functions of acl_rt.h are the same ones.
TEST_F(QueueTest, ReferencesShareBytes) {
  aclrtMbuf buffer = nullptr;
  ASSERT_EQ(aclrtAllocBuf(&buffer, 16), ACL_SUCCESS);
  size_t length = 7;
  ASSERT_EQ(aclrtGetBufDataLen(buffer, &length), ACL_SUCCESS);
  EXPECT_EQ(length, 0u);
  ASSERT_EQ(aclrtSetBufDataLen(buffer, 16), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetBufDataLen(buffer, 17), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtSetBufUserData(buffer, "u", 2, 0), ACL_SUCCESS);
  aclrtMbuf copy = nullptr;
  ASSERT_EQ(aclrtCopyBufRef(buffer, &copy), ACL_SUCCESS);
  void* data = nullptr;
  void* same = nullptr;
  size_t size = 0;
  ASSERT_EQ(aclrtGetBufData(buffer, &data, &size), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetBufData(copy, &same, &size), ACL_SUCCESS);
  EXPECT_EQ(data, same);
  void* const device = Allocate(16);
  EXPECT_EQ(aclrtMemcpy(data, 16, device, 16, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  char user[2] = "";
  ASSERT_EQ(aclrtGetBufUserData(copy, user, 2, 0), ACL_SUCCESS);
  EXPECT_STREQ(user, "u");
  ASSERT_EQ(aclrtAppendBufChain(buffer, copy), ACL_SUCCESS);
  uint32_t parts = 0;
  ASSERT_EQ(aclrtGetBufChainNum(buffer, &parts), ACL_SUCCESS);
  EXPECT_EQ(parts, 2u);
  aclrtMbuf part = nullptr;
  ASSERT_EQ(aclrtGetBufFromChain(buffer, 1, &part), ACL_SUCCESS);
  EXPECT_EQ(part, copy);
  EXPECT_EQ(aclrtFreeBuf(buffer), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeBuf(buffer), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreeBuf(copy), ACL_ERROR_INVALID_PARAM);  // freed with its head
}

TEST_F(QueueTest, RefusesWrongBuffers) {
  acltdtBuf buffer = nullptr;
  EXPECT_EQ(acltdtAllocBuf(0, ACL_TDT_NORMAL_MEM, &buffer), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtAllocBuf((size_t{4} << 30) + 1, ACL_TDT_NORMAL_MEM, &buffer),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtAllocBuf(64, ACL_TDT_DVPP_MEM, &buffer), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtAllocBuf(64, ACL_TDT_NORMAL_MEM, nullptr), ACL_ERROR_INVALID_PARAM);
  buffer = NewBuffer("b");
  EXPECT_EQ(acltdtSetBufUserData(buffer, "user", 5, 92), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtSetBufUserData(buffer, nullptr, 5, 0), ACL_ERROR_INVALID_PARAM);
  char user[97];
  EXPECT_EQ(acltdtGetBufUserData(buffer, user, 97, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtGetBufData(buffer, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtGetBufDataLen(buffer, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtCopyBufRef(buffer, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtCopyBufRef(nullptr, &buffer), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtGetBufChainNum(buffer, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtGetBufFromChain(buffer, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtFreeBuf(buffer), ACL_SUCCESS);
}

TEST_F(QueueTest, WaitsEndWithTheQueue) {
  const uint32_t queue = NewQueue();
  std::thread waiting([&] {
    acltdtBuf buffer = nullptr;
    EXPECT_EQ(acltdtDequeue(queue, &buffer, -1), ACL_ERROR_INVALID_QUEUE_ID);
  });
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
  waiting.join();
}

TEST_F(QueueTest, AllQueuesOfARouteGetEverything) {
  constexpr int32_t kCount = 2000;
  const uint32_t source = NewQueue();
  const uint32_t left = NewQueue(3);
  const uint32_t middle = NewQueue(2);
  const uint32_t right = NewQueue(5);
  ASSERT_EQ(BindOrNot(true, {{source, left}, {source, middle}, {middle, right}}), ACL_SUCCESS);
  std::thread producer([&] {
    for (int32_t i = 0; i < kCount; ++i) EXPECT_EQ(Put(source, i, -1), ACL_SUCCESS);
  });
  const auto take = [](uint32_t queue) {
    for (int32_t i = 0; i < kCount; ++i) EXPECT_EQ(Get(queue, -1), i);
  };
  std::thread other([&] { take(left); });
  take(right);
  other.join();
  producer.join();
  for (const uint32_t queue : {source, left, middle, right}) EXPECT_EQ(Get(queue), -1);
  EXPECT_EQ(acltdtDestroyQueue(middle), ACL_ERROR_INVALID_PARAM);  // routes are bound
  ASSERT_EQ(BindOrNot(false, {{source, left}, {source, middle}, {middle, right}}), ACL_SUCCESS);
  for (const uint32_t queue : {source, left, middle, right}) {
    EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
  }
}

TEST_F(QueueTest, FullTargetsHoldTheirSource) {
  const uint32_t source = NewQueue(2);
  const uint32_t open = NewQueue(8);
  const uint32_t narrow = NewQueue(2);
  ASSERT_EQ(Put(source, 0), ACL_SUCCESS);
  ASSERT_EQ(BindOrNot(true, {{source, open}, {source, narrow}}), ACL_SUCCESS);
  for (int32_t i = 1; i < 4; ++i) EXPECT_EQ(Put(source, i), ACL_SUCCESS);
  EXPECT_EQ(Put(source, 4), ACL_ERROR_RT_QUEUE_FULL);
  EXPECT_EQ(Get(open), 0);
  EXPECT_EQ(Get(open), 1);
  EXPECT_EQ(Get(open), -1);  // waits for the narrow one
  EXPECT_EQ(Get(narrow), 0);
  EXPECT_EQ(Get(open), 2);
  ASSERT_EQ(BindOrNot(false, {{source, open}, {source, narrow}}), ACL_SUCCESS);
  EXPECT_EQ(Get(source), 3);
  for (const uint32_t queue : {source, open, narrow}) {
    EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
  }
}

TEST_F(QueueTest, RoutesAreCheckedAndFound) {
  const uint32_t a = NewQueue();
  const uint32_t b = NewQueue();
  const uint32_t c = NewQueue();
  std::vector<int32_t> states;
  EXPECT_EQ(BindOrNot(true, {{a, b}, {b, a}, {b, c}, {c, a}, {a, c + 1}, {a, a}}, &states),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(states, (std::vector<int32_t>{1, 2, 1, 2, 2, 2}));
  const auto text = [](uint32_t from, uint32_t to) {
    return std::to_string(from) + ">" + std::to_string(to);
  };
  EXPECT_EQ(Found(ACL_TDT_QUEUE_ROUTE_QUERY_SRC, a, 0), text(a, b));
  EXPECT_EQ(Found(ACL_TDT_QUEUE_ROUTE_QUERY_DST, 0, c), text(b, c));
  EXPECT_EQ(Found(ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST, b, c), text(b, c));
  EXPECT_EQ(Found(ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST, a, c), "");
  EXPECT_EQ(Found(ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL, a, b), "");
  states.clear();
  EXPECT_EQ(BindOrNot(false, {{a, b}, {a, c}, {b, c}}, &states), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(states, (std::vector<int32_t>{0, 0, 0}));
  EXPECT_EQ(BindOrNot(true, {}), ACL_ERROR_INVALID_PARAM);

  acltdtQueueRouteQueryInfo* const query = acltdtCreateQueueRouteQueryInfo();
  acltdtQueueRouteList* const list = acltdtCreateQueueRouteList();
  EXPECT_EQ(acltdtQueryQueueRoutes(query, list), ACL_ERROR_INVALID_PARAM);  // no mode
  uint32_t mode = ACL_TDT_QUEUE_ROUTE_QUERY_DST;
  EXPECT_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 4, &mode),
            ACL_SUCCESS);
  EXPECT_EQ(acltdtQueryQueueRoutes(query, list), ACL_ERROR_INVALID_PARAM);  // no destination
  mode = 3;
  EXPECT_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 4, &mode),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 8, &mode),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtQueryQueueRoutes(query, nullptr), ACL_ERROR_INVALID_PARAM);
  acltdtQueueRoute* const route = acltdtCreateQueueRoute(1, 2);
  EXPECT_EQ(acltdtGetQueueRoute(list, 0, route), ACL_ERROR_INVALID_PARAM);
  size_t bytes = 0;
  EXPECT_EQ(
      acltdtGetQueueRouteParam(route, static_cast<acltdtQueueRouteParamType>(3), 4, &bytes, &mode),
      ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtGetQueueRouteParam(route, ACL_TDT_QUEUE_ROUTE_SRC_UINT32, 2, &bytes, &mode),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDestroyQueueRoute(route), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueueRoute(route), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDestroyQueueRouteList(list), ACL_SUCCESS);
  EXPECT_EQ(acltdtGetQueueRouteNum(list), 0u);
  EXPECT_EQ(acltdtDestroyQueueRouteQueryInfo(query), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueueRouteQueryInfo(query), ACL_ERROR_INVALID_PARAM);
  for (const uint32_t queue : {a, b, c}) EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
}

TEST_F(QueueTest, QueuesAreThoseOfTheProcess) {
  const uint32_t queue = NewQueue();
  uint32_t permission = 0;
  EXPECT_EQ(acltdtAttachQueue(queue, 0, &permission), ACL_SUCCESS);
  EXPECT_EQ(permission, 7u);
  EXPECT_EQ(acltdtGrantQueue(queue, getpid(), ACL_TDT_QUEUE_PERMISSION_DEQUEUE, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtGrantQueue(queue, getppid(), ACL_TDT_QUEUE_PERMISSION_DEQUEUE, 0),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(acltdtGrantQueue(queue, getpid(), 8, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtAttachQueue(queue + 1, 0, &permission), ACL_ERROR_INVALID_QUEUE_ID);
  EXPECT_EQ(acltdtAttachQueue(queue, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
}

}  // namespace
}  // namespace npumesh
