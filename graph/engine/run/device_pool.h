// DevicePool: the HBM that the plans of one session share.
//
// One plan runs at a time, so they have one arena, one scratch area, as large as the largest plan
// needs, and one communication stream; an input has one buffer, whatever its shape; equal constants
// are uploaded once.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_DEVICE_POOL_H_
#define NPUMESH_GRAPH_ENGINE_RUN_DEVICE_POOL_H_

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "graph/ir/tensor.h"
#include "runtime/device/device_memory.h"

namespace npumesh {

class Stream;

// A constant in HBM; freed with its last owner, which must not outlive the DeviceMemory.
class DeviceConstant {
 public:
  // Copies piece by piece, so that a weight in a file is never in memory twice.
  // `margin`: unused bytes before and after it.
  static Result<std::shared_ptr<const DeviceConstant>> Upload(const Tensor& tensor,
                                                              DeviceMemory& memory,
                                                              uint64_t margin = 0);
  // Copies it to `place`, which is the caller's and large enough.
  static std::shared_ptr<const DeviceConstant> UploadTo(void* place, const Tensor& tensor,
                                                        DeviceMemory& memory);
  ~DeviceConstant();
  DeviceConstant(const DeviceConstant&) = delete;
  DeviceConstant& operator=(const DeviceConstant&) = delete;
  const void* address() const { return address_; }
  uint64_t bytes() const { return tensor_.bytes(); }

 private:
  DeviceConstant(const Tensor& tensor, void* block, uint64_t margin, DeviceMemory& memory)
      : tensor_(tensor),
        block_(block),
        address_(static_cast<std::byte*>(block) + margin),
        memory_(memory) {}
  DeviceConstant(const Tensor& tensor, void* place, DeviceMemory& memory)
      : tensor_(tensor), block_(nullptr), address_(place), memory_(memory) {}
  Tensor tensor_;  // holds the host bytes, whose address is the key in the pool
  void* block_;    // as it was allocated; null: the memory is the caller's
  void* address_;
  DeviceMemory& memory_;
};

// Device memory of the caller for a session: areas of plans, and constants. Null: none. Addresses
// are multiples of kHbmAlignment, and the memory outlives the session.
struct GivenMemory {
  void* work = nullptr;
  uint64_t work_bytes = 0;
  void* weights = nullptr;
  uint64_t weight_bytes = 0;
};

class DevicePool {
 public:
  // `margin`: unused bytes before and after each area and constant, a multiple of kHbmAlignment.
  explicit DevicePool(DeviceMemory& memory, uint64_t margin = 0);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // From here on the arena, the scratch area and constants lie in this memory as long as they fit;
  // what does not fit is allocated. REQUIRES: nothing is reserved, and there is no margin.
  void UseMemory(const GivenMemory& given) { given_ = given; }

  // Called with each constant that was uploaded.
  void set_uploaded(std::function<void(const Tensor&)> uploaded) {
    uploaded_ = std::move(uploaded);
  }

  // Uploads the tensor unless the same host bytes are there already.
  Result<std::shared_ptr<const DeviceConstant>> Constant(const Tensor& tensor);

  // Forgets constants that no executor uses any more.
  void ForgetUnusedConstants();

  // Make an area at least this large. An area that has to grow moves and loses its content; then
  // `generation` changes. Errors: kOutOfMemory.
  Status ReserveArena(uint64_t bytes);
  Status ReserveScratch(uint64_t bytes);
  Status ReserveInput(int position, uint64_t bytes) { return Reserve(inputs_[position], bytes); }

  std::byte* arena() const { return static_cast<std::byte*>(arena_.address); }
  void* scratch() const { return scratch_.address; }
  // Null before the first ReserveInput.
  void* input(int position) const;

  // For collectives beside computing; idle between runs. Made when it is first asked for, with the
  // log rank of that thread.
  Stream& communication_stream();

  // Changes whenever an area has got its memory, or has moved.
  uint64_t generation() const { return generation_; }
  uint64_t arena_bytes() const { return arena_.bytes; }
  uint64_t margin() const { return margin_; }
  // Bytes of the constants that are in use now.
  uint64_t constant_bytes() const;

 private:
  struct Area {
    void* address = nullptr;  // after its margin
    uint64_t bytes = 0;       // without margins
    bool given = false;       // lies in the caller's memory
  };
  // Where `bytes` of the caller's memory for work are left beside `other`; null: nowhere. Two areas
  // begin at its two ends.
  void* PlaceInGiven(uint64_t bytes, const Area& other, bool at_end) const;
  Status ReserveInGiven(Area& area, const Area& other, bool at_end, uint64_t bytes);
  Status Reserve(Area& area, uint64_t bytes);
  void Release(Area& area);

  DeviceMemory& memory_;
  const uint64_t margin_;
  std::function<void(const Tensor&)> uploaded_;  // may be null
  GivenMemory given_;
  uint64_t weights_taken_ = 0;  // of given_.weights, from its begin
  Area arena_;
  Area scratch_;
  std::map<int, Area> inputs_;  // by position
  // By address and bytes of the host data.
  std::map<std::pair<const void*, uint64_t>, std::weak_ptr<const DeviceConstant>> constants_;
  uint64_t generation_ = 0;
  std::unique_ptr<Stream> communication_stream_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_DEVICE_POOL_H_
