#include "graph/ir/layout_numbers.h"

#include <array>

namespace npumesh {
namespace {

// Never renumber: the values stand in files.
constexpr std::array<LayoutNames, 55> kLayouts = {{
    {"NCHW", "NCHW"},
    {"NHWC", "NHWC"},
    {"ND", "ND"},
    {"NC1HWC0", "NC1HWC0"},
    {"FRACTAL_Z", "FRACTAL_Z"},
    {"NC1C0HWPAD", "NC1C0HWPAD"},
    {"NHWC1C0", "NHWC1C0"},
    {"FSR_NCHW", "FSR_NCHW"},
    {"FRACTAL_DECONV", "FRACTAL_DECONV"},
    {"C1HWNC0", "C1HWNC0"},
    {"FRACTAL_DECONV_TRANSPOSE", "FRACTAL_DECONV_TRANSPOSE"},
    {"FRACTAL_DECONV_SP_STRIDE_TRANS", "FRACTAL_DECONV_SP_STRIDE_TRANS"},
    {"NC1HWC0_C04", "NC1HWC0_C04"},
    {"FRACTAL_Z_C04", "FRACTAL_Z_C04"},
    {"CHWN", "CHWN"},
    {"DECONV_SP_STRIDE8_TRANS", "FRACTAL_DECONV_SP_STRIDE8_TRANS"},
    {"HWCN", "HWCN"},
    {"NC1KHKWHWC0", "NC1KHKWHWC0"},
    {"BN_WEIGHT", "BN_WEIGHT"},
    {"FILTER_HWCK", "FILTER_HWCK"},
    {"LOOKUP_LOOKUPS", "HASHTABLE_LOOKUP_LOOKUPS"},
    {"LOOKUP_KEYS", "HASHTABLE_LOOKUP_KEYS"},
    {"LOOKUP_VALUE", "HASHTABLE_LOOKUP_VALUE"},
    {"LOOKUP_OUTPUT", "HASHTABLE_LOOKUP_OUTPUT"},
    {"LOOKUP_HITS", "HASHTABLE_LOOKUP_HITS"},
    {"C1HWNCoC0", "C1HWNCoC0"},
    {"MD", "MD"},
    {"NDHWC", "NDHWC"},
    {"FRACTAL_ZZ", "FRACTAL_ZZ"},
    {"FRACTAL_NZ", "FRACTAL_NZ"},
    {"NCDHW", "NCDHW"},
    {"DHWCN", "DHWCN"},
    {"NDC1HWC0", "NDC1HWC0"},
    {"FRACTAL_Z_3D", "FRACTAL_Z_3D"},
    {"CN", "CN"},
    {"NC", "NC"},
    {"DHWNC", "DHWNC"},
    {"FRACTAL_Z_3D_TRANSPOSE", "FRACTAL_Z_3D_TRANSPOSE"},
    {"FRACTAL_ZN_LSTM", "FRACTAL_ZN_LSTM"},
    {"FRACTAL_Z_G", "FRACTAL_Z_G"},
    {"FORMAT_RESERVED", "RESERVED"},
    {"ALL", "ALL"},
    {"NULL", "NULL"},
    {"ND_RNN_BIAS", "ND_RNN_BIAS"},
    {"FRACTAL_ZN_RNN", "FRACTAL_ZN_RNN"},
    {"NYUV", "YUV"},
    {"NYUV_A", "YUV_A"},
    {"NCL", "NCL"},
    {"FRACTAL_Z_WINO", "FRACTAL_Z_WINO"},
    {"C1HWC0", "C1HWC0"},
    {"FRACTAL_NZ_C0_16", ""},
    {"FRACTAL_NZ_C0_32", ""},
    {"FRACTAL_NZ_C0_2", ""},
    {"FRACTAL_NZ_C0_4", ""},
    {"FRACTAL_NZ_C0_8", ""},
}};
static_assert(kLayouts[kNdLayout].graph == "ND");
static_assert(kLayouts[kReservedLayout].dump == "RESERVED");

}  // namespace

std::span<const LayoutNames> LayoutsByNumber() {
  return kLayouts;
}

}  // namespace npumesh
