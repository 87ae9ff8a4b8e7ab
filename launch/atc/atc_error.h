// Errors of atc carry the vendor's code, by which its users look them up: "E10003 --dynamic_dims
// ...". The codes are those of its public list; the words are ours.
#ifndef NPUMESH_LAUNCH_ATC_ATC_ERROR_H_
#define NPUMESH_LAUNCH_ATC_ATC_ERROR_H_

#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

// The codes that npumesh has a case for.
namespace atc_code {
inline constexpr std::string_view kNoFile = "E10001";  // a file that cannot be read
inline constexpr std::string_view kShape = "E10002";   // --input_shape has another form
inline constexpr std::string_view kValue = "E10003";   // a flag has a value that it cannot have
inline constexpr std::string_view kEmpty = "E10004";   // a flag without a value
inline constexpr std::string_view kRequired = "E10007";
inline constexpr std::string_view kExclusive = "E10009";    // more than one kind of gears
inline constexpr std::string_view kNoNode = "E10016";       // a node that the graph has not
inline constexpr std::string_view kNotBatch = "E10018";     // an open dimension that is no batch
inline constexpr std::string_view kImageShape = "E10019";   // of --dynamic_image_size
inline constexpr std::string_view kNoOpenBatch = "E10031";  // gears without an open dimension
inline constexpr std::string_view kFewGears = "E10035";
inline constexpr std::string_view kManyGears = "E10036";
inline constexpr std::string_view kGearLengths = "E10037";
inline constexpr std::string_view kGearValue = "E10038";  // not positive
inline constexpr std::string_view kSameGears = "E10039";
inline constexpr std::string_view kNoOpFile = "E10024";  // of --singleop: cannot be read
inline constexpr std::string_view kNoJson = "E10025";
inline constexpr std::string_view kOpName = "E10026";
inline constexpr std::string_view kTensor = "E10027";
inline constexpr std::string_view kAttrName = "E10029";
inline constexpr std::string_view kAttrValue = "E10030";
inline constexpr std::string_view kOpenWithoutGears = "E10040";
inline constexpr std::string_view kGearDims = "E10045";  // another number than open dimensions
}  // namespace atc_code

// kInvalidArgument: "<code> --<flag> <what>".
template <typename... Args>
Status AtcError(std::string_view code, std::string_view flag, fmt::format_string<Args...> format,
                Args&&... args) {
  return Error(Code::kInvalidArgument, "{} --{} {}", code, flag,
               fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_ATC_ATC_ERROR_H_
