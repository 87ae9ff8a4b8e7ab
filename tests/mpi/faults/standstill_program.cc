// A program as the vendor's samples are, whose ranks wait without end, or only seem to.
//
//   standstill_program circle|host|message|batch|ended    certain deadlocks
//   standstill_program seeming SEED                       a race without one
//   standstill_program loop                               work without an end
//
// With a further word, own-mpi, the program starts MPI itself, as the vendor's tests do. It does
// not finish it: after a deadlock the ranks would not meet there.
//
// Ends with code 5 when a stream has failed, 1 when something else is wrong.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace {

constexpr int kComms = 3;
constexpr uint64_t kCount = 8;

[[noreturn]] void GiveUp(const char* what) {
  const char* why = aclGetRecentErrMsg();
  fprintf(stderr, "not so: %s: %s\n", what, why ? why : "");
  exit(1);
}

void Expect(bool holds, const char* what) {
  if (!holds) GiveUp(what);
}

int Number(const char* name, const char* of_mpich) {
  const char* text = getenv(name);
  if (text == nullptr) text = getenv(of_mpich);
  Expect(text != nullptr, name);
  int value = 0;
  for (; *text != 0; ++text) value = value * 10 + (*text - '0');
  return value;
}

void SleepMs(uint32_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// This rank: its communicators over all ranks, a stream and a buffer for each.
struct Rank {
  int rank = Number("OMPI_COMM_WORLD_RANK", "PMI_RANK");
  int size = Number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
  int device = Number("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID");
  HcclComm comm[kComms] = {};
  aclrtStream stream[kComms] = {};
  float* data[kComms] = {};

  Rank() {
    Expect(aclInit(nullptr) == ACL_SUCCESS && aclrtSetDevice(device) == ACL_SUCCESS, "a device");
    MakeWorld();
    std::vector<uint32_t> everyone;
    for (int r = 0; r < size; ++r) everyone.push_back(static_cast<uint32_t>(r));
    for (int i = 1; i < kComms; ++i) {
      HcclCommConfig config;
      HcclCommConfigInit(&config);
      Expect(HcclCreateSubCommConfig(&comm[0], static_cast<uint32_t>(size), everyone.data(),
                                     static_cast<uint64_t>(i), static_cast<uint32_t>(rank), &config,
                                     &comm[i]) == HCCL_SUCCESS,
             "a sub-communicator");
    }
    for (int i = 0; i < kComms; ++i) {
      void* block = nullptr;
      Expect(aclrtCreateStream(&stream[i]) == ACL_SUCCESS, "a stream");
      Expect(aclrtMalloc(&block, kCount * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS,
             "memory");
      data[i] = static_cast<float*>(block);
    }
  }

  void MakeWorld() {
    const auto path =
        std::filesystem::temp_directory_path() /
        ("npumesh_standstill_" + std::to_string(getppid()) + "_" + std::to_string(rank) + ".json");
    {
      std::ofstream file(path);
      file << R"({"version": "1.0", "status": "completed", "server_list": [{"server_id": "s",)"
           << R"("device": [)";
      for (int r = 0; r < size; ++r) {
        file << (r ? "," : "") << R"({"rank_id": ")" << r << R"(", "device_id": ")" << r << "\"}";
      }
      file << "]}]}";
    }
    const HcclResult made =
        HcclCommInitClusterInfo(path.c_str(), static_cast<uint32_t>(rank), &comm[0]);
    std::filesystem::remove(path);
    Expect(made == HCCL_SUCCESS, "a communicator");
  }

  void Reduce(int group, int on) {
    Expect(HcclAllReduce(data[group], data[group], kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX,
                         comm[group], stream[on]) == HCCL_SUCCESS,
           "allreduce");
  }

  void Broadcast(int group, int on) {
    Expect(HcclBroadcast(data[group], kCount, HCCL_DATA_TYPE_FP32, 0, comm[group], stream[on]) ==
               HCCL_SUCCESS,
           "broadcast");
  }

  // The code of a program whose streams are done.
  int Synchronize() {
    int code = 0;
    for (const aclrtStream each : stream) {
      if (const aclError error = aclrtSynchronizeStream(each); error != ACL_SUCCESS) {
        printf("aclrtSynchronizeStream -> acl %d\n", error);
        code = 5;
      }
    }
    return code;
  }
};

// The first two groups in opposite orders. `pause_ms`: long enough for a worker to take the work.
int Circle(Rank& me, uint32_t pause_ms) {
  const int first = me.rank == 0 ? 0 : 1;
  me.Reduce(first, 0);
  me.Reduce(1 - first, 0);
  SleepMs(pause_ms);
  return me.Synchronize();
}

// Rank 0 waits for a message, the others for rank 0.
int Message(Rank& me) {
  if (me.rank == 0) {
    Expect(HcclRecv(me.data[0], kCount, HCCL_DATA_TYPE_FP32, 1, me.comm[0], me.stream[0]) ==
               HCCL_SUCCESS,
           "recv");
  } else {
    me.Reduce(0, 0);
  }
  return me.Synchronize();
}

// Rank 0 sends and receives at once, and no rank answers.
int Batch(Rank& me) {
  if (me.rank != 0) {
    me.Reduce(0, 0);
    return me.Synchronize();
  }
  HcclSendRecvItem items[2] = {};
  items[0] = {HCCL_SEND, me.data[0], kCount, HCCL_DATA_TYPE_FP32, 1};
  items[1] = {HCCL_RECV, me.data[1], kCount, HCCL_DATA_TYPE_FP32, 1};
  Expect(HcclBatchSendRecv(items, 2, me.comm[0], me.stream[0]) == HCCL_SUCCESS, "batch");
  return me.Synchronize();
}

// Until it is killed or goes on.
int Loop(Rank& me) {
  for (int code = 0; code == 0; code = me.Synchronize()) {
    me.Reduce(0, 0);
    me.Broadcast(1, 1);
    me.Reduce(2, 2);
  }
  return 5;
}

// Rank 1 ends its work after one call.
int Ended(Rank& me) {
  const int calls = me.rank == 1 ? 1 : 2;
  for (int i = 0; i < calls; ++i) me.Reduce(0, 0);
  return me.Synchronize();
}

// Every group has a thread, or a stream, that calls it in order, at times that have nothing to do
// with each other: at any moment ranks may seem to wait in circles, but all of them come.
class Seeming {
 public:
  Seeming(Rank& me, unsigned seed) : me_(me), shape_(seed) {}

  int Run() {
    std::vector<std::thread> threads;
    for (int group = 0; group < kComms; ++group) {
      const auto kind = shape_() % 4;  // alike on all ranks
      const unsigned calls = 3 + shape_() % 3;
      const unsigned seed = shape_() * 64 + static_cast<unsigned>(me_.rank);
      switch (kind) {
        case 0:
          threads.emplace_back([=, this] { ByThread(group, calls, seed); });
          break;
        case 1:
          threads.emplace_back([=, this] { OneByOne(group, calls, seed); });
          break;
        default:
          ByStream(group, calls, seed);
      }
    }
    const int code = shape_() % 2 == 0 ? me_.Synchronize() : 0;
    for (std::thread& thread : threads) thread.join();
    return std::max(code, me_.Synchronize());
  }

 private:
  static uint32_t Pause(std::minstd_rand& random) {
    return random() % 3 == 0 ? static_cast<uint32_t>(500 + random() % 5500) : 0;
  }

  void Call(int group, unsigned number) {
    if (number % 2 == 0) {
      me_.Reduce(group, group);
    } else {
      me_.Broadcast(group, group);
    }
  }

  // A thread that is unknown before its first call.
  void ByThread(int group, unsigned calls, unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (unsigned i = 0; i < calls; ++i) {
      SleepMs(Pause(random));
      if (i == 0) Expect(aclrtSetDevice(me_.device) == ACL_SUCCESS, "a device");
      Call(group, i);
    }
  }

  // Waits for each call.
  void OneByOne(int group, unsigned calls, unsigned seed) {
    std::minstd_rand random(seed + 2);
    Expect(aclrtSetDevice(me_.device) == ACL_SUCCESS, "a device");
    for (unsigned i = 0; i < calls; ++i) {
      SleepMs(Pause(random));
      Call(group, i);
      Expect(aclrtSynchronizeStream(me_.stream[group]) == ACL_SUCCESS, "synchronised");
    }
  }

  // The stream itself is late.
  void ByStream(int group, unsigned calls, unsigned seed) {
    std::minstd_rand random(seed + 3);
    for (unsigned i = 0; i < calls; ++i) {
      pauses_.push_back(std::make_unique<uint32_t>(Pause(random)));
      const auto sleep = [](void* ms) { SleepMs(*static_cast<uint32_t*>(ms)); };
      Expect(aclrtLaunchHostFunc(me_.stream[group], sleep, pauses_.back().get()) == ACL_SUCCESS,
             "a host function");
      Call(group, i);
    }
  }

  Rank& me_;
  std::minstd_rand shape_;
  std::vector<std::unique_ptr<uint32_t>> pauses_;
};

int Run(const std::string& what, const char* seed) {
  Rank me;
  if (what == "circle") return Circle(me, 0);
  if (what == "host") return Circle(me, 200);
  if (what == "message") return Message(me);
  if (what == "batch") return Batch(me);
  if (what == "ended") return Ended(me);
  if (what == "loop") return Loop(me);
  if (what != "seeming" || seed == nullptr) GiveUp("a known case");
  unsigned value = 0;
  for (; *seed != 0; ++seed) value = value * 10 + static_cast<unsigned>(*seed - '0');
  return Seeming(me, value + 1).Run();
}

}  // namespace

int main(int argc, char** argv) {
  const bool own_mpi = argc > 2 && std::string(argv[argc - 1]) == "own-mpi";
  if (own_mpi) MPI_Init(&argc, &argv);
  const int code = Run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : nullptr);
  aclFinalize();
  printf("ended with %d\n", code);
  return code;
}
