// The header and the table of an .om file, byte for byte as the vendor's tools have them (GE's
// ModelFileHeader and ModelPartitionTable). Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_OFFLINE_HEADER_H_
#define NPUMESH_GRAPH_IO_OFFLINE_HEADER_H_

#include <cstddef>
#include <cstdint>

namespace npumesh {

inline constexpr uint32_t kOfflineMagic = 0x444F4D49;  // "IMOD"
inline constexpr uint32_t kOfflineHeaderBytes = 256;
inline constexpr uint32_t kOfflineVersion = 0x10000000;

// Little-endian, as this machine.
struct OfflineHeader {
  uint32_t magic = kOfflineMagic;
  uint32_t header_bytes = kOfflineHeaderBytes;
  uint32_t version = kOfflineVersion;
  char checksum[64] = {};
  uint32_t length = 0;  // of what follows the header; 0 where it takes more than 32 bits
  uint8_t encrypted = 0;
  uint8_t checked = 1;
  uint8_t model_kind = 0;
  uint8_t made_online = 0;
  char name[32] = {};
  uint32_t operations = 0;
  char maker[32] = {};  // "user-defined information": here kMaker
  uint32_t ir_version = 0;
  uint32_t models = 1;
  char platform[20] = {};  // "Ascend910B1"
  uint8_t platform_kind = 0;
  uint8_t padding[3] = {};
  uint64_t long_length = 0;  // as `length`, always
  uint8_t checks_host = 0;
  uint8_t dynamic = 0;
  uint8_t reserved[62] = {};
};
static_assert(sizeof(OfflineHeader) == kOfflineHeaderBytes);
static_assert(offsetof(OfflineHeader, maker) == 120 && offsetof(OfflineHeader, long_length) == 184);

// Numbers of partitions.
inline constexpr uint32_t kGraphPartition = 0;
inline constexpr uint32_t kWeightPartition = 1;
inline constexpr uint32_t kTaskPartition = 2;
inline constexpr uint32_t kKernelPartition = 3;
inline constexpr uint32_t kHostKernelPartition = 4;
inline constexpr uint32_t kDescriptionPartition = 8;
inline constexpr uint32_t kModelPartition = 9;  // of a bundle: a whole .om

// After a count of 4 bytes and 4 of padding. Offsets count from the end of the table.
struct OfflinePartition {
  uint32_t kind = 0;
  uint32_t padding = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(OfflinePartition) == 24);
inline constexpr size_t kTableHead = 8;

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_OFFLINE_HEADER_H_
