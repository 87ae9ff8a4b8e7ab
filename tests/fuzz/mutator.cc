#include "tests/fuzz/mutator.h"

#include <algorithm>

namespace npumesh::fuzz {
namespace {

// Longer files find nothing that these do not.
constexpr size_t kMaxBytes = 64 << 10;

// Varint lengths of 2^31 - 1, 2^32 and 2^63.
const std::vector<std::string> kHugeLengths = {"\xff\xff\xff\xff\x07", "\x80\x80\x80\x80\x10",
                                               "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"};

}  // namespace

size_t Mutator::Below(size_t limit) {
  return limit == 0 ? 0 : static_cast<size_t>(random_() % limit);
}

std::string Mutator::RandomBytes(size_t most) {
  std::string bytes(Below(most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

std::string Mutator::Mutate(std::string bytes, const std::vector<std::string>& others) {
  for (size_t i = Below(4) + 1; i > 0; --i) Damage(&bytes, others);
  if (bytes.size() > kMaxBytes) bytes.resize(kMaxBytes);
  return bytes;
}

void Mutator::Damage(std::string* bytes, const std::vector<std::string>& others) {
  if (bytes->empty()) *bytes = RandomBytes(8);
  if (bytes->empty()) return;
  const size_t at = Below(bytes->size());
  const size_t length = std::min(Below(64) + 1, bytes->size() - at);
  switch (Below(8)) {
    case 0:
      (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << Below(8)));
      break;
    case 1:
      (*bytes)[at] = static_cast<char>(random_());
      break;
    case 2:
      bytes->resize(at);
      break;
    case 3:
      bytes->erase(at, length);
      break;
    case 4:
      bytes->insert(at, bytes->substr(at, length));
      break;
    case 5:
      bytes->replace(at, 1, kHugeLengths[Below(kHugeLengths.size())]);
      break;
    case 6:
      bytes->insert(at, RandomBytes(16));
      break;
    default: {
      const std::string& other = others[Below(others.size())];
      bytes->replace(at, length, other.substr(Below(other.size() + 1), Below(256)));
    }
  }
}

}  // namespace npumesh::fuzz
