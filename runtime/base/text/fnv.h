// A number for a text.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_FNV_H_
#define NPUMESH_RUNTIME_BASE_TEXT_FNV_H_

#include <cstdint>
#include <string_view>

namespace npumesh {

// FNV-1a, 64 bits: equal for equal texts, in every process and on every machine.
constexpr uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_FNV_H_
