// Ring 3: communicators of a rank table, and of a root info that travels by file.
//
//   hccl_mpi table    all ranks, numbered backwards by a rank table, reduce
//   hccl_mpi absent   the last rank does not come; the others are told which one is missing
//   hccl_mpi root FILE [PREFIX]   all ranks, which may be on several hosts, meet by a root info in
//                     FILE, whose address begins with PREFIX, and gather
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "runtime/acl/process/device_context.h"

namespace npumesh {
namespace {

bool Expect(bool holds, const char* what) {
  if (!holds) fprintf(stderr, "not so: %s\n", what);
  return holds;
}

// A file that all ranks of this run name alike: they have one parent, mpirun.
std::string SharedPath(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path();
  return (folder / ("npumesh_hccl_" + std::to_string(getppid()) + name)).string();
}

// Rank i stands on device n - 1 - i.
void WriteTable(const std::string& path, int ranks) {
  std::ofstream file(path);
  file << R"({"version": "1.0", "status": "completed", "server_list": [{"server_id": "s",)"
       << R"("device": [)";
  for (int rank = 0; rank < ranks; ++rank) {
    file << (rank ? "," : "") << R"({"rank_id": ")" << rank << R"(", "device_id": ")"
         << ranks - 1 - rank << "\"}";
  }
  file << "]}]}";
}

// Every rank gives its number; they come back in the order of the communicator.
bool GathersInOrder(HcclComm comm, uint32_t rank, int ranks) {
  void* block = nullptr;
  aclrtStream stream = nullptr;
  const size_t bytes = static_cast<size_t>(ranks + 1) * sizeof(float);
  if (aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return false;
  if (aclrtCreateStream(&stream) != ACL_SUCCESS) return false;
  auto* const values = static_cast<float*>(block);
  values[0] = static_cast<float>(rank);
  bool passed =
      HcclAllGather(values, values + 1, 1, HCCL_DATA_TYPE_FP32, comm, stream) == HCCL_SUCCESS &&
      aclrtSynchronizeStream(stream) == ACL_SUCCESS;
  for (int r = 0; r < ranks; ++r) {
    passed = Expect(values[1 + r] == static_cast<float>(r), "gathered in order") && passed;
  }
  aclrtDestroyStream(stream);
  aclrtFree(block);
  return passed;
}

bool ReduceByTable(World& world) {
  const std::string path = SharedPath("_" + std::to_string(world.rank()) + ".json");
  WriteTable(path, world.size());
  const auto rank = static_cast<uint32_t>(world.size() - 1 - world.rank());
  HcclComm comm = nullptr;
  HcclComm second = nullptr;
  bool passed = Expect(HcclCommInitClusterInfo(path.c_str(), rank, &comm) == HCCL_SUCCESS, "made");
  passed = passed && Expect(HcclCommInitClusterInfo(path.c_str(), rank, &second) == HCCL_E_UNAVAIL,
                            "one of a table for each device");
  std::filesystem::remove(path);
  if (!passed) return false;
  passed = GathersInOrder(comm, rank, world.size());
  return Expect(HcclCommDestroy(comm) == HCCL_SUCCESS, "destroyed") && passed;
}

// The root info that rank 0 has made, by way of a file.
bool ShareRoot(World& world, const std::string& path, HcclRootInfo* root) {
  if (world.rank() == 0) {
    if (HcclGetRootInfo(root) != HCCL_SUCCESS) return false;
    std::ofstream(path + "_", std::ios::binary).write(root->internal, sizeof(*root));
    std::filesystem::rename(path + "_", path);
  }
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::ifstream(path, std::ios::binary).read(root->internal, sizeof(*root));
  return true;
}

bool MeetByRoot(World& world, const std::string& path, const std::string& prefix) {
  HcclRootInfo root;
  if (!ShareRoot(world, path, &root)) return false;
  if (!Expect(std::string(root.internal).starts_with(prefix), root.internal)) return false;
  const auto size = static_cast<uint32_t>(world.size());
  const auto rank = static_cast<uint32_t>(world.rank());
  HcclComm comm = nullptr;
  const bool made = HcclCommInitRootInfo(size, &root, rank, &comm) == HCCL_SUCCESS;
  if (!Expect(made, aclGetRecentErrMsg())) return false;
  const bool passed = GathersInOrder(comm, rank, world.size());
  if (rank == 0) std::filesystem::remove(path);
  return Expect(HcclCommDestroy(comm) == HCCL_SUCCESS, "destroyed") && passed;
}

bool MissTheLast(World& world) {
  const std::string path = SharedPath(".root");
  HcclRootInfo root;
  if (world.rank() == world.size() - 1) {
    std::this_thread::sleep_for(std::chrono::seconds(4));
    return true;
  }
  if (!ShareRoot(world, path, &root)) return false;
  HcclComm comm = nullptr;
  const HcclResult result = HcclCommInitRootInfo(static_cast<uint32_t>(world.size()), &root,
                                                 static_cast<uint32_t>(world.rank()), &comm);
  const char* text = aclGetRecentErrMsg();
  const std::string why = text ? text : "";
  if (world.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::filesystem::remove(path);
  }
  return Expect(result == HCCL_E_TIMEOUT, "timed out") &&
         Expect(why.find("rank(s) 2 of 3 did not come") != std::string::npos, why.c_str());
}

bool Run(const std::vector<std::string>& words) {
  uint32_t count = 0;
  if (aclInit(nullptr) != ACL_SUCCESS || aclrtGetDeviceCount(&count) != ACL_SUCCESS) return false;
  const char* local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  if (local == nullptr) local = getenv("MPI_LOCALRANKID");
  const int32_t device = local ? local[0] - '0' : 0;
  if (aclrtSetDevice(device) != ACL_SUCCESS) return false;
  const Result<AclDevice*> current = CurrentDevice();
  if (!current.ok()) return false;
  World& world = (*current)->world;
  bool passed = false;
  if (words[0] == "table") passed = ReduceByTable(world);
  if (words[0] == "absent") passed = MissTheLast(world);
  if (words[0] == "root") passed = MeetByRoot(world, words[1], words.size() > 2 ? words[2] : "");
  return aclFinalize() == ACL_SUCCESS && passed;
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  return npumesh::Run(std::vector<std::string>(argv + 1, argv + argc)) ? 0 : 1;
}
