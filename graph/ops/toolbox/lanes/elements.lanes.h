// Elements of other types, and what casts make of numbers.
#define NM_STORED(name, number, Value, Vector, parts, lanes)                          \
  typedef number Stored##name __attribute__((vector_size((lanes) * sizeof(number)))); \
  NM_INLINE Value Load##name(const number* p) {                                       \
    Value r;                                                                          \
    NM_EACH(parts) {                                                                  \
      Stored##name bits;                                                              \
      __builtin_memcpy(&bits, p + i * (lanes), sizeof(bits));                         \
      r.v[i] = __builtin_convertvector(bits, Vector);                                 \
    }                                                                                 \
    return r;                                                                         \
  }                                                                                   \
  NM_INLINE void Store##name(Value x, number* p) {                                    \
    NM_EACH(parts) {                                                                  \
      const Stored##name bits = __builtin_convertvector(x.v[i], Stored##name);        \
      __builtin_memcpy(p + i * (lanes), &bits, sizeof(bits));                         \
    }                                                                                 \
  }                                                                                   \
  NM_INLINE Value One##name(const number* p) {                                        \
    Value r;                                                                          \
    NM_EACH(parts) r.v[i] = *p - (Vector){};                                          \
    return r;                                                                         \
  }
NM_STORED(Int8, signed char, I, VI, kF, NM_LANES)
NM_STORED(Uint8, unsigned char, I, VI, kF, NM_LANES)
NM_STORED(Int16, short, I, VI, kF, NM_LANES)
NM_STORED(Uint16, unsigned short, I, VI, kF, NM_LANES)
NM_STORED(Int32, int, I, VI, kF, NM_LANES)
NM_STORED(Uint32, unsigned, L, VL, kD, NM_LANES / 2)
NM_STORED(Int64, long long, L, VL, kD, NM_LANES / 2)
NM_STORED(Double, double, D, VD, kD, NM_LANES / 2)
// Floats, each in the low half of 64 bits.
NM_INLINE F LoadPacked(const unsigned long long* p) {
  F r;
  NM_EACH(kF) {
    VQ bits[2];
    __builtin_memcpy(bits, p + i * NM_LANES, sizeof(bits));
    const VK low[2] = {__builtin_convertvector(bits[0], VK), __builtin_convertvector(bits[1], VK)};
    __builtin_memcpy(&r.v[i], low, sizeof(low));
  }
  return r;
}
NM_INLINE F OnePacked(const unsigned long long* p) {
  F r;
  NM_EACH(kF) r.v[i] = (VF)SetU((unsigned)*p);
  return r;
}

// ---- between types ----
NM_INLINE B NarrowMask(const VL* wide) {
  B r;
  NM_EACH(kF) {
    const VJ part[2] = {__builtin_convertvector(wide[2 * i], VJ),
                        __builtin_convertvector(wide[2 * i + 1], VJ)};
    __builtin_memcpy(&r.v[i], part, sizeof(part));
  }
  return r;
}
#define NM_WIDEN(name, From, Part, To, Vector)                   \
  NM_INLINE To name(From x) {                                    \
    To r;                                                        \
    NM_EACH(kF) {                                                \
      Part part[2];                                              \
      __builtin_memcpy(part, &x.v[i], sizeof(part));             \
      r.v[2 * i] = __builtin_convertvector(part[0], Vector);     \
      r.v[2 * i + 1] = __builtin_convertvector(part[1], Vector); \
    }                                                            \
    return r;                                                    \
  }
#define NM_NARROW(name, From, Part, To)                                     \
  NM_INLINE To name(From x) {                                               \
    To r;                                                                   \
    NM_EACH(kF) {                                                           \
      const Part part[2] = {__builtin_convertvector(x.v[2 * i], Part),      \
                            __builtin_convertvector(x.v[2 * i + 1], Part)}; \
      __builtin_memcpy(&r.v[i], part, sizeof(part));                        \
    }                                                                       \
    return r;                                                               \
  }
