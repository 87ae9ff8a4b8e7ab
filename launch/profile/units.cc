#include "launch/profile/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace npumesh {
namespace {

// Three digits; whole numbers of the smallest unit.
std::string Scaled(double value, const std::array<std::string_view, 4>& units) {
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} {}", value, units[0]);
  const int digits = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, units[unit]);
}

}  // namespace

std::string DurationText(double ns) {
  return Scaled(ns, {"ns", "us", "ms", "s"});
}

std::string DurationText(int64_t ns) {
  return DurationText(static_cast<double>(ns));
}

std::string BytesText(uint64_t bytes) {
  return Scaled(static_cast<double>(bytes), {"B", "kB", "MB", "GB"});
}

std::string CountText(uint64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string EndOf(const std::string& name, size_t room) {
  if (name.size() <= room) return name;
  size_t begin = name.size() - room + 2;
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xC0) == 0x80) ++begin;
  return ".." + name.substr(begin);
}

}  // namespace npumesh
