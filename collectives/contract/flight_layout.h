// Where the parts of a flight record lie, and what its header says of them: once for its writer and
// its readers.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_LAYOUT_H_
#define NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_LAYOUT_H_

#include <algorithm>

#include "collectives/contract/flight_format.h"

namespace npumesh::flight {

// Offsets of the first row of each part, and the bytes of the whole file.
struct Places {
  uint64_t groups = sizeof(RecordHeader);
  uint64_t calls = 0;
  uint64_t notices = 0;
  uint64_t bytes = 0;
};

constexpr Places PlacesOf(const RecordHeader& header) {
  Places places;
  places.calls = places.groups + uint64_t{header.group_capacity} * sizeof(GroupRow);
  places.notices = places.calls + header.call_capacity * sizeof(CallEntry);
  places.bytes = places.notices + uint64_t{header.notice_capacity} * sizeof(NoticeEntry);
  return places;
}

// A header of this version with room for so much. What it says of a rank is zero.
inline RecordHeader EmptyHeader(uint32_t groups, uint64_t calls, uint32_t notices) {
  RecordHeader header{};
  std::copy(kMagic.begin(), kMagic.end(), header.magic);
  header.byte_order = kByteOrder;
  header.version = kVersion;
  header.header_bytes = sizeof(RecordHeader);
  header.group_bytes = sizeof(GroupRow);
  header.entry_bytes = sizeof(CallEntry);
  header.notice_bytes = sizeof(NoticeEntry);
  header.group_capacity = groups;
  header.call_capacity = calls;
  header.notice_capacity = notices;
  return header;
}

}  // namespace npumesh::flight

#endif  // NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_LAYOUT_H_
