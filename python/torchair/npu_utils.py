"""TorchAir's module _npu_utils: conversions of formats on the CPU."""
