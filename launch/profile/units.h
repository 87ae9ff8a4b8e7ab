// Times and sizes as people read them.
#ifndef NPUMESH_LAUNCH_PROFILE_UNITS_H_
#define NPUMESH_LAUNCH_PROFILE_UNITS_H_

#include <cstdint>
#include <string>

namespace npumesh {

// "850 ns", "12.3 us", "4.56 ms", "1.20 s": three digits.
std::string DurationText(double ns);
std::string DurationText(int64_t ns);

// "512 B", "1.50 MB": 1 MB = 1e6 bytes.
std::string BytesText(uint64_t bytes);

// A name that fits into `room` bytes, at least 3: the end of a long one, which tells more than its
// beginning, after "..".
std::string EndOf(const std::string& name, size_t room);

// "1 rank", "2 ranks".
std::string CountText(uint64_t count, const std::string& noun);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_UNITS_H_
