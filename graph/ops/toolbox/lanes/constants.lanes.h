// Constants of activations.
static const double kRootTwoOverPi = 0x1.9884533d43651p-1;
static const double kGeluCubic = 0.044715;
static const double kFastGeluScale = 1.702;
