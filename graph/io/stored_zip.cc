#include "graph/io/stored_zip.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

// Records of the format (PKWARE's public APPNOTE 6.3), by signature.
constexpr uint32_t kMember = 0x04034b50;
constexpr uint32_t kEntry = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Place = 0x07064b50;
constexpr size_t kMemberBytes = 30;
constexpr size_t kEntryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kEnd64PlaceBytes = 20;
constexpr size_t kMostComment = 65535;
constexpr uint32_t kIn64 = 0xffffffff;  // the number stands in a field of 64 bits
constexpr uint16_t kExtra64 = 1;

template <typename T>
T NumberAt(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

Status DamagedZip(std::string_view what) {
  return Error(Code::kCorrupt, "no whole zip archive: {}; was it copied whole?", what);
}

// The record of `bytes` at `offset`; empty: it is not there.
std::string_view Record(std::string_view file, uint64_t offset, size_t bytes, uint32_t signature) {
  if (offset > file.size() || file.size() - offset < bytes) return {};
  const std::string_view record = file.substr(offset);
  return NumberAt<uint32_t>(record, 0) == signature ? record : std::string_view();
}

struct Directory {
  uint64_t offset = 0;
  uint64_t entries = 0;
};

// The record at the end of the file, before a comment.
std::optional<size_t> FindEnd(std::string_view file) {
  if (file.size() < kEndBytes) return std::nullopt;
  const size_t latest = file.size() - kEndBytes;
  const size_t earliest = latest > kMostComment ? latest - kMostComment : 0;
  for (size_t at = latest;; --at) {
    if (NumberAt<uint32_t>(file, at) == kEnd) return at;
    if (at == earliest) return std::nullopt;
  }
}

Result<Directory> FindDirectory(std::string_view file) {
  const std::optional<size_t> at = FindEnd(file);
  if (!at) return DamagedZip("its end is missing");
  const std::string_view end = file.substr(*at);
  if (NumberAt<uint16_t>(end, 4) != 0 && NumberAt<uint16_t>(end, 4) != 0xffff) {
    return Error(Code::kUnsupported, "a zip archive of several files");
  }
  const Directory directory = {NumberAt<uint32_t>(end, 16), NumberAt<uint16_t>(end, 10)};
  const bool in_64 = directory.offset == kIn64 || directory.entries == 0xffff;
  if (!in_64 || *at < kEnd64PlaceBytes) return directory;
  const std::string_view place =
      Record(file, *at - kEnd64PlaceBytes, kEnd64PlaceBytes, kEnd64Place);
  if (place.empty()) return directory;
  const std::string_view end_64 = Record(file, NumberAt<uint64_t>(place, 8), kEnd64Bytes, kEnd64);
  if (end_64.empty()) return DamagedZip("its end of 64 bits is missing");
  return Directory{NumberAt<uint64_t>(end_64, 48), NumberAt<uint64_t>(end_64, 32)};
}

// Replaces those of `numbers` that stand in the extra field of 64 bits, in their order.
Status TakeFrom64(std::string_view extra, std::initializer_list<uint64_t*> numbers) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const size_t length = NumberAt<uint16_t>(extra, at + 2);
    if (length > extra.size() - at - 4) break;
    std::string_view field = extra.substr(at + 4, length);
    if (NumberAt<uint16_t>(extra, at) == kExtra64) {
      for (uint64_t* const number : numbers) {
        if (*number != kIn64) continue;
        if (field.size() < 8) return DamagedZip("a size of 64 bits is missing");
        *number = NumberAt<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return Status();
    }
    at += 4 + length;
  }
  return Status();
}

// Where the bytes of a member begin, whose record is at `offset`.
Result<uint64_t> BytesOfMember(std::string_view file, uint64_t offset, uint64_t bytes) {
  const std::string_view record = Record(file, offset, kMemberBytes, kMember);
  if (record.empty()) return DamagedZip("a member is not where its directory says");
  const uint64_t begin =
      offset + kMemberBytes + NumberAt<uint16_t>(record, 26) + NumberAt<uint16_t>(record, 28);
  if (begin > file.size() || file.size() - begin < bytes)
    return DamagedZip("a member ends behind it");
  return begin;
}

}  // namespace

bool LooksLikeZip(std::string_view file) {
  return !Record(file, 0, 4, kMember).empty();
}

Result<std::vector<ZipMember>> ListStoredZip(std::string_view file) {
  NPUMESH_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(file));
  if (directory.entries > file.size() / kEntryBytes) return DamagedZip("more members than bytes");
  std::vector<ZipMember> members;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const std::string_view entry = Record(file, at, kEntryBytes, kEntry);
    if (entry.empty()) return DamagedZip("its directory ends early");
    const size_t name = NumberAt<uint16_t>(entry, 28);
    const size_t extra = NumberAt<uint16_t>(entry, 30);
    const size_t length = kEntryBytes + name + extra + NumberAt<uint16_t>(entry, 32);
    if (length > entry.size()) return DamagedZip("its directory ends early");
    ZipMember member{entry.substr(kEntryBytes, name), 0, NumberAt<uint32_t>(entry, 24)};
    uint64_t stored = NumberAt<uint32_t>(entry, 20);
    uint64_t record = NumberAt<uint32_t>(entry, 42);
    NPUMESH_RETURN_IF_ERROR(
        TakeFrom64(entry.substr(kEntryBytes + name, extra), {&member.bytes, &stored, &record}));
    const bool encrypted = (NumberAt<uint16_t>(entry, 8) & 1) != 0;
    if (NumberAt<uint16_t>(entry, 10) != 0 || encrypted || stored != member.bytes) {
      return Error(Code::kUnsupported, "member {} of the archive is {}; torch.save writes neither",
                   Printable(member.name), encrypted ? "encrypted" : "compressed");
    }
    NPUMESH_ASSIGN_OR_RETURN(member.offset, BytesOfMember(file, record, member.bytes));
    members.push_back(member);
    at += length;
  }
  return members;
}

}  // namespace npumesh
