// What a row gives: sums in sixteen lanes or in double, and the largest element.
#if NM_BYTES == 64  // for which GCC 12 takes two halves
NM_INLINE VD WidenHalfVector(VG x) { return __builtin_ia32_cvtps2pd512_mask(x, (VD){}, -1, 4); }
#else
NM_INLINE VD WidenHalfVector(VG x) { return __builtin_convertvector(x, VD); }
#endif
NM_INLINE D Widen(F x) {
  D r;
  NM_EACH(kF) {
    r.v[2 * i] = WidenHalfVector(NM_FIRST(x.v[i]));
    r.v[2 * i + 1] = WidenHalfVector(NM_OTHER(x.v[i]));
  }
  return r;
}
NM_INLINE F Narrow(D x) {
  F r;
  NM_EACH(kF) {
    r.v[i] = NM_JOINED(__builtin_convertvector(x.v[2 * i], VG),
                       __builtin_convertvector(x.v[2 * i + 1], VG));
  }
  return r;
}
// A sum in sixteen lanes, which are emptied into a double after 64 additions at most.
NM_INLINE void Empty(S& lanes, double& total) {
  float each[16];
  __builtin_memcpy(each, &lanes, sizeof(each));
  for (int i = 0; i < 16; ++i) total += (double)each[i];
  lanes = S();
}
NM_INLINE void AddLanes(S& lanes, F x) { NM_EACH(kF) lanes.v[i % kSixteen] += x.v[i]; }
// The first `count` lanes; elsewhere `filler`.
#define NM_FIRST_LANES_OF(T, number)                         \
  NM_INLINE T FirstLanes(T x, int count, number filler) {    \
    number each[NM_WIDTH];                                   \
    __builtin_memcpy(each, &x, sizeof(each));                \
    for (int i = count; i < NM_WIDTH; ++i) each[i] = filler; \
    T r;                                                     \
    __builtin_memcpy(&r, each, sizeof(each));                \
    return r;                                                \
  }
NM_FIRST_LANES_OF(F, float)
NM_FIRST_LANES_OF(D, double)
NM_INLINE void Raise(F& most, F x) {
  NM_EACH(kF) most.v[i] = most.v[i] < x.v[i] ? x.v[i] : most.v[i];
}
NM_INLINE F LargestLane(F most) {
  float each[NM_WIDTH], largest;
  __builtin_memcpy(each, &most, sizeof(each));
  largest = each[0];
  for (int i = 1; i < NM_WIDTH; ++i) largest = largest < each[i] ? each[i] : largest;
  return Set(largest);
}
// As Max and Min, but of zeros the positive one is the largest and the negative one the least, in
// any order.
#define NM_FURTHEST(T, V, W, parts, number, set, name, of_lanes, beyond, sign_wins) \
  NM_INLINE V name(V a, V b) {                                                      \
    return (a beyond b) | (a != a) | ((a == b) & ((W)a sign_wins 0)) ? a : b;       \
  }                                                                                 \
  NM_INLINE T name(T x, T y) {                                                      \
    NM_EACH(parts) x.v[i] = name(x.v[i], y.v[i]);                                   \
    return x;                                                                       \
  }                                                                                 \
  NM_INLINE T of_lanes(T lanes) {                                                   \
    enum { kNumbers = sizeof(V) / sizeof(number) };                                 \
    V all = lanes.v[0];                                                             \
    for (int i = 1; i < parts; ++i) all = name(all, lanes.v[i]);                    \
    number each[kNumbers];                                                          \
    __builtin_memcpy(each, &all, sizeof(each));                                     \
    number furthest = each[0];                                                      \
    for (int i = 1; i < kNumbers; ++i) {                                            \
      const int sign = __builtin_signbit(furthest) ? -1 : 0;                        \
      const bool stays = furthest beyond each[i] || furthest != furthest ||         \
                         (furthest == each[i] && sign sign_wins 0);                 \
      furthest = stays ? furthest : each[i];                                        \
    }                                                                               \
    return set(furthest);                                                           \
  }
NM_FURTHEST(F, VF, VI, kF, float, Set, Largest, LargestOrNan, >, >=)
NM_FURTHEST(F, VF, VI, kF, float, Set, Least, LeastOrNan, <, <)
NM_FURTHEST(D, VD, VL, kD, double, SetWide, Largest, LargestOrNan, >, >=)
NM_FURTHEST(D, VD, VL, kD, double, SetWide, Least, LeastOrNan, <, <)
// Sums and products in sixteen lanes of doubles, which join a total after each block.
struct W {
  VD v[2 * kSixteen];
};
NM_INLINE W Sixteen(double x) {
  W r;
  NM_EACH(2 * kSixteen) r.v[i] = SetD(x);
  return r;
}
#define NM_JOIN(name, operation, identity)                    \
  NM_INLINE void Join##name(W& lanes, D x) {                  \
    NM_EACH(kD) lanes.v[i % (2 * kSixteen)] operation x.v[i]; \
  }                                                           \
  NM_INLINE void Empty##name(W& lanes, double& total) {       \
    double each[16], block;                                   \
    __builtin_memcpy(each, &lanes, sizeof(each));             \
    block = each[0];                                          \
    for (int i = 1; i < 16; ++i) block operation each[i];     \
    total operation block;                                    \
    lanes = Sixteen(identity);                                \
  }
NM_JOIN(Sums, +=, 0)
NM_JOIN(Products, *=, 1)
NM_INLINE F MeanOf(double sum, double count) { return Set((float)(sum / count)); }
NM_INLINE F ReciprocalOf(double sum) { return Set((float)(1.0 / sum)); }
NM_INLINE F RootOfMeanOf(double sum, double count, double epsilon) {
  return Set((float)(1.0 / __builtin_sqrt(sum / count + epsilon)));
}
