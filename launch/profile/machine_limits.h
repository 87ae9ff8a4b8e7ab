// MachineLimits: what one core of this machine can do at most, measured now.
#ifndef NPUMESH_LAUNCH_PROFILE_MACHINE_LIMITS_H_
#define NPUMESH_LAUNCH_PROFILE_MACHINE_LIMITS_H_

namespace npumesh {

struct MachineLimits {
  double gflops = 0;  // float32 multiply-adds of one core, two operations each, 1e9 a second
  double gbytes = 0;  // of one core's copies in memory, read and written, 1e9 bytes a second
};

// Takes about 0.2 s of one core and 64 MB of memory. The best of several short runs, because other
// processes only slow it down.
MachineLimits MeasureMachineLimits();

// The roofline: what a core reaches at most with `intensity` operations for each byte that it reads
// or writes. Below the ridge (gflops / gbytes) memory is the limit, above it arithmetic.
double Roofline(const MachineLimits& limits, double intensity);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_MACHINE_LIMITS_H_
