// What the client programs share: written as for a real NPU.
#ifndef NPUMESH_TESTS_MPI_ACL_CLIENT_H_
#define NPUMESH_TESTS_MPI_ACL_CLIENT_H_

#include <cstdio>

#include "acl/acl.h"

#define CHECK(call)                                                                  \
  do {                                                                               \
    const aclError code = (call);                                                    \
    if (code != ACL_SUCCESS) {                                                       \
      const char* text = aclGetRecentErrMsg();                                       \
      std::fprintf(stderr, "%s:%d: %s is %d: %s\n", __FILE__, __LINE__, #call, code, \
                   text == nullptr ? "" : text);                                     \
      return 1;                                                                      \
    }                                                                                \
  } while (false)

#define EXPECT(condition)                                                           \
  do {                                                                              \
    if (!(condition)) {                                                             \
      std::fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                     \
    }                                                                               \
  } while (false)

// Copies through the device on a stream, with an event on each side.
inline int UseDevice(int32_t device) {
  const size_t bytes = 1 << 20;
  CHECK(aclrtSetDevice(device));
  int32_t current = -1;
  CHECK(aclrtGetDevice(&current));
  EXPECT(current == device);
  aclrtStream stream = nullptr;
  aclrtEvent start = nullptr;
  aclrtEvent end = nullptr;
  void* device_memory = nullptr;
  void* host = nullptr;
  CHECK(aclrtCreateStream(&stream));
  CHECK(aclrtCreateEvent(&start));
  CHECK(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
  CHECK(aclrtMalloc(&device_memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMallocHost(&host, bytes));
  CHECK(aclrtRecordEvent(start, stream));
  CHECK(aclrtMemsetAsync(device_memory, bytes, 3 + device, bytes, stream));
  CHECK(aclrtMemcpyAsync(host, bytes, device_memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK(aclrtRecordEvent(end, stream));
  CHECK(aclrtSynchronizeStream(stream));
  float ms = -1;
  CHECK(aclrtEventElapsedTime(&ms, start, end));
  EXPECT(ms > 0);
  EXPECT(static_cast<char*>(host)[bytes - 1] == 3 + device);
  CHECK(aclrtFreeHost(host));
  CHECK(aclrtFree(device_memory));
  CHECK(aclrtDestroyEvent(start));
  CHECK(aclrtDestroyEvent(end));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(device));
  return 0;
}

#endif  // NPUMESH_TESTS_MPI_ACL_CLIENT_H_
