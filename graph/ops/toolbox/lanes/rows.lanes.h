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
NM_INLINE F FirstLanes(F x, int count, float filler) {
  float each[NM_WIDTH];
  __builtin_memcpy(each, &x, sizeof(each));
  for (int i = count; i < NM_WIDTH; ++i) each[i] = filler;
  F r;
  __builtin_memcpy(&r, each, sizeof(each));
  return r;
}
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
// As Max, but of zeros the positive one in any order.
NM_TWO(Largest, (a > b) | (a != a) | ((a == b) & ((VI)a >= 0)) ? a : b)
NM_INLINE F LargestOrNan(F most) {
  float each[NM_WIDTH], largest;
  __builtin_memcpy(each, &most, sizeof(each));
  largest = each[0];
  for (int i = 1; i < NM_WIDTH; ++i) {
    const bool stays = largest > each[i] || largest != largest ||
                       (largest == each[i] && !__builtin_signbit(largest));
    largest = stays ? largest : each[i];
  }
  return Set(largest);
}
NM_INLINE void AddWide(D& lanes, F x) {
  const D wide = Widen(x);
  NM_EACH(kD) lanes.v[i] += wide.v[i];
}
NM_INLINE double TotalOfLanes(D lanes) {
  double each[NM_WIDTH], total = 0;
  __builtin_memcpy(each, &lanes, sizeof(each));
  for (int i = 0; i < NM_WIDTH; ++i) total += each[i];
  return total;
}
NM_INLINE F MeanOf(double sum, double count) { return Set((float)(sum / count)); }
NM_INLINE F ReciprocalOf(double sum) { return Set((float)(1.0 / sum)); }
NM_INLINE F RootOfMeanOf(double sum, double count, double epsilon) {
  return Set((float)(1.0 / __builtin_sqrt(sum / count + epsilon)));
}
