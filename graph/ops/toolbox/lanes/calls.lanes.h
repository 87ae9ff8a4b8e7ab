// Functions of doubles that the C library computes, element by element.
#define NM_CALL(name, call)                                     \
  NM_INLINE double name(double x) { return (call)(x); }         \
  NM_INLINE D name(D x) {                                       \
    double each[NM_WIDTH];                                      \
    StoreDouble(x, each);                                       \
    for (int i = 0; i < NM_WIDTH; ++i) each[i] = name(each[i]); \
    return LoadDouble(each);                                    \
  }
#define NM_CALL_TWO(name, call)                                      \
  NM_INLINE double name(double x, double y) { return (call)(x, y); } \
  NM_INLINE D name(D x, D y) {                                       \
    double a[NM_WIDTH], b[NM_WIDTH];                                 \
    StoreDouble(x, a);                                               \
    StoreDouble(y, b);                                               \
    for (int i = 0; i < NM_WIDTH; ++i) a[i] = name(a[i], b[i]);      \
    return LoadDouble(a);                                            \
  }
NM_CALL(Expm1, __builtin_expm1)
NM_CALL(Log1p, __builtin_log1p)
NM_CALL(Sin, __builtin_sin)
NM_CALL(Cos, __builtin_cos)
NM_CALL(Tan, __builtin_tan)
NM_CALL(Sinh, __builtin_sinh)
NM_CALL(Cosh, __builtin_cosh)
NM_CALL(Tanh, __builtin_tanh)
NM_CALL(Asin, __builtin_asin)
NM_CALL(Acos, __builtin_acos)
NM_CALL(Atan, __builtin_atan)
NM_CALL(Asinh, __builtin_asinh)
NM_CALL(Acosh, __builtin_acosh)
NM_CALL(Atanh, __builtin_atanh)
NM_CALL(Erf, __builtin_erf)
NM_CALL(Erfc, __builtin_erfc)
NM_CALL_TWO(Atan2, __builtin_atan2)
NM_CALL_TWO(Mod, __builtin_fmod)
NM_CALL_TWO(Pow, __builtin_pow)
NM_INLINE double SigmoidOf(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }
NM_CALL(Sigmoid, SigmoidOf)
// base^(scale x + shift), and the logarithm of scale x + shift; base -1 is e.
NM_INLINE double PowerOf(double x, double base, double scale, double shift) {
  const double power = scale * x + shift;
  return base == -1 ? __builtin_exp(power) : __builtin_pow(base, power);
}
NM_INLINE double LogTo(double base, double x) {
  if (base == 2) return __builtin_log2(x);
  if (base == 10) return __builtin_log10(x);
  return base == -1 ? __builtin_log(x) : __builtin_log(x) / __builtin_log(base);
}
NM_INLINE double LogOf(double x, double base, double scale, double shift) {
  return LogTo(base, scale * x + shift);
}
#define NM_CALL_SCALED(name, call)                                                  \
  NM_INLINE double name(double x, double base, double scale, double shift) {        \
    return call(x, base, scale, shift);                                             \
  }                                                                                 \
  NM_INLINE D name(D x, double base, double scale, double shift) {                  \
    double each[NM_WIDTH];                                                          \
    StoreDouble(x, each);                                                           \
    for (int i = 0; i < NM_WIDTH; ++i) each[i] = name(each[i], base, scale, shift); \
    return LoadDouble(each);                                                        \
  }
NM_CALL_SCALED(Exp, PowerOf)
NM_CALL_SCALED(Log, LogOf)
