// What the simulated SoC, an Ascend 910B1, has: the numbers that programs ask for.
#ifndef NPUMESH_RUNTIME_ACL_LIMITS_SOC_H_
#define NPUMESH_RUNTIME_ACL_LIMITS_SOC_H_

#include <cstdint>
#include <string_view>

namespace npumesh {

// Its name makes clients take their ordinary paths.
inline constexpr const char* kSocName = "Ascend910B1";
inline constexpr uint32_t kSocCubeCores = 24;
inline constexpr uint32_t kSocVectorCores = 48;
inline constexpr uint32_t kSocAicpuCores = 6;
inline constexpr uint64_t kSocL2Bytes = uint64_t{192} << 20;
inline constexpr int64_t kSocArchitecture = 2201;

// Kernels of a SoC whose name begins so run on the simulated one.
inline constexpr std::string_view kSocFamily = "Ascend910B";

// Of streams; a smaller number goes first.
inline constexpr int32_t kLeastStreamPriority = 7;
inline constexpr int32_t kGreatestStreamPriority = 0;

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_LIMITS_SOC_H_
