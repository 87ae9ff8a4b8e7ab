// Philox4x32-10, the counter-based generator of the device (J. Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3").
#ifndef NPUMESH_RUNTIME_BASE_PHILOX_H_
#define NPUMESH_RUNTIME_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace npumesh {

// The four words that a counter and a key give.
inline std::array<uint32_t, 4> PhiloxBlock(std::array<uint32_t, 4> counter,
                                           std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The words of successive counters in order. `low` and `high` are the halves of the first counter.
class PhiloxStream {
 public:
  PhiloxStream(uint64_t key, uint64_t low, uint64_t high) : key_(key), low_(low), high_(high) {}

  uint32_t Next() {
    if (used_ == 4) {
      words_ = PhiloxBlock({static_cast<uint32_t>(low_), static_cast<uint32_t>(low_ >> 32),
                            static_cast<uint32_t>(high_), static_cast<uint32_t>(high_ >> 32)},
                           {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
      if (++low_ == 0) ++high_;
      used_ = 0;
    }
    return words_[used_++];
  }

 private:
  uint64_t key_, low_, high_;
  std::array<uint32_t, 4> words_{};
  size_t used_ = 4;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PHILOX_H_
