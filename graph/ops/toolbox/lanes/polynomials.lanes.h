// Polynomials, lowest power first.

// e^x for |x| <= ln(2) / 2: of the polynomials of this degree that are 1 at 0 the one whose largest
// relative error is least, 1.1e-12 (Remez exchange). Its even and its odd powers are two
// polynomials in x^2, which a processor computes side by side.
static const double kExpEvenTerms[] = {1.0, 0.49999999997569766, 0.04166666862151642,
                                       0.0013888499251578715, 2.504311786218628e-05};
static const double kExpOddTerms[] = {0.9999999999729996, 0.16666666945193823, 0.008333255836140505,
                                      0.00019921241965436992};
// Taylor series cut where the next term is below 1e-12; e^x - 1 and ln(1 + x) near 0 are x times
// theirs.
static const double kExpm1Terms[] = {1.0, 1.0 / 2, 1.0 / 6};
static const double kLogTerms[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7, 2.0 / 9,
                                   2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17};
static const double kLog1pTerms[] = {1.0, -1.0 / 2, 1.0 / 3};
static const double kSinTerms[] = {1.0,          -1.0 / 6,        1.0 / 120,         -1.0 / 5040,
                                   1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0};
static const double kCosTerms[] = {1.0,         -1.0 / 2,       1.0 / 24,         -1.0 / 720,
                                   1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600.0};
// (1 + 2x) e^(x^2) erfc(x) in (x - 3) / (x + 3); see Erfc.
static const double kErfcTerms[] = {
    1.25300805826987901,      -0.135621106135066193,    -0.0475622943890754413,
    0.129645159470719236,     -0.119273661734732815,    0.0683080115399056149,
    -0.0237705475829448183,   0.00252952618681262386,   0.00188899983898100019,
    -0.000780326727125288977, -0.000106653547150234718, 0.000125556413755862451,
    8.4476636699919363e-6,    -0.000018563116167474894, -3.77258479155379829e-6,
    3.18301442049441484e-7};

// Of floats (exponentials.lanes.h), by weighted least squares until the largest error was least:
// (tanh x - x) / x^3 in x^2 up to x = 0.625, error 2^-27.8 of tanh; erf x / x - 1 in x^2 up to
// x = 0.875, error 2^-32; -ln(1 - erf x) from 0.875 to 4, error 2^-29 of erf.
static const float kTanhFloatTerms[] = {-0.333332819402f, 0.133314421576f, -0.0537397121565f,
                                        0.0206390787402f, -0.00570497837291f};
static const float kErfFloatTerms[] = {0.128379166869f, -0.376126360657f, 0.112837330024f,
                                       -0.02686158469f, 0.005206747394f,  -0.000821110352f,
                                       0.0000867538987f};
static const float kErfcPowerTerms[] = {0.000144204f,    1.12788942f,    0.636820591f,
                                        0.104250259f,    -0.0223810605f, 0.00308200438f,
                                        -0.000199902312f};
