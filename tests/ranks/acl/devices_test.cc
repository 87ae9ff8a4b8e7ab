#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "runtime/acl/process/device_context.h"

namespace npumesh {
namespace {

// Starts `devices` devices and runs `body(device)` on a thread for each, device 0 having been set
// by the main thread before, as the vendor's examples do.
void OnDevices(int devices, const std::function<void(int)>& body) {
  setenv("NPUMESH_HBM_SIZE", "8M", 1);
  setenv("NPUMESH_DEVICE_COUNT", std::to_string(devices).c_str(), 1);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  std::vector<std::thread> threads;
  for (int device = 0; device < devices; ++device) {
    threads.emplace_back([&body, device] {
      EXPECT_EQ(aclrtSetDevice(device), ACL_SUCCESS);
      body(device);
      EXPECT_EQ(aclrtResetDevice(device), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(AclDevices, EachThreadHasARankOfOneWorld) {
  for (const int devices : {1, 2, 4, 8}) {
    OnDevices(devices, [devices](int device) {
      const Result<AclDevice*> current = CurrentDevice();
      ASSERT_TRUE(current.ok()) << current.status().ToString();
      EXPECT_EQ((*current)->world.rank(), device);
      EXPECT_EQ((*current)->world.size(), devices);
      EXPECT_EQ((*current)->world.local_size(), devices);
      uint32_t count = 0;
      EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
      EXPECT_EQ(count, static_cast<uint32_t>(devices));
    });
  }
}

TEST(AclDevices, WorkSideBySide) {
  std::atomic<int> sum{0};
  OnDevices(4, [&sum](int device) {
    aclrtStream stream = nullptr;
    void* block = nullptr;
    void* host = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtMalloc(&block, sizeof(int), ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMallocHost(&host, sizeof(int)), ACL_SUCCESS);
    for (int i = 0; i < 100; ++i) {
      *static_cast<int*>(host) = device + i;
      EXPECT_EQ(aclrtMemcpyAsync(block, 4, host, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream),
                ACL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      int back = 0;
      EXPECT_EQ(aclrtMemcpy(&back, 4, block, 4, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
      sum += back;
    }
    EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
    EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  });
  EXPECT_EQ(sum, 4 * 4950 + 100 * (0 + 1 + 2 + 3));
}

TEST(AclDevices, SeeEachOthersMemoryThroughTheWindow) {
  std::vector<std::atomic<uint64_t>> offsets(2);  // plus one; 0: not there yet
  std::atomic<int> seen{0};
  OnDevices(2, [&](int device) {
    void* block = nullptr;
    ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemset(block, 64, device + 1, 64), ACL_SUCCESS);
    DeviceMemory& memory = (*CurrentDevice())->memory;
    offsets[static_cast<size_t>(device)] = memory.OffsetOf(block) + 1;
    const int peer = 1 - device;
    while (offsets[static_cast<size_t>(peer)] == 0) std::this_thread::yield();
    const std::byte* theirs = memory.PeerAddress(peer, offsets[static_cast<size_t>(peer)] - 1);
    EXPECT_EQ(static_cast<int>(theirs[0]), peer + 1);
    ++seen;
    while (seen < 2) std::this_thread::yield();
  });
}

// Device 0's stream waits for an event of device 1's stream, whose host synchronises nothing.
TEST(AclDevices, AnEventOfAnotherDeviceHoldsAStream) {
  std::atomic<aclrtEvent> event{nullptr};
  std::atomic<bool> passed{false};
  OnDevices(2, [&](int device) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    if (device == 1) {
      aclrtEvent made = nullptr;
      ASSERT_EQ(aclrtCreateEvent(&made), ACL_SUCCESS);
      ASSERT_EQ(aclrtRecordEvent(made, stream), ACL_SUCCESS);
      event = made;
      while (!passed) std::this_thread::yield();
      return;
    }
    while (event == nullptr) std::this_thread::yield();
    EXPECT_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    passed = true;
  });
}

TEST(AclDevices, ThatFirstMeetInThreadsStartOnce) {
  setenv("NPUMESH_HBM_SIZE", "8M", 1);
  setenv("NPUMESH_DEVICE_COUNT", "4", 1);
  std::vector<World*> worlds(4);
  std::vector<std::thread> threads;
  for (int device = 0; device < 4; ++device) {
    threads.emplace_back([&worlds, device] {
      EXPECT_EQ(aclrtSetDevice(device), ACL_SUCCESS);
      worlds[static_cast<size_t>(device)] = &(*CurrentDevice())->world;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int device = 0; device < 4; ++device) {
    EXPECT_EQ(worlds[static_cast<size_t>(device)]->rank(), device);
  }
  EXPECT_EQ(aclFinalize(),
            ACL_SUCCESS);  // there is something to end, though aclInit was not called
}

}  // namespace
}  // namespace npumesh
