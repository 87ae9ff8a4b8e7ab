#include "graph/static_kernel/record/tar_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace npumesh {
namespace {

constexpr size_t kTarBlock = 512;

// One file's header. Numbers are octal digits; what stays zero is empty or unused.
struct TarHeader {
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char link_name[100];
  char magic[6];
  char version[2];
  char unused[247];
};
static_assert(sizeof(TarHeader) == kTarBlock);

template <size_t kBytes>
void Put(char (&field)[kBytes], std::string_view text) {
  assert(text.size() <= kBytes);
  std::copy(text.begin(), text.end(), field);
}

std::string HeaderOf(const std::string& path, uint64_t size) {
  assert(size < uint64_t{1} << 33);
  TarHeader header{};
  Put(header.name, path);
  Put(header.mode, "0000600");
  Put(header.uid, "0000000");
  Put(header.gid, "0000000");
  Put(header.size, fmt::format("{:011o}", size));
  Put(header.mtime, "00000000000");
  Put(header.checksum, "        ");  // as blanks it counts in its sum
  header.type = '0';                 // a file
  Put(header.magic, "ustar");
  Put(header.version, "00");
  std::string bytes(kTarBlock, '\0');
  std::memcpy(bytes.data(), &header, kTarBlock);
  unsigned sum = 0;
  for (const char c : bytes) sum += static_cast<unsigned char>(c);
  const std::string digits = fmt::format("{:06o}", sum);
  std::copy(digits.begin(), digits.end(), bytes.begin() + offsetof(TarHeader, checksum));
  bytes[offsetof(TarHeader, checksum) + digits.size()] = '\0';
  return bytes;
}

}  // namespace

std::string TarArchive(const std::map<std::string, std::string>& files) {
  std::string archive;
  for (const auto& [path, content] : files) {
    archive += HeaderOf(path, content.size());
    archive += content;
    archive.append((kTarBlock - content.size() % kTarBlock) % kTarBlock, '\0');
  }
  return archive.append(2 * kTarBlock, '\0');
}

}  // namespace npumesh
