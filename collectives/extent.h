// Extent: what a call touches in memory, and whether it can be carried out at all.
#ifndef NPUMESH_COLLECTIVES_EXTENT_H_
#define NPUMESH_COLLECTIVES_EXTENT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "runtime/base/status.h"

namespace npumesh {

// More bytes than any buffer has: what counts saturate at, so that sums of them cannot overflow.
inline constexpr uint64_t kTooManyBytes = uint64_t{1} << 62;

// Each count in bytes, saturated at kTooManyBytes.
std::vector<uint64_t> InBytes(std::span<const uint64_t> counts, DataType dtype);

// Where packed blocks begin, saturated at kTooManyBytes.
std::vector<uint64_t> Packed(std::span<const uint64_t> bytes);

// Bytes from each of the two pointers of a call on.
struct Extent {
  uint64_t send = 0;
  uint64_t recv = 0;
};
Extent ExtentOf(const Call& call, int rank, int size);

// Why the bytes cannot be one of a rank's buffers ("its send buffer of 4 bytes is not in its HBM");
// empty when they can, and when there are none.
std::string WhyNoBuffer(const DeviceMemory& memory, const void* buffer, uint64_t bytes,
                        std::string_view role);

// Why this rank cannot take part; OK when it can. kUnsupported: dtype or reduction;
// kInvalidArgument: count, root, a buffer outside the HBM.
Status Refuse(const Call& call, int rank, int size, const DeviceMemory& memory);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_EXTENT_H_
