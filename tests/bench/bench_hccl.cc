// What the C interface costs on top of the communicator: one operator and the synchronisation of
// its stream, at one rank, beside the same call of Communicator.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "collectives/communicator.h"
#include "hccl/hccl.h"
#include "runtime/acl/process/device_context.h"

namespace npumesh {
namespace {

constexpr uint64_t kCount = 16;

// The only rank of a world, with a communicator of either interface and two buffers.
class OneRank {
 public:
  static OneRank& OfProcess() {
    static OneRank rank;
    return rank;
  }

  Communicator& group() { return *group_; }
  HcclComm comm() const { return comm_; }
  aclrtStream stream() const { return stream_; }
  float* send() const { return send_; }
  float* recv() const { return recv_; }

 private:
  OneRank() {
    Check(aclInit(nullptr) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS);
    AclDevice& device = **CurrentDevice();
    group_ = *Communicator::Create(device.world, device.memory, "beside", {0});
    HcclRootInfo root;
    Check(HcclGetRootInfo(&root) == HCCL_SUCCESS);
    Check(HcclCommInitRootInfo(1, &root, 0, &comm_) == HCCL_SUCCESS);
    Check(aclrtCreateStream(&stream_) == ACL_SUCCESS);
    send_ = static_cast<float*>(*device.memory.Allocate(kCount * sizeof(float)));
    recv_ = static_cast<float*>(*device.memory.Allocate(kCount * sizeof(float)));
  }
  static void Check(bool ok) {
    if (!ok) std::exit(1);
  }

  std::unique_ptr<Communicator> group_;
  HcclComm comm_ = nullptr;
  aclrtStream stream_ = nullptr;
  float* send_ = nullptr;
  float* recv_ = nullptr;
};

void CommunicatorAllReduce(benchmark::State& state) {
  OneRank& rank = OneRank::OfProcess();
  for (auto _ : state) {
    const Status done =
        rank.group().AllReduce(rank.send(), rank.recv(), kCount, DataType::kFloat, ReduceOp::kSum);
    if (!done.ok()) state.SkipWithError("AllReduce failed");
  }
}
BENCHMARK(CommunicatorAllReduce);

void HcclAllReduceAndSynchronize(benchmark::State& state) {
  OneRank& rank = OneRank::OfProcess();
  for (auto _ : state) {
    const HcclResult issued = HcclAllReduce(rank.send(), rank.recv(), kCount, HCCL_DATA_TYPE_FP32,
                                            HCCL_REDUCE_SUM, rank.comm(), rank.stream());
    const aclError done = aclrtSynchronizeStream(rank.stream());
    if (issued != HCCL_SUCCESS || done != ACL_SUCCESS) state.SkipWithError("HcclAllReduce failed");
  }
}
BENCHMARK(HcclAllReduceAndSynchronize);

// Nothing is queued: what looking the stream up and asking it costs.
void SynchronizeIdle(benchmark::State& state) {
  OneRank& rank = OneRank::OfProcess();
  for (auto _ : state) benchmark::DoNotOptimize(aclrtSynchronizeStream(rank.stream()));
}
BENCHMARK(SynchronizeIdle);

}  // namespace
}  // namespace npumesh
