#include "graph/io/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/base/parse.h"

namespace npumesh {
namespace {

// The position is the number. Never renumber: the values stand in files.
constexpr std::array<std::string_view, 55> kNames = {
    "NCHW",
    "NHWC",
    "ND",
    "NC1HWC0",
    "FRACTAL_Z",
    "NC1C0HWPAD",
    "NHWC1C0",
    "FSR_NCHW",
    "FRACTAL_DECONV",
    "C1HWNC0",
    "FRACTAL_DECONV_TRANSPOSE",
    "FRACTAL_DECONV_SP_STRIDE_TRANS",
    "NC1HWC0_C04",
    "FRACTAL_Z_C04",
    "CHWN",
    "DECONV_SP_STRIDE8_TRANS",
    "HWCN",
    "NC1KHKWHWC0",
    "BN_WEIGHT",
    "FILTER_HWCK",
    "LOOKUP_LOOKUPS",
    "LOOKUP_KEYS",
    "LOOKUP_VALUE",
    "LOOKUP_OUTPUT",
    "LOOKUP_HITS",
    "C1HWNCoC0",
    "MD",
    "NDHWC",
    "FRACTAL_ZZ",
    "FRACTAL_NZ",
    "NCDHW",
    "DHWCN",
    "NDC1HWC0",
    "FRACTAL_Z_3D",
    "CN",
    "NC",
    "DHWNC",
    "FRACTAL_Z_3D_TRANSPOSE",
    "FRACTAL_ZN_LSTM",
    "FRACTAL_Z_G",
    "FORMAT_RESERVED",
    "ALL",
    "NULL",
    "ND_RNN_BIAS",
    "FRACTAL_ZN_RNN",
    "NYUV",
    "NYUV_A",
    "NCL",
    "FRACTAL_Z_WINO",
    "C1HWC0",
    "FRACTAL_NZ_C0_16",
    "FRACTAL_NZ_C0_32",
    "FRACTAL_NZ_C0_2",
    "FRACTAL_NZ_C0_4",
    "FRACTAL_NZ_C0_8",
};
constexpr int64_t kMaxSubFormat = 0xffff;

}  // namespace

int64_t LayoutNumber(std::string_view layout) {
  const size_t colon = layout.find(':');
  const auto* found = std::find(kNames.begin(), kNames.end(), layout.substr(0, colon));
  if (found == kNames.end()) return kReservedLayout;
  const int64_t primary = found - kNames.begin();
  if (colon == std::string_view::npos) return primary;
  const Result<int64_t> sub = ParseInt(layout.substr(colon + 1), 0, kMaxSubFormat, "sub-format");
  return sub.ok() ? primary | *sub << 8 : kReservedLayout;
}

std::string LayoutName(int64_t number) {
  const auto primary = static_cast<size_t>(number & 0xff);
  if (number < 0 || primary >= kNames.size()) return "FORMAT_RESERVED";
  const int64_t sub = number >> 8 & kMaxSubFormat;
  if (sub == 0) return std::string(kNames[primary]);
  return fmt::format("{}:{}", kNames[primary], sub);
}

bool IsPrivateLayout(int64_t number) {
  const std::string name = LayoutName(number & 0xff);
  static constexpr std::array<std::string_view, 9> kPlain = {
      "NCHW", "NHWC", "ND", "CHWN", "HWCN", "NDHWC", "NCDHW", "NCL", "FORMAT_RESERVED"};
  return std::find(kPlain.begin(), kPlain.end(), name) == kPlain.end();
}

}  // namespace npumesh