NM_WIDEN(WideMask, B, VJ, L, VL)
NM_WIDEN(ToLong, I, VJ, L, VL)
NM_WIDEN(ToDouble, I, VJ, D, VD)
NM_NARROW(ToInt, L, VJ, I)
NM_NARROW(ToFloat, L, VG, F)
NM_NARROW(Truncated, D, VJ, I)
NM_INLINE I ToInt(B x) {
  I r;
  NM_EACH(kF) r.v[i] = x.v[i] & 1;
  return r;
}
NM_INLINE L ToLong(B x) { return ToLong(ToInt(x)); }
NM_INLINE D ToDouble(B x) { return ToDouble(ToInt(x)); }
NM_INLINE D ToDouble(F x) { return Widen(x); }
NM_INLINE D ToDouble(L x) {
  D r;
  NM_EACH(kD) r.v[i] = __builtin_convertvector(x.v[i], VD);
  return r;
}
NM_INLINE F ToFloat(I x) {
  F r;
  NM_EACH(kF) r.v[i] = __builtin_convertvector(x.v[i], VF);
  return r;
}
NM_INLINE F ToFloat(D x) { return Narrow(x); }
NM_INLINE B ToBool(I x) {
  B r;
  NM_EACH(kF) r.v[i] = (VI)(x.v[i] != 0);
  return r;
}
NM_INLINE B ToBool(L x) {
  VL wide[kD];
  NM_EACH(kD) wide[i] = (VL)(x.v[i] != 0);
  return NarrowMask(wide);
}
NM_INLINE B ToBool(D x) {
  VL wide[kD];
  NM_EACH(kD) wide[i] = (VL)(x.v[i] != 0);
  return NarrowMask(wide);
}
// The last bit is set where a digit was cut off, so that a second rounding gives what one would.
NM_INLINE F ToOdd(D x) {
  F r = Narrow(x);
  const D back = Widen(r);
  VL above[kD], below[kD];
  NM_EACH(kD) above[i] = (VL)(MagnitudeOf(back.v[i]) < MagnitudeOf(x.v[i]));
  NM_EACH(kD) below[i] = (VL)(MagnitudeOf(back.v[i]) > MagnitudeOf(x.v[i]));
  const B up = NarrowMask(above), down = NarrowMask(below);
  NM_EACH(kF) {
    const VI bits = (VI)r.v[i];
    r.v[i] = (VF)(bits + ((down.v[i] - up.v[i]) & ((bits & 1) - 1)));
  }
  return r;
}
// Truncates what is clipped; NaN gives 0.
NM_INLINE VF Clipped(VF x, float least, float most) {
  x = x > most ? SetF(most) : x;
  x = x < least ? SetF(least) : x;
  return x == x ? x : SetF(0);
}
NM_INLINE VD Clipped(VD x, double least, double most) {
  x = x > most ? SetD(most) : x;
  x = x < least ? SetD(least) : x;
  return x == x ? x : SetD(0);
}
#define NM_SATURATE(name, least, most)                                              \
  NM_INLINE I Saturate##name(F x) {                                                 \
    I r;                                                                            \
    NM_EACH(kF) r.v[i] = __builtin_convertvector(Clipped(x.v[i], least, most), VI); \
    return r;                                                                       \
  }                                                                                 \
  NM_INLINE I Saturate##name(D x) {                                                 \
    NM_EACH(kD) x.v[i] = Clipped(x.v[i], (double)(least), (double)(most));          \
    return Truncated(x);                                                            \
  }
NM_SATURATE(Int8, -128, 127)
NM_SATURATE(Uint8, 0, 255)
NM_SATURATE(Int16, -32768, 32767)
NM_SATURATE(Uint16, 0, 65535)
NM_INLINE I SaturateInt32(F x) {
  I r;
  NM_EACH(kF) {
    const VF a = x.v[i];
    const VI whole = __builtin_convertvector(Clipped(a, -0x1p31f, 0x1.fffffep30f), VI);
    r.v[i] = a >= 0x1p31f ? SetI(0x7fffffff) : whole;
  }
  return r;
}
NM_INLINE I SaturateInt32(D x) {
  NM_EACH(kD) x.v[i] = Clipped(x.v[i], -2147483648.0, 2147483647.0);
  return Truncated(x);
}
NM_INLINE L SaturateInt64(D x) {
  L r;
  NM_EACH(kD) {
    const VD a = x.v[i];
    const VL whole = __builtin_convertvector(Clipped(a, -0x1p63, 0x1.fffffffffffffp62), VL);
    r.v[i] = a >= 0x1p63 ? SetL(0x7fffffffffffffffll) : whole;
  }
  return r;
}
NM_INLINE L SaturateUint32(D x) {
  L r;
  NM_EACH(kD) r.v[i] = __builtin_convertvector(Clipped(x.v[i], 0, 4294967295.0), VL);
  return r;
}
NM_INLINE L SaturateInt64(F x) { return SaturateInt64(Widen(x)); }
NM_INLINE L SaturateUint32(F x) { return SaturateUint32(Widen(x)); }
