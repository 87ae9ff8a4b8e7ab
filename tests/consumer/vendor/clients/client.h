// What every client needs: start, one communicator, device arrays, an end. Written like the
// programs that run on real NPUs: C++11, the vendor's headers, MPI only to carry the root info.
//
//   mpirun -n 4 ./allreduce     a process for each device
//   ./allreduce threads         a thread for each device of this process
#ifndef NPUMESH_TESTS_CONSUMER_VENDOR_CLIENT_H_
#define NPUMESH_TESTS_CONSUMER_VENDOR_CLIENT_H_

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "hccl/hccl_types.h"

struct Rank {
  int rank;
  int size;
  HcclComm comm;
  aclrtStream stream;
};

#define CHECK_ACL(call)                                                         \
  do {                                                                          \
    const aclError error = (call);                                              \
    if (error != ACL_SUCCESS) {                                                 \
      const char* why = aclGetRecentErrMsg();                                   \
      fprintf(stderr, "%s: acl error %d: %s\n", #call, error, why ? why : "-"); \
      return false;                                                             \
    }                                                                           \
  } while (0)

#define CHECK_HCCL(call)                                                              \
  do {                                                                                \
    const HcclResult error = (call);                                                  \
    if (error != HCCL_SUCCESS) {                                                      \
      const char* why = aclGetRecentErrMsg();                                         \
      fprintf(stderr, "%s: hccl error %d (%s): %s\n", #call, static_cast<int>(error), \
              HcclGetErrorString(error), why ? why : "-");                            \
      return false;                                                                   \
    }                                                                                 \
  } while (0)

// Ends the program where a check cannot return: wrong bytes must not pass for the result of a call.
inline void MustSucceed(const char* what, aclError error) {
  if (error == ACL_SUCCESS) return;
  const char* why = aclGetRecentErrMsg();
  fprintf(stderr, "%s: acl error %d: %s\n", what, error, why ? why : "-");
  exit(1);
}

// An array in device memory.
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<float>& values) : bytes_(values.size() * sizeof(float)) {
    MustSucceed("aclrtMalloc", aclrtMalloc(&data_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST));
    MustSucceed("aclrtMemcpy",
                aclrtMemcpy(data_, bytes_, values.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  ~DeviceArray() { aclrtFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  void* get() const { return data_; }
  std::vector<float> values() const {
    std::vector<float> host(bytes_ / sizeof(float));
    MustSucceed("aclrtMemcpy",
                aclrtMemcpy(host.data(), bytes_, data_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

inline bool Equal(const Rank& me, const std::vector<float>& seen,
                  const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (seen[i] == expected[i]) continue;
    fprintf(stderr, "rank %d: element %zu is %g, expected %g\n", me.rank, i,
            static_cast<double>(seen[i]), static_cast<double>(expected[i]));
    return false;
  }
  return true;
}

typedef bool (*Body)(const Rank& me);

inline bool RunRank(int device, int rank, int size, const HcclRootInfo& root, Body body) {
  Rank me = {rank, size, nullptr, nullptr};
  CHECK_ACL(aclrtSetDevice(device));
  CHECK_ACL(aclrtCreateStream(&me.stream));
  CHECK_HCCL(HcclCommInitRootInfo(static_cast<uint32_t>(size), &root, static_cast<uint32_t>(rank),
                                  &me.comm));
  const bool passed = body(me);
  CHECK_HCCL(HcclCommDestroy(me.comm));
  CHECK_ACL(aclrtDestroyStream(me.stream));
  CHECK_ACL(aclrtResetDevice(device));
  return passed;
}

inline bool RunThreads(Body body) {
  uint32_t count = 0;
  CHECK_ACL(aclrtGetDeviceCount(&count));
  CHECK_ACL(aclrtSetDevice(0));
  HcclRootInfo root;
  CHECK_HCCL(HcclGetRootInfo(&root));
  const int size = static_cast<int>(count);
  std::vector<char> passed(count, 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.push_back(std::thread(
        [&, rank] { passed[static_cast<size_t>(rank)] = RunRank(rank, rank, size, root, body); }));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_ACL(aclrtResetDevice(0));
  for (char each : passed) {
    if (!each) return false;
  }
  return size > 1;
}

inline bool RunProcess(Body body) {
  int rank = 0;
  int size = 0;
  uint32_t count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK_ACL(aclrtGetDeviceCount(&count));
  const int device = rank % static_cast<int>(count);
  CHECK_ACL(aclrtSetDevice(device));
  HcclRootInfo root;
  if (rank == 0) CHECK_HCCL(HcclGetRootInfo(&root));
  MPI_Bcast(&root, HCCL_ROOT_INFO_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
  return RunRank(device, rank, size, root, body);
}

inline int RunClient(int argc, char** argv, Body body) {
  const bool threads = argc > 1 && std::string(argv[1]) == "threads";
  if (!threads) MPI_Init(&argc, &argv);
  bool passed = aclInit(nullptr) == ACL_SUCCESS;
  passed = passed && (threads ? RunThreads(body) : RunProcess(body));
  passed = aclFinalize() == ACL_SUCCESS && passed;
  if (!threads) MPI_Finalize();
  printf("%s\n", passed ? "passed" : "FAILED");
  return passed ? 0 : 1;
}

#endif  // NPUMESH_TESTS_CONSUMER_VENDOR_CLIENT_H_
